"""A path that is short, and bends little: the first three derivatives by the place on the path.

Residuals, rad or m: (T - 1) (q[t] - q[t - 1]) for the length; q''[t] for acceleration, q'''[t] for jerk, by the
stencils of ``stencils.py``. Source: Kim et al., "PyRoki", 2025, section IV; boundaries: ``stencils.py``.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any, ClassVar

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.joints import checked_joints, counted
from kinopt_ros.costs.point import Point
from kinopt_ros.costs.stencils import derivative_matrix
from kinopt_ros.robot.model import RobotModel


def length_residual(xp: ModuleType, q: Annotated[Any, "T n"]) -> Annotated[Any, "T-1 n"]:
    """Compute differences of neighbouring points, per share of the path that lies between them."""
    return xp.asarray((len(q) - 1) * (q[1:] - q[:-1]))


def derivative_residual(xp: ModuleType, q: Annotated[Any, "T n"], order: int) -> Annotated[Any, "T n"]:
    """Compute the second or third derivative at every point."""
    return xp.asarray(derivative_matrix(order, len(q))) @ q


@dataclass(frozen=True, eq=False, kw_only=True)
class Smoothness(Cost):
    """Step from each point to the next one."""

    name: ClassVar[str] = "smoothness"
    formula: ClassVar[str] = "r[t] = q[t + 1] - q[t], along the robot's directions"
    units: ClassVar[str] = "rad or m"
    source: ClassVar[str] = 'Kim et al., "PyRoki", 2025, III'
    span: ClassVar[int] = 2

    joints: tuple[str, ...] = ()
    """Joints that count; empty: all."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for joints that the robot lacks."""
        checked_joints(self, robot, self.joints)

    def residual(self, point: Point) -> Annotated[Any, "k"]:
        """Compute the step to the next point."""
        return point.difference(point.q, point.next().q)[counted(point.robot, self.joints)]


@dataclass(frozen=True, eq=False, kw_only=True)
class _LeastDerivative(Cost):
    joints: tuple[str, ...] = ()
    """Joints that count; empty: all."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError for joints that the robot lacks."""
        checked_joints(self, robot, self.joints)

    def residual(self, point: Point) -> Annotated[Any, "k"]:
        """Compute the derivative by time."""
        return point.derivative(self.order)[counted(point.robot, self.joints)]


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastAcceleration(_LeastDerivative):
    """Accelerations, so that a motion has little of them."""

    name: ClassVar[str] = "least_acceleration"
    formula: ClassVar[str] = "r = q''"
    units: ClassVar[str] = "rad/s^2 or m/s^2"
    source: ClassVar[str] = 'Kim et al., "PyRoki", 2025, III and IV'
    order: ClassVar[int] = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastJerk(_LeastDerivative):
    """Jerks, so that a motion has little of them."""

    name: ClassVar[str] = "least_jerk"
    formula: ClassVar[str] = "r = q'''"
    units: ClassVar[str] = "rad/s^3 or m/s^3"
    source: ClassVar[str] = 'Kim et al., "PyRoki", 2025, III and IV'
    order: ClassVar[int] = 3
