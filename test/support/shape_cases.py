"""Random shapes and poses, and what is known about them without the code under test."""

import numpy as np
import pytest

from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, Mesh, Plane, Sphere

BOUNDED = (Sphere, Box, Cylinder, Cone, Capsule)
PRIMITIVES = (*BOUNDED, Plane)


def random_rotation(rng):
    w, x, y, z = (q := rng.normal(size=4)) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_pose(rng, reach=1.0):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = random_rotation(rng), rng.uniform(-reach, reach, 3)
    return T


def random_primitive(rng, kind, least=0.02, most=0.6):
    a, b, c = (float(size) for size in rng.uniform(least, most, 3))
    if kind is Sphere:
        return Sphere(a)
    if kind is Box:
        return Box(a, b, c)
    return Plane() if kind is Plane else kind(a, b)


def support(shape, T, directions):
    """Return how far a shape reaches along unit vectors (N, 3)."""
    local = directions @ T[:3, :3]
    across, along = np.hypot(local[:, 0], local[:, 1]), local[:, 2]
    match shape:
        case Sphere(radius):
            reach = np.full(len(local), radius)
        case Box(x, y, z):
            reach = np.abs(local) @ np.array([x, y, z]) / 2.0
        case Cylinder(radius, length):
            reach = radius * across + length / 2.0 * np.abs(along)
        case Cone(radius, length):
            reach = np.maximum(radius * across - length / 2.0 * along, length / 2.0 * along)
        case Capsule(radius, length):
            reach = radius + length / 2.0 * np.abs(along)
        case Mesh(vertices, _):
            reach = (local @ vertices.T).max(axis=1)
    return reach + directions @ T[:3, 3]


def convex_separation(a, T_a, b, T_b, rng, rounds=60):
    """Signed distance of two convex shapes from below: the widest gap, or least overlap, of their shadows.

    Searched over directions at random; within about 1e-5 of the truth, and never above it.
    """

    def gaps(directions):
        return -support(a, T_a, directions) - support(b, T_b, -directions)

    directions = rng.normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    values = gaps(directions)
    best, at, step = values.max(), directions[values.argmax()], 0.05
    for _ in range(rounds):
        directions = at + rng.normal(size=(40, 3)) * step
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        values = gaps(directions)
        if values.max() > best:
            best, at = values.max(), directions[values.argmax()]
        else:
            step *= 0.7
    return best


def bracket() -> Mesh:
    """Two plates at a right angle: not convex."""
    trimesh = pytest.importorskip("trimesh")
    plates = [trimesh.creation.box((0.4, 0.3, 0.05)), trimesh.creation.box((0.05, 0.3, 0.4))]
    plates[1].apply_translation((-0.2, 0.0, 0.2))
    vertices = np.concatenate([plates[0].vertices, plates[1].vertices])
    triangles = np.concatenate([plates[0].faces, plates[1].faces + len(plates[0].vertices)])
    return Mesh(np.array(vertices), np.array(triangles, dtype=np.int64))
