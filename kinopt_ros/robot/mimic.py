"""Resolution of mimic joints: each is resolved to the independent joint at the end of its chain."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.robot.model import JointType
from kinopt_ros.robot.urdf_elements import JointElement

LARGEST_OFFSET = LARGEST_RATIO = 1e6
"""Largest offset, rad or m, and largest multiplier.

Beyond, sums lose the digits that tolerances are made of: no pose could be reached."""
_SEPARATORS = "_-/."
_ONE_VARIABLE = frozenset({JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC})


@dataclass(frozen=True)
class Drive:
    """Relation of a mimic joint to its driver: value = ``multiplier * value of driver + offset``."""

    driver: str
    multiplier: float
    offset: float


def resolve_mimics(elements: Mapping[str, JointElement], warnings: list[str]) -> dict[str, Drive]:
    """Return the drive of every mimic joint, by name of the mimic joint.

    Robots assembled from prefixed parts sometimes forget the prefix of the driver: where ``left_finger_2``
    mimics ``finger_1``, which does not exist, and ``left_finger_1`` does, that one is taken and a warning
    added.

    Raises:
        RobotDescriptionError: mimic of an unknown, fixed, planar or floating joint, of itself, or in a
            circle; or multipliers and offsets that are too large, once composed.
    """
    drives: dict[str, Drive] = {}
    joints = {name: _with_prefix(joint, elements, warnings) for name, joint in elements.items()}
    for name, joint in joints.items():
        if joint.mimic is None or joint.type is JointType.FIXED:
            continue
        path, on_path = [name], {name}
        while path[-1] not in drives:
            current = joints[path[-1]]
            if current.mimic is None:
                break
            _check_mimic(current, joints)
            if current.mimic.joint in on_path:
                circle = " -> ".join([*path[:8], *(["..."] if len(path) > 8 else []), current.mimic.joint])
                raise RobotDescriptionError(f"mimic joints in a circle: {circle}")
            path.append(current.mimic.joint)
            on_path.add(current.mimic.joint)
        # Unwound from the driver's end, so that every joint of a long chain is resolved once.
        drive = drives.get(path[-1], Drive(path[-1], 1.0, 0.0))
        for mimicking in reversed(path[:-1]):
            mimic = joints[mimicking].mimic
            if mimic is not None:
                drive = Drive(
                    drive.driver,
                    mimic.multiplier * drive.multiplier,
                    mimic.multiplier * drive.offset + mimic.offset,
                )
                if not (abs(drive.multiplier) <= LARGEST_RATIO and abs(drive.offset) <= LARGEST_OFFSET):
                    raise RobotDescriptionError(
                        f"joint {mimicking!r} mimics {drive.driver!r} with multiplier {drive.multiplier:g} and "
                        f"offset {drive.offset:g}, once the joints between are resolved; "
                        f"allowed are at most {LARGEST_RATIO:g} and {LARGEST_OFFSET:g}"
                    )
                drives[mimicking] = drive
    return drives


def _with_prefix(
    joint: JointElement, joints: Mapping[str, JointElement], warnings: list[str]
) -> JointElement:
    if joint.mimic is None or joint.mimic.joint in joints:
        return joint
    found = prefixed_leader(joint.name, joint.mimic.joint, joints)
    if found is None:
        return joint
    warnings.append(
        f"joint {joint.name!r} mimics {joint.mimic.joint!r}, which does not exist; {found!r} is taken instead"
    )
    return replace(joint, mimic=replace(joint.mimic, joint=found))


def prefixed_leader(name: str, leader: str, joints: Collection[str]) -> str | None:
    """Return the joint that a mimic joint means whose leader's name lacks the prefix that all joints were given, if
    there is exactly one."""
    prefixes = [name[: i + 1] for i, letter in enumerate(name) if letter in _SEPARATORS]
    found = [prefix + leader for prefix in prefixes if prefix + leader in joints]
    return found[0] if len(found) == 1 and found[0] != name else None


def _check_mimic(joint: JointElement, joints: Mapping[str, JointElement]) -> None:
    driven_by = joint.mimic.joint if joint.mimic else ""
    if joint.type not in _ONE_VARIABLE:
        raise RobotDescriptionError(
            f"joint {joint.name!r} is {joint.type.value} and cannot mimic another joint"
        )
    if driven_by not in joints:
        raise RobotDescriptionError(f"joint {joint.name!r} mimics {driven_by!r}, which does not exist")
    driver = joints[driven_by]
    if driver.type not in _ONE_VARIABLE:
        raise RobotDescriptionError(
            f"joint {joint.name!r} mimics {driver.name!r}, which is {driver.type.value}; "
            "only revolute, continuous and prismatic joints can be mimicked"
        )
