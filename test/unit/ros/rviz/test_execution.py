"""Plans of interactive markers that are to be done."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from support.looks import Trusting
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.errors import StartStateError
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.rviz.execution import Executions, ShownMotion

PANDA = load_robot("panda")


@pytest.mark.parametrize("away", [0.0, 0.02])
def test_a_plan_from_where_the_robot_is_no_longer_ends_no_motion(away: float) -> None:
    """The motion that had taken it from there was ended, and then the plan was refused."""
    output, lost = MotionOutput(SimpleNamespace(publish=lambda message: None), Trusting()), []
    other = output.claim("another", lost.append)
    states = JointStates()
    context: Any = SimpleNamespace(
        joint_states=states, parameter=lambda name: [], loaded=SimpleNamespace(model=PANDA)
    )
    controllers: Any = SimpleNamespace(chosen=lambda: None, needed_by=lambda asks: None)
    executions = Executions(context, output, controllers)
    executions._workers = SimpleNamespace(submit=lambda work: None)  # type: ignore[assignment]
    start = PANDA.default_q.copy()
    start[0] += away
    names = list(PANDA.variable_names[:7])
    points = [JointTrajectoryPoint(positions=start[:7].tolist())]
    asked: Any = SimpleNamespace(
        loaded=SimpleNamespace(model=PANDA),
        problem=SimpleNamespace(start=start, scene=None, clearance=0.0),
    )
    motion = ShownMotion(JointTrajectory(joint_names=names, points=points), asked)
    if away:
        with pytest.raises(StartStateError, match="the motion starts with 'panda_joint1'"):
            executions.begin(motion, lambda status: None, 0)
    else:
        executions.begin(motion, lambda status: None, 0)
    assert other.holds is bool(away)
    assert lost == ([] if away else ["an interactive marker"])
