"""Builder of complete trajectory problems from few arguments."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from kinopt_ros.array import Float64, as_numbers
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError, shown
from kinopt_ros.problems.arguments import as_number, as_scene, as_whole
from kinopt_ros.problems.chains import resolve_joints
from kinopt_ros.problems.constraints.base import PathConstraint
from kinopt_ros.problems.constraints.pose_along import PoseAlong
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.problems.ik import ORIENTATION_TOLERANCE, POSITION_TOLERANCE, PoseTarget, Tolerance
from kinopt_ros.problems.limit_tolerance import LIMIT_TOLERANCE, check_limit_tolerance, moved_to_limits
from kinopt_ros.problems.trajectory import (
    START_TOLERANCE,
    CostWeights,
    Goal,
    JointGoal,
    PoseGoal,
    TrajectoryProblem,
)
from kinopt_ros.problems.trajectory_validation import check_trajectory_problem
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import one_variable_each
from kinopt_ros.scene.scene import Scene

GoalLike: TypeAlias = Goal | ArrayLike
"""A goal; or values of the joints, (n,); or a pose of the tip link, (4, 4)."""


def trajectory_problem(
    robot: RobotModel,
    goals: GoalLike | Sequence[GoalLike],
    *,
    group: str | None = None,
    joints: Sequence[str] | None = None,
    base_link: str | None = None,
    tip_link: str | None = None,
    start: ArrayLike | None = None,
    start_velocity: ArrayLike | None = None,
    waypoints: Sequence[GoalLike] = (),
    along: Sequence[PathConstraint] = (),
    scene: Scene | None = None,
    clearance: float = 0.0,
    velocity_scaling: float = 0.1,
    acceleration_scaling: float = 0.1,
    duration: float | None = None,
    position_tolerance: Tolerance = POSITION_TOLERANCE,
    orientation_tolerance: Tolerance = ORIENTATION_TOLERANCE,
    rest: ArrayLike | None = None,
    weights: CostWeights | None = None,
    num_points: int | None = None,
    paths: ArrayLike | None = None,
    deadline: float | None = None,
    random_seed: int = 0,
    limit_tolerance: float = LIMIT_TOLERANCE,
    start_tolerance: float = START_TOLERANCE,
) -> TrajectoryProblem:
    """Build a problem: move to a goal, or to one of several.

    Args:
        robot: the robot.
        goals: one goal or a list of them, any of which will do: ``JointGoal``, ``PoseGoal``, values of the joints
            (n,), or a pose of the tip link in the base link (4, 4). Of continuous joints the shortest way counts.
        group: joints to move, and the default of base and tip; without it and ``joints`` the robot's first group.
        joints: joints to move, in the order that the trajectory shall have; default: the group's. A planar joint stands
            for its variables ``base/x``, ``base/y``, ``base/theta``, which may be named singly; others are held. So
            does a floating joint, of whose quaternion all four numbers move or none.
        base_link: frame of poses; default: the group's base, else the root link.
        tip_link: link that poses are for; default: the group's tip.
        start: configuration of the whole robot, (nq,); default: robot.default_q.
        start_velocity: rad/s or m/s, (nq,); default: at rest.
        waypoints: to be passed in this order, each as one of ``goals``.
        along: what holds all the way: ``PoseAlong``, ``StraightLine``, ``JointRange``.
        scene: what the motion must be free of collisions with, besides the robot itself (``EMPTY_SCENE``: only
            that); None: collisions are not looked at.
        clearance: least distance, m, of bodies that must not touch, with a scene.
        velocity_scaling: share of the velocity limits in (0, 1].
        acceleration_scaling: share of the acceleration limits in (0, 1].
        duration: s; default: as short as the limits allow.
        position_tolerance: of poses given as arrays, m; or three numbers for the axes of the target's frame.
        orientation_tolerance: likewise, rad.
        rest: posture of ``weights.rest``: configuration of the whole robot, (nq,).
        weights: of the cost's terms.
        num_points: points of the path that is optimized; default: 64 with waypoints, constraints or paths to begin
            from, else 32.
        paths: paths to begin from, (T, n) or (S, T, n).
        deadline: value of time.monotonic() after which no new attempt is started.
        random_seed: same problem, same random seed: same answer.
        limit_tolerance: values of ``start``, goals and waypoints that are beyond a position limit by no more than this,
            rad or m, are moved to the limit; ``notes`` of the problem and of its answer say so. A start is moved by no
            more than ``START_TOLERANCE``: the motion begins where the robot is.
        start_tolerance: distance that the start may be outside its position limits, rad or m, since sensors are not
            exact; from there joints move inwards only.

    Raises:
        KinoptError: an unknown name, or something that does not fit (see problems.trajectory_validation).
    """
    for what, name in (("group", group), ("base_link", base_link), ("tip_link", tip_link)):
        if not isinstance(name, str | None):
            raise InvalidRequestError(f"{what} is {shown(name)}; allowed is a name")
    if not isinstance(joints, list | tuple | None):
        raise InvalidRequestError(f"joints is {shown(joints)}; allowed is a list of names")
    for what, tolerance in (
        ("position_tolerance", position_tolerance),
        ("orientation_tolerance", orientation_tolerance),
    ):
        as_numbers(tolerance, what, InvalidRequestError)
    base, tip, of_group = moving_joints(robot, group, base_link, tip_link, tuple(joints or ()))
    moving = of_group if joints is None else tuple(joints)
    moving = one_variable_each(robot, moving)
    variables = variables_of_joints(robot, moving)
    n = len(variables)
    tolerance = check_limit_tolerance(as_number(limit_tolerance, "limit_tolerance"))
    notes: list[str] = []

    def inside(q: Float64, what: str, most: float = tolerance) -> Float64:
        kept, said = moved_to_limits(robot, variables, q, most, what)
        notes.extend(said)
        return kept

    def goal(given: GoalLike, what: str) -> Goal:
        if isinstance(given, JointGoal):
            return JointGoal(inside(given.q, what)) if given.q.shape == (n,) else given
        if isinstance(given, PoseGoal):
            return given
        values = as_numbers(given, "a goal", InvalidGoalError)
        if values.shape == (4, 4):
            if tip is None:
                raise InvalidRequestError("a goal that is a pose needs a tip_link or a group with a tip")
            return PoseGoal((PoseTarget(tip, values[None], position_tolerance, orientation_tolerance),))
        if values.shape == (n,):
            return JointGoal(inside(values, what))
        raise InvalidGoalError(
            f"a goal has shape {values.shape}; allowed is ({n},), values of {', '.join(moving)}, or (4, 4), a pose"
        )

    for what, several in (("waypoints", waypoints), ("along", along)):
        if not isinstance(several, list | tuple):
            raise InvalidRequestError(f"{what} is {shown(several)}; allowed is a list")
    from_here = _whole(start, robot.default_q, "start")
    from_here[variables] = inside(from_here[variables], "the start", min(tolerance, START_TOLERANCE))
    problem = TrajectoryProblem(
        joints=moving,
        variables=variables,
        start=from_here,
        start_velocity=_whole(start_velocity, np.zeros(robot.nq), "start_velocity"),
        goals=tuple(goal(given, f"goal {k}") for k, given in enumerate(_several(goals))),
        base_link=base,
        waypoints=tuple(goal(given, f"waypoint {k}") for k, given in enumerate(waypoints)),
        along=tuple(along),
        scene=as_scene(scene),
        clearance=as_number(clearance, "clearance"),
        velocity_scaling=as_number(velocity_scaling, "velocity_scaling"),
        acceleration_scaling=as_number(acceleration_scaling, "acceleration_scaling"),
        duration=None if duration is None else as_number(duration, "duration"),
        rest=None if rest is None else _whole(rest, robot.default_q, "rest")[variables],
        weights=CostWeights() if weights is None else weights,
        paths=_paths(paths, n),
        deadline=None if deadline is None else as_number(deadline, "deadline"),
        random_seed=as_whole(random_seed, "random_seed"),
        start_tolerance=as_number(start_tolerance, "start_tolerance"),
    )
    points = problem.usual_points if num_points is None else as_whole(num_points, "num_points")
    problem = replace(problem, num_points=points, notes=tuple(notes))
    check_trajectory_problem(problem, robot)
    return problem


def moving_joints(
    robot: RobotModel,
    group: str | None,
    base_link: str | None,
    tip_link: str | None,
    joints: tuple[str, ...] = (),
) -> tuple[str, str | None, tuple[str, ...]]:
    """Find the frame of poses, the link that they are for, if there is one, and the joints to move.

    Raises:
        KinoptError: an unknown name, or joints that do not move the tip.
    """
    chosen = None if group is None else robot.group(group)
    if tip_link is None and (chosen is not None and chosen.tip_link is None):
        return base_link or chosen.base_link or robot.root_link, None, joints or chosen.joints
    if tip_link is None and chosen is None and joints:
        return base_link or robot.root_link, None, joints
    tips = None if tip_link is None else (tip_link,)
    base, links, found = resolve_joints(robot, group, base_link, tips, (), (), ())
    return base, links[0], found


def _several(goals: GoalLike | Sequence[GoalLike]) -> list[GoalLike]:
    """Return a list of goals, also for a single one."""
    if isinstance(goals, JointGoal | PoseGoal | np.ndarray):
        return [goals]
    if not isinstance(goals, list | tuple):
        raise InvalidGoalError(f"goals is {shown(goals)}; give a goal or a list of goals")
    if goals and all(isinstance(item, float | int | np.floating | np.integer) for item in goals):
        return [np.array(goals, dtype=np.float64)]
    return list(goals)


def _whole(given: ArrayLike | None, default: Float64, what: str) -> Float64:
    values = default.copy() if given is None else as_numbers(given, what, InvalidStateError)
    if values.shape != default.shape:
        raise InvalidStateError(
            f"{what} has shape {values.shape}; allowed is {default.shape}: the whole robot"
        )
    return values


def _paths(given: ArrayLike | None, n: int) -> Float64:
    if given is None:
        return np.zeros((0, 0, n))
    values = as_numbers(given, "paths", InvalidRequestError)
    if values.ndim not in (2, 3):
        raise InvalidRequestError(f"paths has shape {values.shape}; allowed is (T, {n}) or (S, T, {n})")
    return values[None] if values.ndim == 2 else values


__all__ = ["GoalLike", "PoseAlong", "StraightLine", "trajectory_problem"]
