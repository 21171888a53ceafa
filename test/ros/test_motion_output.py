"""One owner of the robot, and the last look before it moves; without a node."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.errors import StaleStateError, StartStateError
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.joint_states import JointStates
from kinopt_ros.ros.motion_output import EmergencyStopError, MotionOutput
from kinopt_ros.ros.trajectory_work import (
    EnvironmentChangedError,
    LatePlanError,
    check_in_time,
    check_still_valid,
)
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status

PANDA = load_robot("panda")
ARM = [f"panda_joint{i + 1}" for i in range(7)]
START = PANDA.default_q
GOAL = START + np.array([0.5, *[0.0] * 7])


class Published:
    """In place of a publisher."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def publish(self, message: Any) -> None:
        self.messages.append(message)


def test_the_newest_owner_publishes_and_the_one_before_is_told() -> None:
    topic, lost = Published(), []
    output = MotionOutput(topic)
    first = output.claim("first", lambda owner: lost.append(("first", owner)))
    second = output.claim("second", lambda owner: lost.append(("second", owner)))
    assert lost == [("first", "second")]
    assert not first.publish(JointTrajectory())
    first.give_up()  # what it does not have any more
    assert second.holds
    assert second.publish(JointTrajectory(joint_names=["a"]))
    assert not second.publish(JointTrajectory())  # used up
    assert [message.joint_names for message in topic.messages] == [["a"]]
    third = output.claim("third", lambda owner: lost.append(("third", owner)))
    assert lost == [("first", "second")]  # who has published loses nothing
    third.give_up()
    assert not third.publish(JointTrajectory())
    output.claim("fourth", lambda owner: None)
    assert lost == [("first", "second")]


def test_a_kept_right_lasts_until_somebody_else_asks() -> None:
    topic, lost = Published(), []
    output = MotionOutput(topic, lambda: 7)
    claim = output.claim("first", lost.append)
    stamped = JointTrajectory(joint_names=["a"])
    stamped.header.stamp.nanosec = 5
    assert claim.publish(stamped, keep=True)
    assert [motion.start for motion in output.published] == [5]
    assert claim.publish(JointTrajectory(joint_names=["a"]), keep=True)
    assert [motion.start for motion in output.published] == [7]  # without a stamp it begins when it comes
    output.claim("second", lost.append)
    assert lost == ["second"]
    assert not claim.publish(JointTrajectory(), keep=True)
    assert len(topic.messages) == 2


def test_motions_of_different_joints_are_known_beside_each_other() -> None:
    output = MotionOutput(Published(), lambda: 7)
    claim = output.claim("somebody", lambda owner: None)
    for joints in (["a", "b"], ["c"], ["d"], ["b", "c"]):
        assert claim.publish(JointTrajectory(joint_names=joints), keep=True)
    assert [motion.message.joint_names for motion in output.published] == [["d"], ["b", "c"]]


def test_an_emergency_stop_has_the_last_motion_until_it_is_over() -> None:
    topic, lost = Published(), []
    output = MotionOutput(topic)
    running = output.claim("servo", lost.append)
    stop = output.halt("the emergency stop")
    assert lost == ["the emergency stop"]
    assert not running.publish(JointTrajectory())
    with pytest.raises(EmergencyStopError, match="~/emergency_stop"):
        output.claim("~/target_pose", lost.append)
    assert stop.publish(JointTrajectory(joint_names=["stop"]))
    assert not stop.publish(JointTrajectory())
    assert [message.joint_names for message in topic.messages] == [["stop"]]
    output.release()
    assert output.claim("~/target_pose", lost.append).publish(JointTrajectory())


class World:
    """What a context has: a scene, a robot and its state."""

    def __init__(self, scene: Scene | None, q: np.ndarray) -> None:
        motion = plan_joint_motion(PANDA, ARM, START, np.zeros(8), GOAL, 0.5, 0.5)
        problem = trajectory_problem(PANDA, [GOAL[:7]], joints=ARM, start=START, scene=scene)
        self.loaded: Any = SimpleNamespace(model=PANDA)
        self.asked: Any = SimpleNamespace(problem=problem, loaded=self.loaded)
        self.result = TrajectoryResult(
            Status.SUCCESS, "", motion.trajectory, "cpu", scene_version=scene.version if scene else None
        )
        self.scene: Any = SimpleNamespace(of=lambda robot: self.present)
        self.present = scene or EMPTY_SCENE
        self.joint_states = JointStates()
        self.timeout = 60.0
        self.publish(q)

    def publish(self, q: np.ndarray) -> None:
        self.joint_states.update(
            SimpleNamespace(name=list(PANDA.variable_names), position=q.tolist(), velocity=[])
        )

    def parameter(self, name: str) -> float:
        assert name == "state_timeout"
        return self.timeout

    def check(self) -> None:
        check_still_valid(self, self.asked, self.result)  # type: ignore[arg-type]


def box(y: float) -> SceneObject:
    T = np.eye(4)
    T[:3, 3] = 0.4, y, 0.5
    return SceneObject("late", (PlacedShape(Box(0.3, 0.05, 1.0), np.eye(4)),), T)


def test_an_unchanged_world_is_as_planned() -> None:
    World(EMPTY_SCENE, START).check()
    World(None, START).check()


def test_an_obstacle_that_came_meanwhile() -> None:
    pytest.importorskip("coal")
    world = World(EMPTY_SCENE, START)
    world.present = Scene(objects={"late": box(3.0)}, version=2)
    world.check()  # not in the way
    world.present = Scene(objects={"late": box(0.2)}, version=3)
    with pytest.raises(EnvironmentChangedError, match="late"):
        world.check()
    assert EnvironmentChangedError.status is Status.ENVIRONMENT_CHANGED


def test_whoever_ignores_collisions_ignores_new_ones() -> None:
    world = World(None, START)
    world.present = Scene(objects={"late": box(0.2)}, version=3)
    world.check()


def test_another_robot() -> None:
    world = World(EMPTY_SCENE, START)
    world.loaded = SimpleNamespace(model=PANDA)
    with pytest.raises(EnvironmentChangedError, match="description"):
        world.check()


def test_a_robot_that_moved_or_is_silent() -> None:
    away = START.copy()
    away[2] += 0.02
    with pytest.raises(StartStateError, match="panda_joint3"):
        World(EMPTY_SCENE, away).check()
    silent = World(EMPTY_SCENE, START)
    silent.timeout = -1.0
    with pytest.raises(StaleStateError):
        silent.check()
    near = START.copy()
    near[2] += 0.005
    World(EMPTY_SCENE, near).check()


def test_time_that_is_up_before_the_turn() -> None:
    check_in_time(0.9, 1.0)
    with pytest.raises(LatePlanError, match="waited"):
        check_in_time(1.0, 1.0)
