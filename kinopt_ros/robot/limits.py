"""Joint limits: defaults, MoveIt's ``joint_limits`` on top of the URDF, and narrowing for mimic joints."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, frozen
from kinopt_ros.errors import RobotDescriptionError, UnknownJointError, quoted, shown
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.mimic_limits import NEARLY_NOTHING
from kinopt_ros.robot.model import Joint, JointType, RobotModel, VariableLimits
from kinopt_ros.robot.variables import default_configuration, quaternion_starts

DEFAULT_VELOCITY = 1.0
"""Velocity limit where the description gives none, or 0: rad/s or m/s."""
DEFAULT_ACCELERATION = 1.0
"""Acceleration limit where none is given, as in most URDFs: rad/s^2 or m/s^2."""
DEFAULT_JERK = 10.0
"""Jerk limit where none is given, as in most URDFs: rad/s^3 or m/s^3."""

LARGEST_LIMIT = 1e12
"""Largest limit, rad or m, and per s, s^2, s^3. Joints without bounds have no limit instead."""
_EMPTY_RANGE_TOLERANCE = 1e-9
_RATES = ("velocity", "acceleration", "jerk")
_DECELERATION = "deceleration"
"""Limit of slowing down. Some files have it below 0; its size counts, for acceleration as well."""
_KEYS = {
    "has_position_limits",
    "min_position",
    "max_position",
    *(f"has_{rate}_limits" for rate in (*_RATES, _DECELERATION)),
    *(f"max_{rate}" for rate in (*_RATES, _DECELERATION)),
}
_UNUSED_KEYS = {
    "has_effort_limits",
    "max_effort",
    "has_soft_limits",
    "k_position",
    "k_velocity",
    "soft_lower_limit",
    "soft_upper_limit",
    "angle_wraparound",
}
"""Keys of ros2_control's files in the same place, which are not used here; the robot's warnings say so."""


def apply_joint_limits(robot: RobotModel, joint_limits: Mapping[str, Mapping[str, object]]) -> RobotModel:
    """Return a new robot with MoveIt's ``joint_limits`` parameters applied on top of what the URDF gives.

    Position limits may be tighter or wider than the URDF's; a continuous joint with both becomes revolute. A
    value counts unless its ``has_..._limits`` is false; false never loosens anything: the URDF's limit stays.
    The limits of drivers are narrowed anew, so that every mimic joint keeps its own. What is given here counts as
    given: a driver that it leaves (nearly) nothing gets a warning.

    Args:
        robot: the robot; it stays as it is.
        joint_limits: keys as in joint_limits.yaml (rad or m, per s, s^2, s^3), by name of the joint, or of
            the variable (``base/x``) for planar and floating joints.

    Raises:
        UnknownJointError: a joint that the robot does not have.
        RobotDescriptionError: an unknown key, a value that is no finite number or not positive, lower above
            upper, or nothing left of a range.
    """
    if not isinstance(joint_limits, Mapping):
        raise RobotDescriptionError(f"joint_limits must be a mapping from names, not {shown(joint_limits)}")
    joints = {joint.name: joint for joint in robot.joints}
    several: dict[str, dict[str, float]] = {}
    warnings = list(robot.warnings)
    for name, entry in joint_limits.items():
        given = _read_entry(name, entry, warnings)
        if name in robot.variable_index and name not in joints:
            several[name] = given
        elif name not in joints:
            raise UnknownJointError(name, sorted({*joints, *robot.variable_names}))
        elif joints[name].type is JointType.FIXED:
            warnings.append(f"limits given for the fixed joint {name!r} are not used")
        elif joints[name].type.num_variables > 1:
            if "lower" in given or "upper" in given:
                variables = ", ".join(robot.variable_names[i] for i in robot.variables_of(name))
                raise RobotDescriptionError(
                    f"position limits of {name!r} must be given for its variables ({variables})"
                )
            for i in robot.variables_of(name):
                several[robot.variable_names[i]] = {**given, **several.get(robot.variable_names[i], {})}
        else:
            joints[name] = _limited(joints[name], given)
    changed = tuple(joints[joint.name] for joint in robot.joints)
    limits = _with_variables(robot, variable_limits(changed, robot.nq), several)
    warnings += _hardly_left(robot, joint_limits, changed, limits)
    inside = bool(np.all((robot.default_q >= limits.lower) & (robot.default_q <= limits.upper)))
    return replace(
        robot,
        joints=changed,
        limits=limits,
        default_q=robot.default_q if inside else default_configuration(changed, limits),
        warnings=tuple(warnings),
    )


def _hardly_left(
    robot: RobotModel,
    joint_limits: Mapping[str, Mapping[str, object]],
    joints: Sequence[Joint],
    limits: VariableLimits,
) -> list[str]:
    """Return warnings for drivers that mimic joints leave hardly any room, where joint_limits names one of them."""
    by_name = {joint.name: joint for joint in joints}
    said = {}
    for mimic in robot.mimic_joints:
        driver = by_name[str(mimic.mimics)]
        i = driver.first_variable
        width, left = driver.upper - driver.lower, limits.upper[i] - limits.lower[i]
        named = {mimic.name, driver.name} & joint_limits.keys()
        if named and 0.0 < width < math.inf and left <= NEARLY_NOTHING * width:
            said[driver.name] = (
                f"joint_limits and the limits of joints that mimic {driver.name!r} leave it only "
                f"[{limits.lower[i]:g}, {limits.upper[i]:g}] of [{driver.lower:g}, {driver.upper:g}]"
            )
    return list(said.values())


def _read_entry(name: str, entry: object, warnings: list[str]) -> dict[str, float]:
    """Return checked values of one joint under the names of Joint's fields."""
    if not isinstance(entry, Mapping):
        raise RobotDescriptionError(f"joint_limits of {name!r} must be a mapping, not {shown(entry)}")
    for key in entry:
        if key in _UNUSED_KEYS:
            warnings.append(f"{key} of {name!r} in joint_limits is not used")
        elif key not in _KEYS:
            raise RobotDescriptionError(
                f"unknown key {quoted(key)} in joint_limits of {name!r}; known: {', '.join(sorted(_KEYS))}"
            )
    given: dict[str, float] = {}
    if _counts(name, entry, "has_position_limits", ("min_position", "max_position")):
        for key, target in (("min_position", "lower"), ("max_position", "upper")):
            if key in entry:
                given[target] = _number(name, key, entry[key])
    for rate in _RATES:
        key = f"max_{rate}"
        if _counts(name, entry, f"has_{rate}_limits", (key,)):
            given[rate] = _number(name, key, entry[key])
            if given[rate] <= 0.0:
                raise RobotDescriptionError(
                    f"{key} of {name!r} in joint_limits must be positive, not {given[rate]:g}"
                )
    key = f"max_{_DECELERATION}"
    if _counts(name, entry, f"has_{_DECELERATION}_limits", (key,)):
        given[_DECELERATION] = abs(_number(name, key, entry[key]))
        if given[_DECELERATION] == 0.0:
            raise RobotDescriptionError(f"{key} of {name!r} in joint_limits must not be 0")
    return given


def _counts(name: str, entry: Mapping[str, object], flag: str, keys: Sequence[str]) -> bool:
    """Check whether a limit is given: by its flag, or without a flag by any of its values."""
    present = [key for key in keys if key in entry]
    if flag not in entry:
        return bool(present)
    if not isinstance(entry[flag], bool):
        raise RobotDescriptionError(
            f"{flag} of {name!r} in joint_limits must be true or false, not {shown(entry[flag])}"
        )
    if entry[flag] and not present:
        raise RobotDescriptionError(
            f"{flag} of {name!r} in joint_limits is true, but {' and '.join(keys)} is missing"
        )
    return bool(entry[flag])


def _number(name: str, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LARGEST_LIMIT:
        raise RobotDescriptionError(
            f"{key} of {name!r} in joint_limits must be a finite number, not "
            f"{shown(value)}; allowed is at most {LARGEST_LIMIT:g}"
        )
    return float(value)


def _limited(joint: Joint, given: Mapping[str, float]) -> Joint:
    lower, upper = given.get("lower", joint.lower), given.get("upper", joint.upper)
    if lower > upper:
        raise RobotDescriptionError(
            f"joint_limits leave joint {joint.name!r} with lower limit {lower:g} above upper limit {upper:g}"
        )
    bounded = joint.type is JointType.CONTINUOUS and math.isfinite(lower) and math.isfinite(upper)
    return replace(
        joint,
        type=JointType.REVOLUTE if bounded else joint.type,
        lower=lower,
        upper=upper,
        velocity=given.get("velocity", joint.velocity),
        acceleration=least_acceleration(
            given.get("acceleration", joint.acceleration), given.get(_DECELERATION)
        ),
        jerk=given.get("jerk", joint.jerk),
    )


def least_acceleration(acceleration: float | None, deceleration: float | None) -> float | None:
    """Return the acceleration limit that keeps both: the smaller one; None if neither is given.

    Where only a deceleration is given, the default counts for the other.
    """
    if deceleration is None:
        return acceleration
    return min(DEFAULT_ACCELERATION if acceleration is None else acceleration, deceleration)


def _with_variables(
    robot: RobotModel, limits: VariableLimits, several: Mapping[str, Mapping[str, float]]
) -> VariableLimits:
    """Return limits of planar and floating joints: those that the robot had, changed where given."""
    arrays = {field: getattr(limits, field).copy() for field in ("lower", "upper", *_RATES)}
    for joint in robot.joints:
        if joint.type.num_variables > 1:
            own = slice(joint.first_variable, joint.first_variable + joint.type.num_variables)
            for field, array in arrays.items():
                array[own] = getattr(robot.limits, field)[own]
    for name, given in several.items():
        i = robot.variable_index[name]
        for field, value in given.items():
            if field != _DECELERATION:
                arrays[field][i] = value
        arrays["acceleration"][i] = least_acceleration(arrays["acceleration"][i], given.get(_DECELERATION))
        if arrays["lower"][i] > arrays["upper"][i]:
            raise RobotDescriptionError(
                f"joint_limits leave {name!r} with its lower limit above its upper limit"
            )
    return VariableLimits(**arrays)


def variable_limits(joints: Sequence[Joint], nq: int) -> VariableLimits:
    """Return limits of all variables, narrowed so that every mimic joint keeps its own.

    Raises:
        RobotDescriptionError: nothing is left of a range; the message names both joints.
    """
    lower, upper = np.full(nq, -np.inf), np.full(nq, np.inf)
    velocity, acceleration = np.full(nq, DEFAULT_VELOCITY), np.full(nq, DEFAULT_ACCELERATION)
    jerk = np.full(nq, DEFAULT_JERK)
    for joint in joints:
        if not joint.is_active:
            continue
        own = slice(joint.first_variable, joint.first_variable + joint.type.num_variables)
        if joint.type.num_variables == 1:
            lower[own], upper[own] = joint.lower, joint.upper
        for limit, given in (
            (velocity, joint.velocity),
            (acceleration, joint.acceleration),
            (jerk, joint.jerk),
        ):
            if given is not None:
                limit[own] = given
    for start in quaternion_starts(joints):
        lower[start : start + 4], upper[start : start + 4] = -1.0, 1.0
    _narrow(joints, lower, upper)
    _narrow_rates(joints, velocity, acceleration, jerk)
    return VariableLimits(lower, upper, velocity, acceleration, jerk)


def _narrow(joints: Sequence[Joint], lower: Float64, upper: Float64) -> None:
    for joint in joints:
        if joint.mimics is None:
            continue
        i = joint.first_variable
        if joint.multiplier == 0.0:
            if (
                not joint.lower - _EMPTY_RANGE_TOLERANCE
                <= joint.offset
                <= joint.upper + _EMPTY_RANGE_TOLERANCE
            ):
                raise RobotDescriptionError(
                    f"joint {joint.name!r} mimics {joint.mimics!r} with multiplier 0: it stays at "
                    f"{joint.offset:g}, "
                    f"outside its limits [{joint.lower:g}, {joint.upper:g}]"
                )
            continue
        ends = sorted((limit - joint.offset) / joint.multiplier for limit in (joint.lower, joint.upper))
        low, high = max(lower[i], ends[0]), min(upper[i], ends[1])
        if low > high + _EMPTY_RANGE_TOLERANCE:
            raise RobotDescriptionError(
                f"joint {joint.name!r} mimics {joint.mimics!r}, and no value of {joint.mimics!r} "
                f"in [{lower[i]:g}, {upper[i]:g}] keeps {joint.name!r} in [{joint.lower:g}, {joint.upper:g}] "
                f"(multiplier {joint.multiplier:g}, offset {joint.offset:g})"
            )
        lower[i], upper[i] = min(low, high), max(low, high)


@remembered
def assumed_jerk(robot: RobotModel) -> Annotated[Bool, "nq"]:
    """Return which variables have the jerk limit DEFAULT_JERK because nobody has stated one."""
    assumed: Annotated[Bool, "nq"] = np.asarray(robot.limits.jerk == DEFAULT_JERK)
    for joint in robot.joints:
        if joint.jerk is not None and joint.type.num_variables == 1 and joint.is_active:
            assumed[joint.first_variable] = False
    frozen(assumed)
    return assumed


def _narrow_rates(joints: Sequence[Joint], velocity: Float64, acceleration: Float64, jerk: Float64) -> None:
    for joint in joints:
        if joint.mimics is None or joint.multiplier == 0.0:
            continue
        for limit, given in (
            (velocity, joint.velocity),
            (acceleration, joint.acceleration),
            (jerk, joint.jerk),
        ):
            if given is not None:
                limit[joint.first_variable] = min(limit[joint.first_variable], given / abs(joint.multiplier))
