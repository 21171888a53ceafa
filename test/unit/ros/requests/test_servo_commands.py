"""Commands of servo, read from messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TwistStamped

from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.ros.requests.servo_commands import target_command, twist_command

ARRIVED = 100 * 10**9
PARAMETERS = {
    "servo.timeout": 0.1,
    "servo.target_timeout": 10.0,
    "servo.gain": 5.0,
    "ik.position_tolerance": 1e-3,
    "ik.orientation_tolerance": 1e-2,
}
AHEAD = {"ns": 0}
"""How far ahead of the time of motions the node's clock was set, ns."""
CLOCK = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=ARRIVED + AHEAD["ns"]))
CONTEXT: Any = SimpleNamespace(
    parameter=PARAMETERS.__getitem__, now=lambda: ARRIVED, node=SimpleNamespace(get_clock=lambda: CLOCK)
)
SETUP: Any = SimpleNamespace(robot=None, base="base", T_base_frame=lambda q, link, T_link_frame: np.eye(4))


def read(message: Any) -> Any:
    q = np.zeros(7)
    if isinstance(message, TwistStamped):
        return twist_command(CONTEXT, SETUP, message, ARRIVED, q)
    message.pose.orientation.w = 1.0
    return target_command(CONTEXT, SETUP, message, ARRIVED, q, None)


def stamped(message: Any, sec: int, nanosec: int = 0) -> Any:
    message.header.stamp = Time(sec=sec, nanosec=nanosec)
    return message


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (stamped(TwistStamped(), 99, 880_000_000), r"servo/twist is stamped 0.12 s before .* servo.timeout"),
        (stamped(TwistStamped(), 40), r"servo/twist is stamped 60.00 s before"),
        (
            stamped(PoseStamped(), 89),
            r"servo/target_pose is stamped 11.00 s .* 10 s .* servo.target_timeout",
        ),
    ],
)
def test_commands_that_lay_somewhere_are_refused(message: Any, said: str) -> None:
    """A network that delivers late, or a process that was stopped, had the robot move by what was wanted before."""
    with pytest.raises(InvalidGoalError, match=said):
        read(message)


@pytest.mark.parametrize("ahead", [-0.3, 3.0])
def test_commands_are_as_old_as_the_nodes_clock_says(ahead: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Motions may go by another one, where the node's was set: what had just been sent was refused, or what had lain
    for seconds was taken."""
    monkeypatch.setitem(AHEAD, "ns", round(1e9 * ahead))
    now = ARRIVED + AHEAD["ns"]
    sec, nanosec = divmod(now - 50_000_000, 10**9)
    assert read(stamped(TwistStamped(), sec, nanosec)).ends > ARRIVED
    target = read(stamped(PoseStamped(), sec, nanosec)).target
    assert target.time == ARRIVED - 50_000_000
    sec, nanosec = divmod(now - 150_000_000, 10**9)
    with pytest.raises(InvalidGoalError, match=r"is stamped 0.15 s before"):
        read(stamped(TwistStamped(), sec, nanosec))


@pytest.mark.parametrize("type_", [TwistStamped, PoseStamped])
@pytest.mark.parametrize("stamp", [(0, 0), (99, 950_000_000), (100, 0), (5000, 0)])
def test_commands_without_a_stamp_of_now_or_of_a_clock_that_is_ahead_count(type_: Any, stamp: Any) -> None:
    assert read(stamped(type_(), *stamp)).ends > ARRIVED
