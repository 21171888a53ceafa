"""The way back to a client."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

import rclpy

from kinopt_ros.planning.statistics import Statistics
from kinopt_ros.ros.messages.sizes import Room
from kinopt_ros.ros.serving.reply import Pace, Reply


@pytest.mark.parametrize("running", [True, False])
def test_an_answer_that_cannot_be_sent_is_logged_and_ends_no_thread(
    monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    def fail(response: Any) -> None:
        raise RuntimeError(f"no way to {response}")

    logged: list[str] = []
    logger = SimpleNamespace(error=logged.append)
    statistics = Statistics()
    context: Any = SimpleNamespace(statistics=statistics, node=SimpleNamespace(get_logger=lambda: logger))
    pending: Any = SimpleNamespace(send=fail)
    monkeypatch.setattr(rclpy, "ok", lambda: running)
    reply = Reply(context, Pace(), Room(), "solve_ik", None, pending)
    response = SimpleNamespace(status=SimpleNamespace(code=1))
    reply.send(response)
    assert reply.sent
    assert statistics.summary("solve_ik").requests == 1
    assert [("could not be sent" in line) for line in logged] == [True] * running
