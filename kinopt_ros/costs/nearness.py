"""Cost of being nearer to an obstacle than is wanted.

Residual, m: max(0, wanted - d) of signed distances d. It is squared, so that the cost rises smoothly from 0; its
linear continuation for searches without squares is ``collision/activation.py``.
"""

from types import ModuleType
from typing import Annotated, Any


def nearness_residual(
    xp: ModuleType, distance: Annotated[Any, "..."], wanted: Annotated[Any, "..."] | float
) -> Annotated[Any, "..."]:
    """Compute the residual max(0, wanted - distance), m, of signed distances of any shape."""
    return xp.maximum(wanted - distance, 0.0)
