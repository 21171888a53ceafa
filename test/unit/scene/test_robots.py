"""Tests that obstacles stay when the robot changes, and that what names lost links is reported and dropped."""

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene import robots
from kinopt_ros.scene.changes import add, allow, attach_new, set_padding
from kinopt_ros.scene.parts import MAX_ID_LENGTH
from kinopt_ros.scene.robots import for_robot
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject

BOX = (PlacedShape(Box(1.0, 1.0, 1.0), np.eye(4)),)


def robot_of(*links: str, name: str = "arm") -> RobotModel:
    parts = "".join(f'<link name="{link}"/>' for link in links)
    for i, (parent, child) in enumerate(itertools.pairwise(links)):
        parts += (
            f'<joint name="j{i}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
            '<axis xyz="0 0 1"/></joint>'
        )
    return robot_from_urdf(f'<robot name="{name}">{parts}</robot>')


OLD = robot_of("base", "upper", "lower", "flange")


def full_scene() -> Scene:
    scene = add(EMPTY_SCENE, OLD, SceneObject("table", BOX, np.eye(4)))
    scene = attach_new(scene, OLD, "mug", BOX, "lower", np.eye(4), ("flange", "upper"))
    scene = attach_new(scene, OLD, "pen", BOX, "flange", np.eye(4))
    scene = allow(allow(scene, OLD, "table", "base"), OLD, "pen", "upper")
    return set_padding(set_padding(scene, OLD, 0.1, "flange"), OLD, 0.2, "table")


def test_a_scene_that_fits_stays_the_same() -> None:
    scene = full_scene()
    same, said = for_robot(scene, OLD, replace(OLD))
    assert same is scene
    assert said == ()


def test_what_names_lost_links_is_reported_and_dropped() -> None:
    scene = full_scene()
    kept, said = for_robot(scene, OLD, robot_of("base", "upper", "lower", name="short"))
    assert list(kept.objects) == ["table"]
    assert list(kept.attached) == ["mug"]
    assert kept.attached["mug"].touch_links == {"lower", "upper"}
    assert kept.allowed == {frozenset(("table", "base"))}
    assert kept.padding == {"table": 0.2}
    assert kept.version == scene.version + 1
    assert said == (
        "'mug' lost the touch links flange: 'short' does not have them",
        "attached object 'pen' was dropped: 'short' has no link 'flange'",
        "allowed pairs of links that 'short' does not have were dropped: pen and upper",
        "padding of links that 'short' does not have was dropped: flange",
    )


def test_an_object_called_like_a_new_link_gets_another_name() -> None:
    scene = allow(full_scene(), OLD, "table", "flange")
    kept, said = for_robot(scene, OLD, robot_of("base", "upper", "lower", "flange", "table"))
    assert list(kept.objects) == ["table (object)"]
    assert kept.objects["table (object)"].id == "table (object)"
    assert kept.may_touch("table (object)", "flange")
    assert not kept.may_touch("table", "flange")
    assert kept.padding == {"flange": 0.1, "table (object)": 0.2}
    assert said == ("object 'table' is called 'table (object)' now: 'arm' has a link of that name",)


def test_a_new_name_replaces_no_other_object() -> None:
    scene = EMPTY_SCENE
    for id in ("table", "table (object)"):
        scene = add(scene, OLD, SceneObject(id, BOX, np.eye(4)))
    kept, said = for_robot(scene, OLD, robot_of("base", "table", "table (object 2)"))
    assert list(kept.objects) == ["table (object 3)", "table (object)"]
    assert [thing.id for thing in kept.objects.values()] == list(kept.objects)
    assert said == ("object 'table' is called 'table (object 3)' now: 'arm' has a link of that name",)


def test_another_root_link_is_reported() -> None:
    kept, said = for_robot(full_scene(), OLD, robot_of("world", "base", "upper", "lower", "flange"))
    assert said == ("poses of 1 objects, given in 'base', count in 'world' now",)
    assert list(kept.objects) == ["table"]


def test_a_long_id_that_is_the_name_of_a_link_is_cut() -> None:
    """The longer one is no id, and the scene could not follow the robot."""
    long = "l" * MAX_ID_LENGTH
    scene = add(EMPTY_SCENE, OLD, SceneObject(long, BOX, np.eye(4)))
    robot: Any = SimpleNamespace(link_index={long: 0})
    [name] = robots._new_names(scene, robot).values()
    assert name.endswith("l (object)")
    assert len(name) <= MAX_ID_LENGTH
