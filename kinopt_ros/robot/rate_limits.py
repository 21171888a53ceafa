"""Limits of acceleration, deceleration and jerk that URDF 1.2 has in ``<limit>``.

Joints slow down by no more than they speed up here, so the smaller one of acceleration and deceleration holds for both.
The attributes count in files of any version, as a number that somebody wrote is meant. Source: urdfdom, "URDF 1.2".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kinopt_ros.errors import RobotDescriptionError, quoted
from kinopt_ros.robot.limits import least_acceleration
from kinopt_ros.robot.xml_text import finite_number, refuse_substitution

_INFINITE = ("inf", "+inf", "infinity", "+infinity")
ATTRIBUTES = ("acceleration", "deceleration", "jerk")
"""Attributes of ``<limit>`` that are read."""


@dataclass(frozen=True)
class RateLimits:
    """Limits of a joint; None where none is given, or it is infinite: a default holds."""

    acceleration: float | None = None
    """rad/s^2 or m/s^2."""
    jerk: float | None = None
    """rad/s^3 or m/s^3."""


def read_rate_limits(attributes: Mapping[str, str], where: str) -> RateLimits:
    """Read them from the attributes of a ``<limit>``.

    Raises:
        RobotDescriptionError: one is no number above 0; the message names it and ``where``.
    """
    given = {name: _positive(attributes[name], name, where) for name in ATTRIBUTES if name in attributes}
    return RateLimits(
        acceleration=_known(least_acceleration(given.get("acceleration"), given.get("deceleration"))),
        jerk=_known(given.get("jerk")),
    )


def _known(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


def _positive(text: str, name: str, where: str) -> float:
    refuse_substitution(text, f"{name} in {where}")
    if text.strip().lower() in _INFINITE:
        return math.inf
    number = finite_number(text.strip())
    if number is None or number <= 0.0:
        raise RobotDescriptionError(f"{name}={quoted(text)} in {where}; allowed is a number above 0, or inf")
    return number
