"""The way back to a client."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

import rclpy
from geometry_msgs.msg import Pose

from kinopt_msgs.srv import SolveIK
from kinopt_ros.planning.statistics import Statistics
from kinopt_ros.ros.serving import Pace, Reply, let_go


@pytest.mark.parametrize("running", [True, False])
def test_an_answer_that_cannot_be_sent_is_logged_and_ends_no_thread(
    monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    def fail(response: Any) -> None:
        raise RuntimeError(f"no way to {response}")

    logged: list[str] = []
    logger = SimpleNamespace(error=logged.append)
    statistics = Statistics()
    fake: Any = SimpleNamespace(
        statistics=statistics, pace=Pace(), node=SimpleNamespace(get_logger=lambda: logger)
    )
    pending: Any = SimpleNamespace(send=fail)
    monkeypatch.setattr(rclpy, "ok", lambda: running)
    reply = Reply(fake, "solve_ik", None, pending)
    response = SimpleNamespace(status=SimpleNamespace(code=1))
    reply.send(response)
    assert reply.sent
    assert statistics.summary("solve_ik").requests == 1
    assert [("could not be sent" in line) for line in logged] == [True] * running


def test_a_refused_message_is_emptied_in_pieces() -> None:
    request = SolveIK.Request(poses=[Pose() for _ in range(2500)], tip_links=["a"], seeds=[1.0])
    let_go(request)
    assert request.poses == []
    assert request.tip_links == []
    assert list(request.seeds) == [1.0]  # an array, which goes at once
