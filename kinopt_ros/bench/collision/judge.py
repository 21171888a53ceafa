"""An independent judge of collisions: the URDF's geometry as Pinocchio reads it, at Pinocchio's poses, by coal.

It shares no code with ``kinopt_ros.collision`` but the list of pairs of links to check. coal is asked for contacts with
its own default settings.
"""

from typing import Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.verify.judge import Judge
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, HeightMap, Mesh, PlacedShape, Sphere
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.scene.scene import Scene

FINER = 2
"""Number of pieces of a cell's edge when ground is made of triangles."""


class CollisionJudge:
    """Checks configurations of one robot for collisions."""

    def __init__(self, subject: Subject, judge: Judge) -> None:
        import coal
        import pinocchio

        self._coal: Any = coal
        self._pin: Any = pinocchio
        self._judge = judge
        path = find_robot(subject.name)[0]
        folders = path.resolve().parents
        packages = [str(folders[0]), *(str(folder) for folder in folders if folder.name == "share")]
        self._model: Any = pinocchio.buildGeomFromUrdf(
            judge.model, str(path), pinocchio.GeometryType.COLLISION, None, packages
        )
        self._data: Any = self._model.createData()
        frames = judge.model.frames
        self._of_link: dict[str, list[int]] = {}
        for index, thing in enumerate(self._model.geometryObjects):
            thing.geometry.computeLocalAABB()
            self._of_link.setdefault(frames[thing.parentFrame].name, []).append(index)
        self._pairs = [
            (a, b)
            for first, second in checked_pairs(subject.robot).checked
            for a in self._of_link.get(first, ())
            for b in self._of_link.get(second, ())
        ]
        self._obstacles: list[tuple[str, Any, Any, PlacedShape]] = []

    def enter(self, scene: Scene) -> None:
        """Judge in this scene from now on; it carries nothing."""
        assert not scene.attached
        self._obstacles = []
        for thing in scene.objects.values():
            for placed in thing.shapes:
                T = thing.T_root_object @ placed.T_frame_shape
                solid = self._solid(placed)
                solid.computeLocalAABB()
                pose = self._coal.Transform3s(T[:3, :3], T[:3, 3])
                self._obstacles.append((thing.id, solid, pose, PlacedShape(placed.shape, T)))

    def collision(self, values: dict[str, float]) -> str:
        """Return what collides with the robot's variables at these values; empty if nothing does."""
        self._pin.updateGeometryPlacements(
            self._judge.model, self._judge.data, self._model, self._data, self._judge.configuration(values)
        )
        things = self._model.geometryObjects
        poses = [self._coal.Transform3s(M.rotation, M.translation) for M in self._data.oMg]
        for a, b in self._pairs:
            if self._contact(things[a].geometry, poses[a], things[b].geometry, poses[b]):
                return f"{things[a].name} and {things[b].name}"
        for indices in self._of_link.values():
            for index in indices:
                geometry, pose = things[index].geometry, poses[index]
                for name, solid, place, placed in self._obstacles:
                    if self._contact(geometry, pose, solid, place) or _swallowed(geometry, pose, placed):
                        return f"{things[index].name} and {name}"
        return ""

    def _contact(self, a: Any, T_a: Any, b: Any, T_b: Any) -> bool:
        way = T_a.transform(a.aabb_center) - T_b.transform(b.aabb_center)
        if way @ way > (a.aabb_radius + b.aabb_radius) ** 2:
            return False
        request, result = self._coal.CollisionRequest(), self._coal.CollisionResult()
        return bool(self._coal.collide(a, T_a, b, T_b, request, result))

    def _solid(self, placed: PlacedShape) -> Any:
        coal = self._coal
        match placed.shape:
            case Sphere(radius):
                return coal.Sphere(radius)
            case Box(x, y, z):
                return coal.Box(x, y, z)
            case Cylinder(radius, length):
                return coal.Cylinder(radius, length)
            case Cone(radius, length):
                return coal.Cone(radius, length)
            case Capsule(radius, length):
                return coal.Capsule(radius, length)
            case Mesh(vertices, triangles):
                # Rocks are convex, so that coal can have them as solids.
                surface = self._surface(vertices, triangles)
                surface.buildConvexRepresentation(False)
                return surface.convex
            case HeightMap():
                return self._surface(*_ground_triangles(placed.shape))
        raise AssertionError(f"no {type(placed.shape).__name__} is in the scenes of this benchmark")

    def _surface(self, vertices: Float64, triangles: Any) -> Any:
        model = self._coal.BVHModelOBBRSS()
        model.beginModel(len(triangles), len(vertices))
        model.addVertices(np.array(vertices))
        model.addTriangles(np.array(triangles, dtype=np.int64))
        model.endModel()
        return model


def _bilinear(ground: HeightMap, x: Float64, y: Float64) -> Float64:
    """Return the height of the ground; beside its grid that of the edge."""
    rows, columns = ground.heights.shape
    u = np.clip(x / ground.resolution, 0.0, rows - 1.0)
    v = np.clip(y / ground.resolution, 0.0, columns - 1.0)
    i, j = np.minimum(u.astype(int), rows - 2), np.minimum(v.astype(int), columns - 2)
    u, v, h = u - i, v - j, ground.heights
    first = h[i, j] * (1.0 - u) + h[i + 1, j] * u
    second = h[i, j + 1] * (1.0 - u) + h[i + 1, j + 1] * u
    return np.asarray(first * (1.0 - v) + second * v)


def _ground_triangles(ground: HeightMap) -> tuple[Float64, Any]:
    """Return the bilinear surface, cells cut into FINER x FINER."""
    rows, columns = ((count - 1) * FINER + 1 for count in ground.heights.shape)
    step = ground.resolution / FINER
    x, y = np.meshgrid(np.arange(rows) * step, np.arange(columns) * step, indexing="ij")
    vertices = np.stack([x, y, _bilinear(ground, x, y)], axis=-1).reshape(-1, 3)
    n = np.arange(len(vertices)).reshape(rows, columns)
    a, b, c, d = n[:-1, :-1].ravel(), n[1:, :-1].ravel(), n[1:, 1:].ravel(), n[:-1, 1:].ravel()
    return vertices, np.concatenate([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)])


def _swallowed(geometry: Any, pose: Any, placed: PlacedShape) -> bool:
    """Check whether a link is below ground, or an obstacle inside a link's mesh, without touching the surface."""
    T = placed.T_frame_shape
    if isinstance(placed.shape, HeightMap):
        x, y, z = T[:3, :3].T @ (pose.transform(geometry.aabb_center) - T[:3, 3])
        return bool(z < _bilinear(placed.shape, np.array(x), np.array(y)))
    if not hasattr(geometry, "num_tris"):
        return False  # a solid of coal
    point = pose.getRotation().T @ (T[:3, 3] - pose.getTranslation())
    if np.linalg.norm(point - geometry.aabb_center) > geometry.aabb_radius:
        return False
    corners = np.array(geometry.vertices())[_triangles(geometry)] - point
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    volume = np.einsum("ti,ti->t", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("ti,ti->t", *pair) for pair in ((a, b), (b, c), (c, a)))
    turns = np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum() / (2.0 * np.pi)
    return bool(abs(turns) > 0.5)


def _triangles(geometry: Any) -> Any:
    return np.array([[t[0], t[1], t[2]] for t in (geometry.tri_indices(k) for k in range(geometry.num_tris))])
