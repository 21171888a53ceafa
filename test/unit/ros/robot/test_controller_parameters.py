"""MoveIt's parameters of controllers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.moveit_controllers import ControllerEntry
from kinopt_ros.ros.robot import controller_parameters

HAND = "moveit_simple_controller_manager.hand."


class Node:
    """A node that was started with some parameters."""

    def __init__(self, **given: Any) -> None:
        self._parameter_overrides = {name: SimpleNamespace(value=value) for name, value in given.items()}
        self.declared: dict[str, Any] = {}
        self.said: list[str] = []

    def declare_parameter(self, name: str, value: Any, descriptor: Any, **options: Any) -> None:
        assert descriptor.read_only
        self.declared[name] = value

    def get_logger(self) -> Any:
        return SimpleNamespace(info=self.said.append, warning=self.said.append)


def test_what_a_controller_is_told_comes_by_its_name() -> None:
    given = {
        "moveit_simple_controller_manager.controller_names": ["hand"],
        f"{HAND}type": "GripperCommand",
        f"{HAND}joints": ["finger"],
        f"{HAND}max_effort": 20,
        f"{HAND}allow_failure": True,
    }
    node: Any = Node(**given)
    found = controller_parameters.declare(node, ["hand=fingers"])
    assert found == {
        "hand": ControllerEntry("GripperCommand", "gripper_cmd", ("finger",), max_effort=20.0, lenient=True)
    }
    assert node.declared == given
    assert not node.said


def test_what_does_not_count_is_said() -> None:
    node: Any = Node(**{f"{HAND}type": "GripperCommand", f"{HAND}max_velocity": 1.0, f"{HAND}default": True})
    controller_parameters.declare(node, ["arm_controller=arm"])
    unused, left_out = node.said
    assert "max_velocity are not used" in unused
    assert "parameter controllers does not name hand, which is handed no motions" in left_out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_effort": -1.0}, "hand.max_effort is -1.0"),
        ({"max_effort": "much"}, "hand.max_effort is 'much'"),
        ({"action_ns": "no name"}, "hand.action_ns is 'hand/no name', which no action can be called"),
        ({"parallel": "yes"}, "hand.parallel is 'yes'"),
        ({"parallel": True, "joints": ["one"]}, "two joints"),
        ({"allow_failure": 1}, "hand.allow_failure is 1"),
    ],
)
def test_what_no_controller_can_have(given: dict[str, Any], said: str) -> None:
    node: Any = Node(**{f"{HAND}{key}": value for key, value in {"type": "GripperCommand", **given}.items()})
    with pytest.raises(InvalidRequestError, match=said):
        controller_parameters.declare(node, ["hand=fingers"])
