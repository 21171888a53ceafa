"""What the demonstration says and does beside a busy machine's compilers."""

import io
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from kinopt_msgs.msg import MotionReport
from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.ros.client import demo
from kinopt_ros.ros.client.client import STALE_TIMES, Client


@pytest.mark.parametrize(("late", "asked"), [(0, 1), (3, 4), (99, STALE_TIMES)])
def test_a_motion_is_asked_for_again_while_joint_states_come_late(late: int, asked: int) -> None:
    """It was refused once, and the demonstration ended: nobody had heard the robot for 4.66 s."""
    codes: list[int] = []

    def move_to(target: Any, patience: float) -> tuple[MotionReport, None]:
        codes.append(StatusMsg.ROBOT_STATE_STALE if len(codes) < late else StatusMsg.SUCCESS)
        return MotionReport(status=StatusMsg(code=codes[-1])), None

    client: Any = SimpleNamespace(move_to=move_to, spin=lambda duration: None)
    client.ask_while_stale = partial(Client.ask_while_stale, client)
    written = io.StringIO()
    report, _ = demo._move(Console(file=written), client, None)  # type: ignore[arg-type]
    assert len(codes) == asked
    assert report.status.code == codes[-1]
    assert written.getvalue().count("asked again") == min(late, STALE_TIMES - 1)
