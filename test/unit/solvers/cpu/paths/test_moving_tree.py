"""Nodes of moving trees against the reference kinematics."""

from collections.abc import Callable

import numpy as np

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
