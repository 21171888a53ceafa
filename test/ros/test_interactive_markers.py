"""Interactive markers, by a client that speaks the protocol as rviz does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, Quaternion
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Header
from support.joystick import Joystick
from support.ros_requests import READY, StartNode, pose, set_parameter, stand, until_seen
from support.rviz_user import LONG, TIP, Rviz
from visualization_msgs.msg import InteractiveMarkerFeedback, Marker

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene, GetScene
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.simulated_robot import SimulatedRobotTopics
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)

NAME = "markers_node"
HAND = "tip/camera"
PANDA = load_robot("panda")
SECONDS = 30.0
"""Time after which joint states are old, s: this process may stand still for long, and its robot with it."""

PAUSE = 1.0
"""Time without commands that is a pause, s: longer than a busy machine keeps a thread waiting."""


@pytest.fixture(scope="module")
def node(start_shared_node: StartNode, panda_parameters: dict[str, object]) -> Iterator[tuple[Any, Client]]:
    process, client = start_shared_node(
        NAME,
        {
            **panda_parameters,
            "markers.interactive": True,
            "markers.tips": ["panda_link8", "camera=position"],
            "tool_frames": "camera: {link: panda_hand, pose: {xyz: [0, 0.05, 0.02], rpy: [0, 0, 1.57]}}",
            "state_timeout": SECONDS,
            "servo.timeout": PAUSE,
        },
    )
    yield process, client
    assert process.running, process.log_text()


@pytest.fixture
def rviz(node: tuple[Any, Client]) -> Iterator[Rviz]:
    _, client = node
    if client.call("get_scene", GetScene.Request()).scene.objects:
        clear = SceneOperation(operation=SceneOperation.CLEAR)
        client.call("apply_scene", ApplyScene.Request(operations=[clear]))
    client.pretend_robot(READY)
    user = Rviz(client, NAME)
    user.be_heard()
    for tip in (TIP, HAND):
        user.markers.select(tip, "back to the robot")
    home = reached(client, list(READY.values()))[:3, 3]
    user.wait(lambda: not user.of("ghost") and not user.of("ghost", "camera"))
    user.wait(lambda: np.abs(position_of(user.markers.markers[TIP].pose) - home).max() < 1e-6)
    yield user
    user.close()


def box(id: str, x: float, y: float, z: float, edge: float = 0.1) -> SceneOperation:
    shape = Shape(type=Shape.BOX, dimensions=[edge] * 3)
    shape.pose.orientation.w = 1.0
    what = CollisionObject(id=id, shapes=[shape])
    what.pose = Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(w=1.0))
    return SceneOperation(operation=SceneOperation.ADD, object=what, replace=True)


def position_of(pose: Any) -> Any:
    return np.array([pose.position.x, pose.position.y, pose.position.z])


def reached(client: Client, q: Any) -> Any:
    state = PANDA.default_q.copy()
    state[:7] = q
    return forward_kinematics(PANDA, state, links=("panda_link8",))[0]


def test_a_marker_for_each_tip_where_the_robot_is(rviz: Rviz) -> None:
    markers = rviz.markers.markers
    assert {name for name in markers if name.startswith("tip/")} == {TIP, HAND}
    full, position = markers[TIP], markers[HAND]
    assert full.header.frame_id == "panda_link0"
    assert full.header.stamp.sec == full.header.stamp.nanosec == 0
    np.testing.assert_allclose(
        matrices_from_poses([full.pose])[0], reached(rviz.client, list(READY.values())), atol=1e-6
    )
    names = {"body", "move_x", "move_y", "move_z", "rotate_x", "rotate_y", "rotate_z"}
    assert {control.name for control in full.controls} == names
    assert not {control.name for control in position.controls} & {"rotate_x", "rotate_y", "rotate_z"}
    assert [entry.id for entry in full.menu_entries] == list(range(1, len(full.menu_entries) + 1))
    assert rviz.markers.is_ticked(TIP, "avoid collisions")


def test_dragging_shows_a_ghost_that_reaches_the_target_and_moves_nothing(rviz: Rviz) -> None:
    published = len(rviz.client.trajectories)
    rviz.markers.drag(TIP, pose(0.45, -0.2, 0.4))
    rviz.wait(rviz.is_green)
    assert "cpu" in rviz.text()
    assert len(rviz.of("manipulability")) == 1
    rviz.wait(lambda: rviz.markers.markers[TIP].pose.position.x == 0.45)  # for others, too

    def reaches() -> bool:
        """The ghost of a pose before may be drawn first."""
        hand = [marker for marker in rviz.of("ghost") if np.isfinite(marker.pose.position.x)]
        ways = [np.linalg.norm([m.pose.position.x - 0.45, m.pose.position.y + 0.2]) for m in hand]
        return bool(ways) and min(ways) < 0.15

    rviz.wait(reaches)
    rviz.client.spin(0.3)
    assert len(rviz.client.trajectories) == published


def test_a_target_out_of_reach_has_a_red_ghost_and_a_sentence(rviz: Rviz) -> None:
    rviz.markers.drag(TIP, pose(3.0, 0.0, 0.4))
    rviz.wait(rviz.is_red)
    assert rviz.text().startswith("NO_IK_SOLUTION")
    rviz.markers.select(TIP, "plan")
    rviz.wait(lambda: "no solution" in rviz.text())
    assert not rviz.of("way")


def test_a_position_only_tip_may_turn(rviz: Rviz) -> None:
    at = pose(0.5, 0.1, 0.5, q=(0.0, 1.0, 0.0, 0.0))
    rviz.markers.drag(HAND, at)
    rviz.wait(lambda: rviz.is_green("camera"))
    rviz.markers.select(HAND, "what counts", "free about z")
    rviz.wait(lambda: rviz.markers.is_ticked(HAND, "what counts", "free about z"))
    names = {control.name for control in rviz.markers.markers[HAND].controls}
    assert {"rotate_x", "rotate_y"} <= names
    assert "rotate_z" not in names
    rviz.markers.select(HAND, "what counts", "position only (3-DoF)")
    rviz.wait(lambda: rviz.markers.is_ticked(HAND, "what counts", "position only (3-DoF)"))


def test_only_what_is_shown_is_executed(rviz: Rviz) -> None:
    published = len(rviz.client.trajectories)
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: "plan first" in rviz.text())
    rviz.markers.drag(TIP, pose(0.45, -0.2, 0.4))
    rviz.markers.select(TIP, "plan")  # as soon as the ghost is there
    rviz.wait(lambda: rviz.text().startswith("planned"))
    assert rviz.of("way")[0].type == Marker.LINE_STRIP
    assert rviz.of("on_the_way")
    assert len(rviz.client.trajectories) == published
    rviz.markers.drag(TIP, pose(0.45, -0.1, 0.4))
    rviz.wait(lambda: not rviz.of("way"))
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: "plan first" in rviz.text())
    rviz.client.spin(0.2)
    assert len(rviz.client.trajectories) == published
    rviz.plan()
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: len(rviz.client.trajectories) > published)
    sent = rviz.client.trajectories[published]
    at = reached(rviz.client, sent.points[-1].positions)
    np.testing.assert_allclose(at[:3, 3], [0.45, -0.1, 0.4], atol=2e-4)
    # The pretended robot stands still, and the node says that it does not do what it was sent.
    rviz.wait(lambda: "CONTROL_FAILED" in rviz.text())


def test_a_plan_that_is_refused_is_not_shown_any_more(rviz: Rviz) -> None:
    """Its line stayed, though it could not be executed any more."""
    stops = rviz.client.node.create_publisher(Bool, f"{NAME}/emergency_stop", 1)
    rviz.wait(lambda: stops.get_subscription_count() > 0)
    rviz.markers.drag(TIP, pose(0.45, -0.2, 0.4))
    rviz.plan()
    assert rviz.of("way")
    stops.publish(Bool(data=True))
    try:
        rviz.wait(lambda: "emergency stop" in status_text(rviz))
        rviz.markers.select(TIP, "execute the plan")
        rviz.wait(lambda: "emergency stop" in rviz.text())
        rviz.wait(lambda: not rviz.of("way") and not rviz.of("on_the_way"))
    finally:
        stops.publish(Bool(data=False))
        rviz.wait(lambda: "emergency stop" not in status_text(rviz))
        rviz.client.node.destroy_publisher(stops)


def status_text(rviz: Rviz) -> str:
    """What is said above the robot."""
    return " ".join(marker.text for (kind, _), marker in rviz.drawn.items() if kind == "status")


@pytest.fixture
def simulated(rviz: Rviz) -> Iterator[SimulatedRobotTopics]:
    """A robot that does what is published, in place of the one that stands."""
    rviz.client.stop_robot()
    topics = SimulatedRobotTopics(
        rviz.client.node, SimulatedRobot(PANDA, start=READY), [f"{NAME}/joint_trajectory"]
    )
    until_seen(rviz.client)
    yield topics
    topics.close()
    stand(rviz.client)


def test_stop_ends_a_motion(rviz: Rviz, simulated: SimulatedRobotTopics) -> None:
    rviz.client.reports.clear()
    published = len(rviz.client.trajectories)
    rviz.markers.drag(TIP, pose(0.3, 0.4, 0.6))
    rviz.plan()
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: len(rviz.client.trajectories) > published)
    rviz.markers.select(TIP, "stop")
    rviz.wait(lambda: any(report.status.code == Status.PREEMPTED for report in rviz.client.reports))
    rviz.wait(lambda: len(rviz.client.trajectories) > published + 1)  # a stop
    rviz.wait(simulated.at_rest)
    _, q, _ = simulated.robot.states(simulated.now())
    assert np.linalg.norm(reached(rviz.client, q[:7])[:3, 3] - [0.3, 0.4, 0.6]) > 0.05
    # Motions are allowed at once.
    rviz.plan()


def test_a_joystick_that_is_held_all_the_time_moves_nothing_after_a_stop(
    rviz: Rviz, simulated: SimulatedRobotTopics
) -> None:
    client, sent = rviz.client, len(rviz.client.trajectories)
    with Joystick(client, NAME, 0.0, 0.02, 0.0):
        rviz.wait(lambda: len(client.trajectories) > sent)
        rviz.markers.select(TIP, "stop")
        rviz.wait(lambda: "stopped" in rviz.text())
        rviz.wait(simulated.at_rest)
        sent = len(client.trajectories)
        client.spin(2.0 * PAUSE)
        assert len(client.trajectories) == sent
    client.spin(1.5 * PAUSE)
    with Joystick(client, NAME, 0.0, 0.02, 0.0):
        rviz.wait(lambda: len(client.trajectories) > sent)
    # The next test puts the robot elsewhere: nothing of servo goes on by then.
    said = len(rviz.said)
    rviz.markers.select(TIP, "stop")
    rviz.wait(lambda: any("stopped" in text for text in rviz.said[said:]))
    rviz.wait(simulated.at_rest)


def test_the_plan_is_done(rviz: Rviz, simulated: SimulatedRobotTopics) -> None:
    rviz.markers.drag(TIP, pose(0.45, -0.1, 0.4))
    rviz.plan()
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: rviz.text() == "done")
    assert not rviz.of("way")
    _, q, _ = simulated.robot.states(simulated.now())
    np.testing.assert_allclose(reached(rviz.client, q[:7])[:3, 3], [0.45, -0.1, 0.4], atol=1e-3)
    rviz.markers.select(TIP, "execute the plan")  # it was done: not again from here
    rviz.wait(lambda: "plan first" in rviz.text())


def test_states_random_poses_and_the_way_back(rviz: Rviz) -> None:
    before = [position_of(rviz.markers.markers[TIP].pose).tolist()]
    rviz.markers.select(TIP, "go to state", "home")
    rviz.wait(lambda: rviz.text() == "home")
    home = np.array(list(PANDA.groups["panda_arm"].states["home"].values()))
    at = reached(rviz.client, home)[:3, 3]
    rviz.wait(lambda: np.abs(position_of(rviz.markers.markers[TIP].pose) - at).max() < 1e-6)
    before.append(position_of(rviz.markers.markers[TIP].pose).tolist())
    rviz.markers.select(TIP, "random reachable pose")
    rviz.wait(lambda: rviz.text() == "a random configuration")
    rviz.wait(lambda: position_of(rviz.markers.markers[TIP].pose).tolist() not in before)
    rviz.markers.select(TIP, "solve")
    rviz.wait(rviz.is_green)
    rviz.markers.select(TIP, "back to the robot")
    rviz.wait(lambda: not rviz.of("ghost"))
    at = reached(rviz.client, list(READY.values()))[:3, 3]
    rviz.wait(lambda: np.abs(position_of(rviz.markers.markers[TIP].pose) - at).max() < 1e-6)


def test_an_obstacle_is_dragged_into_the_way(rviz: Rviz) -> None:
    answer = rviz.client.call("apply_scene", ApplyScene.Request(operations=[box("crate", 0.0, 0.8, 0.1)]))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    rviz.wait(lambda: "object/crate" in rviz.markers.markers)
    crate = rviz.markers.markers["object/crate"]
    assert [control.name for control in crate.controls] == ["body"]
    assert crate.controls[0].markers[0].scale.x == pytest.approx(0.1)
    goal = pose(0.45, -0.2, 0.4)
    rviz.markers.drag(TIP, goal)
    rviz.wait(rviz.is_green)
    rviz.markers.drag("object/crate", Pose(position=goal.position, orientation=Quaternion(w=1.0)))
    rviz.wait(rviz.is_red)  # the scene has changed: solved again
    scene = rviz.client.call("get_scene", GetScene.Request()).scene
    assert scene.objects[0].pose.position == goal.position
    rviz.markers.select(TIP, "avoid collisions")
    rviz.wait(rviz.is_green)
    rviz.wait(lambda: not rviz.markers.is_ticked(TIP, "avoid collisions"))
    rviz.markers.select(TIP, "avoid collisions")
    rviz.wait(rviz.is_red)
    rviz.markers.select("object/crate", "arrows and rings")
    rviz.wait(lambda: len(rviz.markers.markers["object/crate"].controls) == 7)
    rviz.markers.select("object/crate", "remove")
    rviz.wait(lambda: "object/crate" not in rviz.markers.markers)
    rviz.wait(rviz.is_green)


def test_another_solver(rviz: Rviz) -> None:
    rviz.markers.select(TIP, "solver for inverse kinematics", "cpu")
    rviz.wait(lambda: rviz.markers.is_ticked(HAND, "solver for inverse kinematics", "cpu"))  # of all markers
    rviz.markers.select(TIP, "solver for inverse kinematics", "as the parameters say")
    rviz.wait(lambda: rviz.markers.is_ticked(TIP, "solver for inverse kinematics", "as the parameters say"))


def test_who_joins_late_has_everything(rviz: Rviz) -> None:
    rviz.markers.drag(TIP, pose(0.45, -0.2, 0.4))
    rviz.wait(rviz.is_green)
    second = Rviz(rviz.client, NAME, "rviz_2")
    try:
        assert second.markers.markers.keys() == rviz.markers.markers.keys()
        second.wait(second.is_green)

        def both() -> bool:  # a publisher may find a listener later than that finds it
            rviz.markers.drag(TIP, pose(0.46, -0.2, 0.4))
            rviz.client.spin(0.1)
            rviz.markers.step()
            return bool(second.markers.numbers) and second.markers.markers == rviz.markers.markers

        second.wait(both)
        assert second.markers.markers[TIP].pose.position.x == 0.46
    finally:
        second.close()


def test_of_two_clients_the_first_has_the_marker(rviz: Rviz) -> None:
    second = Rviz(rviz.client, NAME, "rviz_2")
    rviz.client.reports.clear()
    try:
        rviz.markers.send(TIP, InteractiveMarkerFeedback.MOUSE_DOWN)
        rviz.markers.drag(TIP, pose(0.45, -0.2, 0.4))
        rviz.wait(lambda: rviz.markers.markers[TIP].pose.position.y == -0.2)

        def both() -> None:
            """One holds it, as rviz does while the mouse button is held, the other one drags it."""
            rviz.markers.send(TIP, InteractiveMarkerFeedback.KEEP_ALIVE)
            second.markers.drag(TIP, pose(0.3, 0.3, 0.5))

        second.until(both, lambda: any("'rviz_1'" in report.status.message for report in rviz.client.reports))
        rviz.until(
            lambda: second.markers.drag(TIP, pose(0.3, 0.3, 0.5)),  # once the first one has let it go
            lambda: rviz.markers.markers[TIP].pose.position.y == 0.3,
        )
        second.markers.drag(HAND, pose(0.4, 0.3, 0.5))  # another one at the same time
        second.wait(lambda: second.markers.markers[HAND].pose.position.y == 0.3)
        rviz.markers.select(TIP, "stop")  # by whom does not matter
        rviz.wait(lambda: rviz.text().startswith("stopped"))
    finally:
        rviz.client.spin(1.1)
        second.close()


def test_numbers_of_updates_have_no_gap(rviz: Rviz) -> None:
    rviz.client.spin(1.1)
    resets, begin = rviz.markers.resets, len(rviz.markers.numbers)
    for k in range(90):
        rviz.markers.drag(TIP, pose(0.4 + 0.001 * k, 0.0, 0.5))
        rviz.client.spin(0.01)
    rviz.wait(lambda: rviz.markers.markers[TIP].pose.position.x == pytest.approx(0.489))
    numbers = rviz.markers.numbers[begin:]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert rviz.markers.resets == resets


BAD = [
    ({"pose": pose(float("nan"))}, "not finite"),
    ({"pose": pose(float("inf"))}, "not finite"),
    ({"pose": pose(1e9)}, "at most"),
    ({"pose": pose(q=(0.0, 0.0, 0.0, 0.0))}, "length 0"),
    ({"marker_name": "nobody"}, "there is no marker 'nobody'"),
    ({"marker_name": "x" * 100_000}, "100000 characters"),
    ({"client_id": "x" * 100_000}, "100000 characters"),
    ({"event_type": 77}, "event_type is 77"),
    ({"event_type": InteractiveMarkerFeedback.MENU_SELECT, "menu_entry_id": 4_000_000_000}, "no entry"),
    ({"event_type": InteractiveMarkerFeedback.MENU_SELECT, "menu_entry_id": 0}, "no entry"),
]


@pytest.mark.parametrize(("fields", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_feedback_is_refused_with_a_sentence(rviz: Rviz, fields: dict[str, Any], said: str) -> None:
    kept = rviz.markers.markers[TIP].pose
    rviz.client.reports.clear()
    rviz.until(
        lambda: rviz.markers.send(TIP, InteractiveMarkerFeedback.POSE_UPDATE, **fields),
        lambda: any(said in report.status.message for report in rviz.client.reports),
    )
    assert rviz.markers.markers[TIP].pose == kept


def test_a_pose_in_another_frame_is_refused(rviz: Rviz) -> None:
    rviz.client.reports.clear()
    header = Header(frame_id="map")
    rviz.until(
        lambda: rviz.markers.send(TIP, InteractiveMarkerFeedback.POSE_UPDATE, header=header, pose=pose()),
        lambda: any("frame 'map'" in report.status.message for report in rviz.client.reports),
    )


def test_a_flood_does_not_stop_the_node(node: tuple[Any, Client], rviz: Rviz) -> None:
    """As many events as anybody sends, good and bad ones, as fast as they can be sent."""
    process, client = node
    good, bad = pose(0.45, -0.2, 0.4), pose(float("nan"))
    for k in range(20_000):
        rviz.markers.send((TIP, "nobody", HAND)[k % 3], k % 7, (good, good, bad)[k % 3], entry=2_000_000 + k)
        if k % 500 == 0:
            client.spin(0.0)
            rviz.markers.step()
    client.wait_until_ready(LONG)
    assert process.running
    rviz.client.spin(1.5)
    rviz.markers.drag(TIP, pose(0.4, 0.2, 0.5))
    rviz.wait(lambda: rviz.markers.markers[TIP].pose.position.y == 0.2)
    rviz.wait(rviz.is_green)
    assert process.log_text().count("interactive_markers") < 2_000


def test_a_robot_that_is_silent(rviz: Rviz, panda_parameters: dict[str, object]) -> None:
    """Joint states that are too old: a sentence, no ghost of a guess; then it goes on."""
    rviz.client.stop_robot()
    try:
        assert set_parameter(rviz.client, NAME, "state_timeout", 0.2).successful
        rviz.until(lambda: rviz.markers.select(TIP, "solve"), lambda: "ROBOT_STATE_STALE" in rviz.text())
        rviz.wait(lambda: "joint_states has said nothing of the robot for" in rviz.above("silence"))
        assert "(since " in rviz.above("silence")
        assert not rviz.of("ghost")
    finally:
        assert set_parameter(rviz.client, NAME, "state_timeout", SECONDS).successful
    rviz.client.publish_joint_state(JointState())
    stand(rviz.client)
    rviz.wait(lambda: not rviz.above("silence"))
    rviz.until(lambda: rviz.markers.select(TIP, "solve"), rviz.is_green)
