"""Copies of what never changes can be written to as little as the original."""

import ast
import copy
import pickle
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kinopt_ros
from kinopt_ros.array import Immutable
from kinopt_ros.geometry.shapes import Box, HeightMap, Mesh, Octomap, PlacedShape, PointCloud
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.problems.preferences.every import CLOSEST
from kinopt_ros.problems.trajectory import JointGoal
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject

PANDA = load_robot("panda")


def things() -> dict[str, Any]:
    T = np.eye(4)
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    placed = (PlacedShape(Mesh(corners, faces), T.copy()), PlacedShape(Box(1, 1, 1), T.copy()))
    body = SceneObject("box", placed, T.copy())
    carried = AttachedObject("tool", placed, "panda_hand", T.copy(), frozenset({"panda_hand"}))
    return {
        "robot": PANDA,
        "changed robot": replace(PANDA, warnings=("why",)),
        "chain": build_chain(PANDA, "panda_link0", "panda_link8"),
        "heights": HeightMap(np.zeros((3, 3)), 0.1),
        "cloud": PointCloud(corners.copy(), 0.01),
        "octomap": Octomap(corners.copy(), np.full(4, 0.1)),
        "problem": ik_problem(PANDA, T[None], group="panda_arm", prefer=CLOSEST, T_link_tool=T.copy()),
        "trajectory problem": trajectory_problem(
            PANDA,
            JointGoal(PANDA.default_q[:7].copy()),
            group="panda_arm",
            along=[StraightLine("panda_hand", 0.1)],
        ),
        "scene": Scene(2, {"box": body}, {"tool": carried}),
    }


def arrays_in(thing: Any, seen: set[int]) -> list[np.ndarray[Any, Any]]:
    if id(thing) in seen:
        return []
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return [thing]
    if is_dataclass(thing):
        inside = [getattr(thing, field.name) for field in fields(thing) if field.init]
    elif isinstance(thing, dict):
        inside = list(thing.values())
    else:
        inside = list(thing) if isinstance(thing, tuple | list) else []
    return [array for each in inside for array in arrays_in(each, seen)]


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("name", list(things()))
def test_every_array_of_a_copy_is_read_only(name: str, way: Callable[[Any], Any]) -> None:
    original = things()[name]
    twin = way(original)
    found, expected = arrays_in(twin, set()), arrays_in(original, set())
    assert len(found) == len(expected) > 0
    for array, model in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, model)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_what_was_computed_is_not_pickled_nor_taken_over() -> None:
    robot: RobotModel = load_robot("panda")
    build_chain(robot, "panda_link0", "panda_link8")
    forward_kinematics(robot, robot.default_q)
    robot.kept["anything"] = lambda: None  # no pickle takes this
    assert pickled(robot).kept == {}
    assert replace(robot, warnings=()).kept == {}
    assert pickled(robot).limits.lower.tolist() == robot.limits.lower.tolist()


def test_whoever_freezes_arrays_keeps_them_frozen_in_copies() -> None:
    """A class whose constructor makes arrays read-only is Immutable, or copies of it could be written to."""
    found = 0
    for path in Path(kinopt_ros.__file__).parent.rglob("*.py"):
        for kind in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(kind, ast.ClassDef) and any(
                isinstance(part, ast.FunctionDef)
                and part.name == "__post_init__"
                and re.search(r"\b(frozen|taken_over)\(", ast.unparse(part))
                for part in kind.body
            ):
                found += 1
                assert Immutable.__name__ in [ast.unparse(base) for base in kind.bases], (
                    f"{path}: {kind.name}"
                )
    assert found > 20
