"""Goals of MoveIt's actions that move the robot."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.ros.motion.output import MotionOutput


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


def test_a_request_is_read_before_a_motion_is_ended_for_it_and_else_once(moveit: ModuleType) -> None:
    """A goal was read with nobody to take the joints from, too, and once more when it was planned."""
    from kinopt_ros.ros.moveit.moving_goals import MovingGoal  # it needs MoveIt's messages

    class Goal(MovingGoal):
        def read(self) -> None:
            """All is well."""

        def work(self) -> Any:
            raise AssertionError

    output, lost, checked = MotionOutput(None, None), [], []  # type: ignore[arg-type]
    goal = Goal.__new__(Goal)
    goal.actions = SimpleNamespace(output=output)  # type: ignore[assignment]
    goal.context = SimpleNamespace(loaded=SimpleNamespace(model=None))  # type: ignore[assignment]
    goal.goals = SimpleNamespace(name="move_action")  # type: ignore[assignment]
    goal.chosen = SimpleNamespace(joints=lambda robot, joints, names: joints)  # type: ignore[assignment]
    goal._stops = 0
    goal.claim(["a"], check=lambda: checked.append(1)).give_up()
    assert not checked

    def refuse() -> None:
        raise InvalidRequestError("it is none")

    other = output.claim("another", lost.append, joints=["a"])
    with pytest.raises(InvalidRequestError):
        goal.claim(["a"], check=refuse)
    assert other.holds
    assert goal.claim(["a"], check=lambda: checked.append(1)).holds
    assert checked == [1]
    assert lost == ["a goal of move_action"]
