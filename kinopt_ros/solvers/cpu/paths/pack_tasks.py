"""Packing of goals, waypoints and constraints along a path, as ``tasks.py`` takes them."""

import math
from collections.abc import Callable
from typing import Annotated, TypeAlias

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.problems.constraints.rows import ConstraintRow, LineRow, PoseRow
from kinopt_ros.problems.ik import PoseTarget, Tolerance
from kinopt_ros.problems.trajectory import JointGoal, PoseGoal, TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths.kernels import tasks
from kinopt_ros.solvers.cpu.paths.moving_tree import MovingTree

Packed: TypeAlias = tuple[list[Float64], list[int]]
"""Numbers and integers of a task."""
GOAL_SHARE = 0.5
"""Share of their tolerances within which goals shall be met."""
ALONG_SHARE = 0.97
GOAL_WEIGHT, ALONG_WEIGHT = 10.0, 10.0
"""Weights of squared errors (m or rad) relative to those of distances; the second is for the whole path together."""


def pack_tasks(
    robot: RobotModel,
    tree: MovingTree,
    problem: TrajectoryProblem,
    path: Annotated[Float64, "T n"],
    goal: int,
    passed: Annotated[Int64, "W"],
) -> tuple[Annotated[Float64, "K 50"], Annotated[Int64, "K 8"]]:
    """Pack the tasks of one path, which ends at one of the goals, for the kernels.

    Joint goals are no tasks, because their points stay where they are.
    """
    T = len(path)
    packed: list[Packed] = []
    ends = [(T - 1, problem.goals[goal]), *zip(passed.tolist(), problem.waypoints, strict=True)]
    for point, wanted in ends:
        if isinstance(wanted, PoseGoal):
            for target in wanted.targets:
                packed.append(
                    _pose(robot, tree, problem.base_link, target, point, point, True, GOAL_SHARE, GOAL_WEIGHT)
                )
    if problem.along:
        at_ends = problem.whole(path[[0, -1]])
        span, weight = (1, T - 1), ALONG_WEIGHT / T
        for along in problem.along:
            for row in along.rows(robot, problem.base_link, at_ends):
                pack = _PACKED_BY.get(type(row))
                if pack is None:
                    raise UnsupportedFeatureError(f"solver cpu does not support {row.words}")
                packed.append(pack(robot, tree, problem.base_link, row, span, weight))
    numbers = np.array([np.concatenate(rows) for rows, _ in packed]).reshape(-1, tasks.NUMBERS)
    integers = np.array([row for _, row in packed], dtype=np.int64).reshape(-1, tasks.INTEGERS)
    return numbers, integers


def given_points(problem: TrajectoryProblem, goal: int, passed: Annotated[Int64, "W"]) -> list[int]:
    """Return the points of a path, beside the first, that stay as they are."""
    T = problem.num_points
    ends = [(T - 1, problem.goals[goal]), *zip(passed.tolist(), problem.waypoints, strict=True)]
    return [point for point, wanted in ends if isinstance(wanted, JointGoal)]


def _pose(
    robot: RobotModel,
    tree: MovingTree,
    base_link: str,
    target: PoseTarget,
    first: int,
    last: int,
    aim: bool,
    share: float,
    weight: float,
) -> Packed:
    tip_node, T_tip = _on_node(robot, tree, target.link)
    if target.T_link_tool is not None:
        T_tip = T_tip @ target.T_link_tool
    base_node, T_base = _on_node(robot, tree, base_link)
    position, one_position = _three(target.position_tolerance)
    orientation, one_orientation = _three(target.orientation_tolerance)
    tolerances = np.array([*position, *orientation])
    rows = [_twelve(T_tip), _twelve(T_base), _twelve(target.T_base_target[0]), tolerances]
    rows += [np.zeros(6), np.array([share, weight])]
    return rows, [tasks.POSE, tip_node, base_node, first, last, one_position, one_orientation, aim]


def _pose_row(
    robot: RobotModel,
    tree: MovingTree,
    base_link: str,
    row: PoseRow,
    span: tuple[int, int],
    weight: float,
) -> Packed:
    return _pose(robot, tree, base_link, row.target, *span, False, ALONG_SHARE, weight)


def _line_row(
    robot: RobotModel,
    tree: MovingTree,
    base_link: str,
    row: LineRow,
    span: tuple[int, int],
    weight: float,
) -> Packed:
    tip_node, T_tip = _on_node(robot, tree, row.link)
    T_tip = T_tip.copy()
    T_tip[:3, 3] += T_tip[:3, :3] @ row.p_link
    base_node, T_base = _on_node(robot, tree, base_link)
    tolerances = np.full(6, row.tolerance)
    rows = [_twelve(T_tip), _twelve(T_base), np.zeros(12), tolerances, row.origin, row.direction]
    rows.append(np.array([ALONG_SHARE, weight]))
    return rows, [tasks.STRAIGHT, tip_node, base_node, *span, 1, 1, False]


_PACKED_BY: dict[type[ConstraintRow], Callable[..., Packed]] = {PoseRow: _pose_row, LineRow: _line_row}
"""What packs each kind of row. It is one of the kernel's kinds, or several of them."""


def _on_node(robot: RobotModel, tree: MovingTree, link: str) -> tuple[int, Float64]:
    index = robot.link_index[link]
    return int(tree.node[index]), tree.T_node_link[index]


def _three(tolerance: Tolerance) -> tuple[tuple[float, float, float], bool]:
    """Return tolerances of the axes, and whether one number bounds all together."""
    if isinstance(tolerance, tuple):
        return tolerance, False
    return (tolerance,) * 3, not math.isinf(tolerance)


def _twelve(T: Annotated[Float64, "4 4"]) -> Annotated[Float64, "12"]:
    return np.concatenate([T[:3, :3].reshape(9), T[:3, 3]])
