"""MoveIt's planning scene: what comes in its messages changes our scene, what is written is read as the same."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("rclpy", reason="ROS is not installed")
pytest.importorskip("coal")

from geometry_msgs.msg import TransformStamped
from std_msgs.msg import ColorRGBA
from support.moveit_scenes import (
    SceneWorld,
    at,
    attached_object,
    collision_object,
    mesh,
    primitive,
    scene_diff,
)

from kinopt_msgs.msg import CollisionObject, SceneOperation
from kinopt_msgs.msg import Shape as ShapeMsg
from kinopt_msgs.srv import ApplyScene
from kinopt_ros.errors import KinoptError
from kinopt_ros.geometry.octree import write_octree
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Mesh,
    Octomap,
    PlacedShape,
    Plane,
    PointCloud,
    Sphere,
)
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse, quaternion_to_matrix
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.requests import scene_changes
from kinopt_ros.ros.robot.frames import Frames
from kinopt_ros.scene import changes
from kinopt_ros.scene.parts import ANY
from kinopt_ros.scene.scene import EMPTY_SCENE, AttachedObject, Scene, SceneObject
from kinopt_ros.solvers import readiness

PANDA = load_robot("panda")
HAND, FLANGE = "panda_hand", "panda_link8"
NAN = float("nan")
CUBE = [[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]
FACES = [
    *([0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]),
    *([2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]),
]
CUBE_MESH = Mesh(np.array(CUBE), np.array(FACES))


@pytest.fixture
def world(moveit: ModuleType) -> SceneWorld:
    return SceneWorld(PANDA)


def T_of(x: float, y: float, z: float, q: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3] = quaternion_to_matrix(np.array(q) / np.linalg.norm(q))
    T[:3, 3] = x, y, z
    return T


def box(id: str = "box", **rest: Any) -> Any:
    return collision_object(id, primitive("BOX", 0.1, 0.2, 0.3), **rest)


# Round trips

length = st.floats(0.01, 2.0)
number = st.floats(-3.0, 3.0)
poses = st.tuples(number, number, number, st.tuples(st.floats(0.1, 1.0), number, number, number)).map(
    lambda given: T_of(*given)
)
solids = st.one_of(
    st.builds(Box, length, length, length),
    st.builds(Sphere, length),
    st.builds(Cylinder, length, length),
    st.builds(Cone, length, length),
    st.just(CUBE_MESH),
)
placed = st.lists(st.builds(PlacedShape, solids, poses), min_size=1, max_size=3).map(tuple)
names = st.text("abc/ -.", min_size=1, max_size=5).map(lambda name: f"o{name}o")
subframes = st.dictionaries(names, poses, max_size=2)
LINKS = st.sampled_from(PANDA.link_names)


@st.composite
def scenes(draw: Callable[..., Any]) -> Scene:
    """Scenes of what MoveIt's messages can say."""
    ids = draw(st.lists(names, unique=True, max_size=4))
    scene = EMPTY_SCENE
    for id in ids:
        shapes, T, frames = draw(placed), draw(poses), draw(subframes)
        if draw(st.booleans()):
            scene = changes.add(scene, PANDA, SceneObject(id, shapes, T, frames))
        else:
            touched = draw(st.lists(LINKS, max_size=3))
            scene = changes.attach_new(scene, PANDA, id, shapes, draw(LINKS), T, touched, frames)
    bodies = [*PANDA.link_names, *ids]
    for _ in range(draw(st.integers(0, 4))):
        first, second = draw(st.sampled_from(bodies)), draw(st.sampled_from([*bodies, ANY]))
        if first != second:
            scene = changes.allow(scene, PANDA, first, second)
    scene = changes.set_padding(scene, PANDA, draw(st.sampled_from([0.0, 0.02])))
    return changes.set_padding(scene, PANDA, draw(st.sampled_from([0.0, 0.05])), draw(LINKS))


def same_body(a: SceneObject | AttachedObject, b: SceneObject | AttachedObject) -> None:
    where = "T_root_object" if isinstance(a, SceneObject) else "T_link_object"
    T_a, T_b = getattr(a, where), getattr(b, where)
    assert len(a.shapes) == len(b.shapes)
    by_kind = sorted(a.shapes, key=lambda one: isinstance(one.shape, Mesh))  # meshes come after primitives
    for one, other in zip(by_kind, b.shapes, strict=True):
        np.testing.assert_allclose(T_a @ one.T_frame_shape, T_b @ other.T_frame_shape, atol=1e-9)
        if isinstance(one.shape, Mesh):
            assert isinstance(other.shape, Mesh)
            assert len(one.shape.triangles) == len(other.shape.triangles)
        else:
            assert one.shape == other.shape
    assert a.subframes.keys() == b.subframes.keys()
    if isinstance(a, AttachedObject):
        assert isinstance(b, AttachedObject)
        assert (a.link, a.touch_links) == (b.link, b.touch_links)


def same_scene(a: Scene, b: Scene) -> None:
    assert {*a.objects} == {*b.objects}
    assert {*a.attached} == {*b.attached}
    for id in a.objects:
        same_body(a.objects[id], b.objects[id])
    for id in a.attached:
        same_body(a.attached[id], b.attached[id])
    bodies = [*PANDA.link_names, *a.objects, *a.attached]
    by_design = PANDA.disabled_collisions
    for first in bodies:
        assert a.padding_of(first) == b.padding_of(first)
        for second in bodies:
            pair = frozenset((first, second))
            if first < second and pair not in by_design and not adjacent(pair):
                assert a.may_touch(first, second) == b.may_touch(first, second), pair


def adjacent(pair: frozenset[str]) -> bool:
    from kinopt_ros.collision.adjacency import adjacent_pairs, rigid_pairs

    return pair in {frozenset(p) for p in (*adjacent_pairs(PANDA), *rigid_pairs(PANDA))}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scene=scenes(), filled=st.booleans())
def test_a_scene_that_is_written_is_read_as_the_same(moveit: ModuleType, scene: Scene, filled: bool) -> None:
    message = SceneWorld(PANDA, scene).moveit.message()
    other = SceneWorld(PANDA)
    if filled:  # by what a whole scene takes the place of
        other.moveit.apply_object(box("ooo"))
        other.moveit.apply_attached(attached_object(HAND, box("left over")))
    other.moveit.apply_scene(message)
    same_scene(scene, other.scene)
    other.moveit.apply_scene(other.moveit.message())
    same_scene(scene, other.scene)
    assert not other.log


def test_capsules_are_written_as_what_fills_the_same_space(world: SceneWorld) -> None:
    shapes = (PlacedShape(Capsule(0.1, 0.4), T_of(0.0, 0.0, 1.0)),)
    scene = changes.add(EMPTY_SCENE, PANDA, SceneObject("pill", shapes, T_of(1.0, 0.0, 0.0)))
    world.moveit.apply_scene(SceneWorld(PANDA, scene).moveit.message())
    kinds = [(one.shape, one.T_frame_shape[:3, 3].tolist()) for one in world.scene.objects["pill"].shapes]
    assert kinds == [
        (Cylinder(0.1, 0.4), [0.0, 0.0, 1.0]),
        (Sphere(0.1), [0.0, 0.0, 0.8]),
        (Sphere(0.1), [0.0, 0.0, 1.2]),
    ]


def test_what_messages_cannot_say_is_named_and_stays(moveit: ModuleType) -> None:
    shapes = (PlacedShape(PointCloud(np.zeros((3, 3)), 0.1), np.eye(4)),)
    scene = changes.add(EMPTY_SCENE, PANDA, SceneObject("cloud", shapes, T_of(2.0, 0.0, 0.0)))
    world = SceneWorld(PANDA, scene)
    message = world.moveit.message()
    (written,) = message.world.collision_objects
    assert (written.id, written.primitives) == ("cloud", [])
    assert "cannot say" in written.type.key
    world.moveit.apply_scene(message)  # as clients do after a change of something else
    assert world.scene.objects["cloud"].shapes == shapes


# Objects of the world


def test_primitives_have_the_dimensions_of_moveit(world: SceneWorld) -> None:
    given = [
        primitive("BOX", 0.1, 0.2, 0.3),
        primitive("SPHERE", 0.4),
        primitive("CYLINDER", 0.5, 0.1),
        primitive("CONE", 0.6, 0.2),
    ]
    message = collision_object(
        "all", *given, pose=at(1.0), primitive_poses=[at(z=float(k)) for k in range(4)]
    )
    message.meshes, message.mesh_poses = [mesh(CUBE, FACES)], [at(y=1.0)]
    world.moveit.apply_object(message)
    body = world.scene.objects["all"]
    shapes = [one.shape for one in body.shapes]
    assert shapes[:4] == [Box(0.1, 0.2, 0.3), Sphere(0.4), Cylinder(0.1, 0.5), Cone(0.2, 0.6)]
    assert isinstance(shapes[4], Mesh)
    np.testing.assert_allclose([one.T_frame_shape[2, 3] for one in body.shapes], [0.0, 1.0, 2.0, 3.0, 0.0])
    np.testing.assert_allclose(body.T_root_object[:3, 3], [1.0, 0.0, 0.0])


def test_a_plane_is_solid_below_its_normal(world: SceneWorld) -> None:
    message = collision_object("wall")
    from shape_msgs.msg import Plane as PlaneMsg

    message.planes = [PlaneMsg(coef=[0.0, 2.0, 0.0, 4.0])]  # y = -2
    world.moveit.apply_object(message)
    body = world.scene.objects["wall"]
    T = body.T_root_object @ body.shapes[0].T_frame_shape
    assert isinstance(body.shapes[0].shape, Plane)
    np.testing.assert_allclose(T[:3, 2], [0.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(T[:3, 3], [0.0, -2.0, 0.0], atol=1e-12)


def test_the_only_shape_gives_the_pose_of_an_object_without_one(world: SceneWorld) -> None:
    world.moveit.apply_object(
        box(primitive_poses=[at(0.5)], subframe_names=["top"], subframe_poses=[at(z=0.1)])
    )
    body = world.scene.objects["box"]
    np.testing.assert_allclose(body.T_root_object[:3, 3], [0.5, 0.0, 0.0])
    np.testing.assert_array_equal(body.shapes[0].T_frame_shape, np.eye(4))
    # ... as in move_group; the subframe hangs on that pose.
    world.moveit.apply_object(box("cup", frame="box/top"))
    np.testing.assert_allclose(world.scene.objects["cup"].T_root_object[:3, 3], [0.5, 0.0, 0.1])


@pytest.mark.parametrize("frame", ["", "panda_link0", HAND])
def test_poses_are_in_the_frames_of_links(world: SceneWorld, frame: str) -> None:
    world.moveit.apply_object(box(frame=frame, pose=at(0.1)))
    q = world.context.joint_states.of(PANDA).q
    T = forward_kinematics(PANDA, q, links=(frame or PANDA.root_link,))[0]
    np.testing.assert_allclose(world.scene.objects["box"].T_root_object, T @ T_of(0.1, 0.0, 0.0), atol=1e-12)


def test_objects_are_frames_within_one_message(world: SceneWorld) -> None:
    message = scene_diff()
    message.world.collision_objects = [
        box("table", pose=at(1.0), subframe_names=["leg"], subframe_poses=[at(y=0.5)]),
        box("cup", frame="table", pose=at(z=0.2)),
        box("ball", frame="table/leg", pose=at(z=0.3)),
    ]
    world.moveit.apply_scene(message)
    np.testing.assert_allclose(world.scene.objects["cup"].T_root_object[:3, 3], [1.0, 0.0, 0.2])
    np.testing.assert_allclose(world.scene.objects["ball"].T_root_object[:3, 3], [1.0, 0.5, 0.3])


def test_a_scene_may_bring_frames(world: SceneWorld) -> None:
    message = scene_diff(fixed_frame_transforms=[TransformStamped(child_frame_id="kitchen")])
    message.fixed_frame_transforms[0].transform.translation.x = 2.0
    message.world.collision_objects = [box(frame="kitchen")]
    world.moveit.apply_scene(message)
    np.testing.assert_allclose(world.scene.objects["box"].T_root_object[:3, 3], [2.0, 0.0, 0.0])


def test_append_move_and_remove(world: SceneWorld) -> None:
    world.moveit.apply_object(box(pose=at(1.0)))
    world.moveit.apply_object(
        collision_object("box", primitive("SPHERE", 0.1), pose=at(1.5), operation="APPEND")
    )
    body = world.scene.objects["box"]
    np.testing.assert_allclose([one.T_frame_shape[0, 3] for one in body.shapes], [0.0, 0.5])
    world.moveit.apply_object(collision_object("box", pose=at(3.0), operation="MOVE"))
    assert world.scene.objects["box"].shapes == body.shapes
    np.testing.assert_allclose(world.scene.objects["box"].T_root_object[:3, 3], [3.0, 0.0, 0.0])
    world.moveit.apply_object(box(pose=at(4.0)))  # ADD takes the place
    assert len(world.scene.objects["box"].shapes) == 1
    world.moveit.apply_object(collision_object("other", primitive("SPHERE", 0.1), operation="APPEND"))
    world.moveit.apply_object(box(operation="REMOVE"))  # as clients send it that keep what they have added
    assert {*world.scene.objects} == {"other"}
    world.moveit.apply_object(collision_object("", operation="REMOVE"))
    assert not world.scene.objects
    world.moveit.apply_object(collision_object("", operation="REMOVE"))  # nothing left is no error


def test_a_world_takes_the_place_of_the_world(world: SceneWorld, moveit: Any) -> None:
    world.moveit.apply_object(box("old"))
    world.moveit.apply_attached(attached_object(HAND, box("held")))
    world.moveit.apply_world(moveit.msg.PlanningSceneWorld(collision_objects=[box("new")]))
    assert ({*world.scene.objects}, {*world.scene.attached}) == ({"new"}, {"held"})


# Attached objects


def test_an_object_of_the_world_is_attached_where_it_is_and_left_there(world: SceneWorld) -> None:
    world.moveit.apply_object(box(pose=at(0.5), subframe_names=["tip"], subframe_poses=[at(z=0.1)]))
    before = world.scene.objects["box"].T_root_object
    world.moveit.apply_attached(attached_object(FLANGE, collision_object("box"), HAND))
    held = world.scene.attached["box"]
    q = world.context.joint_states.of(PANDA).q
    T_root_link = forward_kinematics(PANDA, q, links=(FLANGE,))[0]
    np.testing.assert_allclose(T_root_link @ held.T_link_object, before, atol=1e-12)
    assert held.touch_links == {FLANGE, HAND}
    assert "tip" in held.subframes
    T_tip = world.context.frames.T_root_frame(PANDA, "box/tip", q)
    np.testing.assert_allclose(T_tip, before @ T_of(0.0, 0.0, 0.1), atol=1e-12)
    assert world.context.moving(PANDA, [("box/tip", "panda_link0")]) == list(range(7))
    world.moveit.apply_attached(attached_object("", collision_object("box", operation="REMOVE")))
    np.testing.assert_allclose(world.scene.objects["box"].T_root_object, before, atol=1e-12)
    assert not world.scene.attached


def test_a_new_object_is_attached_in_any_frame(world: SceneWorld) -> None:
    world.moveit.apply_attached(attached_object(HAND, box(frame=HAND, pose=at(z=0.1))))
    np.testing.assert_allclose(world.scene.attached["box"].T_link_object, T_of(0.0, 0.0, 0.1), atol=1e-12)
    world.moveit.apply_attached(attached_object(HAND, box("other", pose=at(0.5))))
    q = world.context.joint_states.of(PANDA).q
    T_root_hand = forward_kinematics(PANDA, q, links=(HAND,))[0]
    np.testing.assert_allclose(
        world.scene.attached["other"].T_link_object, inverse(T_root_hand) @ T_of(0.5, 0.0, 0.0), atol=1e-12
    )


def test_shapes_of_an_attached_object_take_the_place_of_one_of_the_world(world: SceneWorld) -> None:
    world.moveit.apply_object(box(pose=at(0.5)))
    given = collision_object("box", primitive("SPHERE", 0.1), frame=HAND)
    world.moveit.apply_attached(attached_object(HAND, given))
    assert not world.scene.objects
    assert world.scene.attached["box"].shapes[0].shape == Sphere(0.1)
    more = collision_object(
        "box", primitive("BOX", 0.1, 0.1, 0.1), frame=HAND, pose=at(z=0.2), operation="APPEND"
    )
    world.moveit.apply_attached(attached_object(HAND, more))
    assert [one.T_frame_shape[2, 3] for one in world.scene.attached["box"].shapes] == [0.0, 0.2]


def test_all_objects_of_a_link_or_of_all_links_are_left(world: SceneWorld) -> None:
    for id, link in (("a", HAND), ("b", HAND), ("c", FLANGE)):
        world.moveit.apply_attached(attached_object(link, box(id, frame=link)))
    world.moveit.apply_attached(attached_object(HAND, collision_object("", operation="REMOVE")))
    assert ({*world.scene.objects}, {*world.scene.attached}) == ({"a", "b"}, {"c"})
    world.moveit.apply_attached(attached_object("", collision_object("", operation="REMOVE")))
    assert not world.scene.attached


def test_a_state_that_is_no_diff_lists_all_that_is_attached(world: SceneWorld) -> None:
    world.moveit.apply_attached(attached_object(HAND, box("held")))
    message = scene_diff()
    message.robot_state.is_diff = False
    message.robot_state.attached_collision_objects = [attached_object(HAND, box("new"))]
    world.moveit.apply_scene(message)
    assert ({*world.scene.objects}, {*world.scene.attached}) == (set(), {"new"})
    assert "held" in world.log[0]


def test_a_diff_that_says_nothing_of_the_robot_leaves_what_is_attached(
    world: SceneWorld, moveit: Any
) -> None:
    world.moveit.apply_attached(attached_object(HAND, box("held")))
    message = moveit.msg.PlanningScene(is_diff=True)  # robot_state.is_diff is false, as nobody has set it
    message.world.collision_objects = [box("table", pose=at(1.0))]
    world.moveit.apply_scene(message)
    assert ({*world.scene.objects}, {*world.scene.attached}) == ({"table"}, {"held"})


# What may touch, padding, colours


def matrix(moveit: Any, names: list[str], rows: list[list[bool]], **defaults: bool) -> Any:
    return moveit.msg.AllowedCollisionMatrix(
        entry_names=names,
        entry_values=[moveit.msg.AllowedCollisionEntry(enabled=row) for row in rows],
        default_entry_names=list(defaults),
        default_entry_values=list(defaults.values()),
    )


def test_clients_allow_collisions_as_pymoveit2_does(world: SceneWorld, moveit: Any) -> None:
    world.moveit.apply_object(box(pose=at(1.0)))
    for allow in (True, False):
        message = world.moveit.message()
        given = message.allowed_collision_matrix
        if "box" not in given.entry_names:
            given.entry_names.append("box")
            for row in given.entry_values:
                row.enabled.append(allow)
            given.entry_values.append(
                moveit.msg.AllowedCollisionEntry(enabled=[allow] * len(given.entry_names))
            )
        else:
            j = given.entry_names.index("box")
            for row in given.entry_values:
                row.enabled[j] = allow
            given.entry_values[j] = moveit.msg.AllowedCollisionEntry(enabled=[allow] * len(given.entry_names))
        world.moveit.apply_scene(message)
        assert all(world.scene.may_touch("box", link) == allow for link in PANDA.link_names)
    assert not world.log


def test_clients_remove_everything_as_pymoveit2_does(world: SceneWorld) -> None:
    world.moveit.apply_object(box())
    world.moveit.apply_attached(attached_object(HAND, box("held")))
    message = world.moveit.message()
    message.world.collision_objects = []
    message.robot_state.attached_collision_objects = []
    world.moveit.apply_scene(message)
    assert not world.scene.objects
    assert not world.scene.attached


def test_defaults_allow_everything(world: SceneWorld, moveit: Any) -> None:
    world.moveit.apply_object(box(pose=at(1.0)))
    world.moveit.apply_scene(scene_diff(allowed_collision_matrix=matrix(moveit, [], [], box=True)))
    assert world.scene.allowed == {frozenset(("box", ANY))}
    # What it may not touch is an exception, for what is there now.
    given = matrix(moveit, ["box", HAND], [[True, False], [False, True]], box=True)
    world.moveit.apply_scene(scene_diff(allowed_collision_matrix=given))
    assert not world.scene.may_touch("box", HAND)
    assert world.scene.may_touch("box", FLANGE)
    assert "by default but panda_hand" in world.log[0]


def test_names_that_nothing_has_are_remarked(world: SceneWorld, moveit: Any) -> None:
    given = matrix(moveit, ["ghost", HAND], [[False, True], [True, False]])
    world.moveit.apply_scene(scene_diff(allowed_collision_matrix=given))
    assert not world.scene.allowed
    assert "ghost" in world.log[0]


def test_any_number_of_defaults_of_names_that_nothing_has_is_one_remark(
    world: SceneWorld, moveit: Any
) -> None:
    """Each was compared with each, and remarked: a message of 4 MB kept all changes of the scene waiting for hours."""
    defaults = {f"ghost {k}": k % 2 == 0 for k in range(600)}
    given = matrix(moveit, [], [], box=True, **defaults)
    world.moveit.apply_object(box(pose=at(1.0)))
    world.moveit.apply_scene(scene_diff(allowed_collision_matrix=given))
    assert world.scene.allowed == {frozenset(("box", ANY))}
    [said] = world.log
    assert "ghost 0" in said


def test_defaults_may_not_allow_pairs_without_end(world: SceneWorld, moveit: Any) -> None:
    many = scene_diff()
    many.world.collision_objects = [box(f"box {k}", pose=at(1.0)) for k in range(500)]
    world.moveit.apply_scene(many)
    defaults = {f"box {k}": True for k in range(499)} | {"box 499": False}
    with pytest.raises(KinoptError, match="more than 100000 pairs"):
        world.moveit.apply_scene(scene_diff(allowed_collision_matrix=matrix(moveit, [], [], **defaults)))
    assert not world.scene.allowed


def test_padding_and_colours(world: SceneWorld, moveit: Any) -> None:
    message = scene_diff(link_padding=[moveit.msg.LinkPadding(link_name=HAND, padding=0.03)])
    message.link_scale = [moveit.msg.LinkScale(link_name=HAND, scale=1.0)]
    message.object_colors = [moveit.msg.ObjectColor(id="box", color=ColorRGBA(r=1.0, a=1.0))]
    message.world.collision_objects = [box()]
    message.world.collision_objects[0].type.key = "cereal"
    world.moveit.apply_scene(message)
    assert world.scene.padding_of(HAND) == 0.03
    written = world.moveit.message()
    assert {one.link_name: one.padding for one in written.link_padding}[HAND] == 0.03
    assert [(one.id, one.color.r) for one in written.object_colors] == [("box", 1.0)]
    assert written.world.collision_objects[0].type.key == "cereal"
    world.moveit.apply_object(collision_object("box", operation="REMOVE"))
    assert not world.moveit.message().object_colors


def test_components(world: SceneWorld, moveit: Any) -> None:
    part = moveit.msg.PlanningSceneComponents
    world.moveit.apply_object(box())
    world.moveit.apply_attached(attached_object(HAND, box("held")))
    names = world.moveit.message(part.WORLD_OBJECT_NAMES)
    assert [(one.id, one.primitives) for one in names.world.collision_objects] == [("box", [])]
    assert not names.allowed_collision_matrix.entry_names
    state = world.moveit.message(part.ROBOT_STATE)
    assert not state.robot_state.attached_collision_objects
    assert state.robot_state.joint_state.name == [
        f"panda_joint{k}" for k in range(1, 8)
    ]  # nobody knows the fingers
    held = world.moveit.message(part.ROBOT_STATE_ATTACHED_OBJECTS).robot_state.attached_collision_objects
    assert [one.object.id for one in held] == ["held"]


# Octomaps


def octomap_message(moveit: Any, binary: bool = True) -> Any:
    del moveit
    voxels = Octomap(np.array([[0.05, 0.05, 0.05], [0.3, 0.1, 0.1]]), np.array([0.1, 0.2]))
    data, resolution = write_octree(voxels)
    message = scene_diff()
    octomap = message.world.octomap
    octomap.origin = at(1.0)
    octomap.octomap.id, octomap.octomap.binary, octomap.octomap.resolution = "OcTree", binary, resolution
    octomap.octomap.data = np.frombuffer(data, dtype=np.int8).tolist()
    return message


def test_octomaps_are_one_object_that_is_replaced_and_cleared(world: SceneWorld, moveit: Any) -> None:
    world.moveit.apply_object(box())
    world.moveit.apply_scene(octomap_message(moveit))
    body = world.scene.objects["<octomap>"]
    assert isinstance(body.shapes[0].shape, Octomap)
    np.testing.assert_allclose(sorted(body.shapes[0].shape.sizes), [0.1, 0.2])
    np.testing.assert_allclose(body.T_root_object[:3, 3], [1.0, 0.0, 0.0])
    world.moveit.apply_object(collision_object("", operation="REMOVE"))  # of the objects, as in move_group
    assert {*world.scene.objects} == {"<octomap>"}
    other = SceneWorld(PANDA)
    other.moveit.apply_scene(world.moveit.message())
    np.testing.assert_allclose(
        sorted(map(tuple, other.scene.objects["<octomap>"].shapes[0].shape.centers)),  # type: ignore[union-attr]
        sorted(map(tuple, body.shapes[0].shape.centers)),
    )
    world.moveit.apply_scene(octomap_message(moveit))
    world.moveit.clear_octomap()
    assert not world.scene.objects
    world.moveit.clear_octomap()  # nothing left is no error


# What is refused leaves everything as it was


def objects(*given: Any) -> Any:
    message = scene_diff()
    message.world.collision_objects = list(given)
    return message


def held(given: Any) -> Any:
    message = scene_diff()
    message.robot_state.attached_collision_objects = [given]
    return message


def octomap(m: Any, **fields: Any) -> Any:
    message = octomap_message(m)
    for name, value in fields.items():
        setattr(message.world.octomap.octomap, name, value)
    return message


def joints(*positions: float) -> Any:
    message = scene_diff()
    message.robot_state.joint_state.name = ["panda_joint1"]
    message.robot_state.joint_state.position = list(positions)
    return message


def padded(m: Any, link: str, padding: float) -> Any:
    return scene_diff(link_padding=[m.msg.LinkPadding(link_name=link, padding=padding)])


def plane(*coef: float) -> Any:
    from shape_msgs.msg import Plane as PlaneMsg

    message = collision_object("wall")
    message.planes = [PlaneMsg(coef=list(coef))]
    return objects(message)


def unknown_primitive() -> Any:
    given = primitive("SPHERE", 1.0)
    given.type = 9
    return given


def meshed(*given: Any) -> Any:
    message = collision_object("thing")
    message.meshes = list(given)
    return objects(message)


DISABLED = sorted(min(map(sorted, PANDA.disabled_collisions)))
BAD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no id": (lambda m: objects(box("")), "the id of an object is ''"),
    "id of a link": (lambda m: objects(box(HAND)), "is the name of a link"),
    "no shapes": (lambda m: objects(collision_object("a")), "no primitives, meshes or planes"),
    "unknown frame": (lambda m: objects(box(frame="moon")), "'moon'"),
    "unknown type": (lambda m: objects(collision_object("a", unknown_primitive())), "its type is 9"),
    "prism": (lambda m: objects(collision_object("a", primitive("PRISM", 1.0))), "a prism is not supported"),
    "dimensions": (lambda m: objects(collision_object("a", primitive("BOX", 1.0))), "a box has 1 dimensions"),
    "NaN size": (lambda m: objects(collision_object("a", primitive("SPHERE", NAN))), "nan"),
    "negative size": (lambda m: objects(collision_object("a", primitive("SPHERE", -1.0))), "-1"),
    "NaN pose": (lambda m: objects(box(pose=at(NAN))), "not finite"),
    "zero quaternion": (lambda m: objects(box(pose=at(w=0.0))), "length 0"),
    "more poses than shapes": (
        lambda m: objects(box(primitive_poses=[at(), at()])),
        "2 primitive_poses and 1",
    ),
    "subframes": (lambda m: objects(box(subframe_names=["a"])), "1 subframe_names and 0"),
    "subframe twice": (
        lambda m: objects(box(subframe_names=["a", "a"], subframe_poses=[at(), at()])),
        "no name may be there twice",
    ),
    "subframe without name": (
        lambda m: objects(box(subframe_names=[""], subframe_poses=[at()])),
        "a subframe of object 'box' is called ''",
    ),
    "flat mesh": (lambda m: meshed(mesh(CUBE, FACES[:2])), "lie in one plane"),
    "mesh without vertices": (lambda m: meshed(mesh([], FACES)), "mesh 0"),
    "mesh of other vertices": (lambda m: meshed(mesh(CUBE, [[0, 1, 99]])), "mesh 0"),
    "NaN mesh": (lambda m: meshed(mesh([[NAN, 0, 0], *CUBE[1:]], FACES)), "mesh 0"),
    "plane without normal": (lambda m: plane(0.0, 0.0, 0.0, 1.0), "normal"),
    "NaN plane": (lambda m: plane(0.0, NAN, 0.0, 1.0), "finite"),
    "move unknown": (lambda m: objects(collision_object("ghost", operation="MOVE")), "'ghost'"),
    "move shapes": (lambda m: objects(box(operation="MOVE")), "which MOVE does not use"),
    "remove unknown": (lambda m: objects(collision_object("ghost", operation="REMOVE")), "'ghost'"),
    "remove held": (lambda m: objects(collision_object("held", operation="REMOVE")), "attached to link"),
    "add held": (lambda m: objects(box("held")), "attached to link"),
    "attach unknown": (lambda m: held(attached_object(HAND, collision_object("ghost"))), "'ghost'"),
    "attach to unknown": (lambda m: held(attached_object("claw", box("a"))), "'claw'"),
    "touch unknown": (lambda m: held(attached_object(HAND, box("a"), "claw")), "'claw'"),
    "attach plane": (
        lambda m: held(attached_object(HAND, plane(0.0, 0.0, 1.0, 0.0).world.collision_objects[0])),
        "which has no end",
    ),
    "move held": (
        lambda m: held(attached_object(HAND, collision_object("held", operation="MOVE"))),
        "not MOVE",
    ),
    "detach unknown": (
        lambda m: held(attached_object("", collision_object("ghost", operation="REMOVE"))),
        "'ghost'",
    ),
    "detach elsewhere": (
        lambda m: held(attached_object(FLANGE, collision_object("held", operation="REMOVE"))),
        "is attached to link 'panda_hand', and link_name is 'panda_link8'",
    ),
    "other robot": (lambda m: scene_diff(robot_model_name="ur5"), "'ur5'"),
    "scale": (lambda m: scene_diff(link_scale=[m.msg.LinkScale(link_name=HAND, scale=1.1)]), "allowed is 1"),
    "NaN scale": (
        lambda m: scene_diff(link_scale=[m.msg.LinkScale(link_name=HAND, scale=NAN)]),
        "allowed is 1",
    ),
    "scale of unknown": (
        lambda m: scene_diff(link_scale=[m.msg.LinkScale(link_name="claw", scale=1.0)]),
        "'claw'",
    ),
    "padding of unknown": (lambda m: padded(m, "claw", 0.1), "'claw'"),
    "negative padding": (lambda m: padded(m, HAND, -0.1), "-0.1"),
    "NaN padding": (lambda m: padded(m, HAND, NAN), "nan"),
    "matrix sizes": (
        lambda m: scene_diff(allowed_collision_matrix=matrix(m, ["a", "b"], [[True, True]])),
        "2 names and 1 rows",
    ),
    "matrix row": (
        lambda m: scene_diff(allowed_collision_matrix=matrix(m, ["a"], [[]])),
        "1 names and 1 rows",
    ),
    "matrix twice": (
        lambda m: scene_diff(allowed_collision_matrix=matrix(m, ["a", "a"], [[True, True]] * 2)),
        "twice",
    ),
    "matrix not symmetric": (
        lambda m: scene_diff(
            allowed_collision_matrix=matrix(m, ["held", HAND], [[False, True], [False, False]])
        ),
        "symmetric",
    ),
    "matrix against SRDF": (
        lambda m: scene_diff(allowed_collision_matrix=matrix(m, DISABLED, [[False, False]] * 2)),
        "which the SRDF allows",
    ),
    "matrix defaults": (
        lambda m: scene_diff(
            allowed_collision_matrix=m.msg.AllowedCollisionMatrix(default_entry_names=["a"])
        ),
        "1 default_entry_names and 0",
    ),
    "octomap type": (lambda m: octomap(m, id="ColorOcTree"), "'ColorOcTree'"),
    "octomap resolution": (lambda m: octomap(m, resolution=NAN), "resolution"),
    "octomap cut": (lambda m: octomap(m, data=[3, 0]), "its nodes are missing"),
    "octomap form": (lambda m: octomap(m, binary=False), "octomap"),
    "joint values": (lambda m: joints(), "1 names and 0 positions"),
    "NaN joint": (lambda m: joints(NAN), "finite"),
    "fixed frames elsewhere": (
        lambda m: scene_diff(fixed_frame_transforms=[transform("moon")]),
        "'moon'",
    ),
}


def transform(frame: str) -> TransformStamped:
    message = TransformStamped(child_frame_id="a")
    message.header.frame_id = frame
    return message


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_changes_nothing(world: SceneWorld, moveit: Any, name: str) -> None:
    make, said = BAD[name]
    world.moveit.apply_attached(attached_object(HAND, box("held")))
    before = world.scene
    message = make(moveit)
    # A good change in the same message is not made, either.
    message.world.collision_objects = [box("good"), *message.world.collision_objects]
    message.object_colors = [moveit.msg.ObjectColor(id="held")]
    with pytest.raises(KinoptError, match=said.replace("(", r"\(").replace(")", r"\)")):
        world.moveit.apply_scene(message)
    assert world.scene is before
    assert not world.moveit.message().object_colors
    assert not world.log


def test_an_open_mesh_counts_as_its_hull(world: SceneWorld) -> None:
    world.moveit.apply_scene(meshed(mesh(CUBE, FACES[:-1])))
    [placed] = world.scene.objects["thing"].shapes
    assert sorted(map(tuple, placed.shape.vertices)) == sorted(map(tuple, CUBE))
    assert len(placed.shape.triangles) == len(FACES)
    assert "object 'thing': mesh 0: the mesh is not closed" in world.log[0]
    assert "its convex hull is taken" in world.log[0]


def test_a_mesh_whose_triangles_share_no_vertices_is_a_solid_all_the_same(world: SceneWorld) -> None:
    soup = [CUBE[corner] for face in FACES for corner in face]
    world.moveit.apply_scene(meshed(mesh(soup, np.arange(len(soup)).reshape(-1, 3).tolist())))
    [placed] = world.scene.objects["thing"].shapes
    assert len(placed.shape.vertices) == len(CUBE)
    assert not world.log


def test_a_million_triangles_are_refused_before_they_are_read(world: SceneWorld) -> None:
    given = meshed(mesh(CUBE, FACES))
    given.world.collision_objects[0].meshes[0].triangles *= 1_000_000 // len(FACES)
    with pytest.raises(KinoptError, match="triangles"):
        world.moveit.apply_scene(given)
    with pytest.raises(KinoptError, match="triangles"):
        world.moveit.apply_object(copy.copy(given.world.collision_objects[0]))


def test_a_message_has_not_more_objects_than_a_scene_can_take(world: SceneWorld, moveit: Any) -> None:
    """200,000 changes of one object kept all others waiting for minutes."""
    world.moveit.apply_object(box("a"))
    for many in (moveit.msg.PlanningSceneWorld(), scene_diff().world):
        many.collision_objects = [collision_object("a")] * 2001
        with pytest.raises(KinoptError, match="2001 objects were given"):
            world.moveit.apply_world(many)


def mesh_of_moveit(world: SceneWorld) -> None:
    world.moveit.apply_object(collision_object("far", meshes=[mesh(CUBE, FACES)]))


def mesh_of_ours(world: SceneWorld) -> None:
    shape = ShapeMsg(type=ShapeMsg.MESH, points=np.array(CUBE).ravel(), triangles=np.array(FACES).ravel())
    operation = SceneOperation(operation=SceneOperation.ADD, object=CollisionObject(id="far", shapes=[shape]))
    scene_changes.apply(world.context, ApplyScene.Request(operations=[operation]))


@pytest.mark.parametrize("apply", [mesh_of_moveit, mesh_of_ours])
def test_nobody_waits_for_shapes_that_are_made_ready(
    world: SceneWorld, apply: Callable[[SceneWorld], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A box in the way of a motion came behind a mesh of 200,000 triangles far away, and the robot drove through it."""
    from kinopt_ros.collision import judge

    begun, go_on = threading.Event(), threading.Event()

    def prepare(shape: Any) -> None:
        if isinstance(shape, Mesh):
            begun.set()
            assert go_on.wait(60.0)

    monkeypatch.setattr(judge, "prepare", prepare)
    monkeypatch.setattr(readiness, "_prepared", {PANDA})
    reading = threading.Thread(target=lambda: apply(world), daemon=True)
    reading.start()
    try:
        assert begun.wait(60.0)
        box = collision_object("box", primitive("BOX", 0.1, 0.1, 0.1))
        near = threading.Thread(target=lambda: world.moveit.apply_object(box), daemon=True)
        near.start()
        near.join(60.0)
        assert list(world.scene.objects) == ["box"]
    finally:
        go_on.set()
    reading.join(60.0)
    assert set(world.scene.objects) == {"far", "box"}


def test_poses_are_by_the_transforms_of_before_shapes_are_made_ready(
    world: SceneWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take seconds, in which a robot that drives has gone on."""
    T_root_camera = np.eye(4)
    monkeypatch.setattr(Frames, "_outside", lambda *given: T_root_camera.copy())

    def drive_on(*given: Any) -> None:
        T_root_camera[0, 3] = 1.0

    monkeypatch.setattr("kinopt_ros.ros.moveit.scene_messages.prepare_shapes", drive_on)
    world.moveit.apply_object(collision_object("box", primitive("BOX", 0.1, 0.1, 0.1), frame="camera"))
    assert world.scene.objects["box"].T_root_object[0, 3] == 0.0


@pytest.mark.parametrize(
    ("what", "slow"), [("box", False), ("mesh", True), ("many", True), ("octomap", True)]
)
def test_a_box_does_not_wait_behind_a_mesh(world: SceneWorld, what: str, slow: bool) -> None:
    from moveit_msgs.srv import ApplyPlanningScene

    from kinopt_ros.ros.moveit.apply_planning_scene import ApplyPlanningSceneService

    request = ApplyPlanningScene.Request()
    if what == "octomap":
        request.scene.world.octomap.octomap.data = [0]
    elif what == "mesh":
        request.scene.world.collision_objects = [collision_object("far", meshes=[mesh(CUBE, FACES)])]
    else:
        ball = collision_object("ball", primitive("SPHERE", 0.1))
        request.scene.world.collision_objects = [ball] * (21 if what == "many" else 1)
    task, _ = ApplyPlanningSceneService(world.moveit, lambda: None).task(request, lambda answer: None)
    assert task.starts_slow is slow
