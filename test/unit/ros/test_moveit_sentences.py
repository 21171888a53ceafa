"""Tests of what MoveIt's clients are told: names that they gave are not repeated without end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.errors import InvalidGoalError, InvalidStateError, UnsupportedFeatureError
from kinopt_ros.ros.moveit.goals import _pose
from kinopt_ros.ros.moveit.pace import refuse_speed_limit
from kinopt_ros.ros.moveit.robot_state import joint_state_of

NOBODY: Any = None
LONG = "x" * 100_000


def test_attached_objects() -> None:
    attached = SimpleNamespace(object=SimpleNamespace(id=LONG))
    state = SimpleNamespace(attached_collision_objects=[attached] * 1000)
    with pytest.raises(InvalidStateError, match="1000 in all") as refused:
        joint_state_of(state, NOBODY)
    assert len(refused.value.args[0]) < 3000


def test_links_of_a_goal() -> None:
    positions = [SimpleNamespace(link_name=f"{k}{LONG}") for k in range(1000)]
    goal = SimpleNamespace(position_constraints=positions, orientation_constraints=[])
    with pytest.raises(InvalidGoalError, match="1000 in all") as refused:
        _pose(NOBODY, NOBODY, goal, NOBODY, "goal")
    assert len(refused.value.args[0]) < 3000


def test_the_link_of_a_limited_speed() -> None:
    request = SimpleNamespace(cartesian_speed_limited_link=LONG, max_cartesian_speed=1.0)
    with pytest.raises(UnsupportedFeatureError, match="100000 characters") as refused:
        refuse_speed_limit(request)
    assert len(refused.value.args[0]) < 3000
