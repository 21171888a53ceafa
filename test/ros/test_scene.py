"""The scene of the running node: changes by service and topic, all or nothing, versions; bad input of every kind is
refused with its code and a sentence, leaves the scene as it is, and the node goes on."""

import re
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from support.ros_requests import READY, StartNode, pose
from visualization_msgs.msg import Marker, MarkerArray

from kinopt_msgs.msg import CollisionObject, SceneOperation, SceneUpdate, Shape
from kinopt_msgs.srv import ApplyScene, ComputeFK, GetScene, SolveIK
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status

NAN = float("nan")
SCENE, OBJECT, LINK = Status.INVALID_SCENE, Status.INVALID_OBJECT_NAME, Status.INVALID_LINK_NAME
REQUEST, STATE, JOINT = Status.INVALID_REQUEST, Status.INVALID_ROBOT_STATE, Status.INVALID_JOINT_NAME
UNIT = (0.0, 0.0, 0.0, 1.0)

CUBE = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
FACES = np.array(
    [
        *([0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]),
        *([2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]),
    ]
)


def box(*size: float) -> Shape:
    return Shape(type="box", dimensions=list(size or (0.1, 0.1, 0.1)))


def mesh(vertices: Any = CUBE, triangles: Any = FACES) -> Shape:
    return Shape(
        type="mesh", points=np.ravel(vertices).tolist(), triangles=np.ravel(triangles).astype(int).tolist()
    )


def obj(id: str = "box", *shapes: Shape, at: Pose | None = None, frame: str = "") -> CollisionObject:
    message = CollisionObject(id=id, pose=at or pose(0.6, 0.0, 0.2, UNIT), shapes=list(shapes))
    message.header.frame_id = frame
    return message


def add(
    id: str = "box", *shapes: Shape, at: Pose | None = None, frame: str = "", **rest: Any
) -> SceneOperation:
    return SceneOperation(operation="add", object=obj(id, *(shapes or (box(),)), at=at, frame=frame), **rest)


def op(operation: str, id: str = "", **rest: Any) -> SceneOperation:
    return SceneOperation(operation=operation, object=CollisionObject(id=id), **rest)


def apply(*operations: SceneOperation, **rest: Any) -> ApplyScene.Request:
    return ApplyScene.Request(operations=list(operations), **rest)


def scene_of(client: Client) -> Any:
    answer = client.call("get_scene", GetScene.Request())
    assert answer.status.code == Status.SUCCESS, answer.status.message
    return answer.scene


def changed(client: Client, *operations: SceneOperation, **rest: Any) -> int:
    """Make changes that succeed; the version after them."""
    answer = client.call("apply_scene", apply(*operations, **rest))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    return int(answer.version)


@pytest.fixture
def empty(client: Client) -> Client:
    """A client of a node whose scene is empty."""
    changed(client, op("clear"))
    return client


def test_objects_come_move_and_go(empty: Client) -> None:
    version = changed(
        empty, add("table", box(1.0, 1.0, 0.1)), add("ball", Shape(type="sphere", dimensions=[0.1]))
    )
    scene = scene_of(empty)
    assert (scene.version, scene.frame_id) == (version, "panda_link0")
    assert [o.id for o in scene.objects] == ["table", "ball"]
    assert list(scene.objects[0].shapes[0].dimensions) == [1.0, 1.0, 0.1]
    moving = SceneOperation(operation="move", object=obj("ball", at=pose(0.1, 0.2, 0.3)))
    assert changed(empty, moving) == version + 1
    moved = scene_of(empty).objects[1].pose.position
    assert (moved.x, moved.y, moved.z) == (0.1, 0.2, 0.3)
    assert changed(empty, op("remove", "table")) == version + 2
    assert [o.id for o in scene_of(empty).objects] == ["ball"]


def test_every_shape_arrives_and_comes_back(empty: Client) -> None:
    shapes = [
        box(0.1, 0.2, 0.3),
        Shape(type="sphere", dimensions=[0.1]),
        Shape(type="cylinder", dimensions=[0.5, 0.1]),
        Shape(type="cone", dimensions=[0.5, 0.1]),
        Shape(type="capsule", dimensions=[0.5, 0.1]),
        Shape(type="plane", pose=pose(q=UNIT)),
        mesh(),
        Shape(type="height_map", dimensions=[0.05], heights=[0.0, 0.1, 0.2, 0.3, 0.4, 0.5], rows=2),
        Shape(type="point_cloud", dimensions=[0.01], points=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
        Shape(type="octomap", dimensions=[0.05, 0.1], points=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
    ]
    changed(empty, add("all", *shapes))
    [back] = scene_of(empty).objects
    assert back.shapes == shapes
    without = empty.call("get_scene", GetScene.Request(without_shapes=True)).scene
    assert [(o.id, len(o.shapes)) for o in without.objects] == [("all", 0)]


def test_poses_in_frames_of_the_robot(empty: Client) -> None:
    changed(empty, add("tool", at=pose(0.0, 0.0, 0.1, UNIT), frame="panda_hand"))
    fk = empty.call("compute_fk", ComputeFK.Request(links=["panda_hand"]))
    T_root_hand = matrices_from_poses(fk.poses)[0]
    T_root_object = matrices_from_poses([scene_of(empty).objects[0].pose])[0]
    np.testing.assert_allclose(
        T_root_object, T_root_hand @ matrices_from_poses([pose(0.0, 0.0, 0.1, UNIT)])[0], atol=1e-12
    )


def test_attach_and_detach(empty: Client) -> None:
    changed(empty, add("mug"), op("attach", "mug", link="panda_hand", touch_links=["panda_leftfinger"]))
    scene = scene_of(empty)
    assert not scene.objects
    [carried] = scene.attached
    assert (carried.link, carried.object.header.frame_id) == ("panda_hand", "panda_hand")
    assert list(carried.touch_links) == ["panda_hand", "panda_leftfinger"]
    # Detached where the robot has carried it.
    moved = {**READY, "panda_joint1": 0.5}
    there = JointState(name=list(moved), position=list(moved.values()))
    changed(empty, op("detach", "mug"), state=there)
    p = scene_of(empty).objects[0].pose.position
    np.testing.assert_allclose(
        [p.x, p.y, p.z], [0.6 * np.cos(0.5), 0.6 * np.sin(0.5), 0.2], rtol=0.0, atol=1e-9
    )


def test_a_new_object_is_attached_in_the_links_frame(empty: Client) -> None:
    new = SceneOperation(
        operation="attach", link="panda_hand", object=obj("pen", box(), at=pose(0.0, 0.0, 0.1, UNIT))
    )
    changed(empty, new)
    [carried] = scene_of(empty).attached
    assert carried.object.pose == pose(0.0, 0.0, 0.1, UNIT)
    assert "panda_hand" in carried.touch_links


def test_pairs_and_padding(empty: Client) -> None:
    changed(
        empty,
        add("table"),
        op("allow", names=["table", "panda_link0"]),
        op("allow", names=["panda_hand"]),
        op("pad", padding=0.01),
        op("pad", names=["table", "panda_hand"], padding=0.02),
    )
    scene = scene_of(empty)
    assert [(p.first, p.second) for p in scene.allowed] == [("panda_hand", "*"), ("panda_link0", "table")]
    assert {p.name: p.padding for p in scene.padding} == {"table": 0.02, "panda_hand": 0.02}
    assert scene.default_padding == 0.01
    changed(empty, op("disallow", names=["panda_link0", "table"]))
    assert len(scene_of(empty).allowed) == 1


def test_the_scene_is_published_latched(empty: Client) -> None:
    version = changed(empty, add("table"))
    assert empty.spin_until(lambda: bool(empty.scenes) and empty.scenes[-1].version == version, 60.0)
    late = Client("late_client")
    try:
        assert late.spin_until(lambda: bool(late.scenes), 60.0)
        assert [o.id for o in late.scenes[-1].objects] == ["table"]
    finally:
        late.close()


def test_versions_guard_against_changes_of_others(empty: Client) -> None:
    version = changed(empty, add("a"))
    assert changed(empty, add("b"), expected_version=version) == version + 1
    answer = empty.call("apply_scene", apply(add("c"), expected_version=version))
    assert answer.status.code == REQUEST
    assert f"expected_version is {version}; the scene has version {version + 1}" in answer.status.message
    assert answer.version == version + 1
    assert [o.id for o in scene_of(empty).objects] == ["a", "b"]


BAD: dict[str, tuple[ApplyScene.Request, Status, str]] = {
    "nothing": (apply(), REQUEST, "0 operations"),
    "unknown operation": (apply(op("append", "a")), REQUEST, "allowed are add, move"),
    "field of another operation": (apply(op("remove", "kept", link="panda_hand")), REQUEST, "link is given"),
    "no shape": (apply(SceneOperation(operation="add", object=obj("a"))), SCENE, "0 shapes"),
    "no id": (apply(add("")), SCENE, "printable"),
    "id of a link": (apply(add("panda_hand")), SCENE, "name of a link"),
    "known id": (apply(add("kept")), SCENE, "'kept' is in the scene already"),
    "unknown type": (apply(add("a", Shape(type="cube"))), SCENE, "type is 'cube'; allowed are box"),
    "no type": (apply(add("a", Shape())), SCENE, "type is ''"),
    "zero size": (apply(add("a", box(0.1, 0.0, 0.1))), SCENE, "shapes[0]: y of a box is 0"),
    "negative size": (apply(add("a", box(), Shape(type="sphere", dimensions=[-1.0]))), SCENE, "shapes[1]"),
    "NaN size": (
        apply(add("a", Shape(type="cone", dimensions=[NAN, 1.0]))),
        SCENE,
        "length of a cone is nan",
    ),
    "huge size": (apply(add("a", box(1e9, 1.0, 1.0))), SCENE, "at most 10000 m"),
    "too few dimensions": (apply(add("a", box(1.0, 1.0))), SCENE, "2 dimensions; allowed are 3: x, y, z"),
    "fields of another shape": (
        apply(add("a", Shape(type="sphere", dimensions=[0.1], triangles=[0, 1, 2]))),
        SCENE,
        "triangles, which it does not use",
    ),
    "NaN pose": (apply(add("a", at=pose(NAN))), SCENE, "pose of object 'a'"),
    "zero quaternion": (apply(add("a", at=pose(q=(0.0,) * 4))), SCENE, "length 0"),
    "NaN pose of a shape": (
        apply(add("a", Shape(type="sphere", dimensions=[0.1], pose=pose(NAN)))),
        SCENE,
        "shapes.pose[0]",
    ),
    "far away": (apply(add("a", at=pose(1e5, q=UNIT))), SCENE, "no rigid transform"),
    "open mesh": (apply(add("a", mesh(triangles=FACES[:-1]))), SCENE, "shapes[0]: the mesh"),
    "inside-out mesh": (apply(add("a", mesh(triangles=FACES[:, ::-1]))), SCENE, "shapes[0]: the mesh"),
    "mesh of wrong indices": (apply(add("a", mesh(triangles=FACES + 1))), SCENE, "name vertices 1 to 8"),
    "mesh of nothing": (apply(add("a", Shape(type="mesh"))), SCENE, "0 vertices"),
    "mesh of broken rows": (
        apply(add("a", Shape(type="mesh", points=[0.0] * 4))),
        SCENE,
        "points has 4 numbers",
    ),
    "NaN vertex": (apply(add("a", mesh(vertices=CUBE * NAN))), SCENE, "not finite"),
    "path escape": (
        apply(add("a", Shape(type="mesh", resource="package://kinopt_ros/../../../etc/passwd"))),
        SCENE,
        "leaves its package",
    ),
    "unknown package": (
        apply(add("a", Shape(type="mesh", resource="package://nowhere/a.stl"))),
        SCENE,
        "'nowhere'",
    ),
    "missing file": (
        apply(add("a", Shape(type="mesh", resource="file:///none.stl"))),
        SCENE,
        "does not exist",
    ),
    "other scheme": (
        apply(add("a", Shape(type="mesh", resource="http://a/b.stl"))),
        SCENE,
        "allowed are package",
    ),
    "ragged height map": (
        apply(add("a", Shape(type="height_map", dimensions=[0.1], heights=[0.0] * 5, rows=2))),
        SCENE,
        "5 heights and rows is 2",
    ),
    "empty height map": (
        apply(add("a", Shape(type="height_map", dimensions=[0.1], rows=2))),
        SCENE,
        "0 heights and rows is 2",
    ),
    "empty octomap": (apply(add("a", Shape(type="octomap", dimensions=[0.1]))), SCENE, "0 centers"),
    "empty cloud": (apply(add("a", Shape(type="point_cloud", dimensions=[0.1]))), SCENE, "0 points"),
    "a million points and one": (
        apply(
            add("a", Shape(type="point_cloud", dimensions=[0.1], points=array("d", bytes(8 * 3 * 1_000_001))))
        ),
        SCENE,
        "1000001",
    ),
    "point cloud without radius": (
        apply(add("a", Shape(type="point_cloud", points=[0.0] * 3))),
        SCENE,
        "allowed are 1: radius",
    ),
    "octomap of other sizes": (
        apply(add("a", Shape(type="octomap", points=[0.0] * 9, dimensions=[0.1, 0.1]))),
        SCENE,
        "(3,)",
    ),
    "unknown frame": (apply(add("a", frame="nowhere")), Status.FRAME_TRANSFORM_FAILURE, "'nowhere'"),
    "moving what is not there": (apply(op("move", "kpet")), OBJECT, "did you mean 'kept'"),
    "removing what is not there": (apply(op("remove", "chair")), OBJECT, "'chair'"),
    "attaching what is not there": (apply(op("attach", "chair", link="panda_hand")), OBJECT, "'chair'"),
    "attaching to an unknown link": (apply(op("attach", "kept", link="panda_hnad")), LINK, "'panda_hand'"),
    "attaching to no link": (apply(op("attach", "kept")), LINK, "''"),
    "unknown touch link": (
        apply(op("attach", "kept", link="panda_hand", touch_links=["finger"])),
        LINK,
        "'finger'",
    ),
    "attaching twice": (apply(op("attach", "held", link="panda_hand")), SCENE, "attached to link"),
    "detaching what is not attached": (apply(op("detach", "kept")), OBJECT, "'kept'; known: held"),
    "moving what is attached": (apply(op("move", "held")), SCENE, "detach or remove it before"),
    "pair of an unknown name": (apply(op("allow", names=["kept", "wall"])), OBJECT, "'wall'"),
    "pair of three": (apply(op("allow", names=["a", "b", "c"])), REQUEST, "3 entries"),
    "pair that is not allowed": (apply(op("disallow", names=["kept", "held"])), REQUEST, "does not list"),
    "negative padding": (apply(op("pad", padding=-0.1)), SCENE, "-0.1"),
    "NaN padding": (apply(op("pad", names=["kept"], padding=NAN)), SCENE, "nan"),
    "padding of nothing": (apply(op("pad", names=["wall"], padding=0.1)), OBJECT, "'wall'"),
    "unknown joint in the state": (
        apply(op("clear"), state=JointState(name=["elbow"], position=[0.0])),
        JOINT,
        "'elbow'",
    ),
    "NaN in the state": (
        apply(op("clear"), state=JointState(name=["panda_joint1"], position=[NAN])),
        STATE,
        "panda_joint1",
    ),
    "wrong version": (apply(op("clear"), expected_version=2**63), REQUEST, "expected_version"),
    "the last of many is bad": (
        apply(op("clear"), add("a"), add("b"), op("remove", "c")),
        OBJECT,
        "operations[3] ('remove'): unknown object 'c'; known: a, b",
    ),
    "many operations": (apply(*[op("clear")] * 10_001), REQUEST, "10001 operations"),
}


def test_bad_input_leaves_the_scene_as_it_is(client: Client) -> None:
    """Bad input of every kind is tried in turn."""
    changed(client, op("clear"), add("kept"), add("held"), op("attach", "held", link="panda_hand"))
    before = scene_of(client)
    for kind, (request, code, words) in BAD.items():
        answer = client.call("apply_scene", request, timeout=30.0)
        assert Status(answer.status.code) is code, f"{kind}: {answer.status}"
        assert words in answer.status.message, f"{kind}: {answer.status.message}"
        assert answer.version == before.version, kind
        assert scene_of(client) == before, kind
    assert changed(client, op("clear")) == before.version + 1


def test_a_million_points_are_taken(empty: Client) -> None:
    points = array("d", np.random.default_rng(0).normal(size=3_000_000).tobytes())
    changed(empty, add("cloud", Shape(type="point_cloud", dimensions=[0.01], points=points)))
    [back] = scene_of(empty).objects
    assert back.shapes[0].points == points
    changed(empty, op("clear"))


def test_updates_by_topic_are_made_in_order_and_failures_reported(empty: Client) -> None:
    version = scene_of(empty).version
    for i in range(20):
        empty.publish_scene_update(SceneUpdate(operations=[add(f"o{i}")]))
    assert empty.spin_until(lambda: bool(empty.scenes) and len(empty.scenes[-1].objects) == 20, 60.0)
    assert [o.id for o in empty.scenes[-1].objects] == [f"o{i}" for i in range(20)]
    assert empty.scenes[-1].version == version + 20
    reports = len(empty.reports)
    empty.publish_scene_update(SceneUpdate(operations=[add("o99"), add("o5")]))
    assert empty.spin_until(lambda: len(empty.reports) > reports, 60.0)
    assert empty.reports[-1].status.code == SCENE
    assert "operations[1] ('add'): object 'o5' is in the scene already" in empty.reports[-1].status.message
    assert scene_of(empty).version == version + 20


def test_a_burst_of_updates_is_made_wholly(empty: Client) -> None:
    version = scene_of(empty).version
    empty.publish_scene_update(SceneUpdate(operations=[add("first")]))
    reports = len(empty.reports)
    deep = empty.node.create_publisher(SceneUpdate, "kinopt/scene_update", 1000)
    assert empty.spin_until(lambda: deep.get_subscription_count() > 0, 60.0)
    empty.wait_until_heard()
    burst = 500
    for k in range(burst):
        deep.publish(SceneUpdate(operations=[add(f"o{k % 5}", at=pose(2.0 + k), replace=True)]))
    empty.spin_until(lambda: scene_of(empty).version >= version + 1 + burst, 120.0)
    assert scene_of(empty).version == version + 1 + burst
    assert len(empty.reports) == reports
    empty.node.destroy_publisher(deep)


def test_changes_of_many_clients_all_count(empty: Client) -> None:
    version = scene_of(empty).version
    futures = [empty.send("apply_scene", apply(add(f"o{i}"))) for i in range(40)]
    assert empty.spin_until(lambda: all(future.done() for future in futures), 60.0)
    assert sorted(future.result().version for future in futures) == list(range(version + 1, version + 41))
    assert len(scene_of(empty).objects) == 40


def test_without_a_robot_nothing_is_answered(start_node: StartNode) -> None:
    _, client = start_node("roboless", {}, ready=False)
    client.wait_until_found()
    for service, request in (("apply_scene", apply(op("clear"))), ("get_scene", GetScene.Request())):
        answer = client.call(service, request, timeout=60.0)
        assert answer.status.code == Status.NOT_READY
    assert not client.scenes


def test_joints_that_nobody_published_are_named(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_node("stateless", panda_parameters)
    answer = client.call("apply_scene", apply(add("a"), op("attach", "a", link="panda_link1")))
    assert answer.status.code == Status.SUCCESS
    assert "joint_states has no value for panda_joint1: the default is assumed" in answer.status.message
    answer = client.call("apply_scene", apply(op("remove", "a")))
    assert answer.status.message == ""


def test_a_quaternion_typed_to_three_digits_is_accepted(empty: Client) -> None:
    half = Pose(position=Point(), orientation=Quaternion(z=0.707, w=0.707))
    changed(empty, add("a", at=half))


def test_markers_show_the_scene_and_the_robots_spheres(empty: Client) -> None:
    arrays: list[Any] = []
    subscription = empty.node.create_subscription(MarkerArray, "kinopt/markers", arrays.append, 10)

    def spaces(action: int) -> set[str]:
        return {m.ns for some in arrays for m in some.markers if m.action == action}

    try:
        changed(empty, add("table"), add("mug"), op("attach", "mug", link="panda_hand"))
        assert empty.spin_until(
            lambda: {"objects/table", "attached/mug", "spheres/panda_hand"} <= spaces(Marker.ADD), 60.0
        )
        changed(empty, op("remove", "table"))
        assert empty.spin_until(lambda: "objects/table" in spaces(Marker.DELETE), 60.0)
        pytest.importorskip("coal")
        assert empty.spin_until(lambda: "clearance" in spaces(Marker.ADD), 60.0)
        texts = [m.text for some in arrays for m in some.markers if m.ns == "clearance" and m.text]
        assert all(re.fullmatch(r"\w+ - \w+: -?\d\.\d{3} m", text) for text in texts)
    finally:
        empty.node.destroy_subscription(subscription)


def test_meshes_from_files(empty: Client, tmp_path: Path) -> None:
    lines = [f"v {x} {y} {z}" for x, y, z in CUBE] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in FACES]
    (tmp_path / "cube.obj").write_text("\n".join(lines))
    shape = Shape(type="mesh", resource=f"file://{tmp_path}/cube.obj", scale=Vector3(x=0.1, y=0.1, z=0.2))
    changed(empty, add("cube", shape))
    [back] = scene_of(empty).objects
    assert (back.shapes[0].type, back.shapes[0].resource) == ("mesh", "")
    vertices = np.array(back.shapes[0].points).reshape(-1, 3)
    np.testing.assert_allclose(vertices.max(axis=0), [0.1, 0.1, 0.2])


def test_another_robot_keeps_the_obstacles(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    process, client = start_node("changing", panda_parameters)
    version = changed(client, add("table"), add("mug"), op("attach", "mug", link="panda_hand"))
    bare = '<robot name="bare"><link name="panda_link0"/></robot>'
    setting = client.node.create_client(SetParameters, "changing/set_parameters")
    assert setting.wait_for_service(60.0)
    names = ("robot_description", "robot_description_semantic", "default_group")
    wanted = [
        Parameter(name, value=text).to_parameter_msg()
        for name, text in zip(names, (bare, "", ""), strict=True)
    ]
    future = setting.call_async(SetParameters.Request(parameters=wanted))
    assert client.spin_until(future.done, 60.0)
    assert all(result.successful for result in future.result().results), future.result()
    assert client.spin_until(lambda: client.scenes[-1].version > version, 60.0)
    scene = scene_of(client)
    assert ([o.id for o in scene.objects], scene.attached) == (["table"], [])
    assert "attached object 'mug' was dropped: 'bare' has no link 'panda_hand'" in process.log_text()
    assert scene == client.scenes[-1]


def test_subframes_of_objects_are_frames_and_tips(client: Client) -> None:
    mug = obj("mug", box(), at=pose(0.5, 0.0, 0.3, UNIT))
    mug.subframe_names, mug.subframe_poses = ["handle"], [pose(0.0, 0.1, 0.0, UNIT)]
    changed(client, op("clear"), SceneOperation(operation="add", object=mug))
    changed(client, add("ring", at=pose(0.0, 0.0, 0.2, UNIT), frame="mug/handle"))
    found = {one.id: one for one in scene_of(client).objects}
    assert found["mug"].subframe_names == ["handle"]
    at = found["ring"].pose.position
    np.testing.assert_allclose([at.x, at.y, at.z], [0.5, 0.1, 0.5])
    changed(client, op("attach", "mug", link="panda_hand"))
    answer = client.call("compute_fk", ComputeFK.Request(links=["mug/handle"]))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    at = answer.poses[0].position
    np.testing.assert_allclose([at.x, at.y, at.z], [0.5, 0.1, 0.3], atol=1e-6)
    mug.subframe_names = ["a", "a"]
    answer = client.call("apply_scene", apply(SceneOperation(operation="add", object=mug, replace=True)))
    assert (answer.status.code, "subframe_names" in answer.status.message) == (SCENE, True)
    changed(client, op("clear"))


def test_a_scene_file_at_the_start(
    start_node: StartNode, panda_parameters: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "scene.yaml"
    path.write_text("objects: {floor: {shapes: [{type: plane}], pose: {xyz: [0, 0, -0.02]}}}")
    _, client = start_node("furnished", {**panda_parameters, "scene_file": str(path)})
    scene = scene_of(client)
    assert (scene.version, [o.id for o in scene.objects]) == (1, ["floor"])
    assert client.spin_until(lambda: bool(client.scenes), 60.0)
    assert client.scenes[-1] == scene


def test_a_robot_does_not_serve_without_the_obstacles_of_its_scene_file(
    start_node: StartNode, panda_parameters: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "scene.yaml"
    path.write_text("objects: {floor: {shapes: [{type: box, size: [1, 1, 0]}]}}")
    _, client = start_node("refusing", {**panda_parameters, "scene_file": str(path)}, ready=False)
    client.wait_until_found()
    asked = SolveIK.Request(poses=[pose()])
    end = time.monotonic() + 60.0
    # Not by ~/report: what is published before the client is found is lost.
    while (
        answer := client.call("solve_ik", asked)
    ).status.code == Status.NOT_READY and time.monotonic() < end:
        client.spin(0.1)
    assert answer.status.code == SCENE, answer.status.message
    assert "object 'floor': shapes[0]: z of a box is 0" in answer.status.message
