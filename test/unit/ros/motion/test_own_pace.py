"""Joints that go at their own pace beside the others of a motion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")
pytest.importorskip("coal")

from support.ros_requests import READY
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.messages.conversions import trajectory_from_message, trajectory_message
from kinopt_ros.ros.motion.controllers import ChosenControllers, Part, SeveralExecutions, only
from kinopt_ros.ros.motion.own_pace import OwnPaceError, check_own_pace, in_time
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.trajectory.timing import point_to_point
from kinopt_ros.verification.sweep import first_contact

PANDA = load_robot("panda")
FINGER = "panda_finger_joint1"
ARM = [f"panda_joint{k}" for k in range(1, 8)]
CLOSED, OPEN = 0.015, 0.03
STATE = PANDA.default_q.copy()
STATE[[PANDA.variable_index[name] for name in (*READY, FINGER)]] = [*READY.values(), CLOSED]


def moving(**to: float) -> JointTrajectory:
    """A motion of arm and finger."""
    names = (*ARM, FINGER)
    index = [PANDA.variable_index[name] for name in names]
    begin = STATE[index]
    end = np.array([to.get(name, value) for name, value in zip(names, begin, strict=True)])
    limits = PANDA.limits
    rates = (limits.velocity[index], limits.acceleration[index], limits.jerk[index])
    return trajectory_message(point_to_point(names, begin, end, *rates), PANDA.root_link)


def part(message: JointTrajectory, joints: list[str], keeps_time: bool, **does: Any) -> Part:
    controller: Any = SimpleNamespace(kind=SimpleNamespace(keeps_time=keeps_time), **does)
    return Part(controller, only(message, joints))


def post(y: float) -> Scene:
    """One beside a finger: -0.052 is clear of a closed one, and in the way of an open one."""
    T = np.eye(4)
    T[:3, 3] = 0.307, y, 0.485
    shape = PlacedShape(Box(0.004, 0.004, 0.02), np.eye(4))
    return Scene(objects={"post": SceneObject("post", (shape,), T)})


def check(message: JointTrajectory, scene: Scene, parts: list[Part]) -> None:
    check_own_pace(PANDA, scene, STATE, message, trajectory_from_message(message), parts, 0.0)


def test_fingers_may_be_anywhere_on_their_way_while_the_arm_is_anywhere_on_its_own() -> None:
    message = moving(panda_joint1=0.5, **{FINGER: OPEN})
    parts = [part(message, ARM, True), part(message, [FINGER], False)]
    motion = trajectory_from_message(message)
    variables = np.array([PANDA.variable_index[name] for name in motion.joint_names])
    assert first_contact(PANDA, post(-0.052), STATE, variables, motion, 0.0) is None  # in time
    with pytest.raises(OwnPaceError, match=f"'{FINGER}' goes at its controller's own pace.*'post'"):
        check(message, post(-0.052), parts)
    check(message, post(-0.2), parts)


def test_a_gripper_alone_is_on_its_way_whenever() -> None:
    message = only(moving(**{FINGER: OPEN}), [FINGER])
    check(message, post(-0.2), [part(message, [FINGER], False)])


def test_no_more_than_one_goes_at_its_own_pace_beside_others() -> None:
    message = moving(panda_joint1=0.1, panda_joint7=1.0, **{FINGER: OPEN})
    parts = [
        part(message, ARM[:6], True),
        part(message, ARM[6:], False),
        part(message, [FINGER], False),
    ]
    with pytest.raises(OwnPaceError, match="'panda_joint7', 'panda_finger_joint1' go at the own paces of 2"):
        check(message, post(-0.2), parts)


def test_what_is_done_in_time_is_braked() -> None:
    message = moving(panda_joint1=0.5, **{FINGER: OPEN})
    published = Published(message, PANDA, 0)
    arm, hand = part(message, ARM, True), part(message, [FINGER], False)
    assert list(in_time(published, [arm, hand]).message.joint_names) == ARM
    assert in_time(published, None) is published
    for parts in ([arm], [hand]):
        alone = Published(parts[0].message, PANDA, 0)
        assert in_time(alone, parts) is alone


def test_a_brake_goes_to_each_in_its_way() -> None:
    message = moving(panda_joint1=0.5, **{FINGER: OPEN})
    told: list[tuple[str, Any, list[str]]] = []
    sent = {name: SimpleNamespace(over=False) for name in ("arm", "hand")}

    def does(name: str) -> dict[str, Any]:
        return {
            "send": lambda motion, ended: sent[name],
            "brake": lambda running, brake, ended: told.append((name, running, list(brake.joint_names))),
        }

    parts = [part(message, ARM, True, **does("arm")), part(message, [FINGER], False, **does("hand"))]
    execution = SeveralExecutions(lambda done, sentence: None).send(parts)
    execution.brake(message, lambda done, sentence: None)
    assert told == [("arm", sent["arm"], ARM), ("hand", sent["hand"], [FINGER])]


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ({"panda_joint1": 0.5, FINGER: OPEN}, ["arm", "hand"]),
        ({"panda_joint1": 0.5, FINGER: CLOSED + 5e-5}, ["arm"]),
        ({FINGER: OPEN}, ["arm", "hand"]),
    ],
)
def test_a_gripper_that_stays_is_told_nothing(to: dict[str, float], expected: list[str]) -> None:
    clients: Any = {
        name: SimpleNamespace(kind=SimpleNamespace(keeps_time=name == "arm")) for name in ("arm", "hand")
    }
    chosen = ChosenControllers(clients, ["arm=panda_arm", "hand=hand"], SimpleNamespace())  # type: ignore[arg-type]
    parts = chosen.split(moving(**to), PANDA, STATE)
    assert [one.controller for one in parts] == [clients[name] for name in expected]
    [alone] = chosen.split(only(moving(), [FINGER]), PANDA, STATE)
    assert alone.controller is clients["hand"]
