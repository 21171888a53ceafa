"""Controllers as MoveIt's moveit_controllers.yaml names them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kinopt_ros.errors import InvalidRequestError, KinoptError, shown
from kinopt_ros.robot.model import RobotModel

ARRIVAL_TOLERANCE = 0.1
"""How far joints may be from where a motion ends that their controller says to have done, rad or m, unless a parameter
of this name says otherwise."""
MANAGER = "moveit_simple_controller_manager"
MOTIONS, GRIPPER, PARALLEL_GRIPPER = "FollowJointTrajectory", "GripperCommand", "ParallelGripperCommand"
"""Types of controllers: those that follow motions, and those that go to a position by themselves."""
ACTION = "follow_joint_trajectory"
"""Action of those that follow motions, below their names."""
ACTIONS = {MOTIONS: ACTION, GRIPPER: "gripper_cmd", PARALLEL_GRIPPER: "gripper_cmd"}
"""Actions of controllers below their names, unless their entries say otherwise, by type."""
_USED = {
    MOTIONS: ("type", "action_ns", "joints"),
    GRIPPER: ("type", "action_ns", "joints", "command_joint", "parallel", "max_effort", "allow_failure"),
    PARALLEL_GRIPPER: ("type", "action_ns", "joints", "max_effort", "max_velocity", "allow_stalling"),
}
"""Keys of entries that count, by type. ``default`` is for MoveIt's choice among controllers of the same joints."""


@dataclass(frozen=True)
class ControllerEntry:
    """How a controller is told motions."""

    type: str = MOTIONS
    action: str = ACTION
    """Its action, below its name; empty: that is called as the controller."""
    joints: tuple[str, ...] = ()
    command_joint: str = ""
    """Joint whose position a gripper is told; empty: the first one of ``joints``."""
    parallel: bool = False
    """Whether a gripper is told the sum of its two joints."""
    max_effort: float = 0.0
    """Effort that a gripper is told, N or Nm; 0: what it does with none."""
    max_velocity: float = 0.0
    """Velocity that a gripper is told, m/s or rad/s; 0: none."""
    lenient: bool = False
    """Whether a gripper that did not arrive has done what it should: it may have an object between its fingers."""

    def action_of(self, name: str) -> str:
        """Return the action of a controller."""
        return f"{name}/{self.action}" if self.action else name

    def commanded(self, joints: Sequence[str]) -> tuple[str, ...]:
        """Return those of a gripper's joints whose positions it is told, as MoveIt chooses them: the others follow."""
        wanted = self.joints if self.parallel else (self.command_joint or "".join(self.joints[:1]),)
        return tuple(joint for joint in joints if joint in wanted) or tuple(joints[:1])


def entry_of(name: str, given: Mapping[str, Any]) -> ControllerEntry:
    """Return what a controller's entry says.

    Raises:
        InvalidRequestError: a value that is not allowed.
    """
    kind = _checked(name, given, "type", MOTIONS, str, "a text")
    joints = given.get("joints", ())
    if not isinstance(joints, list | tuple) or not all(isinstance(joint, str) for joint in joints):
        raise _not_allowed(name, "joints", joints, "names of joints")
    parallel = _checked(name, given, "parallel", False, bool, "true and false")
    if kind == GRIPPER and parallel and len(joints) != 2:
        raise _not_allowed(name, "joints", list(joints), "two joints for a gripper that is parallel")
    lenient = "allow_stalling" if kind == PARALLEL_GRIPPER else "allow_failure"
    return ControllerEntry(
        kind,
        _checked(name, given, "action_ns", ACTIONS.get(kind, ACTION), str, "a text"),
        tuple(joints),
        _checked(name, given, "command_joint", "", str, "a text"),
        parallel,
        _number(name, given, "max_effort"),
        _number(name, given, "max_velocity"),
        _checked(name, given, lenient, False, bool, "true and false"),
    )


def unused_keys(given: Mapping[str, Any]) -> list[str]:
    """Return keys of a controller's entry that do not count."""
    used = _USED.get(given.get("type", MOTIONS), ())
    return sorted(key for key in given if key not in (*used, "default"))


def controllers_of(given: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and entry of each controller that is listed and has an entry; ``given`` is what the file holds."""
    manager = given.get(MANAGER) if isinstance(given, Mapping) else None
    for name in listed(given):
        entry = manager.get(name) if isinstance(manager, Mapping) else None
        if isinstance(entry, Mapping):
            yield name, entry


def listed(given: Any) -> list[str]:
    """Return the names that controller_names lists."""
    manager = given.get(MANAGER) if isinstance(given, Mapping) else None
    return _texts(manager.get("controller_names")) if isinstance(manager, Mapping) else []


def joints_of(entry: Mapping[str, Any]) -> list[str]:
    """Return the joints of a controller's entry."""
    return _texts(entry.get("joints"))


def group_of(robot: RobotModel, joints: list[str]) -> str | None:
    """Return the group that has exactly some joints, of those that move by themselves; None if there is none."""
    mimic = {joint.name for joint in robot.mimic_joints}
    wanted = set(joints) - mimic
    for group in robot.groups.values():
        if wanted and {name for name in group.joints if robot.joint_by_name[name].is_active} == wanted:
            return group.name
    return None


def controllers_parameter(given: Any, robot: RobotModel) -> list[str]:
    """Return the node's parameter ``controllers`` (``arm_controller=arm``) for what a moveit_controllers.yaml holds.

    Those of ``controllers_left_out`` are not in it.
    """
    return [
        f"{name}={group_of(robot, joints_of(entry))}"
        for name, entry in controllers_of(given)
        if not _reason(name, entry, robot)
    ]


def entries_parameter(given: Any, robot: RobotModel) -> dict[str, Any]:
    """Return the node's parameters ``moveit_simple_controller_manager.*`` for what a moveit_controllers.yaml holds.

    It is what counts of the controllers of ``controllers_parameter``, unless it counts anyway.
    """
    entries = {
        name: {key: value for key, value in entry.items() if key in _USED[entry["type"]] and value != []}
        for name, entry in controllers_of(given)
        if not _reason(name, entry, robot) and replace(entry_of(name, entry), joints=()) != ControllerEntry()
    }
    return {MANAGER: entries} if entries else {}


def controllers_left_out(given: Any, robot: RobotModel) -> dict[str, str]:
    """Return controllers that the node hands no motions to, each with a sentence that says why."""
    reasons = {name: _reason(name, entry, robot) for name, entry in controllers_of(given)}
    return {name: f"controller {name} is left out: {reason}" for name, reason in reasons.items() if reason}


def _reason(name: str, given: Mapping[str, Any], robot: RobotModel) -> str:
    """Return why a controller is handed no motions; empty if it is."""
    if given.get("type") not in ACTIONS:
        return f"it is of type {shown(given.get('type'))}; allowed are {', '.join(ACTIONS)}"
    try:
        entry_of(name, given)
    except KinoptError as error:
        return str(error)
    if group_of(robot, joints_of(given)) is None:
        return "no group of the SRDF has exactly its joints"
    return ""


def _checked(name: str, given: Mapping[str, Any], key: str, default: Any, wanted: type, allowed: str) -> Any:
    value = given.get(key, default)
    if not isinstance(value, wanted):
        raise _not_allowed(name, key, value, allowed)
    return value


def _number(name: str, given: Mapping[str, Any], key: str) -> float:
    value = given.get(key, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
        raise _not_allowed(name, key, value, "a number, 0 or more")
    return float(value)


def _not_allowed(name: str, key: str, value: Any, allowed: str) -> InvalidRequestError:
    return InvalidRequestError(f"{MANAGER}.{name}.{key} is {shown(value)}; allowed: {allowed}")


def _texts(given: Any) -> list[str]:
    """Return the texts of a list; none of anything else."""
    return [one for one in given if isinstance(one, str)] if isinstance(given, list | tuple) else []
