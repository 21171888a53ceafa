"""What a cost may ask of a point: a configuration of the robot, alone or as one point of a trajectory.

``objectives/numpy_point.py`` answers by numpy in float64, ``solvers/jax_lm/objectives/point.py`` by JAX. Both keep what
they have computed, so that costs of one point share it.
"""

from types import ModuleType
from typing import Annotated, Any, Protocol

from kinopt_ros.robot.model import RobotModel


class Point(Protocol):
    """One configuration, and what follows from it. Arrays are numpy's or JAX's, as ``xp`` is."""

    @property
    def xp(self) -> ModuleType:
        """The array module: numpy or jax.numpy."""

    @property
    def robot(self) -> RobotModel:
        """The robot; numbers of it are constants of a compiled program."""

    @property
    def q(self) -> Annotated[Any, "nq"]:
        """The configuration of the whole robot, rad or m."""

    @property
    def index(self) -> Any:
        """Number of the point in its trajectory, from 0; it may be traced."""

    def pose(self, link: str) -> Annotated[Any, "4 4"]:
        """Compute ``T_root_link``, m."""

    def jacobian(self, link: str) -> Annotated[Any, "6 nv"]:
        """Compute the geometric Jacobian of a link in the root link: linear, then angular velocity; columns are the
        robot's directions (``kinematics/tangent.py``)."""

    def rotation_vector(self, R: Annotated[Any, "3 3"]) -> Annotated[Any, "3"]:
        """Compute axis times angle of a rotation, rad, at most pi."""

    def difference(self, a: Annotated[Any, "nq"], b: Annotated[Any, "nq"]) -> Annotated[Any, "nv"]:
        """Compute the step from configuration a to b along the robot's directions, rad or m."""

    def derivative(self, order: int) -> Annotated[Any, "nv"]:
        """Compute a derivative of the configuration by time, up to the cost's ``order``; rad/s^k or m/s^k."""

    def next(self, k: int = 1) -> "Point":
        """Return the k-th point after this one, for k below the cost's ``span``."""
