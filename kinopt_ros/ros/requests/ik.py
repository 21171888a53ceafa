"""Reader of kinopt_msgs/SolveIK requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError, quoted, shown
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.chains import resolve_joints
from kinopt_ros.problems.ik import MIN_SEPARATION, IkProblem, Tolerance
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.preferences.every import ANY, CLOSEST, REST
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context, Ways, assumed_default
from kinopt_ros.ros.messages.conversions import (
    configuration_from_joint_state,
    configuration_to_reach,
    matrices_from_poses,
    nonnegative,
)
from kinopt_ros.ros.requests.costs import bounded_costs, check_targets
from kinopt_ros.ros.requests.timeouts import timeout_of
from kinopt_ros.ros.robot.joint_states import Positions
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.ros.robot.tips import tip_of
from kinopt_ros.scene.tool_frames import Tip


@dataclass(frozen=True, eq=False)
class IkRequest:
    """A request in terms of the library."""

    loaded: LoadedRobot
    """Robot that was in service when the request came."""
    problem: IkProblem
    T_base_frame: Annotated[Float64, "4 4"]
    """Pose of the request's frame in the problem's base link."""
    assumed: str
    """Sentence about joints that matter and that nobody published; else nothing."""
    solver: str
    allow_fallback: bool
    timeout: float
    """Time that the request may take, s."""
    costs: tuple[Any, ...] = ()
    """Messages of what else counts, besides the poses. They are read where the work is done: that may take long."""


def read_ik_request(context: Context, request: Any, arrived: float) -> IkRequest:
    """Read a request that arrived at a value of time.monotonic().

    Raises:
        KinoptError: something in it is not usable.
    """
    loaded = context.loaded
    robot = loaded.model
    group = request.group or None
    named = tips_of(request)
    tips = None if named is None else [tip_of(context, robot, name) for name in named]
    if group is None and tips is None:
        group = context.group_name(robot)
    base, links, joints = resolve_joints(
        robot,
        group,
        request.base_link or None,
        None if tips is None else tuple(tip.link for tip in tips),
        tuple(request.unlocked_groups),
        tuple(request.locked_joints),
        tuple(request.locked_groups),
    )
    _check_size(context, request, len(links))
    frame = request.header.frame_id
    ways = [(base, link) for link in links]
    if not request.base_pose:
        ways.append((base, frame))
    state = context.joint_states.positions(robot)
    q = context.configuration(robot, ways, frozenset(request.state.name), state)
    q = configuration_from_joint_state(request.state, robot, q)
    T_base_frame = _frame(context, loaded, request, base, frame, q)
    T = T_base_frame @ matrices_from_poses(request.poses)
    timeout = timeout_of(context, request.timeout, "ik")
    prefer = request.prefer or ANY
    problem = ik_problem(
        robot,
        T.reshape(-1, len(links), 4, 4) if request.tip_links else T,
        group=group,
        unlocked_groups=request.unlocked_groups,
        locked_joints=request.locked_joints,
        locked_groups=request.locked_groups,
        base_link=base,
        tip_link=links if request.tip_links else links[0],
        T_link_tool=_tools(request.tool, tips, bool(request.tip_links)),
        state=q,
        seeds=_seeds(request, len(T) // len(links), len(variables_of_joints(robot, joints))),
        position_tolerance=tolerance_of(context, request, "position"),
        orientation_tolerance=tolerance_of(context, request, "orientation"),
        free_axes=request.free_axes,
        nearest=weights_of(request),
        num_solutions=request.num_solutions or 1,
        min_separation=nonnegative(
            request.min_separation, "min_separation", InvalidRequestError, MIN_SEPARATION
        ),
        turns=request.turns,
        prefer=prefer,
        rest=_rest(request, prefer, robot, q),
        manipulability_weight=request.manipulability_weight or None,
        **avoiding(context, robot, request.avoid_collisions, request.clearance),
        deadline=arrived + timeout,
        random_seed=request.random_seed,
        limit_tolerance=context.parameter("limit_tolerance"),
    )
    return IkRequest(
        loaded=loaded,
        problem=problem,
        T_base_frame=T_base_frame,
        assumed=_assumed(context, robot, request, problem, ways, state),
        solver=request.solver or context.parameter("ik.solver") or context.parameter("solver"),
        allow_fallback=context.parameter("allow_fallback") and not request.no_fallback,
        timeout=timeout,
        costs=bounded_costs(request.costs, "costs"),
    )


def _assumed(
    context: Context, robot: RobotModel, request: Any, problem: IkProblem, ways: Ways, state: Positions
) -> str:
    """Return a sentence about joints whose values matter to the answer and that nobody published; else nothing."""
    names, given = robot.variable_names, {*request.state.name}
    unknown = {i for i, known in enumerate(state.known.tolist()) if not known and names[i] not in given}
    if not unknown:  # most requests
        return ""
    solved = set(problem.variables.tolist())
    # Where the other links are matters, too, if these may touch something.
    matter = ({*range(robot.nq)} if problem.scene is not None else {*context.moving(robot, ways)}) - solved
    if request.prefer == CLOSEST:  # to where the robot is
        matter |= solved
    if request.prefer == REST:  # what it does not name rests where it is
        rest = {*request.rest.name}
        matter |= {i for i in solved if names[i] not in rest}
    return assumed_default([names[i] for i in sorted(unknown & matter)])


def avoiding(context: Context, robot: RobotModel, asked: bool, clearance: float) -> dict[str, Any]:
    """Return arguments of ``ik_problem`` for answers without collisions, if a request asks for such.

    Raises:
        InvalidRequestError: a clearance that is negative or not finite, or one that nobody would look at.
    """
    wanted = nonnegative(clearance, "clearance", InvalidRequestError, context.parameter("ik.clearance"))
    if asked:
        return {"scene": context.scene.of(robot), "clearance": wanted}
    if clearance > 0.0:
        raise InvalidRequestError(f"clearance is {clearance:g}, but avoid_collisions is not set")
    return {}


def tips_of(request: Any) -> tuple[str, ...] | None:
    """Return the links that a request names, by tip_link or tip_links; None if it names none."""
    if request.tip_links and request.tip_link:
        raise InvalidRequestError(
            f"tip_link is {quoted(request.tip_link)} and tip_links is {shown(list(request.tip_links))}; give one of "
            "them"
        )
    if request.tip_links:
        return tuple(request.tip_links)
    return (request.tip_link,) if request.tip_link else None


def _check_size(context: Context, request: Any, tips: int) -> None:
    context.check_batch(len(request.poses), "poses")
    if len(request.poses) % tips:
        raise InvalidGoalError(
            f"{len(request.poses)} poses were given for {tips} tip_links; allowed is a multiple of those"
        )
    solutions = len(request.poses) // tips * max(request.num_solutions, 1)
    check_targets(request.costs, len(request.poses) // tips)
    context.check_batch(solutions, "targets times num_solutions")
    context.check_batch(max(1, request.num_seeds), "seeds per target")


def _frame(
    context: Context, loaded: LoadedRobot, request: Any, base: str, frame: str, q: Float64
) -> Annotated[Float64, "4 4"]:
    robot = loaded.model
    if not request.base_pose:
        return context.frames.T_link_frame(robot, base, frame, q, request.header.stamp)
    check_is_one(request.base_pose, "base_pose")
    T_frame_root = base_poses(robot, request)[0]
    return np.asarray(context.frames.T_link_frame(robot, base, "", q) @ inverse(T_frame_root))


def tool_of(pose: Any) -> Annotated[Float64, "4 4"] | None:
    """Return a tool's pose; None for the identity, which is what a request that names no tool has."""
    p, q = pose.position, pose.orientation
    if q.w == 1.0 and not (p.x or p.y or p.z or q.x or q.y or q.z):  # most requests
        return None
    T = matrices_from_poses([pose], "tool")[0]
    return None if np.array_equal(T, np.eye(4)) else T


def check_is_one(poses: Sequence[Any], what: str) -> None:
    """Raise InvalidRequestError if a field has several poses that may have one."""
    # No bound of the message says so: within other messages, Python's ROS sends what is beyond a bound broken.
    if len(poses) > 1:
        raise InvalidRequestError(f"{what} has {len(poses)} poses; allowed is one, or none")


def base_poses(robot: RobotModel, request: Any) -> Annotated[Float64, "B 4 4"]:
    """Return the poses of the robot's root link that a request gives, in its frame.

    Raises:
        InvalidRequestError: the frame is a link of the robot.
        InvalidGoalError: one that is no pose.
    """
    frame = request.header.frame_id
    if frame in robot.link_index:
        raise InvalidRequestError(
            f"base_pose is given in frame_id {frame!r}, which is a link of the robot: its pose follows from the joints"
        )
    return matrices_from_poses(request.base_pose, "base_pose")


def _tools(pose: Any, tips: Sequence[Tip] | None, several: bool) -> Float64 | None:
    """Return the request's tool in the links of its tips, (4, 4) or one for each.

    None for the identity in links, which is what a request that names no tool has.
    """
    given = tool_of(pose)
    tools = [given] if tips is None else [tip.with_tool(given) for tip in tips]
    if all(tool is None for tool in tools):
        return None
    if not several:
        return tools[0]
    return np.array([np.eye(4) if tool is None else tool for tool in tools])


def tolerance_of(context: Context, request: Any, kind: str) -> Tolerance:
    """Return the tolerance of a kind, "position" or "orientation", that a request gives, else the parameter's."""
    one = getattr(request, f"{kind}_tolerance")
    three = getattr(request, f"{kind}_tolerances")
    if len(three) == 0:
        default = context.parameter(f"ik.{kind}_tolerance")
        return nonnegative(one, f"{kind}_tolerance", InvalidGoalError, default)
    if one != 0.0 or len(three) != 3:
        raise InvalidGoalError(
            f"{kind}_tolerances has {len(three)} numbers and {kind}_tolerance is {one:g}; allowed is either three "
            "numbers, or one"
        )
    x, y, z = (float(value) for value in three)
    return x, y, z


def weights_of(request: Any) -> PoseWeights | None:
    """Return the weights of a request for what is as near as possible; None of one for what reaches its targets."""
    given = {
        kind: getattr(request, f"{kind}_weights").tolist()
        for kind in ("position", "orientation")
        if len(getattr(request, f"{kind}_weights"))
    }
    for kind, weights in given.items():
        if not request.nearest:
            raise InvalidRequestError(
                f"{kind}_weights has {len(weights)} numbers, but nearest is not set: tolerances say what is reached"
            )
        if len(weights) not in (1, 3):
            raise InvalidGoalError(f"{kind}_weights has {len(weights)} numbers; allowed are one or three")
    if not request.nearest:
        return None
    return PoseWeights(
        **{kind: weights[0] if len(weights) == 1 else weights for kind, weights in given.items()}
    )


def _rest(request: Any, prefer: str, robot: Any, q: Float64) -> Float64 | None:
    if prefer != REST:
        if request.rest.name or request.rest.position:
            raise InvalidRequestError(f"rest is given, but prefer is {quoted(prefer)}; it goes with {REST!r}")
        return None
    return configuration_to_reach(request.rest, robot, q)


def _seeds(request: Any, B: int, n: int) -> Float64 | None:
    """Return the request's seeds as (S, n) for all targets or (B, S, n): their number tells which. S is 1 unless
    given."""
    if not request.seeds:
        if request.num_seeds:
            raise InvalidStateError(f"num_seeds is {request.num_seeds}, but seeds is empty")
        return None
    seeds = np.array(request.seeds)
    S = request.num_seeds or 1
    if seeds.size == S * n:
        return seeds.reshape(S, n)
    if seeds.size == B * S * n:
        return seeds.reshape(B, S, n)
    raise InvalidStateError(
        f"seeds has {seeds.size} numbers; allowed are {S} x {n} or {B} x {S} x {n} (targets x num_seeds x joints)"
    )
