"""Parameters as services see them while somebody sets them."""

from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.ros.context import Context
from kinopt_ros.ros.robot import parameters


def test_a_value_read_while_another_is_set_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Any = None
    context = Context(nothing, nothing, nothing, nothing, nothing)
    answers = iter((0.1, 0.5))

    def read(node: Any, name: str) -> float:
        del node, name
        value = next(answers)
        if value == 0.1:
            context.forget_parameters()  # set at this very moment, by another thread
        return value

    monkeypatch.setattr(parameters, "value", read)
    assert context.parameter("velocity_scaling") == 0.1
    assert context.parameter("velocity_scaling") == 0.5
    assert context.parameter("velocity_scaling") == 0.5
