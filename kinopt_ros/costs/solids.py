"""Signed distances that can be differentiated: of points and segments to rounded boxes, and of segments to each other.

A rounded box is all within a radius of a box: with no edges a ball, with one a capsule, with no radius a box. Distances
are m, negative inside. Source of the first: I. Quilez, "Distance functions"; of the last: C. Ericson, "Real-time
collision detection", 2005, 5.1.9.
"""

from types import ModuleType
from typing import Annotated, Any, NamedTuple

_SEARCH = 28
"""Steps of the golden section search: the place on the segment is known to 1e-6 of its length."""
_GOLDEN = 0.6180339887498949
_TINY = 1e-18


class RoundedBoxes(NamedTuple):
    """K rounded boxes."""

    R: Annotated[Any, "K 3 3"]
    """Columns are the axes of each box."""
    center: Annotated[Any, "K 3"]
    half: Annotated[Any, "K 3"]
    """Half lengths of the edges, m; may be 0."""
    radius: Annotated[Any, "K"]


def point_distances(
    xp: ModuleType, boxes: RoundedBoxes, points: Annotated[Any, "N 3"]
) -> Annotated[Any, "N K"]:
    """Compute signed distances of points to rounded boxes, m."""
    local = _in_boxes(boxes, points)
    return _of_local(xp, boxes, local)


def segment_distances(
    xp: ModuleType, boxes: RoundedBoxes, a: Annotated[Any, "N 3"], b: Annotated[Any, "N 3"]
) -> Annotated[Any, "N K"]:
    """Compute the least signed distance of each segment from a to b to each rounded box, m.

    Along a segment it is convex, and the least is found by golden section search; the place is not differentiated,
    which by the envelope theorem changes nothing.
    """
    return _least_along(xp, boxes, _in_boxes(boxes, a), _in_boxes(boxes, b))


def _least_along(xp: ModuleType, boxes: RoundedBoxes, start: Any, end: Any) -> Any:
    """Compute the least distance along segments between ends (..., 3) in the frames of their boxes."""

    def at(t: Any) -> Any:
        return _of_local(xp, boxes, start + t[..., None] * (end - start))

    low = xp.zeros(start.shape[:-1])
    width = 1.0
    left, right = at(low + (1.0 - _GOLDEN)), at(low + _GOLDEN)
    for _ in range(_SEARCH):
        first = left < right
        low = xp.where(first, low, low + (1.0 - _GOLDEN) * width)
        width *= _GOLDEN
        inner = at(xp.where(first, low + (1.0 - _GOLDEN) * width, low + _GOLDEN * width))
        left, right = xp.where(first, inner, right), xp.where(first, left, inner)
    middle = at(low + 0.5 * width)
    ends = xp.minimum(at(xp.zeros_like(low)), at(xp.ones_like(low)))
    return xp.minimum(middle, ends)


def to_nearest_box(
    xp: ModuleType, boxes: RoundedBoxes, a: Annotated[Any, "N 3"], b: Annotated[Any, "N 3"] | None = None
) -> Annotated[Any, "N"]:
    """Compute the signed distance of each point a, or segment from a to b, to the nearest rounded box, m.

    Which one is nearest is found first, so that its distance alone is differentiated.
    """
    known = point_distances(xp, boxes, a) if b is None else segment_distances(xp, boxes, a, b)
    nearest = xp.argmin(known, axis=1)
    chosen = RoundedBoxes(*(part[nearest] for part in boxes))
    if b is None:
        return _of_local(xp, chosen, ((a - chosen.center)[:, :, None] * chosen.R).sum(1))
    ends = [((end - chosen.center)[:, :, None] * chosen.R).sum(1) for end in (a, b)]
    return _least_along(xp, chosen, *ends)


def between_points(
    xp: ModuleType, a: Annotated[Any, "... 3"], b: Annotated[Any, "... 3"]
) -> Annotated[Any, "..."]:
    """Compute distances of points, m."""
    return _length(xp, a - b)


def between_segments(
    xp: ModuleType,
    a: Annotated[Any, "... 3"],
    b: Annotated[Any, "... 3"],
    c: Annotated[Any, "... 3"],
    d: Annotated[Any, "... 3"],
) -> Annotated[Any, "..."]:
    """Compute distances of segments from a to b to segments from c to d, m, at least 0."""
    u, v, w = b - a, d - c, a - c
    uu, vv, uv = (u * u).sum(-1), (v * v).sum(-1), (u * v).sum(-1)
    uw, vw = (u * w).sum(-1), (v * w).sum(-1)
    safe_uu, safe_vv = xp.where(uu > _TINY, uu, 1.0), xp.where(vv > _TINY, vv, 1.0)
    across = uu * vv - uv * uv
    bent = across > 1e-12 * uu * vv
    s = xp.where(bent, xp.clip((uv * vw - vv * uw) / xp.where(bent, across, 1.0), 0.0, 1.0), 0.0)
    t = xp.where(vv > _TINY, xp.clip((uv * s + vw) / safe_vv, 0.0, 1.0), 0.0)
    # The best place on the first for the one on the second.
    s = xp.where(uu > _TINY, xp.clip((uv * t - uw) / safe_uu, 0.0, 1.0), 0.0)
    return _length(xp, w + s[..., None] * u - t[..., None] * v)


def activation(xp: ModuleType, distance: Any, margin: Any) -> Any:
    """Compute the smooth cost of a signed distance: -d + margin / 2 inside, (margin - d)^2 / (2 margin) up to the
    margin, then 0. See ``collision/activation.py``, which has its source."""
    gap = xp.clip(distance, 0.0, margin)
    wide = margin > 0.0
    near = xp.where(wide, (margin - gap) ** 2 / (2.0 * xp.where(wide, margin, 1.0)), 0.0)
    return xp.maximum(-distance, 0.0) + near


def _in_boxes(boxes: RoundedBoxes, points: Any) -> Any:
    """Return points (N, 3) in the frames of K boxes, (N, K, 3)."""
    away = points[:, None, :] - boxes.center[None]
    return (away[:, :, :, None] * boxes.R[None]).sum(2)


def _of_local(xp: ModuleType, boxes: RoundedBoxes, local: Any) -> Any:
    beyond = xp.abs(local) - boxes.half
    outside = _length(xp, xp.maximum(beyond, 0.0))
    inside = xp.minimum(beyond.max(-1), 0.0)
    return outside + inside - boxes.radius


def _length(xp: ModuleType, vectors: Any) -> Any:
    squared = (vectors * vectors).sum(-1)
    positive = squared > _TINY
    return xp.where(positive, xp.sqrt(xp.where(positive, squared, 1.0)), 0.0)
