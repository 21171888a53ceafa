"""Angle between two directions as a rotation vector, smooth where they agree."""

from types import ModuleType
from typing import Annotated, Any

_TINY = 1e-24
"""Squared sine below which two directions count as parallel."""


def angle_between(xp: ModuleType, a: Annotated[Any, "3"], b: Annotated[Any, "3"]) -> Annotated[Any, "3"]:
    """Compute the rotation vector, rad, that turns direction a, of any length but 0, into b.

    Where they are opposite, any axis at right angles will do: one is taken; so, too, where b has no length, as nothing
    points along it.
    """
    a, b = _unit(xp, a), _unit(xp, b)
    normal = xp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
    cosine, squared = (a * b).sum(), (normal * normal).sum()
    parallel = squared < _TINY
    sine = xp.sqrt(xp.where(parallel, 1.0, squared))
    turned = normal * xp.where(parallel, 1.0, xp.arctan2(sine, cosine) / sine)
    # At right angles to a: the axis of the least of its components, made perpendicular.
    least = xp.where(xp.arange(3) == xp.argmin(xp.abs(a)), 1.0, 0.0)
    half_turn = _unit(xp, least - (least * a).sum() * a) * xp.pi
    return xp.where(parallel & (cosine < 0.5), half_turn, turned)  # 1, -1, or 0 where b has no length


def _unit(xp: ModuleType, vector: Any) -> Any:
    squared = (vector * vector).sum()
    return vector / xp.sqrt(xp.where(squared > 0.0, squared, 1.0))
