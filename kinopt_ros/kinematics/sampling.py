"""Configurations inside the limits, the same for the same seed on every machine."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.variables import quaternion_starts

UNBOUNDED_ANGLE = float(np.pi)
"""Half range, rad, in which a rotation is sampled whose limits are infinite, or wider than a thousand radians."""
UNBOUNDED_LENGTH = 1.0
"""Half range, m, in which a translation is sampled whose limits are infinite, or wider than a kilometre."""
WIDEST = 1000.0
"""Widest limits that are sampled as they are, rad or m."""
WIDE_ANGLE, WIDE_LENGTH = 13.0, 10.0
"""Ranges wider than this (rad, a little more than two turns; m) are searched only near known configurations, see
``range_around``."""
AROUND, _MOST_AROUND = 3.0, 20.0
"""Distance around known configurations that is searched at least, and at most where these lie far apart, m."""


def random_configurations(robot: RobotModel, count: int, seed: int) -> Annotated[Float64, "count nq"]:
    """Draw uniform random configurations; quaternions are uniform over all rotations.

    Raises:
        InvalidRequestError: a negative count or seed.
    """
    _check(count, seed)
    return _spread(robot, np.random.default_rng(seed).random((count, robot.nq)))


def halton_configurations(robot: RobotModel, count: int, seed: int) -> Annotated[Float64, "count nq"]:
    """Draw configurations of a Halton sequence, evenly spread, with a random Cranley-Patterson shift by the seed.

    J. H. Halton, "Algorithm 247: radical-inverse quasi-random point sequence" (1964); R. Cranley and
    T. N. L. Patterson, "Randomization of number theoretic methods for multiple integration" (1976).

    Raises:
        InvalidRequestError: a negative count or seed.
    """
    _check(count, seed)
    shift = np.random.default_rng(seed).random(robot.nq)
    return _spread(robot, (halton(count, robot.nq) + shift) % 1.0)


def halton(count: int, dimensions: int) -> Annotated[Float64, "count dimensions"]:
    """Return points 1 to count of the Halton sequence with the first prime numbers as bases, in (0, 1)."""
    points = np.zeros((count, dimensions))
    for k, base in enumerate(_primes(dimensions)):
        index = np.arange(1, count + 1)
        scale = 1.0 / base
        while index.any():
            points[:, k] += scale * (index % base)
            index //= base
            scale /= base
    return points


def sampling_range(robot: RobotModel) -> tuple[Annotated[Float64, "nq"], Annotated[Float64, "nq"]]:
    """Return lower and upper ends, always finite, between which each variable is sampled (rad or m)."""
    lower, upper = robot.limits.lower.copy(), robot.limits.upper.copy()
    half = np.full(robot.nq, UNBOUNDED_ANGLE)
    half[_translations(robot)] = UNBOUNDED_LENGTH
    low_open, high_open = lower < -WIDEST, upper > WIDEST
    both = low_open & high_open
    lower = np.where(both, -half, np.where(low_open, upper - 2.0 * half, lower))
    upper = np.where(both, half, np.where(high_open, lower + 2.0 * half, upper))
    return lower, upper


def range_around(
    robot: RobotModel, known: Annotated[Float64, "K nq"], length: float = AROUND
) -> tuple[Annotated[Float64, "nq"], Annotated[Float64, "nq"]]:
    """Return lower and upper ends, always finite, for a search near to known configurations, such as start and goals.

    Ordinary ranges are searched all over. What has no limits, or wide ones (a wheeled base has any that came to mind),
    is searched a turn around what is known, translations at least ``length`` (m): in a range of kilometres no sample is
    of use.
    The configurations themselves are always inside, also if they are a little outside of their limits.
    """
    lower, upper = robot.limits.lower, robot.limits.upper
    first, last = known.min(axis=0), known.max(axis=0)
    slides = np.isin(np.arange(robot.nq), _translations(robot))
    around = np.maximum(np.minimum(0.5 * (last - first), _MOST_AROUND), length)
    around = np.where(slides, around, UNBOUNDED_ANGLE)
    wide = ~(upper - lower <= np.where(slides, WIDE_LENGTH, WIDE_ANGLE))
    low = np.where(wide, np.maximum(lower, first - around), lower)
    high = np.where(wide, np.minimum(upper, last + around), upper)
    return np.minimum(low, first), np.maximum(high, last)


def _translations(robot: RobotModel) -> list[int]:
    """Return which variables are lengths."""
    found: list[int] = []
    for joint in robot.joints:
        i = joint.first_variable
        if joint.is_active and joint.type is JointType.PRISMATIC:
            found.append(i)
        elif joint.type is JointType.PLANAR:
            found += range(i, i + 2)
        elif joint.type is JointType.FLOATING:
            found += range(i, i + 3)
    return found


def _spread(robot: RobotModel, unit: Annotated[Float64, "count nq"]) -> Annotated[Float64, "count nq"]:
    lower, upper = sampling_range(robot)
    q: Float64 = np.clip(lower + (upper - lower) * unit, lower, upper)
    for start in quaternion_starts(robot.joints):
        q[:, start : start + 4] = _uniform_quaternions(unit[:, start : start + 3])
    return q


def _uniform_quaternions(unit: Annotated[Float64, "count 3"]) -> Annotated[Float64, "count 4"]:
    """Draw uniform random quaternions (K. Shoemake, "Uniform random rotations", 1992)."""
    radius, angle_a, angle_b = unit[:, 0], 2.0 * np.pi * unit[:, 1], 2.0 * np.pi * unit[:, 2]
    a, b = np.sqrt(1.0 - radius), np.sqrt(radius)
    return np.stack(
        [b * np.cos(angle_b), a * np.sin(angle_a), a * np.cos(angle_a), b * np.sin(angle_b)], axis=1
    )


def _primes(count: int) -> list[int]:
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes if prime * prime <= candidate):
            primes.append(candidate)
        candidate += 1
    return primes


def _check(count: int, seed: int) -> None:
    if count < 0 or seed < 0:
        raise InvalidRequestError(f"number of samples ({count}) and seed ({seed}) must not be negative")
