"""Cost of velocities beyond their limits, where the duration of a motion is given.

Residual, rad/s or m/s: max(0, |q'[t]| / duration - limit), with q' by the place on the path (``stencils.py``). Source:
Kim et al., "PyRoki", 2025, III; there velocities and differences of positions are mixed up.
"""

from types import ModuleType
from typing import Annotated, Any

from kinopt_ros.costs.stencils import derivative_matrix


def velocity_residual(
    xp: ModuleType, q: Annotated[Any, "T n"], duration: float, limit: Annotated[Any, "n"]
) -> Annotated[Any, "T n"]:
    """Compute the residual of a path that is passed at even pace, rad/s or m/s."""
    velocity = xp.asarray(derivative_matrix(1, len(q))) @ q / duration
    return xp.maximum(xp.abs(velocity) - limit, 0.0)
