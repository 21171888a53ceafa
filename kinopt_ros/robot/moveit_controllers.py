"""Controllers as MoveIt's moveit_controllers.yaml names them."""

from collections.abc import Iterator, Mapping
from typing import Any

from kinopt_ros.errors import quoted, shown
from kinopt_ros.robot.model import RobotModel

MANAGER = "moveit_simple_controller_manager"
MOTIONS = "FollowJointTrajectory"
"""Type of controllers that follow motions."""
ACTION = "follow_joint_trajectory"
"""Action of these, below their names."""


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
    wanted = set(joints)
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
        if not _reason(entry, robot)
    ]


def controllers_left_out(given: Any, robot: RobotModel) -> dict[str, str]:
    """Return controllers that the node hands no motions to, and a sentence about each."""
    reasons = {name: _reason(entry, robot) for name, entry in controllers_of(given)}
    return {
        name: f"controller {quoted(name)} is left out: {reason}" for name, reason in reasons.items() if reason
    }


def _reason(entry: Mapping[str, Any], robot: RobotModel) -> str:
    """Return why a controller is handed no motions; empty if it is."""
    kind = entry.get("type")
    if kind != MOTIONS:
        return f"it is of type {shown(kind)}, and motions go to {MOTIONS} alone"
    if group_of(robot, joints_of(entry)) is None:
        return "no group of the SRDF has exactly its joints"
    return ""


def _texts(given: Any) -> list[str]:
    """Return the texts of a list; none of anything else."""
    return [one for one in given if isinstance(one, str)] if isinstance(given, list | tuple) else []
