"""Few triangles in place of a mesh."""

import sys

import numpy as np
import pytest

from kinopt_ros.geometry.coarse import DIRECTIONS, coarse
from kinopt_ros.geometry.shapes import Mesh


def ball(rings: int) -> Mesh:
    """A sphere of radius 1 about (1, 2, 3), of many triangles."""
    theta, phi = np.meshgrid(
        np.linspace(0.1, np.pi - 0.1, rings), np.linspace(0.0, 2.0 * np.pi, rings), indexing="ij"
    )
    points = np.stack(
        [np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=2
    ).reshape(-1, 3)
    i = np.arange(rings * (rings - 1))
    triangles = np.column_stack([i, i + rings, np.minimum(i + rings + 1, rings * rings - 1)])
    return Mesh(points + np.array([1.0, 2.0, 3.0]), triangles)


def volume(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0)


def test_few_triangles_of_nearly_the_same_shape() -> None:
    pytest.importorskip("scipy")
    made = coarse(ball(60))
    assert len(made.triangles) <= 2 * DIRECTIONS
    assert np.linalg.norm(made.vertices - [1.0, 2.0, 3.0], axis=1) == pytest.approx(1.0)
    # Positive only if the triangles are counter-clockwise as seen from outside.
    assert 0.8 * 4.0 / 3.0 * np.pi < volume(made) < 4.0 / 3.0 * np.pi


def test_small_meshes_stay_as_they_are() -> None:
    small = ball(8)
    assert coarse(small) is small


@pytest.mark.parametrize("why", ["flat", "no scipy"])
def test_a_box_where_there_is_no_hull(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = ball(60)
    if why == "flat":
        mesh = Mesh(mesh.vertices * [1.0, 1.0, 0.0], mesh.triangles)
    else:
        monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    made = coarse(mesh)
    assert len(made.triangles) == 12
    np.testing.assert_allclose(made.vertices.min(axis=0), mesh.vertices.min(axis=0))
    np.testing.assert_allclose(made.vertices.max(axis=0), mesh.vertices.max(axis=0))
    if why != "flat":
        extent = made.vertices.max(axis=0) - made.vertices.min(axis=0)
        assert volume(made) == pytest.approx(float(np.prod(extent)))
