"""Objectives from plain data, as YAML and messages have them.

A list of mappings: ``cost`` names the kind, the rest are its fields. Poses are mappings of ``xyz`` (m), and ``rpy``
(rad) or ``quaternion`` (x, y, z, w; as in ROS). Configurations are mappings of names to values, or lists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_args, get_origin

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost, field_types
from kinopt_ros.costs.fields import allowed, fits, takes_arrays
from kinopt_ros.costs.registry import cost_kind
from kinopt_ros.errors import (
    InvalidRequestError,
    InvalidShapeError,
    UnknownJointError,
    UnknownNameError,
    quoted,
    said_by,
    shown,
)
from kinopt_ros.kinematics.se3 import pose, quaternion_to_matrix, rpy_to_matrix
from kinopt_ros.objectives.objective import MOST_COSTS, Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.yaml_text import parsed

LONGEST_TEXT = 1_000_000
"""Longest text of an objective, characters."""


_MAPPINGS = {
    "4 4": "a mapping of xyz, and rpy or quaternion (x, y, z, w)",
    "nq": "a mapping of variables and their values",
}
"""What stands for arrays of some shapes, besides lists."""


class UnknownFieldError(UnknownNameError):
    """A field that a cost does not have."""

    kind = "field"
    status = InvalidRequestError.status


def objective_from_text(robot: RobotModel, text: str) -> Objective:
    """Return the objective that a YAML text describes.

    Raises:
        KinoptError: what is wrong with it, and what is allowed.
    """
    return objective_from_data(robot, plain_data(text))


def objective_problem_from_text(robot: RobotModel, text: str, **arguments: Any) -> ObjectiveProblem:
    """Return the problem that a YAML text describes.

    It is a list of costs, or a mapping of ``costs`` and any of ``group``, ``joints``, ``locked``, ``num_points``,
    ``dt`` and ``num_starts``.

    Args:
        robot: the robot.
        text: the text.
        arguments: of ``objective_problem``; they come before what the text says.

    Raises:
        KinoptError: what is wrong with it, and what is allowed.
    """
    data = plain_data(text)
    if not isinstance(data, Mapping):
        return objective_problem(robot, objective_from_data(robot, data), **arguments)
    known = {
        "group": str,
        "joints": list,
        "locked": list,
        "num_points": int,
        "dt": (int, float),
        "num_starts": int,
    }
    settings = {}
    for name, given in data.items():
        if name == "costs":
            continue
        if name not in known:
            raise UnknownFieldError(str(name), ("costs", *known))
        if not isinstance(given, known[name]) or isinstance(given, bool):  # type: ignore[arg-type]
            raise InvalidRequestError(f"an objective's {name} is {shown(given)}")
        settings[name] = tuple(given) if isinstance(given, list) else given
    return objective_problem(
        robot, objective_from_data(robot, data.get("costs")), **{**settings, **arguments}
    )


def plain_data(text: str) -> Any:
    """Return what a YAML text holds: mappings, lists, texts, numbers.

    Raises:
        InvalidRequestError: it is too long, no YAML, or has what no plain text needs, as tags and aliases.
    """
    if len(text) > LONGEST_TEXT:
        raise InvalidRequestError(f"an objective has {len(text)} characters; allowed are {LONGEST_TEXT}")
    try:
        return parsed(text, plain_exponents=True)
    except InvalidShapeError as error:
        raise InvalidRequestError(f"an objective is no YAML: {error}") from error


def objective_from_data(robot: RobotModel, data: object) -> Objective:
    """Return the objective that a list of mappings describes."""
    if isinstance(data, Mapping) and set(data) == {"costs"}:
        data = data["costs"]
    if not isinstance(data, Sequence) or isinstance(data, str) or not 1 <= len(data) <= MOST_COSTS:
        raise InvalidRequestError(
            f"an objective is a list of 1 to {MOST_COSTS} costs, each a mapping with 'cost: NAME'; not {shown(data)}"
        )
    return Objective(cost_from_data(robot, item) for item in data)


def cost_from_data(robot: RobotModel, data: object) -> Cost:
    """Return the cost that a mapping describes; the key ``cost`` names its kind."""
    if not isinstance(data, Mapping) or not isinstance(data.get("cost"), str):
        raise InvalidRequestError(f"a cost is a mapping with 'cost: NAME', not {shown(data)}")
    kind = cost_kind(data["cost"])
    declared = {field.name: field for field in fields(kind) if field.init}
    types = field_types(kind)
    values = {}
    for name, given in data.items():
        if name == "cost":
            continue
        if name not in declared:
            raise UnknownFieldError(str(name), declared)
        values[name] = _value(robot, kind, name, types[name], given)
    for name, field in declared.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise InvalidRequestError(
                f"cost {kind.name!r} needs the field {name!r}; its fields are {', '.join(declared)}"
            )
    try:
        return kind(**values)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequestError(f"cost {kind.name!r}: {said_by(error)}") from error


def _value(robot: RobotModel, kind: type[Cost], name: str, wanted: Any, given: Any) -> Any:
    """Return a field's value from plain data. What is no mapping is checked by the cost itself."""
    who = f"cost {kind.name!r}: {name}"
    shape = _shape(wanted)
    if isinstance(given, Mapping):
        if shape == "4 4":
            return _pose(who, given)
        if shape == "nq":
            return _configuration(robot, who, given)
        raise InvalidRequestError(f"{who} is a mapping; allowed is {allowed(wanted)}")
    if shape in _MAPPINGS and not isinstance(given, list) and not fits(wanted, given):
        raise InvalidRequestError(
            f"{who} is {shown(given)}; allowed is {_MAPPINGS[shape]}, or {allowed(wanted)}"
        )
    return given


def _shape(wanted: Any) -> str:
    """Return the shape that a declared type of an array has in its annotation; empty if it is no such type."""
    if get_origin(wanted) is Annotated and takes_arrays(wanted):
        return str(get_args(wanted)[1])
    return next((found for one in get_args(wanted) if (found := _shape(one))), "")


def _array(who: str, given: Any) -> Float64:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequestError(
            f"{who} is {shown(given)}; allowed are numbers, in lists of equal length"
        ) from None


def _pose(who: str, given: Mapping[Any, Any]) -> Float64:
    known = {"xyz", "rpy", "quaternion"}
    if not set(given) <= known or {"rpy", "quaternion"} <= set(given) or not given:
        raise InvalidRequestError(
            f"{who} has {shown(sorted(map(str, given)))}; allowed are xyz, and rpy or quaternion"
        )
    xyz = _array(f"{who}.xyz", given.get("xyz", [0.0, 0.0, 0.0]))
    R: Float64 = np.eye(3)
    if "rpy" in given:
        rpy = _array(f"{who}.rpy", given["rpy"])
        _require_numbers(f"{who}.rpy", rpy, 3)
        R = rpy_to_matrix(rpy)
    elif "quaternion" in given:
        quaternion = _array(f"{who}.quaternion", given["quaternion"])
        _require_numbers(f"{who}.quaternion", quaternion, 4)
        if abs(float(np.linalg.norm(quaternion)) - 1.0) > 1e-3:
            raise InvalidRequestError(
                f"{who}.quaternion is {shown(given['quaternion'])}; allowed is one of length 1"
            )
        R = quaternion_to_matrix(quaternion[[3, 0, 1, 2]])
    _require_numbers(f"{who}.xyz", xyz, 3)
    return pose(R, xyz)


def _require_numbers(who: str, array: Float64, count: int) -> None:
    if array.shape != (count,) or not (np.abs(array) < 1e9).all():
        raise InvalidRequestError(f"{who} must be {count} finite numbers")


def _configuration(robot: RobotModel, who: str, given: Mapping[Any, Any]) -> Float64:
    q = robot.default_q.copy()
    for name, value in given.items():
        if name not in robot.variable_index:
            raise UnknownJointError(str(name), robot.variable_index)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequestError(f"{who}.{quoted(name)} is {shown(value)}; allowed is a number")
        try:
            q[robot.variable_index[name]] = value
        except OverflowError:
            raise InvalidRequestError(
                f"{who}.{quoted(name)} is {shown(value)}; allowed is a number"
            ) from None
    return q
