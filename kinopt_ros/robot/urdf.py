"""URDF text to RobotModel."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.robot.collision_shapes import CollisionModel
from kinopt_ros.robot.groups import leaf_groups
from kinopt_ros.robot.limits import DEFAULT_VELOCITY, variable_limits
from kinopt_ros.robot.mimic import Drive, resolve_mimics
from kinopt_ros.robot.mimic_limits import without_contradictions
from kinopt_ros.robot.model import Joint, JointType, RobotModel
from kinopt_ros.robot.poses import pose_of_xyz_rpy
from kinopt_ros.robot.srdf import apply_srdf
from kinopt_ros.robot.states import with_default_state
from kinopt_ros.robot.tree import order_tree
from kinopt_ros.robot.urdf_elements import JointElement, read_urdf
from kinopt_ros.robot.variables import default_configuration, variable_names_of


def robot_from_urdf(
    urdf_text: str,
    srdf_text: str | None = None,
    default_state: str | None = None,
    urdf_file: Path | None = None,
    packages: Mapping[str, Path] | None = None,
    virtual_joint: bool = False,
) -> RobotModel:
    """Build the robot that a URDF, and optionally an SRDF, describes.

    Args:
        urdf_text: URDF, after xacro.
        srdf_text: SRDF; without it (None) there is one group per leaf of the tree, named after the leaf link.
        default_state: name of an SRDF group_state, or ``group/state``, that becomes the default
            configuration.
        urdf_file: where the text is from, if it is from a file: relative names of collision meshes start there.
        packages: folders of packages by name, for ``package://`` in names of collision meshes; without, those of
            AMENT_PREFIX_PATH and ROS_PACKAGE_PATH. Meshes are opened when somebody asks for collision shapes.
        virtual_joint: whether the SRDF's planar or floating virtual_joint becomes a joint of the robot, see
            ``apply_srdf``.

    Returns:
        The model; ``warnings`` holds what was accepted but should be known.

    Raises:
        RobotDescriptionError: the text describes no usable robot; the message names the offender.
    """
    elements = read_urdf(urdf_text)
    warnings = list(elements.warnings)
    link_names, ordered = order_tree(elements.links, elements.joints)
    joints, variable_names = _joints(ordered, warnings)
    limits = variable_limits(joints, len(variable_names))
    robot = RobotModel(
        name=elements.name,
        link_names=link_names,
        joints=joints,
        variable_names=variable_names,
        limits=limits,
        default_q=default_configuration(joints, limits),
        groups=leaf_groups(link_names[0], joints),
        collision=CollisionModel(
            elements.collisions, elements.broken_collisions, elements.only_seen, urdf_file, packages or {}
        ),
        inertials=elements.inertials,
        warnings=tuple(warnings),
    )
    if srdf_text is not None:
        robot = apply_srdf(robot, srdf_text, virtual_joint)
    elif virtual_joint:
        raise RobotDescriptionError(
            "the virtual joint shall move, but there is no SRDF, which would define it"
        )
    return robot if default_state is None else with_default_state(robot, default_state)


def _joints(
    ordered: Sequence[JointElement], warnings: list[str]
) -> tuple[tuple[Joint, ...], tuple[str, ...]]:
    drives = resolve_mimics({element.name: element for element in ordered}, warnings)
    names: list[str] = []
    first_variable: dict[str, int] = {}
    joint_names = {element.name for element in ordered}
    for element in ordered:
        if element.name not in drives and element.type is not JointType.FIXED:
            first_variable[element.name] = len(names)
            own = variable_names_of(element.name, element.type)
            names.extend(own)
            for name in joint_names.intersection(own) - {element.name}:
                raise RobotDescriptionError(
                    f"joint {name!r} is called like a variable of the {element.type.value} joint {element.name!r}"
                )
    joints = [_joint(element, drives.get(element.name), first_variable, warnings) for element in ordered]
    return without_contradictions(joints, warnings), tuple(names)


def _joint(
    element: JointElement, drive: Drive | None, first_variable: Mapping[str, int], warnings: list[str]
) -> Joint:
    lower, upper = _position_range(element, drive, warnings)
    return Joint(
        name=element.name,
        type=element.type,
        parent_link=element.parent_link,
        child_link=element.child_link,
        T_parent_joint=pose_of_xyz_rpy(element.xyz, element.rpy),
        axis=_unit_axis(element),
        first_variable=first_variable.get(drive.driver if drive else element.name, -1),
        multiplier=drive.multiplier if drive else 1.0,
        offset=drive.offset if drive else 0.0,
        mimics=drive.driver if drive else None,
        lower=lower,
        upper=upper,
        velocity=_velocity(element, drive, warnings),
        acceleration=element.rates.acceleration,
        jerk=element.rates.jerk,
    )


def _position_range(element: JointElement, drive: Drive | None, warnings: list[str]) -> tuple[float, float]:
    """Return the own limits of a joint; a joint with several variables has none in URDF."""
    limit = element.limit
    if element.type not in (JointType.REVOLUTE, JointType.PRISMATIC):
        return -np.inf, np.inf
    if limit is None:
        if drive is None:
            raise RobotDescriptionError(
                f"joint {element.name!r} is {element.type.value} but has no <limit>, which URDF requires"
                + (
                    "; a joint that turns without end is of type continuous"
                    if element.type.value == "revolute"
                    else ""
                )
            )
        warnings.append(f"mimic joint {element.name!r} has no <limit>; only those of {drive.driver!r} count")
        return -np.inf, np.inf
    if limit.lower > limit.upper:
        raise RobotDescriptionError(
            f"joint {element.name!r} has its lower limit {limit.lower:g} above the upper, {limit.upper:g}"
        )
    if limit.lower == limit.upper and drive is None:
        warnings.append(f"joint {element.name!r} cannot move: both its limits are {limit.lower:g}")
    return limit.lower, limit.upper


def _velocity(element: JointElement, drive: Drive | None, warnings: list[str]) -> float | None:
    if element.type is JointType.FIXED:
        return None
    given = element.limit.velocity if element.limit else None
    if given is not None and given < 0.0:
        raise RobotDescriptionError(f"joint {element.name!r} has the negative velocity limit {given:g}")
    if given is None and drive is None:
        warnings.append(f"joint {element.name!r} has no velocity limit; {DEFAULT_VELOCITY:g} is used")
    return given


def _unit_axis(element: JointElement) -> Float64:
    axis = np.array(element.axis)
    largest = np.max(np.abs(axis))
    if element.type is JointType.FIXED or element.type is JointType.FLOATING:
        return np.array([1.0, 0.0, 0.0])  # no axis: whatever the file says is not used
    if largest == 0.0:
        raise RobotDescriptionError(f"joint {element.name!r} has a zero axis")
    axis = axis / largest  # first, so that no length overflows or underflows
    unit: Float64 = axis / np.linalg.norm(axis)
    return unit
