"""Fit of spheres to solids: few, tight, and proven to leave nothing out.

The solid is cut into pieces (``cells``). Every piece is given to one sphere, whose radius is the distance of the
farthest point of its pieces: a sphere is convex, so it contains them, and all together contain the solid. Which piece
goes to which sphere is improved in turns with the spheres, as in R. Wang et al., "Variational sphere set approximation
for solid objects", The Visual Computer 22, 2006. Two ways to begin are tried: covering (``cover``), which does well
with rounded solids, and dividing, which does well with angular ones.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.geometry.cells import Cells, cells_of
from kinopt_ros.geometry.cover import cover
from kinopt_ros.geometry.shapes import PlacedShape
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.wanted import check_wanted

MAX_SPHERES = 6
"""Most spheres for one link, by default."""
TOLERANCE = 0.012
"""Distance that spheres may stick out without being divided, by default, m."""

_ROUNDING = 1e-9
"""Share, and length in m, by which radii are enlarged against rounding errors."""
_TURNS = 12
_DIRECTIONS = 64
_OUTER = 500
_DIVIDED = 10
"""Number of spheres beyond which dividing is not tried, as it takes long."""


def fit_spheres(
    shapes: Sequence[PlacedShape], most: int = MAX_SPHERES, tolerance: float = TOLERANCE
) -> SphereSet:
    """Fit spheres whose union contains all shapes, in the frame that these are placed in.

    Args:
        shapes: at least one; spheres, boxes, cylinders, cones, capsules, meshes, point clouds and octomaps.
        most: at most so many spheres.
        tolerance: how far (m) the spheres may stick out of the shapes before there are more of them.
    """
    if most < 1 or not tolerance >= 0.0:
        raise InvalidRequestError(
            f"most={most} spheres with tolerance={tolerance} m; allowed are at least 1 and at least 0 m"
        )
    if not shapes:
        raise InvalidRequestError("no shapes to fit spheres to; allowed is at least one")
    check_wanted()
    cells = cells_of(shapes)
    owner, count = cover(cells, shapes, most, tolerance)
    covering = _exact(cells, *_improve(cells, owner, count)[:2])
    if most > _DIVIDED:
        return covering
    divided = _exact(cells, *_divided(cells, most, tolerance))
    return min((covering, divided), key=_volume)


def sticking_out(shapes: Sequence[PlacedShape], spheres: SphereSet) -> float:
    """Estimate how far (m) spheres that contain shapes stick out of them; rather less than the truth."""
    cells = cells_of(shapes)
    surface = (spheres.centers[:, None] + spheres.radii[:, None, None] * _directions()).reshape(-1, 3)
    surface = surface[~spheres.contain(surface, -1e-6)]
    farthest = 0.0
    for start in range(0, len(surface), 100):
        some = surface[start : start + 100, None]
        away = np.maximum(cells.lower - some, some - cells.upper).clip(min=0.0)
        distance = np.sqrt((away**2).sum(axis=2)) - cells.radius
        farthest = max(farthest, float(distance.min(axis=1).max()))
    return farthest


def _divided(cells: Cells, most: int, tolerance: float) -> tuple[Int64, Float64]:
    """Divide the sphere that sticks out most, beginning with a single one, until there are so many or all are tight."""
    owner = np.zeros(len(cells.start), dtype=np.int64)
    centers, radii = _spheres(cells, owner, 1)
    while len(radii) < most:
        excess = np.array([_excess(cells, owner, centers, radii, k) for k in range(len(radii))])
        if excess.max() <= tolerance:
            break
        divided = _divide(cells, owner, centers, int(excess.argmax()))
        if divided is None:
            break
        owner, centers, radii = _improve(cells, divided, len(radii) + 1)
    return owner, centers


def _volume(spheres: SphereSet) -> float:
    """Estimate the volume of the spheres' union (m^3), with 2 % added per sphere: more of them must be worth it."""
    low = (spheres.centers - spheres.radii[:, None]).min(axis=0)
    high = (spheres.centers + spheres.radii[:, None]).max(axis=0)
    points = np.random.default_rng(0).uniform(low, high, (5000, 3))
    part = np.count_nonzero(spheres.contain(points)) / len(points)
    return float(part * (high - low).prod() * (1.0 + 0.02 * len(spheres.radii)))


def _improve(cells: Cells, owner: Int64, count: int) -> tuple[Int64, Float64, Float64]:
    """Give pieces to the sphere whose surface they exceed least, and shrink spheres to their pieces, in turns."""
    best = None
    for _ in range(_TURNS):
        check_wanted()
        centers, radii = _spheres(cells, owner, count)
        volume = float((radii**3).sum())
        if best is None or volume < best[0]:
            best = volume, owner, centers, radii
        far = np.column_stack([_farthest(cells, center) for center in centers])
        moved = (far**2 - radii**2).argmin(axis=1)
        if (moved == owner).all() or len(np.unique(moved)) < count:
            break
        owner = moved
    assert best is not None
    return best[1:]


def _spheres(cells: Cells, owner: Int64, count: int) -> tuple[Float64, Float64]:
    centers, radii = np.empty((count, 3)), np.empty(count)
    middle, half = (cells.upper + cells.lower) / 2.0, (cells.upper - cells.lower) / 2.0
    for k in range(count):
        own = owner == k
        centers[k], radii[k] = _enclosing(middle[own], half[own], cells.radius[own])
    return centers, radii


def _enclosing(middle: Float64, half: Float64, radius: Float64, turns: int = 20) -> tuple[Float64, float]:
    """Return nearly the smallest sphere around boxes that are widened by radii (M. Badoiu and K. Clarkson, 2003)."""
    x, y, z = np.ascontiguousarray(middle.T)
    hx, hy, hz = np.ascontiguousarray(half.T)
    outer = half + radius[:, None]
    center = ((middle - outer).min(axis=0) + (middle + outer).max(axis=0)) / 2.0
    best_center, best = center, np.inf
    for turn in range(turns):
        reach = np.sqrt(
            (np.abs(x - center[0]) + hx) ** 2
            + (np.abs(y - center[1]) + hy) ** 2
            + (np.abs(z - center[2]) + hz) ** 2
        )
        reach += radius
        i = int(reach.argmax())
        if reach[i] < best:
            best_center, best = center, float(reach[i])
        away = middle[i] - center
        toward = away + np.copysign(half[i], away)
        length = float(np.sqrt((toward**2).sum()))
        if length == 0.0:
            break
        # Towards the farthest point, less and less.
        center = center + toward / length * reach[i] / (turn + 3.0)
    return best_center, best


def _farthest(cells: Cells, center: Float64) -> Float64:
    """Return the distance of every piece's farthest point, or a little more."""
    reach: Float64 = (
        np.sqrt((np.maximum(cells.upper - center, center - cells.lower) ** 2).sum(axis=1)) + cells.radius
    )
    return reach


def _excess(cells: Cells, owner: Int64, centers: Float64, radii: Float64, k: int) -> float:
    """Return how far a sphere sticks out of its pieces, where it is not within other spheres."""
    surface = centers[k] + radii[k] * _directions()
    for j in range(len(radii)):
        if j != k:
            surface = surface[((surface - centers[j]) ** 2).sum(axis=1) > radii[j] ** 2]
    if not len(surface):
        return 0.0
    own = owner == k
    away = np.maximum(cells.lower[own] - surface[:, None], surface[:, None] - cells.upper[own]).clip(min=0.0)
    distance = np.sqrt((away**2).sum(axis=2)) - cells.radius[own]
    return float(distance.min(axis=1).max())


def _directions() -> Annotated[Float64, "D 3"]:
    """Return unit vectors that are spread evenly (Fibonacci's spiral)."""
    z = 1.0 - (2.0 * np.arange(_DIRECTIONS) + 1.0) / _DIRECTIONS
    angle = np.arange(_DIRECTIONS) * np.pi * (3.0 - np.sqrt(5.0))
    across = np.sqrt(1.0 - z**2)
    return np.column_stack([across * np.cos(angle), across * np.sin(angle), z])


def _divide(cells: Cells, owner: Int64, centers: Float64, k: int) -> Int64 | None:
    """Part one sphere's pieces across their longest extent; return the owners, or None if there is only one piece."""
    own = np.flatnonzero(owner == k)
    if len(own) < 2:
        return None
    middle = (cells.lower[own] + cells.upper[own]) / 2.0
    spread = middle - middle.mean(axis=0)
    along = spread @ np.linalg.svd(spread, full_matrices=False)[2][0]
    divided = owner.copy()
    divided[own[along > np.median(along)]] = len(centers)
    return divided if (divided == len(centers)).any() else None


def _exact(cells: Cells, owner: Int64, centers: Float64) -> SphereSet:
    """Return the spheres about the pieces' points themselves, instead of about their bounds."""
    counts = np.diff([*cells.start, len(cells.points)])
    owners, widening = np.repeat(owner, counts), np.repeat(cells.radius, counts)
    centers, radii = centers.copy(), np.empty(len(centers))
    for k in range(len(centers)):
        own = owners == k
        points, wide = cells.points[own], widening[own]
        reach = np.sqrt(((points - centers[k]) ** 2).sum(axis=1)) + wide
        outer = np.argsort(-reach)[:_OUTER]  # only these are likely to decide where the centre goes
        center, _ = _enclosing(points[outer], np.zeros((len(outer), 3)), wide[outer], 60)
        moved = np.sqrt(((points - center) ** 2).sum(axis=1)) + wide
        if moved.max() < reach.max():
            centers[k], reach = center, moved
        radii[k] = reach.max()
    return SphereSet(centers, radii * (1.0 + _ROUNDING) + _ROUNDING)
