"""Goals of MoveIt's actions that end on several threads at once, and what comes on the topic that stops them."""

from __future__ import annotations

import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from rclpy.serialization import serialize_message
from std_msgs.msg import String


class Result:
    """Result whose code is written while another thread ends the goal."""

    def __init__(self) -> None:
        self.code: Any = None
        self.meanwhile: Any = None

    @property
    def error_code(self) -> Any:
        return self.code

    @error_code.setter
    def error_code(self, code: Any) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        self.code = code


def test_a_cancel_while_a_goal_succeeds_leaves_code_and_state_of_one_end(moveit: ModuleType) -> None:
    """A goal ended as cancelled, with the code SUCCESS."""
    from kinopt_ros.ros.moveit.moving_goals import MovingGoal

    codes: Any = moveit.msg.MoveItErrorCodes  # type: ignore[attr-defined]
    ends: list[tuple[str, int]] = []
    logger = SimpleNamespace(warning=lambda text: None)

    class Goal(MovingGoal):
        def __init__(self) -> None:
            self._lock, self._ended = threading.RLock(), False
            self.goals: Any = SimpleNamespace(name="move_action")
            self.context: Any = SimpleNamespace(node=SimpleNamespace(get_logger=lambda: logger))
            self.handle: Any = SimpleNamespace(
                succeed="succeed", canceled="canceled", abort="abort", is_cancel_requested=True
            )
            self.result: Any = Result()

        def end(self, result: Any, transition: Any, code: int) -> None:
            with self._lock:
                if not self._ended:
                    self._ended = True
                    ends.append((transition, code))

        def read(self) -> None: ...

        def work(self) -> Any: ...

    goal = Goal()
    cancel = threading.Thread(target=goal.finish, args=(codes(val=codes.PREEMPTED),))

    def meanwhile() -> None:
        cancel.start()
        cancel.join(0.2)

    goal.result.meanwhile = meanwhile
    goal.finish(codes(val=codes.SUCCESS))
    cancel.join()
    [(state, code)] = ends
    assert goal.result.error_code.val == code
    assert (state == "succeed") == (code == codes.SUCCESS)


@pytest.mark.parametrize(
    ("text", "stops"),
    [("stop", True), ("halt", False), ("stop" * 10_000_000, False), ("", False)],
    ids=["stop", "another", "long", "empty"],
)
def test_only_the_word_on_the_topic_stops_and_long_ones_are_not_read(
    moveit: ModuleType, text: str, stops: bool
) -> None:
    from kinopt_ros.ros.moveit.moving_goals import MoveItActions

    told, log = [], []
    goal = SimpleNamespace(moves=True, stop=lambda *given: told.append(given))
    actions = MoveItActions.__new__(MoveItActions)
    logger = SimpleNamespace(warning=lambda text, **options: log.append(text))
    actions.context = SimpleNamespace(node=SimpleNamespace(get_logger=lambda: logger))  # type: ignore[assignment]
    actions._goals = lambda: [goal]  # type: ignore[method-assign, assignment, list-item]
    actions._take_event(serialize_message(String(data=text)))
    assert bool(told) == stops
    assert bool(log) != stops
    assert all(len(sentence) < 300 for sentence in log)


def test_the_request_of_a_goal_that_ended_is_not_kept(moveit: ModuleType) -> None:
    """rclpy keeps it for a minute, with the result: a thousand goals of 10 MB, and the memory was full."""
    from kinopt_ros.ros.moveit.moving_goals import MovingGoal

    goals: Any = moveit.action.ExecuteTrajectory.Goal  # type: ignore[attr-defined]
    ends: list[str] = []

    class Goal(MovingGoal):
        def __init__(self, how: str) -> None:
            self.how = how
            self.handle: Any = SimpleNamespace(request=goals())
            self.handle.request.trajectory.joint_trajectory.joint_names = ["a"] * 1000
            self._ended = how == "cancelled before"

        def read(self) -> None: ...

        def work(self) -> Any:
            if self.how == "fails":
                raise RuntimeError
            return None

        def tell(self, state: str) -> None: ...

        def refuse(self, error: Exception) -> None:
            ends.append("refused")

        def finish(self, code: Any) -> None:
            ends.append("finished")

    for how in ("ends", "fails", "cancelled before"):
        goal = Goal(how)
        goal._work()
        assert not goal.handle.request.trajectory.joint_trajectory.joint_names
    assert ends == ["finished", "refused"]
