"""Every change makes a new scene of the next version; what is refused leaves the old one as it was."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinopt_ros.array import Float64
from kinopt_ros.errors import (
    InvalidRequestError,
    InvalidShapeError,
    InvalidStateError,
    KinoptError,
    UnknownLinkError,
    UnknownObjectError,
)
from kinopt_ros.geometry.shapes import MAX_POINTS, Box, HeightMap, PlacedShape, Plane, PointCloud, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import pose, rpy_to_matrix
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene import checks
from kinopt_ros.scene.changes import (
    add,
    allow,
    attach,
    attach_new,
    clear,
    detach,
    disallow,
    extend,
    links_fixed_below,
    move,
    remove,
    set_allowed,
    set_padding,
)
from kinopt_ros.scene.scene import EMPTY_SCENE, AttachedObject, Scene, SceneObject

PANDA = load_robot("panda")
BOX = (PlacedShape(Box(0.1, 0.2, 0.3), np.eye(4)),)


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0, yaw: float = 0.0) -> Float64:
    return pose(rpy_to_matrix(np.array([0.0, 0.0, yaw])), np.array([x, y, z]))


def box(id: str, x: float = 0.5) -> SceneObject:
    return SceneObject(id, BOX, at(x))


def scene_of(*ids: str) -> Scene:
    scene = EMPTY_SCENE
    for id in ids:
        scene = add(scene, PANDA, box(id))
    return scene


def same(a: Scene, b: Scene) -> bool:
    """Check whether two scenes are equal to the last number."""

    def bodies(scene: Scene) -> Any:
        worlds = [(b.id, b.shapes, b.T_root_object.tobytes()) for b in scene.objects.values()]
        carried = [
            (b.id, b.shapes, b.link, b.touch_links, b.T_link_object.tobytes())
            for b in scene.attached.values()
        ]
        return worlds, carried

    return bodies(a) == bodies(b) and (a.version, a.allowed, a.padding, a.default_padding) == (
        b.version,
        b.allowed,
        b.padding,
        b.default_padding,
    )


def test_adds_moves_and_removes() -> None:
    scene = scene_of("table", "shelf")
    assert scene.version == 3
    assert list(scene.objects) == ["table", "shelf"]
    moved = move(scene, "table", at(1.0, yaw=0.3))
    np.testing.assert_array_equal(moved.objects["table"].T_root_object, at(1.0, yaw=0.3))
    assert moved.objects["table"].shapes is scene.objects["table"].shapes
    assert list(remove(moved, "table").objects) == ["shelf"]
    assert remove(moved, "table").version == 5
    np.testing.assert_array_equal(scene.objects["table"].T_root_object, at(0.5))


def test_replacing_is_said_and_keeps_what_was_said_about_the_object() -> None:
    scene = allow(set_padding(scene_of("table"), PANDA, 0.01, "table"), PANDA, "table", "panda_link0")
    with pytest.raises(
        InvalidShapeError, match="'table' is in the scene already; say that it is to be replaced"
    ):
        add(scene, PANDA, box("table", 0.9))
    replaced = add(scene, PANDA, box("table", 0.9), replacing=True)
    assert replaced.objects["table"].T_root_object[0, 3] == 0.9
    assert (replaced.allowed, replaced.padding) == (scene.allowed, scene.padding)


def test_a_removed_object_leaves_no_permissions_behind() -> None:
    scene = set_padding(allow(scene_of("table"), PANDA, "table", "*"), PANDA, 0.02, "table")
    scene = remove(allow(scene, PANDA, "panda_link7", "panda_link5"), "table")
    assert scene.allowed == {frozenset(("panda_link7", "panda_link5"))}
    assert not scene.padding


def test_an_attached_object_keeps_its_place_and_goes_with_its_link() -> None:
    q0, q1 = PANDA.default_q, PANDA.default_q + 0.1
    scene = attach(scene_of("mug"), PANDA, "mug", "panda_hand", q0)
    carried = scene.attached["mug"]
    assert not scene.objects
    T_root_hand = forward_kinematics(PANDA, np.stack([q0, q1]), links=("panda_hand",))[:, 0]
    np.testing.assert_allclose(T_root_hand[0] @ carried.T_link_object, at(0.5), atol=1e-12)
    left = detach(scene, PANDA, "mug", q1)
    assert not left.attached
    np.testing.assert_allclose(
        left.objects["mug"].T_root_object, T_root_hand[1] @ carried.T_link_object, atol=1e-12
    )


def test_touch_links_are_by_default_what_hangs_on_the_link_by_fixed_joints() -> None:
    assert links_fixed_below(PANDA, "panda_link8") == {"panda_link8", "panda_hand"} | (
        links_fixed_below(PANDA, "panda_hand")
    )
    assert "panda_leftfinger" not in links_fixed_below(PANDA, "panda_hand")
    scene = attach(scene_of("mug"), PANDA, "mug", "panda_link8", PANDA.default_q)
    assert scene.may_touch("panda_hand", "mug")
    assert scene.may_touch("mug", "panda_link8")
    assert not scene.may_touch("mug", "panda_link7")
    given = attach(scene_of("mug"), PANDA, "mug", "panda_hand", PANDA.default_q, ("panda_leftfinger",))
    assert given.attached["mug"].touch_links == {"panda_hand", "panda_leftfinger"}


def test_a_new_object_can_be_attached_at_once() -> None:
    scene = attach_new(EMPTY_SCENE, PANDA, "mug", BOX, "panda_hand", at(z=0.1), ())
    assert scene.attached["mug"].touch_links == {"panda_hand"}
    assert (scene.version, len(scene.objects)) == (2, 0)


def test_a_new_attached_object_takes_the_place_of_another_if_told_to() -> None:
    scene = allow(scene_of("mug"), PANDA, "mug", "panda_link5")
    for _ in range(2):  # of one in the world, of one that is attached
        with pytest.raises(InvalidShapeError, match="'mug' is "):
            attach_new(scene, PANDA, "mug", BOX * 2, "panda_hand", at(z=0.1), ())
        scene = attach_new(scene, PANDA, "mug", BOX * 2, "panda_hand", at(z=0.1), (), {}, True)
        assert (len(scene.objects), [*scene.attached]) == (0, ["mug"])
        assert scene.may_touch("mug", "panda_link5")


def test_subframes_go_with_their_object() -> None:
    frames = {"handle": at(0.1)}
    scene = add(EMPTY_SCENE, PANDA, SceneObject("mug", BOX, at(0.5), frames))
    scene = move(scene, "mug", at(0.6))
    scene = attach(scene, PANDA, "mug", "panda_hand", PANDA.default_q)
    assert scene.attached["mug"].subframes == frames
    scene = detach(scene, PANDA, "mug", PANDA.default_q)
    assert scene.objects["mug"].subframes == frames
    with pytest.raises(ValueError, match="read-only"):
        frames["handle"][0, 3] = 1.0


def test_objects_get_further_shapes_where_they_are() -> None:
    more = (PlacedShape(Sphere(0.1), at(z=0.3)),)
    scene = extend(scene_of("mug"), "mug", more, {"top": at(z=0.4)})
    assert scene.objects["mug"].shapes == BOX + more
    scene = attach(scene, PANDA, "mug", "panda_hand", PANDA.default_q)
    scene = extend(scene, "mug", more, {"top": at(z=0.5)})
    assert scene.attached["mug"].shapes == BOX + more + more
    assert scene.attached["mug"].subframes["top"][2, 3] == 0.5
    with pytest.raises(UnknownObjectError, match="'cup'"):
        extend(scene, "cup", more, {})
    with pytest.raises(InvalidShapeError, match="which has no end"):
        extend(scene, "mug", (PlacedShape(Plane(), np.eye(4)),), {})


def test_pairs_are_set_together() -> None:
    scene = allow(scene_of("mug"), PANDA, "mug", "panda_link5")
    pairs = [frozenset(("mug", "*")), frozenset(("panda_link1", "panda_link5"))]
    assert set_allowed(scene, PANDA, pairs).allowed == {*pairs}
    for wrong, error in ((("ghost", "mug"), UnknownObjectError), (("mug",), InvalidRequestError)):
        with pytest.raises(error, match=f"'{wrong[0]}'"):
            set_allowed(scene, PANDA, [frozenset(wrong)])


def test_pairs_and_the_wildcard() -> None:
    scene = allow(scene_of("table", "shelf"), PANDA, "table", "panda_link0")
    assert scene.may_touch("panda_link0", "table")
    assert not scene.may_touch("panda_link1", "table")
    scene = allow(scene, PANDA, "shelf")
    assert scene.may_touch("panda_link1", "shelf")
    assert scene.may_touch("shelf", "table")
    scene = disallow(disallow(scene, PANDA, "shelf"), PANDA, "panda_link0", "table")
    assert not scene.allowed
    with pytest.raises(InvalidRequestError, match="does not list 'shelf' and 'table'"):
        disallow(scene, PANDA, "shelf", "table")


def test_padding_is_by_name_else_that_of_links() -> None:
    scene = attach_new(scene_of("table"), PANDA, "mug", BOX, "panda_hand", at())
    scene = set_padding(set_padding(scene, PANDA, 0.01), PANDA, 0.03, "panda_hand")
    assert [scene.padding_of(n) for n in ("panda_link1", "panda_hand", "mug", "table")] == [
        0.01,
        0.03,
        0.03,
        0.0,
    ]
    scene = set_padding(set_padding(scene, PANDA, 0.002, "mug"), PANDA, 0.05, "table")
    assert [scene.padding_of(n) for n in ("mug", "table")] == [0.002, 0.05]


def test_clear_forgets_everything_but_the_version() -> None:
    scene = set_padding(allow(scene_of("table"), PANDA, "table"), PANDA, 0.1)
    assert same(clear(scene), Scene(version=scene.version + 1))


NAN_POSE = at(np.nan)
MIRRORED = np.diag([1.0, 1.0, -1.0, 1.0])
REFUSED: Mapping[str, tuple[Callable[[Scene], Scene], type[KinoptError], str]] = {
    "known id": (lambda s: add(s, PANDA, box("table")), InvalidShapeError, "'table' is in the scene already"),
    "id of an attached object": (
        lambda s: add(s, PANDA, box("mug"), replacing=True),
        InvalidShapeError,
        "'mug' is attached to link 'panda_hand'",
    ),
    "name of a link": (
        lambda s: add(s, PANDA, box("panda_hand")),
        InvalidShapeError,
        "name of a link of robot 'panda'",
    ),
    "empty id": (lambda s: add(s, PANDA, box("")), InvalidShapeError, "printable"),
    "wildcard as id": (lambda s: add(s, PANDA, box("*")), InvalidShapeError, "stands for everything"),
    "id of many lines": (lambda s: add(s, PANDA, box("a\nb")), InvalidShapeError, "printable"),
    "long id": (lambda s: add(s, PANDA, box("x" * 1000)), InvalidShapeError, "1000 characters"),
    "no shape": (lambda s: add(s, PANDA, SceneObject("a", (), at())), InvalidShapeError, "0 shapes"),
    "NaN pose": (
        lambda s: add(s, PANDA, SceneObject("a", BOX, NAN_POSE)),
        InvalidShapeError,
        "pose of object 'a' is no rigid",
    ),
    "mirrored pose": (
        lambda s: add(s, PANDA, SceneObject("a", BOX, MIRRORED)),
        InvalidShapeError,
        "right-handed",
    ),
    "far away": (lambda s: move(s, "table", at(1e5)), InvalidShapeError, "at most 10000 m"),
    "not 4 x 4": (lambda s: move(s, "table", np.eye(3)), InvalidShapeError, r"\(3, 3\)"),
    "NaN pose of a shape": (
        lambda s: add(s, PANDA, SceneObject("a", (*BOX, PlacedShape(Sphere(1.0), NAN_POSE)), at())),
        InvalidShapeError,
        "shape 1 of object 'a'",
    ),
    "moving what is not there": (
        lambda s: move(s, "tabel", at()),
        UnknownObjectError,
        "'tabel'; did you mean 'table'",
    ),
    "moving what is attached": (
        lambda s: move(s, "mug", at()),
        InvalidShapeError,
        "detach or remove it before",
    ),
    "removing what is not there": (lambda s: remove(s, "chair"), UnknownObjectError, "known: table, mug"),
    "attaching what is not there": (
        lambda s: attach(s, PANDA, "chair", "panda_hand", PANDA.default_q),
        UnknownObjectError,
        "'chair'",
    ),
    "attaching to an unknown link": (
        lambda s: attach(s, PANDA, "table", "panda_hnad", PANDA.default_q),
        UnknownLinkError,
        "'panda_hnad'; did you mean 'panda_hand'",
    ),
    "attaching twice": (
        lambda s: attach(s, PANDA, "mug", "panda_link7", PANDA.default_q),
        InvalidShapeError,
        "attached to link 'panda_hand'",
    ),
    "attaching a known id as new": (
        lambda s: attach_new(s, PANDA, "table", BOX, "panda_hand", at()),
        InvalidShapeError,
        "attach it without shapes",
    ),
    "unknown touch link": (
        lambda s: attach(s, PANDA, "table", "panda_hand", PANDA.default_q, ["finger"]),
        UnknownLinkError,
        "'finger'",
    ),
    "attaching in a NaN state": (
        lambda s: attach(s, PANDA, "table", "panda_hand", PANDA.default_q * np.nan),
        InvalidShapeError,
        "pose of object 'table' is no rigid",
    ),
    "attaching in a state of another length": (
        lambda s: attach(s, PANDA, "table", "panda_hand", np.zeros(3)),
        InvalidStateError,
        "3",
    ),
    "detaching what is not attached": (
        lambda s: detach(s, PANDA, "table", PANDA.default_q),
        UnknownObjectError,
        "'table'; known: mug",
    ),
    "pair with an unknown name": (lambda s: allow(s, PANDA, "table", "wall"), UnknownObjectError, "'wall'"),
    "pair of one name": (lambda s: allow(s, PANDA, "table", "table"), InvalidRequestError, "two different"),
    "pair of wildcards": (lambda s: allow(s, PANDA, "*", "*"), InvalidRequestError, "two different"),
    "negative padding": (
        lambda s: set_padding(s, PANDA, -0.1),
        InvalidShapeError,
        "-0.1; allowed is 0 to 1 m",
    ),
    "NaN padding": (lambda s: set_padding(s, PANDA, np.nan, "table"), InvalidShapeError, "nan"),
    "padding of nothing": (lambda s: set_padding(s, PANDA, 0.1, "wall"), UnknownObjectError, "'wall'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_what_was_given(name: str) -> None:
    change, error, sentence = REFUSED[name]
    scene = attach_new(scene_of("table"), PANDA, "mug", BOX, "panda_hand", at())
    with pytest.raises(error, match=sentence):
        change(scene)


def test_the_number_of_objects_shapes_points_and_pairs_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_OBJECTS", 2)
    with pytest.raises(InvalidShapeError, match="2 objects already"):
        add(scene_of("a", "b"), PANDA, box("c"))
    assert len(add(scene_of("a", "b"), PANDA, box("b"), replacing=True).objects) == 2
    with pytest.raises(InvalidShapeError, match="1001 shapes; allowed are 1 to 1000"):
        SceneObject("many", BOX * 1001, at())
    cloud = PlacedShape(PointCloud(np.zeros((MAX_POINTS, 3)), 0.01), np.eye(4))
    with pytest.raises(InvalidShapeError, match="5000000 vertices"):
        add(EMPTY_SCENE, PANDA, SceneObject("clouds", (cloud,) * 5, at()))


NAMES = st.sampled_from(["a", "b", "c", "*", "panda_hand", "panda_link3", "wall"])
POSES = st.builds(at, *[st.floats(-2.0, 2.0)] * 3, st.floats(-3.0, 3.0)) | st.just(NAN_POSE)
LINKS = st.sampled_from(["panda_hand", "panda_link3", "flange"])
STATES = st.sampled_from([PANDA.default_q, PANDA.default_q + 0.2])
CHANGES = st.one_of(
    st.builds(
        lambda id, T, replacing: lambda s: add(s, PANDA, SceneObject(id, BOX, T), replacing),
        NAMES,
        POSES,
        st.booleans(),
    ),
    st.builds(lambda id, T: lambda s: move(s, id, T), NAMES, POSES),
    st.builds(lambda id: lambda s: remove(s, id), NAMES),
    st.builds(lambda id, link, q: lambda s: attach(s, PANDA, id, link, q), NAMES, LINKS, STATES),
    st.builds(lambda id, link, T: lambda s: attach_new(s, PANDA, id, BOX, link, T, ()), NAMES, LINKS, POSES),
    st.builds(lambda id, q: lambda s: detach(s, PANDA, id, q), NAMES, STATES),
    st.builds(lambda a, b: lambda s: allow(s, PANDA, a, b), NAMES, NAMES),
    st.builds(lambda a, b: lambda s: disallow(s, PANDA, a, b), NAMES, NAMES),
    st.builds(
        lambda m, name: lambda s: set_padding(s, PANDA, m, name), st.floats(-0.1, 1.1), st.none() | NAMES
    ),
    st.just(clear),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(CHANGES, max_size=25))
def test_random_changes_keep_the_invariants(changes: list[Callable[[Scene], Scene]]) -> None:
    scene = EMPTY_SCENE
    for change in changes:
        before = Scene(**{name: getattr(scene, name) for name in vars(scene)})
        copies = dict(scene.objects), dict(scene.attached), dict(scene.padding)
        try:
            changed = change(scene)
        except KinoptError:
            changed = scene
        else:
            assert changed.version == scene.version + 1
        assert (dict(scene.objects), dict(scene.attached), dict(scene.padding)) == copies
        assert same(scene, before)
        check_invariants(changed, PANDA)
        scene = changed


def check_invariants(scene: Scene, robot: RobotModel) -> None:
    assert not scene.objects.keys() & scene.attached.keys()
    bodies: list[SceneObject | AttachedObject] = [*scene.objects.values(), *scene.attached.values()]
    ids = [*scene.objects, *scene.attached]
    assert [body.id for body in bodies] == ids
    assert not set(ids) & {*robot.link_names, "*", ""}
    for body in scene.attached.values():
        assert body.link in body.touch_links
        assert body.touch_links <= robot.link_index.keys()
        assert np.isfinite(body.T_link_object).all()
        assert not body.T_link_object.flags.writeable
    for obstacle in scene.objects.values():
        assert np.isfinite(obstacle.T_root_object).all()
    assert all(len(pair) == 2 and pair <= {*ids, *robot.link_names, "*"} for pair in scene.allowed)
    assert scene.padding.keys() <= {*ids, *robot.link_names}
    assert all(0.0 <= value <= 1.0 for value in (*scene.padding.values(), scene.default_padding))


@pytest.mark.parametrize("shape", [Plane(), HeightMap(np.zeros((3, 3)), 0.1)], ids=lambda s: type(s).__name__)
def test_nothing_without_end_can_be_carried(shape: Plane | HeightMap) -> None:
    placed = (PlacedShape(shape, np.eye(4)),)
    link = "panda_hand"
    with pytest.raises(InvalidShapeError, match="no end"):
        attach_new(EMPTY_SCENE, PANDA, "ground", placed, link, np.eye(4))
    scene = add(EMPTY_SCENE, PANDA, SceneObject("ground", placed, np.eye(4)))
    with pytest.raises(InvalidShapeError, match="no end"):
        attach(scene, PANDA, "ground", link, PANDA.default_q)
