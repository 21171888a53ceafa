"""Findings in a MoveIt configuration (a folder with ``config/*.srdf`` and YAML files), beside the robot that it is for.

What the node takes from it is checked as the node does; what it does not take is named.
"""

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kinopt_ros.errors import InvalidRequestError, KinoptError, quoted, shortened, shown
from kinopt_ros.files import is_file, is_folder, read_text
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.lint.finding import Finding, Severity, in_order
from kinopt_ros.robot.lint.rates import DEFAULT_RATES, lint_rates
from kinopt_ros.robot.model import Joint, RobotModel
from kinopt_ros.robot.moveit_controllers import (
    ACTIONS,
    ARRIVAL_TOLERANCE,
    GRIPPER,
    MANAGER,
    MOTIONS,
    controllers_of,
    controllers_parameter,
    entry_of,
    group_of,
    joints_of,
    listed,
    unused_keys,
)
from kinopt_ros.robot.ros2_controllers import REMEDY, begin_as_measured
from kinopt_ros.scene import yaml_text

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
LARGEST_FILE = 2**20
"""Largest YAML file that is read, bytes."""
_USED_KINEMATICS = ("kinematics_solver_timeout", "position_only_ik")
_SCALING = ("default_velocity_scaling_factor", "default_acceleration_scaling_factor")
_NOT_USED = {
    "pilz_cartesian_limits": "straight lines are timed by the limits of the joints",
    "*_planning": "the solvers of kinopt_ros plan",
    "*_moveit_controllers": "name it to have its controllers: controllers:=config/... of moveit.launch.py, or the "
    "fourth word of examples/moveit_parameters.py",
    "sensors_*": "send what sensors see as octomap or point cloud of the planning scene",
    "*": "nothing of kinopt_ros reads it",
}
"""Names of files that are not used, without ``.yaml``, and what is there instead; the first that fits counts."""


def config_folder(given: str | Path) -> Path:
    """Return the folder with the files: the one given, or ``config/`` in it.

    Raises:
        InvalidRequestError: there is no such folder.
    """
    if not is_folder(given):
        raise InvalidRequestError(
            f"--moveit is {quoted(str(given))}; allowed is the folder of a MoveIt configuration"
        )
    inside = Path(given) / "config"
    return inside if is_folder(inside) else Path(given)


def srdf_of(folder: Path) -> Path:
    """Return the SRDF of a MoveIt configuration.

    Raises:
        InvalidRequestError: there is none, or there are several.
    """
    found = sorted(folder.glob("*.srdf"))
    if len(found) != 1:
        names = shortened([path.name for path in found]) or "none"
        raise InvalidRequestError(f"{folder.name} has {names} as *.srdf; give one of them with --srdf")
    return found[0]


def lint_moveit(folder: Path, robot: RobotModel) -> list[tuple[Path, Finding]]:
    """List findings about the YAML files of a MoveIt configuration, each with its file.

    Args:
        folder: with the files.
        robot: the robot, with the groups of the SRDF.
    """
    found: list[tuple[Path, Finding]] = []
    for name, look in _FILES.items():
        file = folder / name
        if is_file(file):
            found += [(file, finding) for finding in in_order(_findings(file, look, robot))]
    for file in sorted(folder.glob("*.yaml")):
        if file.name not in _FILES:
            why = next(why for name, why in _NOT_USED.items() if fnmatchcase(file.stem, name))
            found.append((file, Finding(NOTE, 0, "this file is not used", why)))
    if not is_file(folder / _LIMITS):
        found += [(folder, finding) for finding in lint_rates(robot, dict.fromkeys(DEFAULT_RATES, ()))]
    if not any(is_file(folder / name) for name in _CONTROLLER_FILES):
        remedy = (
            "motions are published on ~/joint_trajectory; name controllers with the parameter controllers"
        )
        found.append((folder, Finding(NOTE, 0, "there is no moveit_controllers.yaml", remedy)))
    return found


def controllers_in(folder: Path, robot: RobotModel) -> list[str]:
    """Return the node's parameter ``controllers`` for a configuration; empty if it has none that can be used."""
    file = next((folder / name for name in _CONTROLLER_FILES if is_file(folder / name)), None)
    try:
        return [] if file is None else controllers_parameter(_read(file), robot)
    except KinoptError:
        return []  # the findings say it


def _read(file: Path) -> Any:
    return yaml_text.mapping(yaml_text.parsed(read_text(file, LARGEST_FILE, file.name)), file.name)


def _findings(
    file: Path, look: Callable[[Mapping[str, Any], RobotModel], Iterator[Finding]], robot: RobotModel
) -> Iterator[Finding]:
    try:
        given = _read(file)
    except KinoptError as error:
        yield Finding(ERROR, 0, str(error), "mend the file")
        return
    yield from look(given, robot)


def _joint_limits(given: Mapping[str, Any], robot: RobotModel) -> Iterator[Finding]:
    limits = given.get("joint_limits")
    if not isinstance(limits, Mapping):
        yield Finding(ERROR, 0, "there is no mapping joint_limits", "write joint_limits: {joint: {...}}")
        return
    for name, entry in limits.items():
        try:
            apply_joint_limits(robot, {name: entry})
        except KinoptError as error:
            yield Finding(ERROR, 0, str(error), "correct it: the robot is not loaded with it")
    try:
        warnings = set(apply_joint_limits(robot, limits).warnings) - set(robot.warnings)
    except KinoptError:
        warnings = set()  # said above
    for warning in sorted(warnings):
        yield Finding(NOTE, 0, warning, "leave it out, or keep it for others")
    scaling = [f"{name} ({shown(given[name])})" for name in _SCALING if name in given]
    if scaling:
        yield Finding(
            NOTE,
            0,
            f"{', '.join(scaling)} is for MoveGroupInterface, which sends it along",
            "requests without a scaling have the parameters velocity_scaling and acceleration_scaling",
        )
    with_limits = {
        rate: {
            name for name, entry in limits.items() if isinstance(entry, Mapping) and f"max_{rate}" in entry
        }
        for rate in DEFAULT_RATES
    }
    yield from lint_rates(robot, with_limits)


def _kinematics(given: Mapping[str, Any], robot: RobotModel) -> Iterator[Finding]:
    for group, entry in given.items():
        if group not in robot.groups:
            yield Finding(
                WARNING,
                0,
                f"{group!r} is no group of the robot",
                f"its groups are {shortened(list(robot.groups))}",
            )
        unused = sorted(set(entry) - set(_USED_KINEMATICS)) if isinstance(entry, Mapping) else []
        if unused:
            yield Finding(
                NOTE,
                0,
                f"{shortened(unused)} of {group!r} are not used",
                "the solvers of kinopt_ros answer (parameter solver)",
            )


def _moveit_controllers(given: Mapping[str, Any], robot: RobotModel) -> Iterator[Finding]:
    names = dict(controllers_of(given))
    if not names:
        yield Finding(
            WARNING,
            0,
            f"{MANAGER} names no controller",
            "write controller_names, and an entry for each of them",
        )
        return
    for name in listed(given):
        if name not in names:
            yield Finding(ERROR, 0, f"the controller {quoted(name)} has no entry", f"add one below {MANAGER}")
    covered: set[str] = set()
    for name, one in names.items():
        joints = joints_of(one)
        unknown = [joint for joint in joints if joint not in robot.joint_by_name]
        if unknown:
            yield Finding(
                ERROR, 0, f"{name!r} has {shortened(unknown)}, which the robot lacks", "correct the names"
            )
        yield from _controller(name, one, robot, unknown)
        covered.update(joints)
    left = [joint.name for joint in robot.joints if joint.is_active and joint.name not in covered]
    if left:
        yield Finding(
            NOTE, 0, f"no controller has {shortened(left)}", "motions of these joints cannot be executed"
        )


def _controller(
    name: str, given: Mapping[str, Any], robot: RobotModel, unknown: list[str]
) -> Iterator[Finding]:
    """Yield findings about how one controller is told motions; ``unknown``: joints that the robot lacks."""
    kind, joints = given.get("type"), joints_of(given)
    if kind not in ACTIONS:
        yield Finding(WARNING, 0, f"{name!r} is of type {shown(kind)}", f"allowed are {', '.join(ACTIONS)}")
        return
    try:
        entry = entry_of(name, given)
    except KinoptError as error:
        yield Finding(ERROR, 0, str(error), "correct it: the node does not start with it")
        return
    if unused := unused_keys(given):
        yield Finding(NOTE, 0, f"{shortened(unused)} of {name!r} are not used", "leave them to move_group")
    if not unknown and group_of(robot, joints) is None:
        yield Finding(
            WARNING,
            0,
            f"no group has exactly the joints of {name!r}",
            "add a group of them to the SRDF: the parameter controllers names groups",
        )
    if kind == MOTIONS and not unknown and _may_grip(robot, joints):
        yield Finding(
            NOTE,
            0,
            f"no end_effector of the SRDF has {shortened(joints)}: if {name!r} grips things, what is between the "
            f"fingers makes its motions fail (they end more than {ARRIVAL_TOLERANCE:g} from where they should)",
            "declare the group as <end_effector>: its joints may end anywhere",
        )
    if kind == MOTIONS or unknown:
        return
    yield Finding(
        NOTE,
        0,
        f"{name!r} is of type {kind}: it is told where a motion ends, and goes there at its own pace",
        "scaling does not count for it",
    )
    if entry.command_joint and entry.command_joint not in joints:
        yield Finding(
            WARNING,
            0,
            f"command_joint of {name!r} is {entry.command_joint!r}, which is none of its joints",
            f"the position of {entry.commanded(joints)[0]!r} is sent, as by move_group",
        )
    mimic = [joint for joint in joints if robot.joint_by_name[joint].mimics]
    if kind == GRIPPER and entry.parallel and mimic:
        yield Finding(
            WARNING,
            0,
            f"{name!r} is parallel, but {shortened(mimic)} follows another joint",
            "the position of one joint alone is sent, as by move_group: leave out parallel",
        )


def _ros2_controllers(given: Mapping[str, Any], robot: RobotModel) -> Iterator[Finding]:
    del robot
    for name in begin_as_measured(given):
        yield Finding(
            WARNING,
            0,
            f"{quoted(name)} begins what replaces a motion where the robot is measured: brakes and stops set its "
            "commands back by what the drives lag",
            REMEDY,
        )


def _may_grip(robot: RobotModel, joints: list[str]) -> bool:
    """Check whether joints may be those of a gripper that the SRDF does not declare: one or two that move by
    themselves, far enough to miss a goal, behind others."""
    known = {name for tool in robot.end_effectors for name in robot.groups[tool.group].joints}
    own = [robot.joint_by_name[name] for name in joints if robot.joint_by_name[name].is_active]
    if not 0 < len(own) <= 2 or known.intersection(joints):
        return False
    ranges = [robot.limits.upper[j.first_variable] - robot.limits.lower[j.first_variable] for j in own]
    return max(ranges) > ARRIVAL_TOLERANCE and all(_is_behind_others(robot, joint, joints) for joint in own)


def _is_behind_others(robot: RobotModel, joint: Joint, joints: list[str]) -> bool:
    link = joint.parent_link
    while (above := robot.parent_joint.get(link)) is not None:
        if above.is_active and above.name not in joints:
            return True
        link = above.parent_link
    return False


_LIMITS = "joint_limits.yaml"
_CONTROLLER_FILES = ("moveit_controllers.yaml", "controllers.yaml")
_FILES: dict[str, Callable[[Mapping[str, Any], RobotModel], Iterator[Finding]]] = {
    _LIMITS: _joint_limits,
    "kinematics.yaml": _kinematics,
    **dict.fromkeys(_CONTROLLER_FILES, _moveit_controllers),
    "ros2_controllers.yaml": _ros2_controllers,
}
"""What is looked at, by file."""
