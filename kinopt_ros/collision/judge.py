"""Exact distances between placed shapes, by coal, which decide whether an answer is free of collisions.

Primitives and triangles of meshes are coal's. What coal has no geometry for is put together here: the inside of meshes,
the balls of clouds, the cubes of octomaps, ground. So are two capsules, of which coal knows less. Spheres and clouds
are compared by the signed distances of ``kernels/``, which agree with coal's to 1e-9 m where coal is right (a sphere
whose centre is inside of a cylinder gets only its radial depth from coal 3.0.3).
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.collision.coal_geometry import Geometry, geometry_of, load_coal
from kinopt_ros.collision.ground import ground_surfaces
from kinopt_ros.collision.kernels import ball_distances, layout
from kinopt_ros.collision.kernels.hull_gap import ROUNDING
from kinopt_ros.collision.obstacles import Obstacles, bounding_sphere, nearest, pack, rigid
from kinopt_ros.collision.trees import first_item, tree_of
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.geometry.meshes import connected_parts
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightMap,
    Mesh,
    Octomap,
    PlacedShape,
    Plane,
    PointCloud,
    Primitive,
    Shape,
    Sphere,
)

GJK_TOLERANCE = 1e-9
"""Relative tolerance of coal's GJK. Its default of 1e-6 leaves errors of 2e-6 m beside cones."""
GJK_STEPS = 1000
EPA_TOLERANCE, EPA_STEPS = 1e-6, 64
"""Settings of coal's EPA, which computes penetration depths.

With a smaller tolerance or more steps coal 3.0.3 gives depths that are far too large."""
IN_DOUBT = 1e-5
"""Gap up to which shapes count as touching in ``in_collision``, m.

So close to contact coal's GJK may take a penetration of a few 1e-6 m for a gap."""
TOUCHING = 1e-9
"""Least penetration depth of shapes that collide, m."""
OUTER_BALL = np.array([1.0, 1.0, 1.0, math.sqrt(3.0)])
"""Factors that turn the ball in a cube (centre, half edge) into the ball around it."""
ROUND = 32
"""Points on the rim of a cylinder or cone at which its depth is evaluated."""

Bounded = Mesh | Box | Capsule | Cone | Cylinder
_ORDER = (Sphere, PointCloud, Octomap, Plane, HeightMap, Mesh, Box, Capsule, Cone, Cylinder)


@dataclass(frozen=True, eq=False)
class Separation:
    """How far two shapes are apart, and their nearest points."""

    distance: float
    """Distance of the shapes, m; negative in collision.

    In collision it is, of two primitives, the least way by which one must be moved. Of others it is the depth of the
    deepest point found: of a corner, an end or a vertex inside the other shape, or of a ball or cube of a cloud."""
    point_a: Annotated[Float64, "3"]
    point_b: Annotated[Float64, "3"]
    """The nearest points, in the common frame; in collision the two ends of the depth."""


def distance(
    shape_a: Shape, T_a: Annotated[Float64, "4 4"], shape_b: Shape, T_b: Annotated[Float64, "4 4"]
) -> Separation:
    """Compute the distance of two shapes, given their poses in a common frame: within 1e-6 m unless it is negative.

    A height map counts as the surface that contains it (``height_map._ground``). Raises ``InvalidRequestError`` for two
    shapes without end (planes, height maps) and ``MissingPackageError`` without coal.
    """
    rigid(T_a)
    rigid(T_b)
    return _separation(shape_a, T_a, shape_b, T_b, np.inf)


def in_collision(
    shape_a: Shape,
    T_a: Annotated[Float64, "4 4"],
    shape_b: Shape,
    T_b: Annotated[Float64, "4 4"],
    clearance: float = 0.0,
) -> bool:
    """Check whether two shapes are nearer to each other than ``clearance`` (m), or IN_DOUBT farther apart.

    Quicker than ``distance``. Raises the same errors.
    """
    if not np.isfinite(clearance) or clearance < 0.0:
        raise InvalidRequestError(f"clearance is {clearance}; allowed is 0 or more")
    rigid(T_a)
    rigid(T_b)
    return _nearer(shape_a, T_a, shape_b, T_b, clearance)


def prepare(shape: Shape) -> None:
    """Build all that is kept of a shape (some seconds for a million points), so that no request waits for it.

    Raises ``MissingPackageError`` without coal.
    """
    load_coal()
    _packed(shape)
    if isinstance(shape, Mesh):
        geometry_of(shape)
        _parts(shape)


def prepare_kernels() -> None:
    """Compile, or load, what clouds, octomaps and the insides of meshes are looked at by: whoever meets the first one
    may be watching a motion.

    Raises ``MissingPackageError`` without coal or numba.
    """
    cube, box, here = Octomap(np.zeros((1, 3)), np.full(1, 0.1)), Box(0.1, 0.1, 0.1), np.eye(4)
    distance(cube, here, box, here)
    in_collision(cube, here, box, here)


def _separation(a: Shape, T_a: Float64, b: Shape, T_b: Float64, most: float) -> Separation:
    """Compute the separation: exact if below ``most``; else any distance from there to the true one."""
    load_coal()
    if _ORDER.index(type(a)) > _ORDER.index(type(b)):
        found = _separation(b, T_b, a, T_a, most)
        return Separation(found.distance, found.point_b, found.point_a)
    apart = _bounding_spheres(a, T_a, b, T_b) if most < np.inf else None
    if apart is not None and apart.distance >= most:
        return apart
    if isinstance(a, Sphere):
        return _balls(np.append(T_a[:3, 3], a.radius)[None], b, T_b, most)
    if isinstance(a, PointCloud):
        return _cloud(a, T_a, b, T_b, most)
    if isinstance(a, Octomap):
        return _cubes(a, T_a, b, T_b, most)
    assert not isinstance(b, Sphere | PointCloud | Octomap)  # they come first in _ORDER
    if isinstance(b, Plane | HeightMap):
        raise InvalidRequestError(f"a {_name(a)} and a {_name(b)}, both without end, have no distance")
    if isinstance(a, Plane) and isinstance(b, Mesh):
        return _half_space(T_a, b, T_b)
    if isinstance(a, HeightMap):
        return _ground(a, T_a, b, T_b, most)
    if isinstance(a, Mesh):
        return _solid(_by_coal(geometry_of(a), T_a, geometry_of(b), T_b), a, T_a, b, T_b)
    if isinstance(a, Capsule) and isinstance(b, Capsule):
        return _capsules(a, T_a, b, T_b)
    return _by_coal(geometry_of(a), T_a, geometry_of(b), T_b)


def _nearer(a: Shape, T_a: Float64, b: Shape, T_b: Float64, clearance: float) -> bool:
    """Check what ``_separation`` says, without looking for how near."""
    load_coal()
    if _ORDER.index(type(a)) > _ORDER.index(type(b)):
        a, T_a, b, T_b = b, T_b, a, T_a
    if isinstance(a, Sphere):
        x, y, z = _local(T_b, *T_a[:3, 3].tolist())
        return bool(ball_distances.ball_contact(*_arrays(_packed(b)), x, y, z, a.radius, clearance) >= 0)
    *first, reach_a = _bounding_sphere(a, T_a)
    *second, reach_b = _bounding_sphere(b, T_b)
    if math.dist(first, second) - reach_a - reach_b >= clearance:
        return False
    if isinstance(a, Octomap) and not isinstance(b, Octomap):
        return _cube_nearer(a, T_a, b, T_b, clearance)
    if isinstance(a, HeightMap) and isinstance(b, Bounded):
        near = _ground_near(a, T_a, b, T_b, clearance)
        return not isinstance(near, Separation) and (
            any(_coal_nearer(tile, T_a, geometry_of(b), T_b, clearance) for tile in ground_surfaces(a, *near))
            or _contains(a, T_a, b, T_b)
        )
    if isinstance(a, Mesh) and isinstance(b, Bounded):
        return (
            _coal_nearer(geometry_of(a), T_a, geometry_of(b), T_b, clearance)
            or _contains(a, T_a, b, T_b)
            or (isinstance(b, Mesh) and _contains(b, T_b, a, T_a))
        )
    if isinstance(a, Capsule) and isinstance(b, Capsule):
        return _capsules(a, T_a, b, T_b).distance < clearance + IN_DOUBT
    if isinstance(a, Primitive) and isinstance(b, Bounded) and not isinstance(a, Plane):
        return _coal_nearer(geometry_of(a), T_a, geometry_of(b), T_b, clearance)
    return _separation(a, T_a, b, T_b, clearance).distance < clearance


def _coal_nearer(a: Geometry, T_a: Float64, b: Geometry, T_b: Float64, clearance: float) -> bool:
    if len(a.parts) == len(b.parts) == 1:
        return _part_nearer(a.parts[0], T_a, b.parts[0], T_b, clearance)
    apart = _parts_apart(a, T_a, b, T_b)
    i, j = np.nonzero(apart < clearance + IN_DOUBT)
    return any(
        _part_nearer(a.parts[i[k]], T_a, b.parts[j[k]], T_b, clearance) for k in np.argsort(apart[i, j])
    )


def _parts_apart(a: Geometry, T_a: Float64, b: Geometry, T_b: Float64) -> Annotated[Float64, "K L"]:
    """Return lower bounds of the distances of all parts, by boxes around each and balls around the other's; minus
    infinity where these overlap."""
    T_a_b: Float64 = np.linalg.inv(T_a) @ T_b
    T_b_a: Float64 = np.linalg.inv(T_b) @ T_a
    gaps = _from_boxes(a, T_a_b, b), _from_boxes(b, T_b_a, a).T
    apart = np.maximum(*gaps) - ROUNDING
    return np.where(apart > 0.0, apart, -np.inf)


def _from_boxes(a: Geometry, T_a_b: Float64, b: Geometry) -> Annotated[Float64, "K L"]:
    centers = b.balls[:, :3] @ T_a_b[:3, :3].T + T_a_b[:3, 3]
    outside = np.maximum(a.boxes[:, None, :3] - centers, centers - a.boxes[:, None, 3:])
    gaps: Float64 = np.linalg.norm(np.maximum(outside, 0.0), axis=2) - b.balls[:, 3]
    return gaps


def _part_nearer(a: Any, T_a: Float64, b: Any, T_b: Float64, clearance: float) -> bool:
    coal = load_coal()
    request = coal.CollisionRequest()
    # Without contacts or without margin coal 3.0.3 misses boxes that triangles cross in the middle.
    request.enable_contact = True
    request.security_margin = clearance + IN_DOUBT
    request.gjk_tolerance, request.gjk_max_iterations = GJK_TOLERANCE, GJK_STEPS
    request.epa_tolerance, request.epa_max_iterations = EPA_TOLERANCE, EPA_STEPS
    result = coal.CollisionResult()
    return bool(coal.collide(a, _transform(coal, T_a), b, _transform(coal, T_b), request, result))


def _cube_nearer(a: Octomap, T_a: Float64, b: Shape, T_b: Float64, clearance: float) -> bool:
    cubes = _items_near(a, T_a, b, T_b, clearance)
    arrays = _arrays(_obstacle(b, T_b))
    if ball_distances.first_contact(*arrays, cubes, clearance)[0] >= 0:
        return True
    outer = cubes * OUTER_BALL
    start = 0
    while True:
        found = ball_distances.first_contact(*arrays, outer[start:], clearance)[0]
        if found < 0:
            return False
        start += found
        if _nearer(*_cube(cubes[start], T_a), b, T_b, clearance):
            return True
        start += 1


def _by_coal(a: Geometry, T_a: Float64, b: Geometry, T_b: Float64) -> Separation:
    if len(a.parts) == len(b.parts) == 1:
        return _parts_by_coal(a.parts[0], T_a, b.parts[0], T_b)
    apart = _parts_apart(a, T_a, b, T_b)
    best: Separation | None = None
    for pair in np.argsort(apart, axis=None):
        i, j = divmod(int(pair), len(b.parts))
        if best is not None and apart[i, j] >= best.distance:
            return best
        found = _parts_by_coal(a.parts[i], T_a, b.parts[j], T_b)
        if best is None or found.distance < best.distance:
            best = found
    assert best is not None
    return best


def _parts_by_coal(a: Any, T_a: Float64, b: Any, T_b: Float64) -> Separation:
    coal = load_coal()
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance, request.gjk_max_iterations = GJK_TOLERANCE, GJK_STEPS
    request.epa_tolerance, request.epa_max_iterations = EPA_TOLERANCE, EPA_STEPS
    result = coal.DistanceResult()
    found = coal.distance(a, _transform(coal, T_a), b, _transform(coal, T_b), request, result)
    return Separation(float(found), np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2()))


def _capsules(a: Capsule, T_a: Float64, b: Capsule, T_b: Float64) -> Separation:
    """Compute the separation of two capsules by the segments in them.

    coal 3.0.3 takes segments of millimetres for parallel ones, and is wrong by up to 0.1 mm.
    """
    u, v, w = a.length * T_a[:3, 2], b.length * T_b[:3, 2], T_b[:3, 3] - T_a[:3, 3]
    uu, uv, vv, uw, vw = (float(one @ other) for one, other in ((u, u), (u, v), (v, v), (u, w), (v, w)))
    # Every candidate is a pair of points (shares of the segments from their middles), so that none is too near.
    pairs = [(s, _share((s * uv - vw) / vv)) for s in (-0.5, 0.5)]
    pairs += [(_share((t * uv + uw) / uu), t) for t in (-0.5, 0.5)]
    det = uu * vv - uv * uv
    if det > 0.0:
        t = _share((_share((uw * vv - vw * uv) / det) * uv - vw) / vv)
        pairs.append((_share((t * uv + uw) / uu), t))
    gaps = [w + t * v - s * u for s, t in pairs]
    lengths = [math.hypot(*gap.tolist()) for gap in gaps]
    k = lengths.index(min(lengths))
    if lengths[k] > TOUCHING:
        normal = gaps[k] / lengths[k]
    else:  # the segments cross: the way out is across both
        across = np.cross(T_a[:3, 2], T_b[:3, 2])
        sine = float(np.linalg.norm(across))
        normal = across / sine if sine > TOUCHING else T_a[:3, 0]
    on_a, on_b = T_a[:3, 3] + pairs[k][0] * u, T_b[:3, 3] + pairs[k][1] * v
    distance = lengths[k] - a.radius - b.radius
    return Separation(distance, on_a + a.radius * normal, on_b - b.radius * normal)


def _share(value: float) -> float:
    return min(max(value, -0.5), 0.5)


def _transform(coal: Any, T: Float64) -> Any:
    return coal.Transform3s(T[:3, :3], T[:3, 3])


def _balls(balls: Float64, b: Shape, T_b: Float64, most: float) -> Separation:
    """Return the least distance of balls (centre in the common frame, radius) to a shape."""
    obstacle = _obstacle(b, T_b)
    found, x, y, z, ball, _ = ball_distances.least_distance(*_arrays(obstacle), balls, most)
    if ball < 0:
        return Separation(most, balls[0, :3], T_b[:3, 3])
    gradient = np.array([x, y, z])
    centre, radius = balls[ball, :3], balls[ball, 3]
    return Separation(found, centre - radius * gradient, centre - (radius + found) * gradient)


def _obstacle(shape: Shape, T: Float64) -> Obstacles:
    return pack([PlacedShape(shape, T.copy())])  # which would make the caller's array read-only


def _arrays(obstacles: Obstacles) -> tuple[Any, ...]:
    return obstacles.numbers, obstacles.integers, obstacles.nothing_skipped


def _cloud(a: PointCloud, T_a: Float64, b: Shape, T_b: Float64, most: float) -> Separation:
    centres = _items_near(a, T_a, b, T_b, most)
    if not len(centres):
        return Separation(most, T_a[:3, 3], T_b[:3, 3])
    return _balls(np.column_stack([centres, np.full(len(centres), a.radius)]), b, T_b, most)


def _cubes(a: Octomap, T_a: Float64, b: Shape, T_b: Float64, most: float) -> Separation:
    """Return the least distance of cubes to a shape.

    Every cube lies between two balls; only those whose outer ball is nearer than the nearest inner one count.
    """
    cubes = _items_near(a, T_a, b, T_b, most)
    best = Separation(most, T_a[:3, 3], T_b[:3, 3])
    if not len(cubes):
        return best
    obstacle = _obstacle(b, T_b)
    inner = ball_distances.least_distance(*_arrays(obstacle), cubes, most)[0]
    outer = nearest(obstacle, cubes * OUTER_BALL, inner + TOUCHING)
    for cube in np.argsort(outer.distances):
        if outer.obstacles[cube] < 0 or outer.distances[cube] >= best.distance:
            break
        found = _separation(*_cube(cubes[cube], T_a), b, T_b, best.distance)
        if found.distance < best.distance:
            best = found
    return best


def _cube(cube: Float64, T_octomap: Float64) -> tuple[Box, Float64]:
    T, size = T_octomap.copy(), 2.0 * float(cube[3])
    T[:3, 3] = cube[:3]
    return Box(size, size, size), T


def _items_near(a: PointCloud | Octomap, T_a: Float64, b: Shape, T_b: Float64, most: float) -> Float64:
    """Return points (K, 3), or centres and half edges of cubes (K, 4), in the common frame, one of which is nearest to
    b.

    Those that are ``most`` away or more are left out.
    """
    tree = tree_of(a).numbers
    cloud = isinstance(a, PointCloud)
    size = layout.POINT_ITEM if cloud else layout.VOXEL_ITEM
    items = tree[first_item(tree) :].reshape(-1, size)
    *place, reach = _bounding_sphere(b, T_b)
    if math.isfinite(reach):
        x, y, z = ((np.array(place) - T_a[:3, 3]) @ T_a[:3, :3]).tolist()
        # Some point of b is within reach of the centre, so that no item need be farther from b than this.
        away = ball_distances.ball_distance(*_arrays(_packed(a)), x, y, z, 0.0, np.inf)[0] + reach
        radius = reach + max(min(away, most), 0.0) + (a.radius if isinstance(a, PointCloud) else 0.0)
        found = np.empty(len(items), dtype=np.int64)
        items = items[found[: ball_distances.items_near(tree, size, x, y, z, radius, found)]]
    centres = items[:, :3] @ T_a[:3, :3].T + T_a[:3, 3]
    return centres if cloud else np.column_stack([centres, items[:, 3]])


def _half_space(T_plane: Float64, mesh: Mesh, T_mesh: Float64) -> Separation:
    vertices = mesh.vertices @ T_mesh[:3, :3].T + T_mesh[:3, 3]
    normal = T_plane[:3, 2]
    heights = (vertices - T_plane[:3, 3]) @ normal
    lowest = int(np.argmin(heights))
    found = float(heights[lowest])
    return Separation(found, vertices[lowest] - found * normal, vertices[lowest])


def _ground(a: HeightMap, T_a: Float64, b: Bounded, T_b: Float64, most: float) -> Separation:
    near = _ground_near(a, T_a, b, T_b, most)
    if isinstance(near, Separation):
        return near
    found = [_by_coal(tile, T_a, geometry_of(b), T_b) for tile in ground_surfaces(a, *near)]
    return _solid(min(found, key=lambda each: each.distance), a, T_a, b, T_b)


def _ground_near(
    a: HeightMap, T_a: Float64, b: Bounded, T_b: Float64, most: float
) -> Separation | tuple[Float64, Float64]:
    """Return the rectangle of the ground to which b may be nearest, or how far b is, if that is ``most`` or more."""
    obstacle = _obstacle(a, T_a)
    *place, reach = _bounding_sphere(b, T_b)
    centre = np.array(place)
    above, x, y, z, _ = ball_distances.ball_distance(*_arrays(obstacle), *place, 0.0, np.inf)
    if above - reach >= most:
        gradient = np.array([x, y, z])
        return Separation(above - reach, centre - above * gradient, centre - reach * gradient)
    # No point of b is farther than this from the ground, so that no triangle beyond this radius is the nearest.
    farthest = max(min(max(above, 0.0) + reach, most), 0.0) + reach
    local = T_a[:3, :3].T @ (centre - T_a[:3, 3])
    return local[:2] - farthest, local[:2] + farthest


def _solid(found: Separation, a: Mesh | HeightMap, T_a: Float64, b: Bounded, T_b: Float64) -> Separation:
    """Turn what coal finds for the surface of a into what holds for the solid."""
    if found.distance > 0.0:
        # Surfaces that do not meet: whatever is inside the other is there as a whole part.
        contained = _contains(a, T_a, b, T_b)
        if isinstance(a, Mesh) and isinstance(b, Mesh):
            contained = contained or _contains(b, T_b, a, T_a)
        if not contained:
            return found
    of_a, of_b = _obstacle(a, T_a), _obstacle(b, T_b)
    return _deepest(found, of_a, _probes(b, T_b), of_b, _probes(a, T_a) if isinstance(a, Mesh) else None)


def _deepest(
    found: Separation, of_a: Obstacles, in_b: Float64, of_b: Obstacles, in_a: Float64 | None
) -> Separation:
    """Return the deepest of coal's depth, which is that of a triangle, and of points of one shape inside the other."""
    best = found if found.distance < -TOUCHING else Separation(-TOUCHING, found.point_a, found.point_b)
    depth, x, y, z, ball, _ = ball_distances.least_distance(*_arrays(of_a), in_b, best.distance)
    if ball >= 0:
        centre, radius, gradient = in_b[ball, :3], in_b[ball, 3], np.array([x, y, z])
        best = Separation(depth, centre - (radius + depth) * gradient, centre - radius * gradient)
    if in_a is not None:
        depth, x, y, z, ball, _ = ball_distances.least_distance(*_arrays(of_b), in_a, best.distance)
        if ball >= 0:
            centre = in_a[ball, :3]
            best = Separation(depth, centre, centre - depth * np.array([x, y, z]))
    return best


def _bounding_spheres(a: Shape, T_a: Float64, b: Shape, T_b: Float64) -> Separation | None:
    """Return a lower bound of the distance; None for endless shapes."""
    (ax, ay, az, ra), (bx, by, bz, rb) = _bounding_sphere(a, T_a), _bounding_sphere(b, T_b)
    length = math.dist((ax, ay, az), (bx, by, bz))
    if not length - ra - rb > 0.0:
        return None
    way = np.array([bx - ax, by - ay, bz - az]) / length
    return Separation(length - ra - rb, np.array([ax, ay, az]) + ra * way, np.array([bx, by, bz]) - rb * way)


def _bounding_sphere(shape: Shape, T: Float64) -> tuple[float, float, float, float]:
    (cx, cy, cz), reach = bounding_sphere(shape)
    (a, b, c, x), (d, e, f, y), (g, h, i, z), _ = T.tolist()
    return a * cx + b * cy + c * cz + x, d * cx + e * cy + f * cz + y, g * cx + h * cy + i * cz + z, reach


def _local(T: Float64, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Transform a point of the common frame into the frame of a pose. Plain numbers: numpy takes ten times as long
    here."""
    (a, b, c, tx), (d, e, f, ty), (g, h, i, tz), _ = T.tolist()
    x, y, z = x - tx, y - ty, z - tz
    return a * x + d * y + g * z, b * x + e * y + h * z, c * x + f * y + i * z


def _contains(a: Mesh | HeightMap, T_a: Float64, b: Bounded, T_b: Float64) -> bool:
    """Check whether a point of one of b's connected parts is inside a."""
    tree = tree_of(a)
    (cx, cy, cz), (hx, hy, hz) = tree.centre, tree.half
    (b0, b1, b2, bx), (b3, b4, b5, by), (b6, b7, b8, bz), _ = T_b.tolist()
    for px, py, pz in _parts(b):
        wx = b0 * px + b1 * py + b2 * pz + bx
        wy = b3 * px + b4 * py + b5 * pz + by
        wz = b6 * px + b7 * py + b8 * pz + bz
        x, y, z = _local(T_a, wx, wy, wz)
        in_box = abs(x - cx) <= hx and abs(y - cy) <= hy and abs(z - cz) <= hz
        if in_box and ball_distances.ball_contact(*_arrays(_packed(a)), x, y, z, 0.0, 0.0) >= 0:
            return True
    return False


def _packed(shape: Shape) -> Obstacles:
    """Pack a shape alone, in its own frame."""
    alone = _alone.get(shape)
    if alone is None:
        alone = _alone[shape] = pack([PlacedShape(shape, np.eye(4))])
    return alone


_alone: WeakKeyDictionary[Shape, Obstacles] = WeakKeyDictionary()
_part_points: WeakKeyDictionary[Mesh, list[list[float]]] = WeakKeyDictionary()


def _parts(shape: Bounded) -> list[list[float]]:
    """Return one point of every connected part of a shape, in its frame."""
    if not isinstance(shape, Mesh):
        return [[0.0, 0.0, 0.0]]
    points = _part_points.get(shape)
    if points is None:
        _, first = np.unique(connected_parts(shape.triangles, len(shape.vertices)), return_index=True)
        points = _part_points[shape] = shape.vertices[shape.triangles[first, 0]].tolist()
    return points


def _probes(shape: Bounded, T: Float64) -> Float64:
    """Return balls in a shape, some of which are deepest in what it collides with, or nearly so."""
    match shape:
        case Mesh(vertices, _):
            return _placed(vertices, 0.0, T)
        case Box(x, y, z):
            corners = np.stack(np.meshgrid([-x, x], [-y, y], [-z, z]), axis=-1).reshape(-1, 3) / 2.0
            return _placed(np.vstack([np.zeros(3), corners]), 0.0, T)
        case Capsule(radius, length):
            return _placed(np.array([[0.0, 0.0, z * length] for z in (-0.5, 0.0, 0.5)]), radius, T)
        case Cylinder(radius, length) | Cone(radius, length):
            turns = np.linspace(0.0, 2.0 * np.pi, ROUND, endpoint=False)
            rim = np.stack([radius * np.cos(turns), radius * np.sin(turns), np.zeros(ROUND)], axis=-1)
            end = np.array([0.0, 0.0, length / 2.0])
            tops = [end] if isinstance(shape, Cone) else rim + end
            return _placed(np.vstack([np.zeros((1, 3)), tops, rim - end]), 0.0, T)


def _placed(points: Float64, radius: float, T: Float64) -> Float64:
    return np.column_stack([points @ T[:3, :3].T + T[:3, 3], np.full(len(points), radius)])


def _name(shape: Shape) -> str:
    return "height map" if isinstance(shape, HeightMap) else type(shape).__name__.lower()
