"""Obstacles of the page."""

from pathlib import Path

import numpy as np
import pytest

import kinopt_ros as ko
from kinopt_ros.errors import InvalidShapeError, UnknownObjectError
from kinopt_ros.geometry.shapes import Box, Cylinder, Sphere
from kinopt_ros.viewer.obstacles import Obstacles


@pytest.fixture
def obstacles() -> Obstacles:
    return Obstacles(ko.load_robot("panda"), ko.EMPTY_SCENE)


def test_obstacles_are_added_moved_and_deleted(obstacles: Obstacles) -> None:
    ids = [
        obstacles.add(kind, (0.2, 0.3, 0.4), (1.0, 0.0, 0.5)) for kind in ("box", "box", "sphere", "cylinder")
    ]
    assert ids == ["box1", "box2", "sphere1", "cylinder1"]
    shapes = [obstacles.scene.objects[id].shapes[0].shape for id in ids]
    assert shapes == [Box(0.2, 0.3, 0.4), Box(0.2, 0.3, 0.4), Sphere(0.1), Cylinder(0.1, 0.4)]
    T = np.eye(4)
    T[:3, 3] = 0.1, 0.2, 0.3
    before = obstacles.scene
    obstacles.move("box1", T)
    assert obstacles.scene.version > before.version
    assert (obstacles.scene.objects["box1"].T_root_object == T).all()
    obstacles.remove("box1")
    assert obstacles.add("box", (0.2, 0.2, 0.2), (0.0, 0.0, 0.0)) == "box1"


def test_mistakes_leave_the_scene(obstacles: Obstacles) -> None:
    before = obstacles.scene
    with pytest.raises(InvalidShapeError, match="allowed are box, sphere, cylinder"):
        obstacles.add("teapot", (0.1, 0.1, 0.1), (0.0, 0.0, 0.0))
    with pytest.raises(InvalidShapeError, match="has 2 numbers; allowed are 3"):
        obstacles.add("box", (0.1, 0.1), (0.0, 0.0, 0.0))
    with pytest.raises(InvalidShapeError):
        obstacles.add("box", (0.1, -1.0, 0.1), (0.0, 0.0, 0.0))
    with pytest.raises(InvalidShapeError):
        obstacles.add("box", (0.1, 0.1, 0.1), (float("nan"), 0.0, 0.0))
    with pytest.raises(UnknownObjectError):
        obstacles.remove("box1")
    with pytest.raises(UnknownObjectError):
        obstacles.move("box1", np.eye(4))
    assert obstacles.scene is before


def test_a_scene_is_saved_and_loaded(obstacles: Obstacles, tmp_path: Path) -> None:
    obstacles.add("cylinder", (0.2, 0.2, 0.5), (0.4, 0.1, 0.2))
    obstacles.save(tmp_path / "scene.yaml")
    other = Obstacles(ko.load_robot("panda"), ko.EMPTY_SCENE)
    other.load(tmp_path / "scene.yaml")
    assert other.scene.objects["cylinder1"].shapes[0].shape == Cylinder(0.1, 0.5)
    assert other.scene.objects["cylinder1"].T_root_object[:3, 3] == pytest.approx([0.4, 0.1, 0.2])
    (tmp_path / "bad.yaml").write_text("objects: [1, 2")
    with pytest.raises(InvalidShapeError):
        other.load(tmp_path / "bad.yaml")
    assert "cylinder1" in other.scene.objects
