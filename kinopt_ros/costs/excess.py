"""Errors beyond a tolerance: |e| - tolerance, 0 within; rad or m.

Three tolerances bound three numbers each for itself, one bounds their length. Infinite ones free.
"""

from types import ModuleType
from typing import Annotated, Any


def excess_residual(
    xp: ModuleType, errors: Annotated[Any, "... 3"], tolerance: float | tuple[float, float, float]
) -> Annotated[Any, "... k"]:
    """Compute errors beyond a tolerance; k is 3, or 1 for one tolerance."""
    if isinstance(tolerance, tuple):
        return xp.maximum(xp.abs(errors) - xp.asarray(tolerance), 0.0)
    length = xp.sqrt((errors * errors).sum(-1))[..., None]
    return xp.maximum(length - tolerance, 0.0)
