"""Nodes of moving trees against the reference kinematics."""

from collections.abc import Callable

import numpy as np
from support.arm_scenes import READY, scene_of

from kinopt_ros.geometry.shapes import Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths.moving_tree import moving_tree


def test_poses_of_all_links(panda: RobotModel, evaluated: Callable, problem_of: Callable) -> None:
    q = random_configurations(panda, 8, seed=3)
    q[:, 7:] = q[0, 7:]
    problem = problem_of(q[0, :7], q[-1, :7], start=q[0], num_points=8)
    found = evaluated(problem, q[:, :7])
    frames = found.one._store[0]
    q[:, :7] = found.path  # a little off the limits
    tree = moving_tree(panda, problem.variables, problem.start)
    T = np.zeros((8, len(tree.parent), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = frames[..., :9].reshape(8, -1, 3, 3), frames[..., 9:], 1.0
    poses = T[:, tree.node] @ tree.T_node_link
    np.testing.assert_allclose(poses, forward_kinematics(panda, q, panda.link_names), atol=1e-12)


def test_mimic_joints_move_too(panda: RobotModel, evaluated: Callable, problem_of: Callable) -> None:
    """Both fingers hang on one variable; its column has the derivatives of both."""
    rng = np.random.default_rng(4)
    path = np.concatenate(
        [READY + 0.05 * rng.normal(size=(8, 7)).cumsum(axis=0), np.full((8, 1), 0.02)], axis=1
    )
    joints = (*(f"panda_joint{i}" for i in range(1, 8)), "panda_finger_joint1")
    start = panda.default_q.copy()
    start[:8] = path[0]
    hand = forward_kinematics(panda, start[None], ("panda_hand",))[0, 0, :3, 3]
    problem = problem_of(
        path[0, :7],
        path[-1],
        joints=joints,
        variables=np.arange(8),
        start=start,
        num_points=8,
        scene=scene_of((Sphere(0.05), (hand[0], hand[1] + 0.08, hand[2] - 0.1))),
    )
    found = evaluated(problem, path, margin=0.05)
    gradient = found.arrays["constraints"].copy()
    assert np.abs(gradient[1:-1, 7]).max() > 0.0
    _, constraints = found.differences([2, 4])
    np.testing.assert_allclose(gradient[[2, 4]], constraints, atol=2e-3 * np.abs(constraints).max())
