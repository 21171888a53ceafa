"""Limits of joint accelerations along a trajectory with given times."""

from dataclasses import dataclass
from typing import ClassVar

from kinopt_ros.costs.derivative_limit import DerivativeLimit


@dataclass(frozen=True, eq=False, kw_only=True)
class AccelerationLimits(DerivativeLimit):
    """Joint accelerations within the robot's limits, by differences of fourth order (``stencils.py``)."""

    name: ClassVar[str] = "acceleration_limits"
    formula: ClassVar[str] = "r = |q''| - limit"
    source: ClassVar[str] = 'Kim et al., "PyRoki", 2025, III and IV'
    order: ClassVar[int] = 2
