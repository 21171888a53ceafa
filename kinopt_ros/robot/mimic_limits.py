"""Detection of mimic joints whose limits contradict their driver's.

A mimic joint that turns the other way and repeats its driver's own limits would freeze the driver: published
grippers and hands have this mistake. MoveIt and rviz never look at a mimic joint's limits.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kinopt_ros.robot.model import Joint

NEARLY_NOTHING = 0.05
"""Limits that have less than this part of the smaller of both ranges in common contradict one another. Sound files
have four fifths and more in common, mistaken ones touch at a point."""
_ROUNDING = 1e-9

Range = tuple[float, float]


def implied_range(own: Range, multiplier: float, offset: float) -> Range:
    """Return the range of a driver in which a joint that follows it keeps its own limits."""
    if multiplier == 0.0:
        inside = own[0] - _ROUNDING <= offset <= own[1] + _ROUNDING
        return (-np.inf, np.inf) if inside else (np.inf, -np.inf)
    ends = sorted((limit - offset) / multiplier for limit in own)
    return ends[0], ends[1]


def contradict(driver: Range, implied: Range) -> bool:
    """Check whether a mimic joint's limits would leave its driver nothing, or nearly so.

    A mimic joint whose range is a small part of a much larger one of its driver is believed.
    """
    low, high = max(driver[0], implied[0]), min(driver[1], implied[1])
    if low > high + _ROUNDING:
        return True
    if (low, high) == driver or high - low == np.inf:
        return False  # nothing is lost, or there is no end to what is left
    if driver[0] == driver[1]:
        return False  # nothing to lose
    if np.isinf(high - low):
        return False
    smaller = min(driver[1] - driver[0], implied[1] - implied[0])
    return high - low <= NEARLY_NOTHING * smaller


def what_contradicts(
    name: str, driver_name: str, own: Range, driver: Range, drive: tuple[float, float]
) -> str:
    """Return a sentence about limits that contradict; ``drive`` is multiplier and offset."""
    multiplier, offset = drive
    implied = implied_range(own, multiplier, offset)
    low, high = max(driver[0], implied[0]), min(driver[1], implied[1])
    left = "nothing" if low > high + _ROUNDING else f"only {_text((low, max(low, high)))}"
    if multiplier == 0.0:
        what = f"it stays at {offset:g}, outside its own limits {_text(own)}"
    else:
        what = f"its own limits {_text(own)} leave {left} of the limits {_text(driver)} of {driver_name!r}"
    return (
        f"joint {name!r} mimics {driver_name!r} with multiplier {multiplier:g} and offset {offset:g}: {what}. "
        f"They are taken for a mistake and not used; {name!r} moves in {_text(followed(driver, drive))}"
    )


def followed(driver: Range, drive: tuple[float, float]) -> Range:
    """Return the range of a mimic joint while its driver keeps its limits."""
    if drive[0] == 0.0:
        return drive[1], drive[1]
    ends = sorted(drive[0] * limit + drive[1] for limit in driver)
    return ends[0], ends[1]


def without_contradictions(joints: Sequence[Joint], warnings: list[str]) -> tuple[Joint, ...]:
    """Drop limits of mimic joints that contradict those of their drivers; return the joints, with a warning for each.

    Without limits of its own, a mimic joint keeps what its driver's limits imply.
    """
    ranges = {joint.name: (joint.lower, joint.upper) for joint in joints if joint.is_active}
    kept = []
    for joint in joints:
        if joint.mimics is not None:
            driver, own = ranges[joint.mimics], (joint.lower, joint.upper)
            drive = joint.multiplier, joint.offset
            implied = implied_range(own, *drive)
            if contradict(driver, implied):
                warnings.append(what_contradicts(joint.name, joint.mimics, own, driver, drive))
                kept.append(replace(joint, lower=-np.inf, upper=np.inf))
                continue
            low, high = max(driver[0], implied[0]), min(driver[1], implied[1])
            ranges[joint.mimics] = min(low, high), max(low, high)
        kept.append(joint)
    return tuple(kept)


def _text(numbers: Range) -> str:
    return f"[{numbers[0] + 0.0:g}, {numbers[1] + 0.0:g}]"
