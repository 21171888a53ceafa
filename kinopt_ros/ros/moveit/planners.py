"""query_planner_interface, get_planner_params, set_planner_params: our solvers as MoveIt's planners.

There is one pipeline, ``kinopt``; its planners are the solvers that plan motions, and the kinds of motion that a
planner_id may name. The parameters of a planner are those of the node that its motions depend on, by the node's names:
``trajectory.*``, and ``<solver>.*`` of a planner that is a solver.
"""

import re
from collections.abc import Callable
from typing import Any

from moveit_msgs.msg import PlannerInterfaceDescription
from moveit_msgs.srv import GetPlannerParams, QueryPlannerInterfaces, SetPlannerParams
from rcl_interfaces.msg import Parameter as ParameterMessage
from rclpy.parameter import Parameter, get_parameter_value

from kinopt_ros.errors import InvalidRequestError, KinoptError, cut, quoted, shortened
from kinopt_ros.ros.messages.qos import QUEUED
from kinopt_ros.ros.moveit.motion_types import MotionType
from kinopt_ros.ros.moveit.planner_names import PIPELINE
from kinopt_ros.ros.robot import parameters
from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.solvers.base import Feature
from kinopt_ros.solvers.registry import list_solvers

_SHARED = "trajectory."
_LONGEST = 10_000
"""Most characters of all values of a request together: they are read as YAML, a second for some 100,000."""
_BEGINS, _DEEPEST = re.compile(r"[\[{]|[-?] "), 20
"""Signs with which something nested begins in YAML, and the most of them; a parameter has one. A text of more keeps its
reader busy for a second, until Python's stack is full."""
_LARGEST = 2**63 - 1
"""Largest integer of a parameter."""


def offer_planner_services(node: Any) -> list[str]:
    """Offer the three services in the node's namespace; return their names. ``node`` is a Node, and Work of
    ``ros/robot/parameter_services.py``."""
    handlers: dict[str, tuple[Any, Callable[[Any, Any, Any], None]]] = {
        "query_planner_interface": (QueryPlannerInterfaces, _query),
        "get_planner_params": (GetPlannerParams, _get),
        "set_planner_params": (SetPlannerParams, _set),
    }
    for name, (kind, handle) in handlers.items():
        node.create_service(kind, name, _answering(node, name, handle), qos_profile=QUEUED)
    return list(handlers)


def _answering(node: Any, name: str, handle: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any], Any]:
    """Return a callback; these answers have no room for why nothing was done, so the log says it."""

    def callback(request: Any, response: Any) -> Any:
        try:
            handle(node, request, response)
        except KinoptError as error:
            node.get_logger().error(f"{name}: {error}", throttle_duration_sec=1.0)
        except Exception as error:  # nothing leaves a callback
            log_defect(node.get_logger(), f"in {name}", error)
        return response

    return callback


def _planners() -> list[str]:
    """Return the names of solvers that plan motions."""
    return [
        info.name
        for info in list_solvers()
        if info.unavailable_reason is None
        and info.capabilities is not None
        and Feature.TRAJECTORIES in info.capabilities.features
    ]


def _query(node: Any, request: Any, response: Any) -> None:
    del node, request
    ids = [*_planners(), *(kind.value for kind in MotionType)]
    response.planner_interfaces = [
        PlannerInterfaceDescription(name="kinopt_ros", pipeline_id=PIPELINE, planner_ids=ids)
    ]


def _get(node: Any, request: Any, response: Any) -> None:
    for name in _names(request):
        response.params.keys.append(name)
        response.params.values.append(str(node.get_parameter(name).value))
        response.params.descriptions.append(node.describe_parameter(name).description)


def _set(node: Any, request: Any, response: Any) -> None:
    del response
    names, given = _names(request), request.params
    if len(given.keys) != len(given.values):
        raise InvalidRequestError(
            f"params has {len(given.keys)} keys and {len(given.values)} values; nothing was set"
        )
    if len(set(given.keys)) != len(given.keys):
        raise InvalidRequestError("params has a key twice; nothing was set")
    characters = sum(map(len, given.values))
    if characters > _LONGEST:
        raise InvalidRequestError(
            f"params has values of {characters} characters together; allowed are {_LONGEST}"
        )
    wanted: dict[str, Any] = parameters.defaults(names) if request.replace else {}
    for key, text in zip(given.keys, given.values, strict=True):
        if key not in names:
            raise InvalidRequestError(
                f"{quoted(key)} is no parameter of this planner: {shortened(names, 50)}"
            )
        if len(_BEGINS.findall(text)) > _DEEPEST:
            raise InvalidRequestError(f"{key} is {quoted(text)}, which is nested too deeply for a parameter")
        wanted[key] = _value(key, text)
    with node.together():
        result = node.set_parameters_atomically(
            [Parameter(name, value=value) for name, value in wanted.items()]
        )
    if not result.successful:
        raise InvalidRequestError(f"nothing was set: {cut(result.reason, 300)}")


def _value(key: str, text: str) -> Any:
    """Return the value that a text says, as on the command line."""
    try:
        value = get_parameter_value(text)
    except Exception as error:  # whatever the constructors of YAML's tags raise
        raise InvalidRequestError(f"{key} is {quoted(text)}, which is no value of a parameter") from error
    if abs(value.integer_value) > _LARGEST:
        raise InvalidRequestError(f"{key} is {quoted(text)}; allowed are integers of 64 bits")
    return Parameter.from_parameter_msg(ParameterMessage(name=key, value=value)).value


def _names(request: Any) -> list[str]:
    """Return the parameters of a planner that may be set while the node runs.

    Raises:
        InvalidRequestError: a planner or pipeline that is none of ours.
    """
    if request.pipeline_id not in ("", PIPELINE):
        raise InvalidRequestError(
            f"pipeline_id is {quoted(request.pipeline_id)}; allowed is {PIPELINE!r}, or none"
        )
    planners = _planners()
    if request.planner_config not in ("", *planners):
        raise InvalidRequestError(
            f"planner_config is {quoted(request.planner_config)}; allowed are {', '.join(planners)}, or none"
        )
    prefixes = (_SHARED, *([f"{request.planner_config}."] if request.planner_config else []))
    return sorted(name for name in parameters.writable_names() if name.startswith(prefixes))
