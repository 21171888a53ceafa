"""Named configurations."""

from collections.abc import Mapping
from dataclasses import replace

from kinopt_ros.array import Float64
from kinopt_ros.errors import RobotDescriptionError, quoted, shortened, shown
from kinopt_ros.robot.model import RobotModel

_LIMIT_TOLERANCE = 1e-6


def named_configuration(robot: RobotModel, state: str) -> Float64:
    """Return the default configuration with the values of a named state.

    Args:
        robot: a robot with SRDF.
        state: name of a group_state, taken from every group that has one of that name, or ``group/state``.

    Returns:
        Configuration of shape (nq,), rad or m.

    Raises:
        RobotDescriptionError: there is no such state, or a value is more than 1e-6 outside the limits.
    """
    q = robot.default_q.copy()
    for values in _found(robot, state):
        _set(robot, q, state, values)
    return q


def joints_of_state(robot: RobotModel, state: str) -> frozenset[str]:
    """Return the joints that a named state has values for; arguments as in ``named_configuration``.

    Raises:
        RobotDescriptionError: there is no such state.
    """
    return frozenset(name for values in _found(robot, state) for name in values)


def _found(robot: RobotModel, state: str) -> list[Mapping[str, float]]:
    """Return values by joint, of every group that has a state of that name."""
    if not isinstance(state, str):
        raise RobotDescriptionError(f"a state is named {shown(state)}; allowed is text")
    group, _, name = state.rpartition("/")
    found = [
        values
        for known in robot.groups.values()
        for key, values in known.states.items()
        if key == state or (key == name and known.name == group)
    ]
    if not found:
        known_states = sorted(
            f"{known.name}/{key}" for known in robot.groups.values() for key in known.states
        )
        raise RobotDescriptionError(
            f"unknown state {quoted(state)}; known: {shortened(known_states, 20) or 'none'}"
        )
    return found


def with_default_state(robot: RobotModel, state: str) -> RobotModel:
    """Return a new robot whose default configuration is a named state; errors as in ``named_configuration``."""
    return replace(robot, default_q=named_configuration(robot, state))


def _set(robot: RobotModel, q: Float64, state: str, values: Mapping[str, float]) -> None:
    for name, value in values.items():
        i = robot.variable_index[name]
        lower, upper = robot.limits.lower[i], robot.limits.upper[i]
        if not lower - _LIMIT_TOLERANCE <= value <= upper + _LIMIT_TOLERANCE:
            raise RobotDescriptionError(
                f"state {quoted(state)} puts {name!r} at {value:g}, outside its limits [{lower:g}, {upper:g}]"
            )
        q[i] = min(max(value, lower), upper)
