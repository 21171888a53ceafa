"""Reader of kinopt_msgs/PlanTrajectory requests and kinopt_msgs/OptimizeTrajectory goals, whose fields are alike."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import (
    InvalidGoalError,
    InvalidRequestError,
    InvalidStateError,
    KinoptError,
    StartStateError,
    quoted,
)
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.motion import commanded_variables
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.chains import resolve_joints, unlocked
from kinopt_ros.problems.constraints.base import PathConstraint
from kinopt_ros.problems.constraints.joint_range import JointRange
from kinopt_ros.problems.constraints.pose_along import PoseAlong
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.problems.ik import PoseTarget, Tolerance
from kinopt_ros.problems.trajectory import (
    CostWeights,
    Goal,
    JointGoal,
    PoseGoal,
    TrajectoryProblem,
)
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.problems.trajectory_validation import check_number_of, check_scaling
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import one_variable_each
from kinopt_ros.ros.context import Context, assumed_default
from kinopt_ros.ros.messages.conversions import (
    configuration_from_joint_state,
    configuration_to_reach,
    matrices_from_poses,
    nonnegative,
)
from kinopt_ros.ros.motion.last_look import MovingError, at_rest, check_is_at, check_is_at_rest
from kinopt_ros.ros.requests.costs import bounded_costs
from kinopt_ros.ros.requests.ik import check_is_one, tips_of, tolerance_of, tool_of
from kinopt_ros.ros.requests.timeouts import timeout_of
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.ros.robot.tips import tip_of
from kinopt_ros.scene.scene import Scene
from kinopt_ros.scene.tool_frames import Tip

LINE_TOLERANCE = 1e-3
"""Tolerance of straight lines that give none, m."""
AT_REST = 1e-3
"""Largest velocity at which a joint that the motion leaves out counts as at rest, rad/s or m/s."""


@dataclass(frozen=True, eq=False)
class TrajectoryRequest:
    """A request in terms of the library."""

    loaded: LoadedRobot
    """Robot that was in service when the request came."""
    problem: TrajectoryProblem
    assumed: str
    """Sentence about joints that matter and that nobody published; else nothing."""
    solver: str
    allow_fallback: bool
    timeout: float
    """Time that the request may take, s."""
    controller_joints: tuple[str, ...]
    """Joints that the controller gets, as they were set when the request came; none: those of the motion."""
    costs: tuple[Any, ...] = ()
    """Messages of the costs of an objective that the path is made for; none: the usual ones alone. They are read where
    the work is done: that may take long."""


@dataclass(frozen=True, eq=False)
class StartState:
    """Configuration and velocity at which a motion starts."""

    q: Annotated[Float64, "nq"]
    velocity: Annotated[Float64, "nq"]
    state: RobotState
    """Measured state of the robot."""


@dataclass(frozen=True, eq=False)
class _Frame:
    """Reads poses of a request."""

    robot: RobotModel
    base: str
    tips: tuple[Tip, ...]
    start: Annotated[Float64, "nq"]
    T_base_frame: Annotated[Float64, "4 4"]


def read_trajectory_request(
    context: Context, request: Any, arrived: float, publish: bool = False, unseen: bool = False
) -> TrajectoryRequest:
    """Read a request that arrived at a value of time.monotonic().

    Args:
        context: of the node.
        request: of PlanTrajectory, or a goal of OptimizeTrajectory.
        arrived: when it came.
        publish: whether the robot shall move: the start is then what was measured, never a guess.
        unseen: read it as if the robot was seen just now, and stood there: to know what else is wrong with it.

    Raises:
        MovingError: the robot moves, and shall do so by the request.
        KinoptError: something in it is not usable.
    """
    loaded = context.loaded
    robot = loaded.model
    base, tips, joints = _what_moves(context, robot, request)
    _check_counts(request, len(tips))
    links = [tip.link for tip in tips]
    frame = request.header.frame_id
    order = tuple(context.parameter("controller_joints") or ())
    joints = controller_order(order, joints, publish)
    ways = [(base, frame), *((base, link) for link in links)]
    if publish:
        commanded_variables(robot, joints)  # raises where no controller can move one
    needed = sorted({*context.moving(robot, ways), *variables_of_joints(robot, joints).tolist()})
    scene = None if request.ignore_collisions else context.scene.of(robot)
    start = start_state(context, robot, request.state, needed, publish, unseen)
    T_base_frame = context.frames.T_link_frame(robot, base, frame, start.q, request.header.stamp)
    place = _Frame(robot, base, tips, start.q, T_base_frame)
    timeout = timeout_of(context, request.timeout, "trajectory")
    weights = _weights(context, request)
    problem = trajectory_problem(
        robot,
        _goals(context, place, request, joints),
        joints=joints,
        base_link=base,
        tip_link=links[0] if links else None,
        start=start.q,
        start_velocity=_velocity(robot, start, joints),
        waypoints=_waypoints(context, place, request, joints),
        along=[
            constraint(context, place, message, f"{field}[{k}]")
            for field, constraint in _CONSTRAINTS.items()
            for k, message in enumerate(getattr(request, field))
        ],
        **{**demand(context, scene, request), **pace(context, request)},
        duration=_duration(request),
        rest=_rest(request, robot, start.q, weights),
        weights=weights,
        num_points=request.num_points or None,
        deadline=arrived + timeout,
        random_seed=request.random_seed,
        limit_tolerance=context.parameter("limit_tolerance"),
        start_tolerance=context.parameter("start_state_tolerance"),
    )
    return TrajectoryRequest(
        loaded=loaded,
        problem=problem,
        assumed=assumed_sentence(robot, start.state, needed, request.state.name, scene),
        solver=request.solver or context.parameter("trajectory.solver") or context.parameter("solver"),
        allow_fallback=context.parameter("allow_fallback") and not request.no_fallback,
        timeout=timeout,
        controller_joints=order,
        costs=bounded_costs(request.objective, "objective"),
    )


def _check_counts(request: Any, tips: int) -> None:
    """Refuse before any of them is read what is too much for one problem."""
    check_number_of("goals", len(request.joint_goals) + len(request.poses) // max(tips, 1))
    for name in ("waypoints", *_CONSTRAINTS):
        check_number_of(name, len(getattr(request, name)))


def _what_moves(
    context: Context, robot: RobotModel, request: Any
) -> tuple[str, tuple[Tip, ...], tuple[str, ...]]:
    """Return base link, tips and joints. A group without a tip will do where no pose is asked for."""
    named, locked = tips_of(request), tuple(request.locked_joints)
    tips = None if named is None else tuple(tip_of(context, robot, name) for name in named)
    group = request.group or None
    if group is None and tips is None:
        group = context.group_name(robot)
    if tips is None and group is not None:
        found = robot.group(group)
        if found.tip_link is None and found.joints:
            return robot.root_link, (), one_variable_each(robot, unlocked(robot, found.joints, locked))
    base, links, joints = resolve_joints(
        robot, group, None, None if tips is None else tuple(tip.link for tip in tips), (), locked, ()
    )
    joints = one_variable_each(robot, joints)
    return base, tuple(Tip(link) for link in links) if tips is None else tips, joints


def controller_order(order: Sequence[str], joints: Sequence[str], publish: bool) -> tuple[str, ...]:
    """Return the joints of a motion in the order in which the controller has them; ``order`` is empty if any will do.

    Raises:
        InvalidRequestError: it shall be published, and the controller lacks one of them.
    """
    missing = [name for name in joints if name not in order]
    if not order or (missing and not publish):
        return tuple(joints)
    if missing:
        raise InvalidRequestError(
            f"the motion moves {', '.join(missing)}, which parameter controller_joints leaves out: "
            f"{', '.join(order)}"
        )
    return tuple(name for name in order if name in joints)


def start_state(
    context: Context,
    robot: RobotModel,
    given: Any,
    needed: Sequence[int],
    publish: bool,
    unseen: bool = False,
) -> StartState:
    """Return where a motion starts: what a request says, else what was measured.

    Args:
        context: of the node.
        robot: the robot.
        given: sensor_msgs/JointState of the request.
        needed: variables that matter.
        publish: whether all of those must have been measured, and be what the request says.
        unseen: whether what was measured counts as new, and the robot as standing.

    Raises:
        KinoptError: the state is not usable, too old, or not where the robot is.
    """
    measured = context.joint_states.of(robot)
    if unseen:
        zeros = np.zeros(robot.nq)
        measured = dataclasses.replace(measured, velocity=zeros, drift=None, age=zeros)
    named = set() if publish else set(given.name)
    needed = [i for i in needed if robot.variable_names[i] not in named]
    measured.require_fresh(needed, robot, context.parameter("state_timeout"))
    if publish:
        measured.require_known(needed, robot)
    q = configuration_from_joint_state(given, robot, measured.q)
    # Motions that begin at what sensors say of a robot that stands would be refused by whoever executes them.
    velocity = np.where(at_rest(robot, measured), 0.0, measured.velocity)
    if given.velocity and len(given.velocity) != len(given.name):
        raise InvalidStateError(
            f"state has {len(given.name)} names and {len(given.velocity)} velocities; they must be equal, or there are "
            "no velocities"
        )
    for name, value in zip(given.name, given.velocity or [0.0] * len(given.name), strict=True):
        if name in robot.variable_index:
            velocity[robot.variable_index[name]] = value
    if publish:
        check_is_at(robot, measured, q, needed)
        check_is_at_rest(robot, measured, needed)
        try:
            check_is_at_rest(robot, dataclasses.replace(measured, velocity=velocity), needed)
        except MovingError as error:  # it stands, whatever the request says: nobody needs to wait for that
            raise StartStateError(f"state: {error}") from None
        velocity[:] = 0.0
    return StartState(q, velocity, measured)


def assumed_sentence(
    robot: RobotModel,
    state: RobotState,
    needed: Sequence[int],
    named: Sequence[str],
    scene: Scene | None = None,
) -> str:
    """Return a sentence about variables that matter and that nobody published; else nothing.

    With a scene all of them matter: they say where the links are that must not be hit.
    """
    matter = needed if scene is None else range(robot.nq)
    return assumed_default([robot.variable_names[i] for i in matter if not state.known[i]], named)


def demand(context: Context, scene: Scene | None, request: Any) -> dict[str, Any]:
    """Return what a motion must be free of collisions with, as arguments of problems.

    Raises:
        InvalidRequestError: a clearance that is not usable, or that nobody would look at.
    """
    default = context.parameter("trajectory.clearance")
    clearance = nonnegative(request.clearance, "clearance", InvalidRequestError, default)
    if scene is not None:
        return {"scene": scene, "clearance": clearance}
    if request.clearance > 0.0:
        raise InvalidRequestError(f"clearance is {request.clearance:g}, but ignore_collisions is set")
    return {"scene": None}


def pace(context: Context, request: Any) -> dict[str, float]:
    """Return scaling factors, as arguments of problems."""
    found = {
        name: nonnegative(getattr(request, name), name, InvalidRequestError, context.parameter(name))
        for name in ("velocity_scaling", "acceleration_scaling")
    }
    for name, value in found.items():
        check_scaling(name, value)
    return found


def _goals(context: Context, place: _Frame, request: Any, joints: Sequence[str]) -> list[Goal]:
    if not request.joint_goals and not request.poses:
        raise InvalidGoalError("joint_goals and poses are empty; give at least one goal")
    goals: list[Goal] = [
        _joint_goal(place, goal, joints, f"joint_goals[{k}]") for k, goal in enumerate(request.joint_goals)
    ]
    if request.poses:
        goals += _pose_goals(context, place, request, request.poses, "poses")
    return goals


def _pose_goals(
    context: Context, place: _Frame, request: Any, poses: Sequence[Any], what: str
) -> list[PoseGoal]:
    """Return alternatives, each of one pose per tip."""
    tips = len(place.tips)
    if tips == 0 or len(poses) % tips:
        raise InvalidGoalError(
            f"{what} has {len(poses)} poses for {tips} tip links; allowed is a multiple of those"
            if tips
            else f"{what} is given, but the group has no tip; name a tip_link"
        )
    T = (place.T_base_frame @ matrices_from_poses(poses, what)).reshape(-1, tips, 4, 4)
    # What tolerances, free axes and tools mean is the same as in inverse kinematics.
    asked = ik_problem(
        place.robot,
        T,
        base_link=place.base,
        tip_link=[tip.link for tip in place.tips],
        T_link_tool=_tools(place.tips, tool_of(request.tool)),
        state=place.start,
        position_tolerance=tolerance_of(context, request, "position"),
        orientation_tolerance=tolerance_of(context, request, "orientation"),
        free_axes=request.free_axes,
    )
    return [
        PoseGoal(
            tuple(
                dataclasses.replace(target, T_base_target=target.T_base_target[k : k + 1].copy())
                for target in asked.targets
            )
        )
        for k in range(len(T))
    ]


def _tools(
    tips: Sequence[Tip], T_tip_tool: Annotated[Float64, "4 4"] | None
) -> Annotated[Float64, "T 4 4"] | None:
    """Return poses of a tool in the links of tips; None for their own frames."""
    tools = [tip.with_tool(T_tip_tool) for tip in tips]
    if all(tool is None for tool in tools):
        return None
    return np.array([np.eye(4) if tool is None else tool for tool in tools])


def _joint_goal(place: _Frame, message: Any, joints: Sequence[str], what: str) -> JointGoal:
    robot = place.robot
    if not message.name:
        raise InvalidGoalError(f"{what} names no joint")
    try:
        q = configuration_to_reach(message, robot, place.start)
    except InvalidStateError as error:
        raise InvalidGoalError(f"{what}: {error}") from error
    except KinoptError as error:
        error.args = (f"{what}: {error}",)
        raise
    variables = variables_of_joints(robot, tuple(joints))
    left_out = np.setdiff1d(np.flatnonzero(q != place.start), variables)
    if left_out.size:
        names = ", ".join(robot.variable_names[i] for i in left_out)
        raise InvalidGoalError(f"{what} moves {names}; the joints of this motion are {', '.join(joints)}")
    return JointGoal(q[variables])


def _waypoints(context: Context, place: _Frame, request: Any, joints: Sequence[str]) -> list[Goal]:
    waypoints: list[Goal] = []
    for k, waypoint in enumerate(request.waypoints):
        what = f"waypoints[{k}]"
        given = waypoint.joints.name or waypoint.joints.position
        if bool(given) == bool(waypoint.poses):
            raise InvalidGoalError(
                f"{what} has {'both' if given else 'neither'} joints and poses; give one of them"
            )
        if given:
            waypoints.append(_joint_goal(place, waypoint.joints, joints, f"{what}.joints"))
            continue
        if len(waypoint.poses) != max(len(place.tips), 1):
            raise InvalidGoalError(
                f"{what} has {len(waypoint.poses)} poses; allowed is one for each of "
                f"{', '.join(tip.link for tip in place.tips)}"
            )
        waypoints += _pose_goals(context, place, request, waypoint.poses, f"{what}.poses")
    return waypoints


def _pose_along(context: Context, place: _Frame, message: Any, what: str) -> PathConstraint:
    tip = _tip(context, place, message.link, what)
    tool = tip.with_tool(tool_of(message.tool))
    check_is_one(message.pose, f"{what}.pose")
    if message.pose:
        T = place.T_base_frame @ matrices_from_poses(message.pose, f"{what}.pose")[0]
    else:
        T_root = forward_kinematics(place.robot, place.start, links=(place.base, tip.link))
        T = inverse(T_root[0]) @ T_root[1] @ (np.eye(4) if tool is None else tool)
    position = _three(message.position_tolerances, f"{what}.position_tolerances")
    orientation = _three(message.orientation_tolerances, f"{what}.orientation_tolerances")
    if position == orientation == math.inf:
        raise InvalidGoalError(
            f"{what} has neither position_tolerances nor orientation_tolerances: it asks nothing"
        )
    return PoseAlong(PoseTarget(tip.link, T[None], position, orientation, tool))


def _three(values: Sequence[float], what: str) -> Tolerance:
    if not len(values):
        return math.inf
    if len(values) != 3:
        raise InvalidGoalError(f"{what} has {len(values)} numbers; allowed are three, or none for all free")
    x, y, z = (float(value) for value in values)
    return x, y, z


def _straight_line(context: Context, place: _Frame, message: Any, what: str) -> PathConstraint:
    tip = _tip(context, place, message.link, what)
    tolerance = nonnegative(message.tolerance, f"{what}.tolerance", InvalidGoalError, LINE_TOLERANCE)
    point = np.array([message.point.x, message.point.y, message.point.z])
    if tip.T_link_tip is not None:
        point = tip.T_link_tip[:3, :3] @ point + tip.T_link_tip[:3, 3]
    return StraightLine(tip.link, tolerance, point)


def _joint_range(context: Context, place: _Frame, message: Any, what: str) -> PathConstraint:
    del context, place
    if math.isnan(message.lower) or math.isnan(message.upper):
        raise InvalidGoalError(
            f"{what}: lower is {message.lower} and upper {message.upper}; allowed are numbers"
        )
    return JointRange(message.joint, message.lower, message.upper)


_CONSTRAINTS: dict[str, Callable[[Context, _Frame, Any, str], PathConstraint]] = {
    "along": _pose_along,
    "straight_lines": _straight_line,
    "joint_ranges": _joint_range,
}
"""Readers of constraints by the field of the request."""


def _tip(context: Context, place: _Frame, given: str, what: str) -> Tip:
    if given:
        return tip_of(context, place.robot, given)
    if not place.tips:
        raise InvalidGoalError(f"{what} names no link, and the group has no tip")
    return place.tips[0]


def _velocity(robot: RobotModel, start: StartState, joints: Sequence[str]) -> Annotated[Float64, "nq"]:
    """Return velocities at the start; 0 for joints that the motion leaves out and that are nearly at rest: sensors
    never read 0."""
    velocity = start.velocity.copy()
    others = np.ones(robot.nq, dtype=np.bool_)
    others[variables_of_joints(robot, tuple(joints))] = False
    velocity[others & (np.abs(velocity) <= AT_REST)] = 0.0
    return velocity


def _weights(context: Context, request: Any) -> CostWeights:
    names = [field.name for field in dataclasses.fields(CostWeights)]
    if len(request.costs) != len(request.weights) or len(set(request.costs)) != len(request.costs):
        raise InvalidRequestError(
            f"costs are {list(request.costs)} and weights are {list(request.weights)}; give one weight each to "
            "different costs"
        )
    for name in request.costs:
        if name not in names:
            raise InvalidRequestError(f"unknown cost {quoted(name)}; known: {', '.join(names)}")
    usual = {name: context.parameter(f"costs.{name}.weight") for name in names}
    return CostWeights(**{**usual, **dict(zip(request.costs, request.weights, strict=True))})


def _duration(request: Any) -> float | None:
    given = nonnegative(request.duration, "duration", InvalidRequestError, 0.0)
    return given if given > 0.0 else None


def _rest(
    request: Any, robot: RobotModel, start: Annotated[Float64, "nq"], weights: CostWeights
) -> Annotated[Float64, "nq"] | None:
    given = bool(request.rest.name or request.rest.position)
    if given and weights.rest == 0.0:
        raise InvalidRequestError(
            "rest is given, but its cost has no weight: name rest in costs, or set parameter costs.rest.weight"
        )
    if not given and weights.rest == 0.0:
        return None
    return configuration_to_reach(request.rest, robot, start)
