"""Distance from a rest posture. Residual, rad or m: q[t] - rest. Source: Kim et al., "PyRoki", 2025, III."""

from types import ModuleType
from typing import Annotated, Any


def rest_residual(
    xp: ModuleType, q: Annotated[Any, "T n"], rest: Annotated[Any, "n"]
) -> Annotated[Any, "T n"]:
    """At every point."""
    return xp.asarray(q - rest)
