"""Servo without a node, on a machine that is too slow for it."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistStamped
from sensor_msgs.msg import JointState
from support.looks import Trusting
from support.servo_runs import STARTS

from kinopt_ros.planning.servo.session import Session
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.topics.servo import ServoTopic
from kinopt_ros.status import Status

PANDA = load_robot("panda")
PARAMETERS = {
    "start_delay": 0.0,
    "servo.period": 0.01,
    "servo.timeout": 1e6,
    "servo.state_timeout": 1e6,
    "servo.tracking_tolerance": 10.0,
    "servo.tip_link": "",
    "servo.avoid_collisions": False,
    "servo.limit_margin": 0.01,
    "controller_joints": [],
    "velocity_scaling": 0.1,
    "acceleration_scaling": 0.1,
    "start_state_tolerance": 1e-3,
    "ik.avoid_collisions": False,
    "ik.clearance": 0.0,
    "tool_frames": [],
    "default_group": "panda_arm",
}


def test_motions_that_always_come_too_late_are_not_sent_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = [0]
    advance = Session.advance

    def slow(self: Session, *given: Any) -> Any:
        step = advance(self, *given)
        passed[0] += 10**9
        return step

    monkeypatch.setattr(Session, "advance", slow)
    states = JointStates()
    arm = [f"panda_joint{i + 1}" for i in range(7)]
    states.update(JointState(name=arm, position=list(STARTS["panda"]), velocity=[0.0] * 7))

    def now() -> Any:
        return SimpleNamespace(nanoseconds=time.monotonic_ns() + passed[0], to_msg=Time)

    quiet = SimpleNamespace(warning=lambda text, **options: None, error=print)
    context: Any = SimpleNamespace(
        node=SimpleNamespace(get_clock=lambda: SimpleNamespace(now=now), get_logger=lambda: quiet),
        now=lambda: now().nanoseconds,
        loaded=SimpleNamespace(model=PANDA),
        parameter=PARAMETERS.__getitem__,
        group_name=lambda robot: "panda_arm",
        joint_states=states,
    )
    sent: list[Any] = []
    said: list[str] = []
    heard = threading.Event()

    def hear(status: Any) -> None:
        if status.status.code == Status.TIMED_OUT:
            said.append(status.status.message)
            heard.set()

    output = MotionOutput(SimpleNamespace(publish=sent.append), Trusting(), lambda: now().nanoseconds)
    servo = ServoTopic(context, output, SimpleNamespace(publish=hear))
    twist = TwistStamped()
    twist.twist.linear.y = 0.05
    servo.take_twist(twist, None)
    assert heard.wait(30.0)
    servo.close()
    assert "too late" in said[0]
    assert "servo.period" in said[0]
    assert not sent


def test_a_brake_that_comes_too_late_is_made_again_to_begin_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each period made one that was to begin in 10 ms, which none did on a busy machine: the robot went on into what
    had come in its way."""
    passed, asked = [0], list[int]()

    class Slow:
        """Takes 40 ms for a brake."""

        def advance(self, setup: Any, now: int, q: Any, wish: Any, takes: int, way: int, lead: int) -> Any:
            asked.append(now)
            passed[0] += 40_000_000
            leave = now + lead + way
            return SimpleNamespace(brakes=True, motion=object(), commanded=SimpleNamespace(leave=leave))

    clock = SimpleNamespace(monotonic=lambda: passed[0] / 1e9)
    monkeypatch.setattr("kinopt_ros.ros.topics.servo.time", clock)
    quiet = SimpleNamespace(get_logger=lambda: None)
    context: Any = SimpleNamespace(node=quiet, now=lambda: passed[0])
    servo = ServoTopic.__new__(ServoTopic)
    servo._context, servo._takes, servo._owed = context, 3_000_000, 0
    setup: Any = SimpleNamespace(period=20_000_000)
    state: Any = SimpleNamespace(q=None)
    step, _ = servo._advance(Slow(), setup, state, None, 5_000_000)  # type: ignore[arg-type]
    assert passed[0] + 5_000_000 < step.commanded.leave
    assert asked == [0, 40_000_000]
    # It was not sent all the same: the next one begins later.
    step, _ = servo._advance(Slow(), setup, state, None, 5_000_000)  # type: ignore[arg-type]
    assert len(asked) == 3
    assert step.commanded.leave - asked[-1] > 160_000_000
