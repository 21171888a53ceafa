"""Requests of parameter services, before rclpy looks at them."""

from __future__ import annotations

from array import array
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue, SetParametersResult
from rcl_interfaces.srv import GetParameters, SetParameters

from kinopt_ros.ros.robot.parameter_services import careful


class Node:
    """Keeps parameters of any name."""

    def __init__(self, **values: Any) -> None:
        self.values = values
        self.ending = False
        self.logged: list[str] = []
        self.together = nullcontext

    def has_parameter(self, name: str) -> bool:
        return name in self.values

    def get_parameter(self, name: str) -> Any:
        return SimpleNamespace(value=self.values[name])

    def get_logger(self) -> Any:
        return self

    def warning(self, text: str, **options: Any) -> None:
        self.logged.append(text)


def whole(name: str, value: int) -> Parameter:
    kind = ParameterType.PARAMETER_INTEGER
    return Parameter(name=name, value=ParameterValue(type=kind, integer_value=value))


def test_nothing_is_set_once_the_node_ends() -> None:
    node = Node(a=0, b=0, c=0)
    done: list[str] = []

    def set_one(request: Any, response: Any) -> Any:
        done.append(request.parameters[0].name)
        node.ending = done == ["a", "b"]
        response.results = [SetParametersResult(successful=True)]
        return response

    given = SetParameters.Request(parameters=[whole(name, 1) for name in "abc"])
    results = careful(node, SetParameters, set_one)(given, SetParameters.Response()).results
    assert done == ["a", "b"]
    assert [result.successful for result in results] == [True, True, False]
    assert "shutting down" in results[2].reason


def test_of_a_name_given_again_only_the_last_one_counts() -> None:
    node = Node(a=0, b=0)
    done: list[tuple[str, int]] = []

    def set_one(request: Any, response: Any) -> Any:
        (parameter,) = request.parameters
        done.append((parameter.name, parameter.value.integer_value))
        response.results = [SetParametersResult(successful=True)]
        return response

    given = SetParameters.Request(parameters=[whole("a", 1), whole("b", 2), whole("a", 3)])
    results = careful(node, SetParameters, set_one)(given, SetParameters.Response()).results
    assert done == [("b", 2), ("a", 3)]
    assert not results[0].successful
    assert "only the last one counts" in results[0].reason


TEXT = "x" * 2_000_000
NAMES = ["n" * 10] * 1000


@pytest.mark.parametrize(
    ("names", "answered"),
    [
        (["text", "names", "number"], True),  # each once: never more than there is
        (["text", "text"], False),
        (["names"] * 5, True),
        (["names"] * 1500, False),
        (["numbers"] * 1500, False),
        (["number"] * 2000, True),
        (["unknown"] * 2000, True),
    ],
)
def test_a_large_value_is_not_given_many_times_over(names: list[str], answered: bool) -> None:
    node = Node(text=TEXT, names=NAMES, numbers=array("d", [0.0] * 10_000), number=1)

    def get(request: Any, response: Any) -> Any:
        return "answered"

    answer = careful(node, GetParameters, get)(GetParameters.Request(names=names), GetParameters.Response())
    assert (answer == "answered") is answered
    assert len(node.logged) == (not answered)
