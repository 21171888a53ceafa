"""The marker of a tip: plans that were asked for before the menu said something else."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import kinopt_ros as ko
from kinopt_ros.ros.messages.robot_markers import robot_drawing
from kinopt_ros.ros.robot.marker_tips import Mode
from kinopt_ros.ros.rviz.tip import Bench, Settings, TipMarker
from kinopt_ros.status import Status


class Planning:
    """Remembers requests, which are answered when a test wants that."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any]] = []

    def ask(self, request: Any, answered: Any) -> None:
        self.asked.append((request, answered))


def test_a_plan_that_ignores_collisions_is_not_offered_once_they_are_to_be_avoided() -> None:
    robot = ko.load_robot("panda")
    state = SimpleNamespace(q=robot.default_q, known=np.ones(robot.nq, dtype=bool))
    context: Any = SimpleNamespace(joint_states=SimpleNamespace(of=lambda robot: state))
    planning, settings = Planning(), Settings(avoid=False)
    drawing: Any = SimpleNamespace(draw=lambda drawn: None)
    nothing: Any = None
    bench = Bench(
        context,
        settings,
        drawing,
        nothing,
        planning,
        lambda *_: None,
        pytest.fail,  # type: ignore[arg-type]
    )
    loaded: Any = SimpleNamespace(model=robot)
    group = "panda_arm"
    tip = TipMarker(bench, loaded, "panda_link8", group, Mode.POSE, robot_drawing(robot))
    tip.go_to_state(tip.states[0])
    tip.plan()
    request, answered = planning.asked[0]
    assert request.ignore_collisions
    settings.avoid = True  # as the menu does, while it is planned
    tip.forget_motion()
    tip.go_on_later()
    points = [JointTrajectoryPoint(positions=robot.default_q[:7].tolist()) for _ in range(2)]
    points[1].time_from_start.sec = 1
    answer = SimpleNamespace(
        status=SimpleNamespace(code=Status.SUCCESS.value, message=""),
        trajectory=JointTrajectory(joint_names=list(tip.joints), points=points),
    )
    asked = SimpleNamespace(problem=SimpleNamespace(start=robot.default_q))
    answered(answer, asked)
    assert tip.take_motion() is None
    request, answered = planning.asked[1]  # planned again, as the menu says now
    assert not request.ignore_collisions
    answered(answer, asked)
    assert tip.take_motion() is not None
