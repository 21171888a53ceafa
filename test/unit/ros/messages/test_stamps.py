"""Times of messages, and what /clock may say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from builtin_interfaces.msg import Time
from rclpy.time import Time as RclpyTime
from rosgraph_msgs.msg import Clock

from kinopt_ros.ros.messages import stamps
from kinopt_ros.ros.messages.stamps import LATEST, hearing_times, nanoseconds, seconds_unread, wrong_time

TIMES = (Time(), Time(sec=5, nanosec=10**9 - 1), Time(sec=LATEST))
WRONG = (
    Time(sec=-1),
    Time(sec=-(2**31)),
    Time(sec=1, nanosec=10**9),
    Time(sec=2**31 - 1),
    Time(sec=LATEST + 1),
)


def test_what_is_no_time_is_told_with_what_is_allowed() -> None:
    assert not any(map(wrong_time, TIMES))
    for stamp in WRONG:
        assert f"{stamp.sec} s" in wrong_time(stamp)
        assert "allowed are" in wrong_time(stamp)


def test_a_clock_that_says_no_times_is_dropped_with_a_sentence_now_and_then() -> None:
    said: list[tuple[str, float]] = []

    def warning(sentence: str, throttle_duration_sec: float) -> None:
        said.append((sentence, throttle_duration_sec))

    node = SimpleNamespace(get_logger=lambda: SimpleNamespace(warning=warning))
    heard: list[Any] = []
    hear = hearing_times(
        node, lambda message: heard.append(RclpyTime.from_msg(message.clock))
    )  # as rclpy does
    for stamp in (*TIMES, *WRONG):
        hear(Clock(clock=stamp))
    assert len(heard) == len(TIMES)
    assert len(said) == len(WRONG)
    assert all("/clock" in sentence and seconds >= 1.0 for sentence, seconds in said)


def test_how_long_a_message_lay_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "time", SimpleNamespace(time_ns=lambda: 5 * 10**9))
    assert seconds_unread({"received_timestamp": 3 * 10**9}) == 2.0
    assert seconds_unread({"received_timestamp": 7 * 10**9}) == 0.0  # the clock was set back since
    assert seconds_unread({"received_timestamp": 0}) == 0.0  # a middleware that does not say
    assert seconds_unread(None) == 0.0


def test_nanoseconds_of_a_stamp() -> None:
    assert nanoseconds(Time(sec=2, nanosec=3)) == 2 * 10**9 + 3
