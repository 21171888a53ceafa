"""A path that is short, and bends little: the first three derivatives by the place on the path.

Residuals, rad or m: (T - 1) (q[t] - q[t - 1]) for the length; q''[t] for acceleration, q'''[t] for jerk, by the
stencils of ``stencils.py``. Source: Kim et al., "PyRoki", 2025, section IV; boundaries: ``stencils.py``.
"""

from types import ModuleType
from typing import Annotated, Any

from kinopt_ros.costs.stencils import derivative_matrix


def length_residual(xp: ModuleType, q: Annotated[Any, "T n"]) -> Annotated[Any, "T-1 n"]:
    """Compute differences of neighbouring points, per share of the path that lies between them."""
    return xp.asarray((len(q) - 1) * (q[1:] - q[:-1]))


def derivative_residual(xp: ModuleType, q: Annotated[Any, "T n"], order: int) -> Annotated[Any, "T n"]:
    """Compute the second or third derivative at every point."""
    return xp.asarray(derivative_matrix(order, len(q))) @ q
