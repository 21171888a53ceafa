"""Distances and tasks of the compiled kernel against numpy, and their derivatives against differences."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.arm_scenes import READY, scene_of

from kinopt_ros.array import Float64
from kinopt_ros.collision.obstacles import nearest, pack
from kinopt_ros.collision.spheres import robot_spheres
from kinopt_ros.costs.excess import excess_residual
from kinopt_ros.costs.nearness import nearness_residual
from kinopt_ros.geometry.shapes import Box, PlacedShape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.pose_errors import axis_errors
from kinopt_ros.kinematics.se3 import so3_exp
from kinopt_ros.problems.constraints.pose_along import PoseAlong
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.trajectory import CostWeights, PoseGoal
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths import optimize
from kinopt_ros.solvers.cpu.paths.kernels.nearness import SWEEP
from kinopt_ros.solvers.cpu.paths.kernels.tasks import USED
from kinopt_ros.solvers.cpu.paths.pack_tasks import ALONG_WEIGHT, GOAL_WEIGHT

T = 12


def wavy(rng: np.random.Generator, amount: float = 0.3) -> Float64:
    q = np.linspace(READY - amount, READY + amount, T)
    return q + 0.02 * rng.normal(size=q.shape)


def world_cost(robot: RobotModel, problem: Any, path: Float64, wanted: float) -> float:
    """Return the cost of nearness to the world at the path's points alone, not at places in between."""
    q = np.repeat(problem.start[None], len(path), axis=0)
    q[:, problem.variables] = path
    spheres = robot_spheres(robot)
    poses = forward_kinematics(robot, q, robot.link_names)[:, spheres.link]
    p = (poses[..., :3, :3] @ spheres.centers[:, :, None])[..., 0] + poses[..., :3, 3]
    things = [
        PlacedShape(item.shape, thing.T_root_object @ item.T_frame_shape)
        for thing in problem.scene.objects.values()
        for item in thing.shapes
    ]
    moving = spheres.link > robot.link_index["panda_link0"]
    balls = np.concatenate([p, np.broadcast_to(spheres.radii[:, None], (*p.shape[:2], 1))], axis=-1)[
        :, moving
    ]
    d = nearest(pack(things), balls.reshape(-1, 4)).distances
    return float((nearness_residual(np, d, wanted) ** 2).sum() / len(path))


def test_distances_from_the_world(panda: RobotModel, problem_of: Callable, evaluated: Callable) -> None:
    scene = scene_of((Box(0.2, 0.2, 0.2), (0.35, 0.25, 0.55)), (Sphere(0.1), (0.1, -0.3, 0.6)))
    ends = np.linspace(READY - 0.1, READY + 0.1, 2)
    path = wavy(np.random.default_rng(1), 0.1)
    problem = problem_of(ends[0], ends[1], scene=scene, num_points=T)
    found = evaluated(problem, path, margin=0.05)
    # Nothing is spared for the ends, and no self-collision: both would be missing in the reference.
    found.one._anchors[0][:] = np.inf
    found.one._anchors[2][:] = -np.inf
    found.at(path)
    expected = world_cost(panda, problem, path, 0.05 + optimize.BUFFER)
    assert expected > 1e-4
    assert found.constraints >= expected * (1.0 - 1e-9)
    # Steps are so small that hardly anything is looked at in between.
    assert found.constraints == pytest.approx(expected, rel=0.3)


def test_gradients_and_matrix_of_distances(problem_of: Callable, evaluated: Callable) -> None:
    """The path has what is spared near the ends, looks between points, and the robot near itself."""
    scene = scene_of((Box(0.2, 0.2, 0.2), (0.35, 0.25, 0.55)), (Sphere(0.1), (0.1, -0.3, 0.6)))
    rng = np.random.default_rng(2)
    path = wavy(rng, 1.2)
    path[4:8, 3] = -2.95  # folded
    problem = problem_of(path[0], path[-1], scene=scene, num_points=T)
    found = evaluated(problem, path, margin=0.05)
    arrays = {name: array.copy() for name, array in found.arrays.items()}
    assert np.abs(arrays["E"]).max() > 0.0
    points = list(range(1, T - 1))
    costs, constraints = found.differences(points)
    np.testing.assert_allclose(arrays["costs"][points], costs, rtol=1e-5, atol=1e-4 * np.abs(costs).max())
    scale = np.abs(constraints).max()
    assert scale > 1e-4
    np.testing.assert_allclose(arrays["constraints"][points], constraints, atol=2e-3 * scale)
    for t in range(T):
        block = np.triu(arrays["D"][t]) + np.triu(arrays["D"][t], 1).T
        assert np.linalg.eigvalsh(block).min() > -1e-9


def test_a_wall_thinner_than_a_step_is_seen(problem_of: Callable, evaluated: Callable) -> None:
    goal = READY.copy()
    start = READY.copy()
    start[0], goal[0] = -0.8, 0.8
    path = np.linspace(start, goal, 8)  # 14 cm at the hand
    wall = scene_of((Box(0.4, 0.002, 0.4), (0.5, 0.0, 0.5)))
    problem = problem_of(start, goal, scene=wall, num_points=8)
    between = path[3:5].mean(axis=0)
    assert not np.isclose(path, between).all(axis=1).any()
    found = evaluated(problem, path, margin=0.0)
    assert found.slack < -0.01
    found = evaluated(problem_of(start, goal, scene=scene_of(), num_points=8), path, margin=0.0)
    assert found.slack >= 0.0


def goal_cost(robot: RobotModel, problem: Any, q_end: Float64, target: PoseTarget) -> float:
    q = problem.start.copy()
    q[problem.variables] = q_end
    T_tip = forward_kinematics(robot, q[None], (target.link,))[0, 0]
    if target.T_link_tool is not None:
        T_tip = T_tip @ target.T_link_tool
    p, r = axis_errors(target.T_base_target[0], T_tip, target.free_position, target.free_orientation)
    return float((p**2).sum() + (r**2).sum())


@pytest.mark.parametrize(
    "orientation",
    [1e-3, (1e-3, 1e-3, math.inf), (math.inf, 1e-3, math.inf), (1e-3, math.inf, 1e-3), math.inf],
)
@pytest.mark.parametrize("turn", [(0.01, 0.02, -0.01), (1.0, -0.7, 0.5), (2.0, 1.9, 0.3)])
def test_pose_goals(
    panda: RobotModel, problem_of: Callable, evaluated: Callable, orientation: Any, turn: tuple[float, ...]
) -> None:
    tool = np.eye(4)
    tool[:3, 3] = 0.02, 0.0, 0.1
    path = np.linspace(READY - 0.2, READY, T)
    q = panda.default_q.copy()
    q[:7] = READY
    T_goal = forward_kinematics(panda, q[None], ("panda_link8",))[:, 0] @ tool
    T_goal[0, :3, :3] = T_goal[0, :3, :3] @ so3_exp(np.array(turn))
    T_goal[0, :3, 3] += 0.05, -0.02, 0.01
    position = (1e-4, math.inf, 1e-4)
    target = PoseTarget("panda_link8", T_goal, position, orientation, tool)
    problem = problem_of(path[0], PoseGoal((target,)), num_points=T)
    found = evaluated(problem, path)
    assert found.constraints == pytest.approx(
        GOAL_WEIGHT * goal_cost(panda, problem, path[-1], target), rel=1e-9
    )
    gradient, block = found.arrays["constraints"].copy(), found.arrays["D"][-1].copy()
    _, constraints = found.differences([T - 1])
    np.testing.assert_allclose(
        gradient[[T - 1]], constraints, atol=1e-6 * max(1.0, np.abs(constraints).max())
    )
    assert not gradient[: T - 1].any()
    assert np.linalg.matrix_rank(np.triu(block) + np.triu(block, 1).T, tol=1e-9) <= 6


@pytest.mark.parametrize("tolerances", [(0.05, 0.1), ((0.02, math.inf, 0.02), (0.05, 0.05, math.inf))])
def test_poses_along_a_path(
    panda: RobotModel, problem_of: Callable, evaluated: Callable, tolerances: tuple[Any, Any]
) -> None:
    path = wavy(np.random.default_rng(5))
    q = np.repeat(panda.default_q[None], T, axis=0)
    q[:, :7] = path
    poses = forward_kinematics(panda, q, ("panda_link8",))[:, 0]
    target = PoseTarget("panda_link8", poses[[5]].copy(), *tolerances)
    problem = problem_of(path[0], path[-1], along=(PoseAlong(target),), num_points=T)
    found = evaluated(problem, path)
    p, r = axis_errors(target.T_base_target, poses, target.free_position, target.free_orientation)

    def used(tolerance: Any) -> Any:
        return tuple(USED * x for x in tolerance) if isinstance(tolerance, tuple) else USED * tolerance

    excess = [excess_residual(np, e, used(t))[1:] for e, t in zip((p, r), tolerances, strict=True)]
    expected = ALONG_WEIGHT / T * sum(float((e**2).sum()) for e in excess)
    assert expected > 1e-4
    assert found.constraints == pytest.approx(expected, rel=1e-9)
    gradient = found.arrays["constraints"].copy()
    _, constraints = found.differences(list(range(1, T)))
    np.testing.assert_allclose(gradient[1:], constraints, atol=1e-5 * np.abs(constraints).max())


def test_straight_lines(panda: RobotModel, problem_of: Callable, evaluated: Callable) -> None:
    path = wavy(np.random.default_rng(6), 0.6)
    point = np.array([0.0, 0.03, 0.1])
    line = StraightLine("panda_link8", 0.01, point)
    problem = problem_of(path[0], path[-1], along=(line,), num_points=T)
    found = evaluated(problem, path)
    q = np.repeat(panda.default_q[None], T, axis=0)
    q[:, :7] = path
    p = (forward_kinematics(panda, q, ("panda_link8",))[:, 0] @ np.array([*point, 1.0]))[:, :3]
    way = (p[-1] - p[0]) / np.linalg.norm(p[-1] - p[0])
    distance = np.linalg.norm(np.cross(p - p[0], way), axis=1)
    residual = np.maximum(distance - USED * 0.01, 0.0)[1:]
    assert found.constraints == pytest.approx(ALONG_WEIGHT / T * (residual**2).sum(), rel=1e-9)
    gradient = found.arrays["constraints"].copy()
    _, constraints = found.differences(list(range(1, T - 1)))
    np.testing.assert_allclose(gradient[1:-1], constraints, atol=1e-5 * np.abs(constraints).max())


def test_other_costs(panda: RobotModel, problem_of: Callable, evaluated: Callable) -> None:
    """Rest posture, velocities beyond what is allowed, and the direction at the start."""
    path = wavy(np.random.default_rng(7), 0.6)
    velocity = np.zeros(panda.nq)
    velocity[:7] = 0.1, -0.2, 0.0, 0.1, 0.3, 0.0, 0.05
    problem = problem_of(
        path[0],
        path[-1],
        num_points=T,
        rest=READY + 0.1,
        weights=CostWeights(rest=0.7, velocity=2.0),
        duration=1.0,
        start_velocity=velocity,
    )
    found = evaluated(problem, path)
    plain = evaluated(problem_of(path[0], path[-1], num_points=T), path)
    assert found.costs > plain.costs + 0.1
    gradient = found.arrays["costs"].copy()
    costs, _ = found.differences(list(range(1, T - 1)))
    np.testing.assert_allclose(gradient[1:-1], costs, rtol=1e-5, atol=1e-5 * np.abs(costs).max())


def test_looks_between_points_cover_the_way(
    panda: RobotModel, problem_of: Callable, evaluated: Callable
) -> None:
    """Wherever a sphere is between two points, one that is looked at is within half the way between two looks, and the
    sag of an arc: spheres so much larger contain the swept volume."""
    rng = np.random.default_rng(11)
    step = rng.uniform(-0.3, 0.3, (7, 7))
    path = READY + np.concatenate([np.zeros((1, 7)), step.cumsum(axis=0)])
    path = np.clip(path, panda.limits.lower[:7] + 0.05, panda.limits.upper[:7] - 0.05)
    scene = scene_of((Box(0.6, 0.6, 0.6), (0.5, 0.0, 0.5)))  # near to everything
    found = evaluated(problem_of(path[0], path[-1], scene=scene, num_points=8), path)
    looks = found.one._kept[2]
    assert looks.max() > 1
    spheres = robot_spheres(panda)
    samples = 21
    for t in range(7):
        share = np.linspace(0.0, 1.0, samples)
        looked = np.arange(looks[t] + 1) / looks[t]
        q = np.repeat(panda.default_q[None], samples + len(looked), axis=0)
        q[:, :7] = path[t] + np.concatenate([share, looked])[:, None] * (path[t + 1] - path[t])
        poses = forward_kinematics(panda, q, panda.link_names)[:, spheres.link]
        p = (poses[..., :3, :3] @ spheres.centers[:, :, None])[..., 0] + poses[..., :3, 3]
        nearest_look = np.linalg.norm(p[:samples, None] - p[samples:], axis=-1).min(axis=1)
        way = np.linalg.norm(p[samples + looks[t]] - p[samples], axis=-1)
        sag = 1.3 * (1.0 - math.cos(np.abs(path[t + 1] - path[t]).sum() / 2.0))
        assert (nearest_look <= way / (2.0 * looks[t]) + sag).all()
        inside = way > SWEEP * spheres.radii
        assert (way[inside] / looks[t] <= SWEEP * spheres.radii[inside] * (1.0 + 1e-9)).all() or looks[t] == 1
