"""Parameters of the node: one table, declared with descriptions and ranges, validated before they apply."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterValueException, NameValidationException
from rclpy.expand_topic_name import expand_topic_name
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.validate_full_topic_name import validate_full_topic_name
from rclpy.validate_topic_name import validate_topic_name

from kinopt_ros.errors import InvalidRequestError, KinoptError, UnknownSolverError, cut, quoted, shown
from kinopt_ros.problems.ik import ORIENTATION_TOLERANCE, POSITION_TOLERANCE
from kinopt_ros.problems.limit_tolerance import LIMIT_TOLERANCE, MOST_TOLERANCE
from kinopt_ros.problems.trajectory import START_TOLERANCE, CostWeights
from kinopt_ros.problems.trajectory_validation import MOST_START_TOLERANCE
from kinopt_ros.problems.validation import MOST_CLEARANCE
from kinopt_ros.robot.moveit_controllers import ACTION, ARRIVAL_TOLERANCE
from kinopt_ros.ros.robot import marker_tips
from kinopt_ros.ros.robot.controller_names import SEVERAL, groups_of_controllers
from kinopt_ros.scene.tool_frames import tool_frames
from kinopt_ros.solvers.base import Option
from kinopt_ros.solvers.registry import AUTO, list_solvers, solver_class, solver_names

START_DELAY, MOST_DELAY = 0.1, 0.2
"""Time from sending a motion from rest until its begin, s, and the longest: controllers have it by then, also on a
busy machine."""

_TINY = 1e-9
_SOLVERS = ("solver", "ik.solver", "trajectory.solver")
_DESCRIPTIONS = ("robot_description", "robot_description_semantic")
_LONGEST = 100_000
"""Longest text of any other parameter, characters."""
_MOST_NAMES = 1000
"""Most names in a list, which together have no more characters than any other text."""
LONGEST_OF_ACTION = "/_action/cancel_goal"
"""Longest suffix of an action's name in the names of its services and topics."""
_NO_NAMES = [""]
"""Empty list of names, as ROS writes it: an empty list has no type otherwise."""


@dataclass(frozen=True)
class Spec:
    """One parameter. Its type is that of the default; () stands for a list of names."""

    name: str
    default: bool | int | float | str | tuple[()]
    description: str
    minimum: float | None = None
    maximum: float | None = None
    read_only: bool = False
    choices: tuple[str, ...] = ()
    """Texts that are allowed, as in ``Option.choices``; empty if any text is."""

    def check(self, given: Any) -> Any:
        """Return the value given if it is allowed; whole numbers pass for floats, as people write them in YAML.

        Raises:
            InvalidRequestError: it is not.
        """
        if isinstance(self.default, tuple):
            names = (
                [] if given is None else list(given) if isinstance(given, list | tuple | array) else [given]
            )
            if len(names) > _MOST_NAMES:
                raise InvalidRequestError(
                    f"{self.name} has {len(names)} names; allowed are at most {_MOST_NAMES}"
                )
            if names == _NO_NAMES:
                return []
            if not all(isinstance(name, str) and name for name in names):
                raise InvalidRequestError(f"{self.name} takes a list of names, not {shown(given)}")
            if (size := sum(map(len, names))) > _LONGEST:
                raise InvalidRequestError(
                    f"the names of {self.name} have {size} characters; allowed are at most {_LONGEST}"
                )
            if len(set(names)) != len(names):
                twice = next(name for name, count in Counter(names).items() if count > 1)
                raise InvalidRequestError(f"{self.name} names {quoted(twice)} more than once")
            return names
        if isinstance(given, str) and len(given) > _LONGEST and self.name not in _DESCRIPTIONS:
            raise InvalidRequestError(
                f"{self.name} has {len(given)} characters; allowed are at most {_LONGEST}"
            )
        return Option(
            self.name, self.default, self.description, self.minimum, self.maximum, choices=self.choices
        ).check(given)

    def stored(self, given: Any) -> Any:
        """Return the value given as rclpy keeps it: always of one type, and never unset. Raises as ``check``.

        `ros2 param dump` writes ``null`` for what is unset, and a text "null" is what comes back.
        """
        allowed = self.check(given)
        return (allowed or _NO_NAMES) if isinstance(self.default, tuple) else allowed

    def descriptor(self) -> ParameterDescriptor:
        """Return what `ros2 param describe` shows. Types are checked by ``check``: ROS would refuse 1 for 1.0."""
        descriptor = ParameterDescriptor(
            name=self.name, description=self.description, read_only=self.read_only, dynamic_typing=True
        )
        if self.minimum is not None and self.maximum is not None:
            low, high = self.minimum, self.maximum
            if isinstance(self.default, float):
                descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
            else:
                descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
        if self.choices:
            descriptor.additional_constraints = f"one of: {', '.join(self.choices)}"
        return descriptor


SPECS = (
    Spec("robot_description", "", "URDF text. Empty: taken from the latched topic robot_description."),
    Spec(
        "robot_description_semantic", "", "SRDF text. Empty: taken from the topic robot_description_semantic."
    ),
    Spec(
        "virtual_joint",
        False,
        "Whether the SRDF's planar or floating virtual_joint is a joint of the robot, so that its base can move.",
    ),
    Spec(
        "managed",
        False,
        "Be a managed node (ROS 2 lifecycle): nothing is built before 'configure', nothing answered or moved before "
        "'activate'.",
        read_only=True,
    ),
    Spec("solver", AUTO, "Solver plugin for everything; 'auto' picks."),
    Spec("ik.solver", "", "Solver plugin for inverse kinematics; empty: as 'solver'."),
    Spec("allow_fallback", True, "Hand a request that the solver cannot honour to one that can."),
    Spec("default_group", "", "Joint group of requests that name none; empty: the first one with a tip."),
    Spec(
        "tool_frames",
        "",
        "Named frames on links, usable as tips, as YAML text: 'camera: {link: hand, pose: {xyz: [0, 0, 0.1], rpy: "
        "[0, 0, 1.57]}}'.",
    ),
    Spec(
        "target_pose.tip_link",
        "",
        "What ~/target_pose places: a link, tool frame or attached object; empty: the group's tip.",
    ),
    Spec("ik.timeout", 1.0, "Time for an IK request that gives none (s).", 1e-3, 60.0),
    Spec("ik.max_timeout", 60.0, "Most time that an IK request may ask for (s).", 1e-3, 3600.0),
    Spec("ik.position_tolerance", POSITION_TOLERANCE, "For requests that give none (m).", _TINY, 1.0),
    Spec(
        "ik.orientation_tolerance",
        ORIENTATION_TOLERANCE,
        "For requests that give none (rad).",
        _TINY,
        math.pi,
    ),
    Spec(
        "ik.avoid_collisions",
        True,
        "Whether motions of ~/target_pose must be free of collisions, goal and way, by ik.clearance; they are refused "
        "where that cannot be checked. Requests of ~/solve_ik say so themselves, servo has servo.avoid_collisions.",
    ),
    Spec(
        "ik.clearance",
        0.0,
        "Least distance of bodies that must not touch, of requests that avoid collisions and give none (m).",
        0.0,
        MOST_CLEARANCE,
    ),
    Spec("trajectory.solver", "", "Solver plugin for trajectories; empty: as 'solver'."),
    Spec("trajectory.timeout", 5.0, "Time for a trajectory whose request gives none (s).", 1e-3, 600.0),
    Spec("trajectory.max_timeout", 60.0, "Most time that a trajectory may ask for (s).", 1e-3, 3600.0),
    Spec(
        "trajectory.clearance",
        0.0,
        "Least distance of bodies that must not touch, of trajectories that give none (m).",
        0.0,
        MOST_CLEARANCE,
    ),
    Spec(
        "trajectory.threads",
        2,
        "Trajectories that are worked on at the same time, beside the threads for everything else.",
        1,
        64,
        read_only=True,
    ),
    Spec(
        "controller_action",
        "",
        "Action control_msgs/FollowJointTrajectory of the controller that goals of ~/optimize_trajectory with publish "
        "are handed to, instead of ~/joint_trajectory: they end when the motion does. Empty: none.",
    ),
    Spec(
        "controllers",
        (),
        "Several controllers with the groups whose joints they have (panda_arm_controller=panda_arm), in place of "
        "controller_action: motions are split among their actions NAME/follow_joint_trajectory, or what MoveIt's "
        "moveit_simple_controller_manager.NAME.* say: grippers are told where motions end. Empty: none.",
    ),
    Spec(
        "moveit_services",
        True,
        "Offer MoveIt's services and actions under its names (compute_ik and others), where moveit_msgs is installed. "
        "False beside a move_group in the same namespace.",
        read_only=True,
    ),
    Spec(
        "servo.period",
        0.02,
        "Time between two motions of servo, each of which ends at rest (s).",
        0.005,
        0.1,
    ),
    Spec(
        "servo.timeout",
        0.1,
        "A twist on ~/servo/twist holds for so long; without another one the robot comes to rest (s).",
        0.02,
        10.0,
    ),
    Spec(
        "servo.target_timeout",
        10.0,
        "A pose on ~/servo/target_pose is followed for so long, or until it is reached (s).",
        0.02,
        3600.0,
    ),
    Spec("servo.gain", 5.0, "Velocity towards ~/servo/target_pose per distance from it (1/s).", 0.1, 50.0),
    Spec(
        "servo.tip_link",
        "",
        "What servo moves: a link, tool frame or attached object; empty: the group's tip.",
    ),
    Spec(
        "servo.avoid_collisions",
        True,
        "Whether motions of servo must be free of collisions until the robot is at rest, by ik.clearance.",
    ),
    Spec(
        "servo.limit_margin",
        0.01,
        "What joints keep from their position limits in servo, at most a tenth of their range (rad or m).",
        0.0,
        1.0,
    ),
    Spec(
        "servo.tracking_tolerance",
        0.05,
        "How far joints may be from where servo commanded them to be, besides what they move in 0.1 s and the age of "
        "their state; farther, and it stops (rad or m).",
        1e-4,
        10.0,
    ),
    Spec(
        "servo.state_timeout",
        0.25,
        "Joint states older than this stop servo (s).",
        0.02,
        10.0,
    ),
    Spec("max_batch", 10_000, "Most targets or states in one request.", 1, 1_000_000),
    Spec("state_timeout", 1.0, "Joint states older than this are stale (s).", 1e-3, 3600.0),
    Spec(
        "tf_timeout",
        0.5,
        "How long a request waits for tf where the stamp of its header asks for a transform that is not there yet (s).",
        0.0,
        60.0,
    ),
    Spec("velocity_scaling", 0.1, "Share of the joint velocity limits that motions use.", 1e-3, 1.0),
    Spec("acceleration_scaling", 0.1, "Share of the joint acceleration limits that motions use.", 1e-3, 1.0),
    Spec(
        "start_state_tolerance",
        START_TOLERANCE,
        "How far joints may be outside their position limits when a motion starts (rad or m); from there they move "
        "inwards only.",
        0.0,
        MOST_START_TOLERANCE,
    ),
    Spec(
        "arrival_tolerance",
        ARRIVAL_TOLERANCE,
        "How far joints may be measured from where a motion ends that their controller says to have done (rad or m); "
        "farther, and it has failed. Joints of grippers may be anywhere: they hold things.",
        1e-4,
        1e3,
    ),
    Spec(
        "start_delay",
        START_DELAY,
        "Time from publishing a motion from rest until the begin that its stamp says (s), where stamps of joint states "
        "say that the controller has the node's clock. 0: the stamp is 0, and the motion begins when it comes, for "
        "controllers that do not keep stamps; what leaves it half way makes the joints step by their way in that time. "
        "Goals of controllers and servo's motions begin as much later where nobody knows where a controller holds the "
        "joints: gravity may pull them down from there.",
        0.0,
        MOST_DELAY,
    ),
    Spec(
        "limit_tolerance",
        LIMIT_TOLERANCE,
        "Goals, starts and seeds beyond a position limit by no more than this are moved to it, and the answer says so "
        "(rad or m); what is farther beyond is refused.",
        0.0,
        MOST_TOLERANCE,
    ),
    *(
        Spec(
            f"costs.{cost.name}.weight",
            getattr(CostWeights(), cost.name),
            f"Weight of the cost {cost.name} of motions whose requests give it none; 0 leaves it out.",
            0.0,
            100.0,
        )
        for cost in fields(CostWeights)
    ),
    Spec(
        "controller_joints",
        (),
        "Joints of published trajectories: exactly those of the controller. Empty: the group's active joints.",
    ),
    Spec(
        "threads",
        4,
        "Threads that work on requests: half of them on first tries of some milliseconds, the others on what "
        "takes longer.",
        2,
        64,
        read_only=True,
    ),
    Spec("queue_size", 256, "Most requests that wait; more are refused with QUEUE_FULL.", 1, 100_000),
    Spec(
        "batching", 16, "Most waiting requests of one kind that are solved together; 1: each alone.", 1, 1000
    ),
    Spec(
        "record_failures",
        "",
        "Folder for failed IK requests, as records for `kinopt replay`, 1000 at most. Empty: none are kept.",
        read_only=True,
    ),
    Spec(
        "scene_file",
        "",
        "YAML file of the scene that the node starts with, see kinopt_ros.scene.files. Empty: an empty scene.",
        read_only=True,
    ),
    Spec(
        "markers.interactive",
        False,
        "Offer interactive markers for rviz on ~/interactive_markers: a target for each tip, and the obstacles. "
        "Dragging moves nothing; an entry of the menu does.",
        read_only=True,
    ),
    Spec(
        "markers.tips",
        (),
        "Tips that have an interactive marker: links, tool frames or attached objects, with what of the pose counts: "
        "hand, hand=position, camera=rz (free about z). Empty: the tips of all groups.",
        read_only=True,
    ),
    Spec(
        "markers.scale", 0.25, "Size of the handles of interactive markers (m).", 0.01, 10.0, read_only=True
    ),
    Spec(
        "fallback_chain",
        (),
        "Solvers that may take over from one that cannot, in this order. Empty: all that are installed, cpu first.",
    ),
)


_BY_NAME = {spec.name: spec for spec in SPECS}


def declare(node: Node) -> None:
    """Declare every parameter, and ``<solver>.<option>`` of every installed solver.

    Raises:
        InvalidRequestError: a value given at the start is not allowed.
    """
    given = given_at_start(node)
    for spec in (*SPECS, *_solver_specs()):
        try:
            value = spec.stored(given[spec.name].value if spec.name in given else spec.default)
            # What was given is in the value: rclpy would put it in as it came, whole numbers for others.
            declared = node.declare_parameter(spec.name, value, spec.descriptor(), ignore_override=True)
            _check_tool_frames(declared)
            _check_action_name(declared)
            _check_marker_tips(declared)
            # A solver that is known and cannot run is no reason: others may take over.
            _check_solver_names(declared)
        except (KinoptError, InvalidParameterValueException) as error:
            raise InvalidRequestError(f"parameter {spec.name}: {error}") from error


def given_at_start(node: Node) -> Mapping[str, Parameter[Any]]:
    """Return parameters that the node was started with, declared or not: rclpy knows them and offers no way to ask."""
    given: Mapping[str, Parameter[Any]] = getattr(node, "_parameter_overrides", {})
    return given


def converted(given: list[Parameter[Any]]) -> list[Parameter[Any]]:
    """Return parameters that somebody sets, as the node keeps them: whole numbers become floats where those are meant.

    What is not allowed stays as it is, to be refused.
    """
    specs = _BY_NAME | {spec.name: spec for spec in _solver_specs()}
    return [_converted(parameter, specs.get(parameter.name)) for parameter in given]


def _converted(parameter: Parameter[Any], spec: Spec | None) -> Parameter[Any]:
    if spec is None or parameter.type_ == Parameter.Type.NOT_SET:
        return parameter
    try:
        return Parameter(parameter.name, value=spec.stored(parameter.value))
    except KinoptError:
        return parameter


def described(name: str, description: str) -> ParameterDescriptor:
    """Return the descriptor of a parameter that is no Spec, of any type."""
    return ParameterDescriptor(name=name, description=description, dynamic_typing=True)


def value(node: Node, name: str) -> Any:
    """Return the present value of a declared parameter."""
    present = node.get_parameter(name).value
    return _BY_NAME[name].check(present) if name in _BY_NAME else present


def checked(parameter: Parameter[Any]) -> Any:
    """Return the value of a parameter of the table, as ``value`` will give it."""
    return _BY_NAME[parameter.name].check(parameter.value)


def solver_options(node: Node) -> dict[str, dict[str, Any]]:
    """Return options of every installed solver, as the parameters have them."""
    options: dict[str, dict[str, Any]] = {}
    for info in list_solvers():
        options[info.name] = {
            option.name: value(node, f"{info.name}.{option.name}") for option in info.options
        }
    return options


def writable_names() -> list[str]:
    """Return names of all parameters that may be set while the node runs, but for joint limits."""
    return [spec.name for spec in (*SPECS, *_solver_specs()) if not spec.read_only]


def defaults(names: Iterable[str]) -> dict[str, Any]:
    """Return the defaults of parameters by their names, as the node keeps them."""
    specs = _BY_NAME | {spec.name: spec for spec in _solver_specs()}
    return {name: specs[name].stored(specs[name].default) for name in names}


def solver_parameter_names() -> frozenset[str]:
    """Return names of the parameters that belong to solvers."""
    return frozenset(spec.name for spec in _solver_specs())


def ik_solver(node: Node) -> str:
    """Return the solver for inverse kinematics."""
    return str(value(node, "ik.solver") or value(node, "solver"))


def check(parameters: list[Parameter[Any]]) -> SetParametersResult:
    """Refuse values of the wrong type or out of range, and solvers that are not there."""
    specs = _BY_NAME | {spec.name: spec for spec in _solver_specs()}
    for parameter in parameters:
        try:
            if parameter.name in specs:
                if parameter.type_ == Parameter.Type.NOT_SET:
                    raise InvalidRequestError(f"{parameter.name} cannot be unset")
                specs[parameter.name].check(parameter.value)
            _check_tool_frames(parameter)
            _check_action_name(parameter)
            _check_solver_names(parameter)
            if parameter.name in _SOLVERS and parameter.value:
                solver_class(parameter.value)  # also one that cannot run here is refused
        except KinoptError as error:
            return refusal(str(error))
    return SetParametersResult(successful=True)


def _check_solver_names(parameter: Parameter[Any]) -> None:
    """Raise UnknownSolverError for a solver that is not installed."""
    given = checked(parameter) if parameter.name == "fallback_chain" else ()
    known = solver_names()
    if parameter.name in _SOLVERS and (parameter.value or parameter.name == "solver"):
        given, known = (parameter.value,), (AUTO, *known)
    for name in given:
        if name not in known:
            raise UnknownSolverError(name, known)


def _check_tool_frames(parameter: Parameter[Any]) -> None:
    """Raise InvalidRequestError for a text that describes no tool frames; links are checked against the robot."""
    if parameter.name == "tool_frames":
        tool_frames(parameter.value)


def _check_marker_tips(parameter: Parameter[Any]) -> None:
    """Raise InvalidRequestError for words that name no tips; tips are looked for when there is a robot."""
    if parameter.name == marker_tips.PARAMETER:
        marker_tips.read_tips(checked(parameter))


def _check_action_name(parameter: Parameter[Any]) -> None:
    """Raise InvalidRequestError for a text that no action can have as its name."""
    names: list[str] = []
    if parameter.name == "controller_action" and parameter.value:
        names = [parameter.value]
    if parameter.name == SEVERAL:
        names = [f"{name}/{ACTION}" for name in groups_of_controllers(checked(parameter))]
    for given in names:
        check_action_name(parameter.name, given)


def check_action_name(parameter: str, given: str) -> None:
    """Raise InvalidRequestError if no action can be called as a parameter says."""
    try:
        if "\0" in given:  # where rcl's text ends
            raise ValueError("it holds a null byte")
        validate_topic_name(given)
        validate_full_topic_name(expand_topic_name(given, "kinopt", "/") + LONGEST_OF_ACTION)
    except (NameValidationException, ValueError, TypeError) as error:  # the last one: no UTF-8
        said = str(error).splitlines()[0].rstrip(":")
        raise InvalidRequestError(
            f"{parameter} is {quoted(given)}, which no action can be called: {cut(said, 200)}"
        ) from error


def refusal(reason: str) -> SetParametersResult:
    """Return the answer to parameters that cannot be set."""
    return SetParametersResult(successful=False, reason=reason)


@cache
def _solver_specs() -> tuple[Spec, ...]:
    return tuple(_from_option(info.name, option) for info in list_solvers() for option in info.options)


def _from_option(solver: str, option: Option) -> Spec:
    return Spec(
        f"{solver}.{option.name}",
        option.default,
        option.description,
        option.minimum,
        option.maximum,
        read_only=option.read_only,
        choices=option.choices,
    )
