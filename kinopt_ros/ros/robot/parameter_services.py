"""rclpy's six parameter services, with an answer to every request.

What rclpy or a callback would raise is refused with a sentence, and sizes are checked before anything is done.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from kinopt_ros.errors import cut, quoted
from kinopt_ros.ros.robot import joint_limits, parameters
from kinopt_ros.ros.robot.parameters import refusal
from kinopt_ros.ros.serving.defects import log_defect

Callback = Callable[[Any, Any], Any]

MOST_SET = 1000
"""Most parameters that one request may set."""
MOST_ASKED = 10_000
"""Most names that one request may ask about."""
MOST_SIZE = 1_000_000
"""Most characters and entries that one answer may have beyond those of each value once.

Whoever names a value again and again does not get it as often."""
_EACH = 100
"""Size that every value counts besides its characters and entries."""
_TYPES = {kind.value for kind in Parameter.Type}


class Work(Protocol):
    """The part of the node (KinoptNode) whose work parameters may cause."""

    ending: bool
    """Whether the process shall end."""

    def together(self) -> AbstractContextManager[None]:
        """Do once, and last, what all parameters that are set meanwhile cause."""


def careful(node: Any, kind: Any, callback: Callback) -> Callback:
    """Wrap a callback for a parameter service; callbacks of other services are returned as they are. ``node`` is a Node
    and Work."""
    if kind is SetParameters:
        return _set_each(node, node, callback)
    if kind is SetParametersAtomically:
        return _set_together(node, callback)
    if kind in (GetParameters, GetParameterTypes, DescribeParameters, ListParameters):
        return _asked(node, callback)
    return callback


def _set_each(node: Node, work: Work, callback: Callback) -> Callback:
    def one(parameter: ParameterMessage) -> Any:
        request = SetParameters.Request(parameters=[parameter])
        return callback(request, SetParameters.Response()).results[0]

    def answer(request: Any, response: Any) -> Any:
        given = request.parameters
        wrong = _wrong_count(len(given))
        last = {parameter.name: k for k, parameter in enumerate(given)}
        with work.together():
            for k, parameter in enumerate(given):
                if wrong:
                    said = refusal(wrong)
                elif work.ending:
                    said = refusal("the node is shutting down: no parameter is set any more")
                elif last[parameter.name] != k:
                    said = refusal(
                        f"{quoted(parameter.name)} is given again in this request; only the last one counts"
                    )
                else:
                    said = _set(node, [parameter], partial(one, parameter))
                response.results.append(said)
        return response

    return answer


def _set_together(node: Node, callback: Callback) -> Callback:
    def answer(request: Any, response: Any) -> Any:
        given = request.parameters
        wrong = _wrong_count(len(given))
        response.result = (
            refusal(wrong)
            if wrong
            else _set(node, given, lambda: callback(request, SetParametersAtomically.Response()).result)
        )
        return response

    return answer


def _set(
    node: Node, given: list[ParameterMessage], apply: Callable[[], SetParametersResult]
) -> SetParametersResult:
    for parameter in given:
        wrong = _wrong(node, parameter)
        if wrong:
            return refusal(wrong)
    try:
        # Before rclpy has a look: it notes the type of a value that is refused later as that of the parameter.
        proposed = joint_limits.converted(
            parameters.converted([Parameter.from_parameter_msg(each) for each in given])
        )
        for check in (parameters.check, joint_limits.check):
            result = check(proposed)
            if not result.successful:
                result.reason = cut(result.reason)
                return result
        result = apply()
    except Exception as error:  # nothing leaves a callback
        return refusal(log_defect(node.get_logger(), "in a parameter service", error))
    result.reason = cut(result.reason)
    return result


def _wrong_count(count: int) -> str:
    return f"{count} parameters in one request; allowed are at most {MOST_SET}" if count > MOST_SET else ""


def _wrong(node: Node, parameter: ParameterMessage) -> str:
    """Return why a parameter cannot even be checked; empty if it can."""
    name = quoted(parameter.name)
    if not node.has_parameter(parameter.name):  # rclpy names it not, and takes the empty name for declared
        return f"there is no parameter {name}; `ros2 param list` shows those that there are"
    if parameter.value.type not in _TYPES:
        return (
            f"the value of parameter {name} has type {parameter.value.type}; allowed are {min(_TYPES)} to "
            f"{max(_TYPES)}, see rcl_interfaces/msg/ParameterType"
        )
    return ""


def _asked(node: Node, callback: Callback) -> Callback:
    """Wrap the callback of a service that asks about names; too many names get an empty answer.

    These answers have no room for a sentence: the log says why they are empty, as rclpy's are for unknown names.
    """

    def answer(request: Any, response: Any) -> Any:
        names = request.prefixes if isinstance(request, ListParameters.Request) else request.names
        wrong = _too_much(node, request, names)
        if wrong:
            node.get_logger().warning(f"parameters: {wrong}", throttle_duration_sec=1.0)
            return response
        try:
            return callback(request, response)
        except Exception as error:  # as above
            log_defect(node.get_logger(), "in a parameter service", error)
            return type(response)()

    return answer


def _too_much(node: Node, request: Any, names: list[str]) -> str:
    if len(names) > MOST_ASKED:
        return f"{len(names)} names in one request were not looked at; allowed are at most {MOST_ASKED}"
    if isinstance(request, GetParameters.Request):
        asked = Counter(names)
        again = {name: count - 1 for name, count in asked.items() if count > 1 and node.has_parameter(name)}
        size = sum(count * _size(node.get_parameter(name).value) for name, count in again.items())
        if size > MOST_SIZE:
            return (
                f"{len(names)} values, of which those asked for again have {size} characters and entries, were not "
                f"sent; allowed are at most {MOST_SIZE}"
            )
    return ""


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return _EACH + len(value)
    if isinstance(value, Sequence):
        return _EACH + sum(_EACH + len(each) if isinstance(each, str) else 1 for each in value)
    return _EACH
