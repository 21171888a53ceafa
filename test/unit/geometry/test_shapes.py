"""Shapes that people write by hand: lists of numbers are arrays, and what is none is refused by name."""

from typing import Any

import numpy as np
import pytest

from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.shapes import HeightMap, Mesh, Octomap, PointCloud

CORNERS = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
FACES = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
OF_LISTS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "mesh": (Mesh, (CORNERS, FACES), {"vertices": np.float64, "triangles": np.int64}),
    "height map": (HeightMap, ([[0, 0], [0, 1]], 0.1), {"heights": np.float64}),
    "point cloud": (PointCloud, (CORNERS, 0.1), {"points": np.float64}),
    "octomap": (Octomap, (CORNERS, [1, 1, 1, 1]), {"centers": np.float64, "sizes": np.float64}),
}


@pytest.mark.parametrize("kind", OF_LISTS)
def test_lists_are_arrays_that_nobody_changes(kind: str) -> None:
    make, given, types = OF_LISTS[kind]
    shape = make(*given)
    for name, dtype in types.items():
        array = getattr(shape, name)
        assert array.dtype == dtype
        assert not array.flags.writeable
        assert array.tolist() == dict(zip(types, given, strict=False))[name]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Mesh([["a", 0, 0]], FACES), "vertices must be an array of real numbers"),
        (lambda: Mesh(CORNERS, [[0.5, 1, 2]]), "triangles of a mesh are float64"),
        (lambda: Mesh(CORNERS, [[np.nan, 1, 2]]), "triangles of a mesh are float64"),
        (lambda: Mesh(CORNERS, [[0, 1, 1e300]]), "triangles of a mesh are float64"),
        (lambda: Mesh(CORNERS, [[0, 1], [2]]), "triangles must be an array of real numbers"),
        (lambda: Mesh(CORNERS, [[0, 1, 9]]), "0 to 9; it has 4"),
        (lambda: Mesh(None, FACES), "vertices of Mesh is None"),
        (lambda: Mesh(CORNERS, None), "triangles must be an array of real numbers"),
        (lambda: HeightMap(None, 0.1), "heights of HeightMap is None"),
        (lambda: HeightMap([0.0, 1.0], 0.1), "heights are float64"),
        (lambda: PointCloud("points", 0.1), "points must be an array of real numbers"),
        (lambda: Octomap(CORNERS, [1, 1]), "sizes of an octomap are float64"),
    ],
)
def test_what_is_no_shape_is_refused_by_name(make: Any, said: str) -> None:
    with pytest.raises(InvalidShapeError, match=said):
        make()
