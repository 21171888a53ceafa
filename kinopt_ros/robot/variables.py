"""From joints to the configuration vector: names, limits narrowed for mimic joints, and a default.

Limits that a description does not give are stated here, conservative on purpose.
"""

from collections.abc import Sequence

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.robot.model import Joint, JointType, VariableLimits

DEFAULT_VELOCITY = 1.0
"""Velocity limit where the description gives none, or 0: rad/s or m/s."""
DEFAULT_ACCELERATION = 1.0
"""Acceleration limit where none is given; URDF has none: rad/s^2 or m/s^2."""
DEFAULT_JERK = 10.0
"""Jerk limit where none is given; URDF has none: rad/s^3 or m/s^3."""

_EMPTY_RANGE_TOLERANCE = 1e-9
_SUFFIXES = {
    JointType.PLANAR: ("/x", "/y", "/theta"),
    JointType.FLOATING: ("/trans_x", "/trans_y", "/trans_z", "/rot_w", "/rot_x", "/rot_y", "/rot_z"),
}


def variable_names_of(name: str, joint_type: JointType) -> tuple[str, ...]:
    """Names of an independent joint's variables, as MoveIt calls them, in their order in q.

    Only the order differs from MoveIt's: the quaternion of a floating joint is w, x, y, z here.
    """
    if joint_type is JointType.FIXED:
        return ()
    return tuple(name + suffix for suffix in _SUFFIXES.get(joint_type, ("",)))


def quaternion_starts(joints: Sequence[Joint]) -> list[int]:
    """Index in q of qw of every floating joint; qx, qy, qz follow."""
    return [joint.first_variable + 3 for joint in joints if joint.type is JointType.FLOATING]


def variable_limits(joints: Sequence[Joint], nq: int) -> VariableLimits:
    """Limits of all variables, narrowed so that every mimic joint keeps its own.

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
            if not joint.lower - _EMPTY_RANGE_TOLERANCE <= joint.offset <= joint.upper + _EMPTY_RANGE_TOLERANCE:
                raise RobotDescriptionError(
                    f"joint {joint.name!r} mimics {joint.mimics!r} with multiplier 0 and so stays at {joint.offset:g}, "
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


def default_configuration(joints: Sequence[Joint], limits: VariableLimits) -> Float64:
    """Mid-limits where both ends are finite, else the permitted value nearest to 0; quaternions are identity.

    Returns: float64 of shape (nq,), rad or m.
    """
    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    nearest = np.clip(0.0, limits.lower, limits.upper)
    q = np.asarray(nearest, dtype=np.float64).copy()
    q[bounded] = 0.5 * limits.lower[bounded] + 0.5 * limits.upper[bounded]
    for start in quaternion_starts(joints):
        q[start : start + 4] = (1.0, 0.0, 0.0, 0.0)
    return q
