"""~/target_pose: a target that can never be reached by anybody ends nobody's motion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from geometry_msgs.msg import PoseStamped

from kinopt_msgs.msg import MotionReport
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.topics.target_pose import TargetPoseTopic
from kinopt_ros.status import Status


def test_a_target_whose_motion_nobody_would_hear_ends_no_motion() -> None:
    nothing: Any = SimpleNamespace()
    output = MotionOutput(nothing, nothing, unheard=lambda: "nobody listens")
    lost: list[str] = []
    claim = output.claim("a controller's motion", lost.append)
    reports: list[MotionReport] = []
    warned: list[str] = []
    logger = SimpleNamespace(warning=warned.append)
    context: Any = SimpleNamespace(node=SimpleNamespace(get_logger=lambda: logger))
    topic = TargetPoseTopic(context, output, nothing, SimpleNamespace(publish=reports.append))
    topic._handle(PoseStamped(), 0)
    topic.close()
    assert claim.holds
    assert not lost
    assert reports[-1].status.code == Status.CONTROL_FAILED
    assert "nobody listens" in warned[-1]
