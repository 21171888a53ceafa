"""Goals of ~/optimize_trajectory, and what becomes of them."""

import time
from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from kinopt_msgs.action import OptimizeTrajectory
from kinopt_msgs.srv import PlanTrajectory
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status

COMPILER = 800
"""Time that a compiler may take on a new and busy machine, s; tests that wait for it need a longer timeout than
usual."""
PATIENCE = 60.0
"""Longest time that a test waits for a result, s."""
SUCCEEDED, CANCELED, ABORTED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_CANCELED,
    GoalStatus.STATUS_ABORTED,
)


def joints(**positions: float) -> JointState:
    """A joint state."""
    return JointState(name=list(positions), position=[float(value) for value in positions.values()])


def until_prepared(client: Client, **goal: float) -> None:
    """Wait until motions can be asked for: on a new machine a compiler is at work. ``goal``: of the robot's joints,
    the Panda's without."""
    request = PlanTrajectory.Request(joint_goals=[joints(**(goal or {"panda_joint1": 0.1}))])
    for _ in range(COMPILER):
        answer = client.call("plan_trajectory", request, timeout=PATIENCE)
        if answer.status.code != Status.NOT_READY:
            assert answer.status.code == Status.SUCCESS, answer.status.message
            return
        client.spin(1.0)
    raise AssertionError(answer.status.message)


class Goal:
    """One goal on its way."""

    def __init__(self, goals: "Goals", future: Any) -> None:
        self._goals = goals
        self._accepted = future
        self.feedback: list[Any] = []
        self.handle: Any = None
        self._result: Any = None

    def accepted(self) -> None:
        """Wait until the node has taken it."""
        if self.handle is None:
            assert self._goals.client.spin_until(self._accepted.done, PATIENCE), "the goal was not taken"
            self.handle = self._accepted.result()
            assert self.handle.accepted
            self._result = self.handle.get_result_async()

    @property
    def done(self) -> bool:
        """Whether there is a result; the node must have taken the goal."""
        return bool(self._result.done())

    def result(self, timeout: float = PATIENCE) -> tuple[int, Any]:
        """State and result."""
        self.accepted()
        assert self._goals.client.spin_until(self._result.done, timeout), "there is no result"
        answer = self._result.result()
        return answer.status, answer.result

    def cancel(self) -> float:
        """Cancel it; s until the result is there."""
        self.accepted()
        begin = time.monotonic()
        self.handle.cancel_goal_async()
        assert self._goals.client.spin_until(self._result.done, PATIENCE), "a cancelled goal has no result"
        return time.monotonic() - begin


class Goals:
    """Sends goals."""

    def __init__(self, client: Client, node: str = "kinopt") -> None:
        self.client = client
        deep = QoSProfile(depth=1000)  # more than the ten answers of rclpy's default
        self._actions = ActionClient(
            client.node,
            OptimizeTrajectory,
            f"{node}/optimize_trajectory",
            goal_service_qos_profile=deep,
            result_service_qos_profile=deep,
            cancel_service_qos_profile=deep,
        )
        assert client.spin_until(self._actions.server_is_ready, 60.0), "the action is not there"
        client.wait_until_heard()

    def send(self, **fields: Any) -> Goal:
        """Send a goal of some fields."""
        feedback: list[Any] = []
        take: Callable[[Any], None] = lambda message: feedback.append(message.feedback)  # noqa: E731
        future = self._actions.send_goal_async(OptimizeTrajectory.Goal(**fields), feedback_callback=take)
        goal = Goal(self, future)
        goal.feedback = feedback
        return goal

    def run(self, **fields: Any) -> tuple[int, Any]:
        """State and result of a goal."""
        return self.send(**fields).result()

    def close(self) -> None:
        """Send no more."""
        self._actions.destroy()
