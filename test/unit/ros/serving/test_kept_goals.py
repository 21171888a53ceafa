"""Goals that are ended as soon as they are there."""

import threading
from types import SimpleNamespace
from typing import Any

from kinopt_ros.ros.serving.kept_goals import KeptGoals


class Goals(KeptGoals[Any]):
    """Without an action."""

    def __init__(self) -> None:
        self._goals, self._early = {}, set()
        self._make = lambda goals, handle: SimpleNamespace(number=b"1", begin=lambda: None)
        self.server: Any = SimpleNamespace(
            changing=threading.Lock(), listen=lambda goals: None, take_tells=list
        )


def test_no_goal_is_present_that_has_not_begun_for_ros() -> None:
    """Who ended all goals just then ended one that ROS still had as accepted, which it refuses: the client waited for
    its result for ever."""
    goals = Goals()
    present: list[int] = []
    goals._accept(SimpleNamespace(execute=lambda: present.append(len(goals.present))))
    assert present == [0]
    assert len(goals.present) == 1
