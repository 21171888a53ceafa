"""Goals of MoveIt's actions that move the robot."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")


def test_a_goal_waits_once_for_a_robot_that_never_rests(
    moveit: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A joint that always turns cost it two seconds before planning, and two more before the motion was sent."""
    from kinopt_ros.ros.moveit.moving_goals import MovingGoal  # it needs MoveIt's messages

    class Goal(MovingGoal):
        def read(self) -> None:
            """All is well."""

        def work(self) -> Any:
            raise AssertionError

    waited: list[float] = []

    class Run:
        def wait_for_rest(self, joints: Any, seconds: float) -> float:
            waited.append(seconds)
            return max(0.0, seconds - 1.5)

    goal = Goal.__new__(Goal)
    goal._patience = 2.0
    monkeypatch.setattr(goal, "_new_run", Run)
    for _ in range(3):
        goal.wait_for_rest(["a"])
    assert waited == [2.0, 0.5, 0.0]
