"""Scenes made by hand: what cannot be one is refused when it is made, as nobody looks later."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, KinoptError, UnknownLinkError
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.validation import check_ik_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject
from kinopt_ros.verification.collision import check_collisions

PANDA = load_robot("panda")
BOX = (PlacedShape(Box(1.0, 1.0, 1.0), np.eye(4)),)


def at(scale: float = 1.0) -> Annotated[Float64, "4 4"]:
    T = np.eye(4)
    T[:3, :3] *= scale
    return T


def thing(**changes: Any) -> SceneObject:
    return SceneObject(**{"id": "a", "shapes": BOX, "T_root_object": at(), **changes})


REFUSED: dict[str, tuple[Callable[[], object], type[KinoptError], str]] = {
    "rotation of zeros": (
        lambda: thing(T_root_object=at(0.0)),
        InvalidShapeError,
        "'a' is no rigid transform",
    ),
    "scaled rotation": (
        lambda: thing(T_root_object=at(1e-3)),
        InvalidShapeError,
        "'a' is no rigid transform",
    ),
    "3 x 4": (lambda: thing(T_root_object=at()[:3]), InvalidShapeError, "allowed is float64"),
    "float32": (lambda: thing(T_root_object=at().astype(np.float32)), InvalidShapeError, "float32"),
    "lists": (lambda: thing(T_root_object=at().tolist()), InvalidShapeError, "is list; allowed is float64"),
    "no shapes": (lambda: thing(shapes=()), InvalidShapeError, "0 shapes"),
    "list of shapes": (
        lambda: thing(shapes=list(BOX)),
        InvalidShapeError,
        "allowed is a tuple of PlacedShape",
    ),
    "bare shape": (lambda: thing(shapes=(Box(1.0, 1.0, 1.0),)), InvalidShapeError, "tuple of PlacedShape"),
    "list of subframes": (lambda: thing(subframes=[]), InvalidShapeError, "allowed are poses by name"),
    "no shape": (lambda: PlacedShape(None, at()), InvalidShapeError, "a shape is None"),  # type: ignore[arg-type]
    "number as subframe": (
        lambda: thing(subframes={3: at()}),
        InvalidShapeError,
        "subframe of object 'a' is called 3",
    ),
    "empty id": (lambda: thing(id=""), InvalidShapeError, "id of an object is ''"),
    "number as id": (lambda: thing(id=5), InvalidShapeError, "id of an object is 5"),
    "every id": (lambda: thing(id="*"), InvalidShapeError, "stands for everything"),
    "text of links": (
        lambda: AttachedObject("a", BOX, "panda_hand", at(), "panda_hand panda_link7"),  # type: ignore[arg-type]
        InvalidShapeError,
        "touch_links of object 'a' is .*; allowed is a frozenset",
    ),
    "attached": (
        lambda: AttachedObject("a", BOX, "panda_hand", at(np.nan), frozenset()),
        InvalidShapeError,
        "'a' is no rigid transform",
    ),
    "negative padding of all": (
        lambda: Scene(default_padding=-5.0),
        InvalidShapeError,
        "default padding is -5",
    ),
    "padding that is no number": (lambda: Scene(default_padding=np.nan), InvalidShapeError, "padding is nan"),
    "negative padding": (lambda: Scene(padding={"a": -0.6}), InvalidShapeError, "padding of 'a' is -0.6"),
    "list of paddings": (lambda: Scene(padding=[]), InvalidRequestError, "lengths by name"),  # type: ignore[arg-type]
    "another id": (lambda: Scene(objects={"b": thing()}), InvalidRequestError, "as 'b'; allowed are objects"),
    "list of objects": (lambda: Scene(objects=[thing()]), InvalidRequestError, "by their ids"),  # type: ignore[arg-type]
    "attached in the world": (lambda: Scene(attached={"a": thing()}), InvalidRequestError, "AttachedObject"),  # type: ignore[dict-item]
    "both": (
        lambda: Scene(
            objects={"a": thing()}, attached={"a": AttachedObject("a", BOX, "panda_hand", at(), frozenset())}
        ),
        InvalidRequestError,
        "both in the world and attached",
    ),
    "pairs that are names": (lambda: Scene(allowed=frozenset({"a"})), InvalidRequestError, "of two names"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_scene_is_refused(case: str) -> None:
    """A box with such a pose was nowhere, and padding of -5 m made a robot free in the midst of a box."""
    make, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        make()


def test_subframes_stay_as_they_were_checked() -> None:
    poses = np.repeat(np.eye(4)[None], 2, axis=0)
    made = thing(subframes={"grip": poses[0]})
    poses[:] = np.nan
    np.testing.assert_array_equal(made.subframes["grip"], np.eye(4))


def test_a_copy_is_looked_at_too() -> None:
    with pytest.raises(InvalidShapeError, match="no rigid transform"):
        replace(thing(), T_root_object=at(2.0))


FITS: dict[str, tuple[Scene, type[KinoptError], str]] = {
    "unknown link": (
        Scene(attached={"a": AttachedObject("a", BOX, "flange", at(), frozenset())}),
        UnknownLinkError,
        "flange",
    ),
    "name of a link": (
        Scene(objects={"panda_hand": thing(id="panda_hand")}),
        InvalidShapeError,
        "'panda_hand' is the name of a link",
    ),
}


@pytest.mark.parametrize("case", FITS)
def test_a_scene_of_another_robot_is_refused(case: str) -> None:
    scene, error, words = FITS[case]
    with pytest.raises(error, match=words):
        check_ik_problem(ik_problem(PANDA, np.eye(4), scene=scene), PANDA)
    pytest.importorskip("coal")
    with pytest.raises(error, match=words):
        check_collisions(PANDA, scene, PANDA.default_q[None])
