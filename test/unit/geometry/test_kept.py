"""Results on disk: found by all that they depend on, made anew when damaged."""

import os

import numpy as np
import pytest

from kinopt_ros.geometry import kept
from kinopt_ros.geometry.shapes import Box, PlacedShape, Sphere


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kinopt_ros" / "collision"


def test_arrays_come_back(folder):
    arrays = {"a": np.arange(3.0), "text": np.array("why")}
    assert kept.load("key") is None
    kept.store("key", arrays)
    found = kept.load("key")
    np.testing.assert_array_equal(found["a"], arrays["a"])
    assert str(found["text"]) == "why"
    assert [path.name for path in folder.iterdir()] == ["key.arrays"]


@pytest.mark.parametrize("damage", [b"", b"rubbish", b"PK\x03\x04"])
def test_a_damaged_file_is_no_result(folder, damage):
    kept.store("key", {"a": np.arange(3.0)})
    (folder / "key.arrays").write_bytes(damage)
    assert kept.load("key") is None
    kept.store("key", {"a": np.arange(3.0)})
    assert kept.load("key") is not None


def test_objects_are_not_unpickled(folder):
    folder.mkdir(parents=True)
    np.savez(folder / "key.arrays", a=np.array([{"x": 1}], dtype=object))
    assert kept.load("key") is None


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    kept.store("key", {"a": np.arange(3.0)})
    assert kept.load("key") is None


def test_a_user_without_a_home_is_no_error(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(kept.Path, "home", no_home)
    kept.store("key", {"a": np.arange(3.0)})
    assert kept.load("key") is None


def test_longest_unused_go_first(folder, monkeypatch):
    for age, name in enumerate("abc"):
        kept.store(name, {"a": np.zeros(1000)})
        os.utime(folder / f"{name}.arrays", (1e9 - age, 1e9 - age))
    kept.load("c")
    monkeypatch.setattr(kept, "MOST_BYTES", 20_000)
    kept.store("d", {"a": np.zeros(1000)})
    assert sorted(path.stem for path in folder.iterdir()) == ["c", "d"]


def test_digests_tell_everything_apart():
    T = np.eye(4)
    values = [
        (),
        (1,),
        (1.0,),
        ("1",),
        ((1, 2), 3),
        (1, (2, 3)),
        (np.zeros(2),),
        (np.zeros((1, 2)),),
        (np.zeros(2, dtype=np.int64),),
        (Sphere(1),),
        (Box(1, 1, 1),),
        (Box(1, 1, 2),),
        (PlacedShape(Sphere(1), T.copy()),),
        (PlacedShape(Sphere(1), 2 * T),),
    ]
    digests = [kept.digest((), *value) for value in values]
    assert len(set(digests)) == len(values)
    assert kept.digest((), *values[-1]) == digests[-1]
    assert kept.digest(("kinopt_ros.geometry.fit",), 1) != kept.digest(("kinopt_ros.geometry.cells",), 1)
