"""Tests that what takes a compiler is prepared after the robot serves: requests wait for it, as long as they may."""

from __future__ import annotations

import time

import pytest
from std_srvs.srv import Trigger
from support.ros_requests import READY, StartNode
from support.trajectory_goals import joints

from kinopt_msgs.srv import PlanTrajectory
from kinopt_ros.status import Status

pytest.importorskip("coal")

SECONDS = 60.0
"""More than this takes a compiler only, on a new machine."""


def test_the_first_requests_after_ready_wait_for_what_they_need(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_node("first", {**panda_parameters, "trajectory.max_timeout": 600.0}, forked=False)
    client.pretend_robot(READY)
    goal = [joints(panda_joint1=0.1)]
    begin = time.monotonic()
    hurried = client.send("plan_trajectory", PlanTrajectory.Request(joint_goals=goal, timeout=0.01))
    patient = client.send("plan_trajectory", PlanTrajectory.Request(joint_goals=goal, timeout=SECONDS))
    said = client.call("ready", Trigger.Request())
    assert said.success
    assert said.message.startswith("robot 'panda'; ")
    assert client.spin_until(lambda: hurried.done() and patient.done(), 4.0 * SECONDS)
    if hurried.result().status.code == Status.NOT_READY:
        assert "~/ready says when that is done" in hurried.result().status.message
        assert "prepare_collisions" not in hurried.result().status.message
    status = patient.result().status
    if status.code == Status.NOT_READY:
        assert time.monotonic() - begin >= SECONDS
    else:
        assert status.code == Status.SUCCESS, status.message
        assert client.call("ready", Trigger.Request()).message == "robot 'panda'; all is prepared"
