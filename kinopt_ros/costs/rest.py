"""Distance from a rest posture. Residual, rad or m: q[t] - rest. Source: Kim et al., "PyRoki", 2025, III."""

from types import ModuleType
from typing import Annotated, Any


def rest_residual(
    xp: ModuleType, q: Annotated[Any, "T n"], rest: Annotated[Any, "n"]
) -> Annotated[Any, "T n"]:
    """Compute the distance from the rest posture at every point."""
    return xp.asarray(q - rest)
