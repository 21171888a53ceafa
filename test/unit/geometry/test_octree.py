"""OctoMap's serialized trees, against OctoMap's own converter and themselves."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.octree import LEVELS, MOST_BYTES, read_octree, write_octree
from kinopt_ros.geometry.shapes import Octomap

CENTER = 2 ** (LEVELS - 1)
RESOLUTION = 0.05


def octomap(voxels: set[tuple[int, int, int]], coarse: int = 0) -> Octomap:
    """Voxels about the origin, the first ``coarse`` of them as cubes of twice the edge, elsewhere."""
    rows = np.array(sorted(voxels), dtype=np.float64).reshape(-1, 3)
    sizes = np.full(len(rows), RESOLUTION)
    sizes[:coarse] *= 2.0
    centers = (rows + 0.5) * sizes[:, None]
    centers[:coarse] += 1024 * RESOLUTION
    return Octomap(centers, sizes)


def same(a: Octomap, b: Octomap) -> None:
    first, second = (
        sorted(map(tuple, np.round(np.column_stack([o.centers, o.sizes]), 9).tolist())) for o in (a, b)
    )
    assert first == second


place = st.integers(-200, 200)


@given(st.sets(st.tuples(place, place, place), min_size=1, max_size=60), st.integers(0, 20))
def test_what_is_written_is_read(voxels: set[tuple[int, int, int]], coarse: int) -> None:
    given = octomap(voxels, min(coarse, len(voxels) - 1))
    data, resolution = write_octree(given)
    assert resolution == pytest.approx(RESOLUTION)
    read = read_octree(data, resolution, binary=True)
    assert read is not None
    same(read, given)


def test_octomaps_own_converter_reads_the_same(tmp_path: Path) -> None:
    path = Path(sys.executable).parent
    converter = shutil.which("convert_octree", path=str(path))
    if converter is None:
        pytest.skip("OctoMap's converter is not installed")
    rng = np.random.default_rng(3)
    given = octomap({tuple(row) for row in rng.integers(-40, 40, (300, 3)).tolist()}, 20)
    data, resolution = write_octree(given)
    words = np.frombuffer(data, dtype="<u2")
    nodes = 1 + sum(int(np.count_nonzero(words >> 2 * i & 3)) for i in range(8))
    header = f"# Octomap OcTree binary file\nid OcTree\nsize {nodes}\nres {resolution!r}\ndata\n"
    (tmp_path / "a.bt").write_bytes(header.encode() + data)
    done = subprocess.run(
        [converter, "a.bt", "a.ot"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    full = (tmp_path / "a.ot").read_bytes().partition(b"data\n")[2]
    assert full, done.stdout + done.stderr
    read = read_octree(full, resolution, binary=False)
    assert read is not None
    same(read, given)


def full_node(odds: float, children: int) -> bytes:
    return np.array([(odds, children)], dtype=[("odds", "<f4"), ("children", "u1")]).tobytes()


def test_leaves_of_the_full_form_are_occupied_from_even_odds_on() -> None:
    data = full_node(2.0, 0b111) + full_node(0.0, 0) + full_node(-0.1, 0) + full_node(3.0, 0)
    read = read_octree(data, 0.125, binary=False)
    assert read is not None
    quarter = 0.125 * CENTER / 2
    np.testing.assert_array_equal(read.centers, [[-quarter] * 3, [-quarter, quarter, -quarter]])
    np.testing.assert_array_equal(read.sizes, [0.125 * CENTER] * 2)


def test_free_and_unknown_space_is_no_obstacle() -> None:
    assert read_octree(np.array([0b01_00_01], dtype="<u2").tobytes(), 0.1, binary=True) is None


INNER = np.array([3], dtype="<u2").tobytes()
BAD: dict[str, tuple[bytes, float, bool, str]] = {
    "nothing": (b"", 0.1, True, "1 or more of its nodes are missing"),
    "cut": (INNER, 0.1, True, "cut"),
    "odd": (np.array([2], dtype="<u2").tobytes() + b"\0", 0.1, True, "ends after 2"),
    "too deep": (INNER * 17 + b"\0\0", 0.1, True, "more than 16 levels"),
    "longer": (b"\0" * 12, 0.1, True, "ends after 2"),
    "full cut": (full_node(1.0, 255), 0.1, False, "8 or more of its nodes are missing"),
    "nan": (full_node(float("nan"), 0), 0.1, False, "not finite"),
    "resolution 0": (b"\0\0", 0.0, True, "resolution"),
    "resolution NaN": (b"\0\0", float("nan"), True, "resolution"),
    "too long": (b"\0" * (MOST_BYTES + 1), 0.1, True, "bytes; allowed"),
}


@pytest.mark.parametrize("name", BAD)
def test_damaged_trees_are_refused(name: str) -> None:
    data, resolution, binary, said = BAD[name]
    with pytest.raises(InvalidShapeError, match=said):
        read_octree(data, resolution, binary)


@pytest.mark.parametrize("binary", [True, False])
def test_not_more_voxels_are_read_than_an_octomap_may_have(binary: bool) -> None:
    """Two bytes were up to eight voxels of a hundred bytes each: those of 16 MB took gigabytes before they were
    counted. Here they are counted before it is noticed that the tree was cut."""
    if binary:
        tree, inner = np.array([0xAAAA], dtype="<u2").tobytes(), b"\xff\xff"
    else:
        tree, inner = full_node(1.0, 0), full_node(0.0, 255)
    for _ in range(6 if binary else 7):
        tree = inner + 8 * tree
    with pytest.raises(InvalidShapeError, match="more than 1000000 occupied voxels"):
        read_octree(tree[:-10], 0.1, binary)


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_read_or_refused(data: bytes, binary: bool) -> None:
    with contextlib.suppress(InvalidShapeError):
        read_octree(data, 0.1, binary)


OFF = {
    "off the grid": ([[0.06, 0.05, 0.05]], [0.1]),
    "within another": ([[0.1, 0.1, 0.1], [0.05, 0.05, 0.05]], [0.2, 0.1]),
    "around another": ([[0.05, 0.05, 0.05], [0.1, 0.1, 0.1]], [0.1, 0.2]),
    "twice": ([[0.05, 0.05, 0.05], [0.05, 0.05, 0.05]], [0.1, 0.1]),
    "of three times the edge": ([[0.15, 0.15, 0.15], [0.65, 0.05, 0.05]], [0.3, 0.1]),
}


@pytest.mark.parametrize("name", OFF)
def test_cubes_that_are_no_tree_are_not_written(name: str) -> None:
    centers, sizes = OFF[name]
    with pytest.raises(InvalidShapeError, match="an octomap has cubes"):
        write_octree(Octomap(np.array(centers), np.array(sizes)))
