"""Plans of interactive markers, shown as MoveIt's users know them, and done by a controller of a simulated robot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, Quaternion
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from support.moveit_moves import PANDA, SLOWLY, Slowly
from support.ros_requests import READY, StartNode, pose
from support.rviz_user import LONG, TIP, Rviz
from support.trajectory_goals import until_prepared

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_msgs.srv import ApplyScene
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)

NAME = "marker_motions"


@pytest.fixture(scope="module")
def user(
    moveit: Any, control_msgs: None, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> Iterator[tuple[Rviz, Slowly, list[Any]]]:
    """Who drags, the robot, and what display_planned_path has shown."""
    _, client = start_shared_node(
        NAME,
        {
            **panda_parameters,
            **SLOWLY,
            "markers.interactive": True,
            "markers.tips": ["panda_link8"],
            "controllers": ["panda_arm_controller=panda_arm"],
            "velocity_scaling": 0.5,
            "acceleration_scaling": 0.5,
            "state_timeout": 30.0,
        },
    )
    robot = Slowly(client.node, SimulatedRobot(PANDA, start=READY), [])
    shown: list[Any] = []
    client.node.create_subscription(moveit.msg.DisplayTrajectory, "display_planned_path", shown.append, 10)
    client.spin(0.3)
    until_prepared(client)
    rviz = Rviz(client, NAME)
    rviz.be_heard()
    yield rviz, robot, shown
    rviz.close()
    robot.close()


def at(robot: Slowly) -> np.ndarray:
    """Where the arm is."""
    return robot.robot.states(robot.now())[1][:7]


def tip(q: Any, robot: Any = PANDA) -> np.ndarray:
    state = robot.default_q.copy()
    state[:7] = q
    return forward_kinematics(robot, state, links=("panda_link8",))[0]


def test_a_plan_is_shown_as_moveit_shows_it(user: tuple[Rviz, Slowly, list[Any]]) -> None:
    rviz, robot, shown = user
    rviz.markers.drag(TIP, pose(0.45, -0.1, 0.4))
    for _ in range(60):  # the node may hear of who listens later than that hears of it
        rviz.plan()
        if rviz.client.spin_until(lambda: bool(shown), 1.0):
            break
    (trajectory,) = shown[-1].trajectory
    motion = trajectory.joint_trajectory
    assert shown[-1].model_id == "panda"
    begin = dict(
        zip(
            shown[-1].trajectory_start.joint_state.name,
            shown[-1].trajectory_start.joint_state.position,
            strict=True,
        )
    )
    assert [begin[name] for name in READY] == pytest.approx(list(at(robot)), abs=1e-6)
    assert list(motion.points[0].positions) == pytest.approx([begin[name] for name in motion.joint_names])
    end = tip(motion.points[-1].positions)
    np.testing.assert_allclose(end[:3, 3], [0.45, -0.1, 0.4], atol=2e-4)
    np.testing.assert_array_equal(at(robot), list(READY.values()))  # nothing has moved


def test_a_plan_is_done_by_the_controller(user: tuple[Rviz, Slowly, list[Any]]) -> None:
    rviz, robot, _ = user
    rviz.markers.drag(TIP, pose(0.45, -0.1, 0.4))
    rviz.plan()
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: rviz.text() == "done")
    np.testing.assert_allclose(tip(at(robot))[:3, 3], [0.45, -0.1, 0.4], atol=1e-3)
    assert not rviz.client.trajectories  # all went to the controller
    assert not rviz.of("way")


def test_stop_ends_what_the_controller_does(user: tuple[Rviz, Slowly, list[Any]]) -> None:
    rviz, robot, _ = user
    rviz.client.reports.clear()
    begin = at(robot)
    rviz.markers.drag(TIP, pose(0.0, 0.6, 0.5))
    rviz.plan()
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: np.abs(at(robot) - begin).max() > 0.02)
    rviz.markers.select(TIP, "stop")
    rviz.wait(lambda: any(report.status.code == Status.PREEMPTED for report in rviz.client.reports))
    rviz.wait(robot.at_rest)
    assert np.linalg.norm(tip(at(robot))[:3, 3] - [0.0, 0.6, 0.5]) > 0.1
    assert not rviz.client.trajectories


def test_an_obstacle_in_the_way_brakes_what_the_controller_does(
    user: tuple[Rviz, Slowly, list[Any]],
) -> None:
    rviz, robot, _ = user
    crate = CollisionObject(id="crate", shapes=[Shape(type=Shape.BOX, dimensions=[0.1] * 3)])
    crate.shapes[0].pose.orientation.w = 1.0
    crate.pose = Pose(position=Point(x=0.0, y=-0.9, z=0.1), orientation=Quaternion(w=1.0))
    add = SceneOperation(operation=SceneOperation.ADD, object=crate)
    rviz.client.call("apply_scene", ApplyScene.Request(operations=[add]))
    rviz.wait(lambda: "object/crate" in rviz.markers.markers)
    rviz.client.reports.clear()
    rviz.markers.drag(TIP, pose(0.45, 0.0, 0.4))
    rviz.plan()
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: rviz.text() == "done")
    begin = at(robot)
    rviz.markers.drag(TIP, pose(-0.1, 0.5, 0.5))
    rviz.plan()
    way = rviz.of("way")[0].points
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: np.abs(at(robot) - begin).max() > 0.02)
    rviz.markers.drag("object/crate", Pose(position=way[-1], orientation=Quaternion(w=1.0)))
    rviz.wait(lambda: any(r.status.code == Status.ENVIRONMENT_CHANGED for r in rviz.client.reports))
    rviz.wait(robot.at_rest)
    assert np.linalg.norm(tip(at(robot))[:3, 3] - [way[-1].x, way[-1].y, way[-1].z]) > 0.1
    rviz.markers.select("object/crate", "remove")
    rviz.wait(lambda: "object/crate" not in rviz.markers.markers)


def test_a_plan_to_a_named_state_is_made_again_when_the_scene_changes(
    user: tuple[Rviz, Slowly, list[Any]],
) -> None:
    rviz, robot, shown = user
    rviz.markers.select(TIP, "go to state", "home")
    rviz.wait(lambda: rviz.text() == "home")
    shown.clear()
    rviz.plan()
    rviz.wait(lambda: bool(shown))  # it comes by another topic: else it would count as the next plan below
    said = len(rviz.said)
    stone = CollisionObject(id="stone", shapes=[Shape(type=Shape.BOX, dimensions=[0.1] * 3)])
    stone.shapes[0].pose.orientation.w = 1.0
    stone.pose = Pose(position=Point(x=0.0, y=-0.9, z=0.1), orientation=Quaternion(w=1.0))
    add = SceneOperation(operation=SceneOperation.ADD, object=stone)
    rviz.client.call("apply_scene", ApplyScene.Request(operations=[add]))
    rviz.wait(lambda: len(shown) > 1 and rviz.text().startswith("planned"))
    assert any("planning again" in text for text in rviz.said[said:])  # so that nobody executes what is gone
    goal = list(PANDA.groups["panda_arm"].states["home"].values())
    np.testing.assert_allclose(shown[-1].trajectory[0].joint_trajectory.points[-1].positions, goal, atol=1e-6)
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: rviz.text() == "done")
    np.testing.assert_allclose(at(robot), goal, atol=1e-3)


def test_another_robot_takes_the_place_of_the_one_that_is_shown(
    user: tuple[Rviz, Slowly, list[Any]], panda_texts: tuple[str, str]
) -> None:
    """Its markers are made anew: a plan of the one before is none, and targets begin where the new one has the tip."""
    rviz, robot, _ = user
    urdf, _ = panda_texts
    first = '<origin xyz="0 0 0.333" rpy="0 0 0"/>'
    assert urdf.count(first) == 1
    raised = urdf.replace(first, first.replace("0.333", "0.433"))
    rviz.markers.drag(TIP, pose(0.45, 0.1, 0.4))
    rviz.plan()
    set_description(rviz, raised)
    stands = tip(at(robot), robot_from_urdf(raised))
    rviz.wait(lambda: np.abs(place(rviz) - stands).max() < 1e-4)
    rviz.wait(lambda: not rviz.of("way") and not rviz.of("ghost"))
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: "plan first" in rviz.text())
    until_prepared(rviz.client)
    rviz.markers.drag(TIP, pose(0.45, 0.1, 0.5))
    rviz.plan()
    rviz.markers.select(TIP, "execute the plan")
    rviz.wait(lambda: rviz.text() == "done")
    at_goal = tip(at(robot), robot_from_urdf(raised))
    np.testing.assert_allclose(at_goal[:3, 3], [0.45, 0.1, 0.5], atol=1e-3)
    # One without that tip has no marker of it; once there is such a robot again, its marker comes back.
    set_description(rviz, urdf.replace("panda_link8", "flange"))
    rviz.wait(lambda: TIP not in rviz.markers.markers)
    rviz.wait(lambda: not rviz.of("ghost") and not rviz.of("way"))
    set_description(rviz, urdf)
    rviz.wait(lambda: TIP in rviz.markers.markers)
    rviz.wait(lambda: np.abs(place(rviz) - tip(at(robot))).max() < 1e-4)


def place(rviz: Rviz) -> np.ndarray:
    if TIP not in rviz.markers.markers:  # markers of another robot are being made
        return np.full((4, 4), np.nan)
    return matrices_from_poses([rviz.markers.markers[TIP].pose])[0]


def set_description(rviz: Rviz, text: str) -> None:
    client = rviz.client
    service = client.node.create_client(SetParameters, f"{NAME}/set_parameters")
    assert client.spin_until(service.service_is_ready, LONG)
    wanted = [Parameter("robot_description", value=text).to_parameter_msg()]
    answer = service.call_async(SetParameters.Request(parameters=wanted))
    assert client.spin_until(answer.done, LONG)
    (result,) = answer.result().results
    assert result.successful, result.reason
    client.node.destroy_client(service)
