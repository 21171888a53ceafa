"""Markers of objects: what is dragged while there is no room for changes."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from geometry_msgs.msg import Pose

from kinopt_ros.ros.rviz.objects import ObjectMarkers


def test_an_object_that_could_not_be_moved_can_be_moved_later() -> None:
    room, asked = [False], []

    def offer(update: Any, kind: Any) -> bool:
        asked.append(update.operations[0].object.id)
        return room[0]

    updates: Any = SimpleNamespace(offer=offer)
    nothing: Any = None
    markers = ObjectMarkers(nothing, nothing, updates, 0.2, pytest.fail)
    markers.stale = False
    markers.move("box", Pose(), "world")
    assert markers.stale  # its marker goes back
    room[0] = True
    markers.move("box", Pose(), "world")
    markers.move("box", Pose(), "world")  # one waits: the newest pose counts
    assert asked == ["box", "box"]
