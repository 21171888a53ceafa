"""Whether a robot is where its controllers say to have brought it.

A joint_trajectory_controller without tolerances for goals says that it is done when a motion's time is over, though
drives are off, or the arm is held. What is done next is then done elsewhere.
"""

from collections.abc import Collection
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import StartStateError, quoted, shortened
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.ros.motion.beside import away, moved_by, stay_off_end, variables_of
from kinopt_ros.ros.motion.last_look import AWAY, check_is_at_rest
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import RobotState

TOLERANCE = "arrival_tolerance"
"""Parameter of how far joints may be from there, rad or m."""


def missed(one: Published, joints: Collection[str], state: RobotState, tolerance: float) -> str:
    """Say which joint is measured farthest from where a motion ends.

    Args:
        one: the motion.
        joints: of the motion that are looked at. Those of end effectors may be anywhere: grippers hold things.
        state: as measured.
        tolerance: how far joints may be from there, rad or m.

    Returns:
        A sentence; empty if all joints are near enough, or nobody has ever said where they are.
    """
    robot, ends = one.robot, list(one.message.points[-1].positions)
    grips = _grips(robot)
    off = away(one, state, np.array(ends))
    for k in np.argsort(-off).tolist():
        name = one.message.joint_names[k]
        i = robot.variable_index[name]
        if not off[k] > tolerance:  # also of those that nobody knows, which are not numbers
            break
        if name in joints and name not in grips and state.known[i]:
            return (
                f"the controller says that the motion is done, but {quoted(name)} is at {state.q[i]:.4g}, and the "
                f"motion ends at {ends[k]:.4g}: allowed is a difference of {tolerance:g} (parameter {TOLERANCE})"
            )
    return ""


def off_end(one: Published, state: RobotState) -> Annotated[Float64, "n"]:
    """Return how far the joints of a motion are measured from where it ends, rad or m; those of end effectors may be
    anywhere."""
    return off_end_of(one, state.q[variables_of(one.robot, [one])])


def off_end_of(one: Published, position: Annotated[Float64, "... n"]) -> Annotated[Float64, "... n"]:
    """Return how far positions of a motion's joints are from where it ends, rad or m; those of end effectors may be
    anywhere.

    Drivers may leave out whole turns; of a motion by a turn or more its begin could be its end then.
    """
    begin, end = (np.array(one.message.points[k].positions) for k in (0, -1))
    turns = continuous_joints(one.robot, one.message.joint_names) & (
        np.abs(end - begin) < 2.0 * np.pi - 2.0 * AWAY
    )
    off = apart(position - end, turns)
    return np.where(grips_in(one), 0.0, off)


def grips_in(one: Published) -> Annotated[Bool, "n"]:
    """Return which joints of a motion belong to end effectors."""
    return _among(one, _grips(one.robot))


class GripsWaitError(StartStateError):
    """A robot is where its motion ends, but for joints of end effectors that have not begun."""

    def __init__(self, joints: list[str]) -> None:
        self.joints = joints
        super().__init__(
            f"{shortened(joints)} of an end effector has not moved since the motion was sent: nobody does what is "
            "published, or it holds something already"
        )


def check_grips_have_begun(one: Published, state: RobotState, q: Annotated[Float64, "n"]) -> None:
    """Raise GripsWaitError if no joint of an end effector has moved since a motion was sent, though it moves some.

    Args:
        one: the motion.
        state: as measured.
        q: where its joints were when it was sent, rad or m.
    """
    moves, stay = moved_by(one), stay_off_end(one, state, q)
    for tool in one.robot.end_effectors:
        own = moves & _among(one, one.robot.groups[tool.group].joints)
        if own.any() and stay[own].all():
            raise GripsWaitError([one.message.joint_names[k] for k in np.flatnonzero(own).tolist()])


def check_at_end(one: Published, state: RobotState, timeout: float) -> None:
    """Raise StartStateError or StaleStateError unless the robot is known to be at rest where a motion ends.

    Args:
        one: the motion.
        state: as measured.
        timeout: age from which on joint states are too old, s.
    """
    robot, names, ends = one.robot, one.message.joint_names, one.message.points[-1].positions
    variables = variables_of(robot, [one])
    state.require_fresh(variables, robot, timeout)
    off = off_end(one, state)
    k = int(np.argmax(off))
    if off[k] > AWAY:
        raise StartStateError(
            f"the motion ends with {quoted(names[k])} at {ends[k]:.6g}, but it is at {state.q[variables[k]]:.6g}; "
            f"allowed is a difference of {AWAY:g}"
        )
    check_is_at_rest(robot, state, variables)


def _among(one: Published, joints: Collection[str]) -> Annotated[Bool, "n"]:
    """Return which joints of a motion are among some."""
    return np.array([name in joints for name in one.message.joint_names])


def _grips(robot: RobotModel) -> frozenset[str]:
    """Return the joints of end effectors."""
    return frozenset(name for tool in robot.end_effectors for name in robot.groups[tool.group].joints)
