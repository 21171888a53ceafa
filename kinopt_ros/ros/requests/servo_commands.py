"""Commands of servo, twists and target poses, read from messages, and the joint velocities that they want."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.planning.servo.follow import Target, velocity_to_follow
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.planning.servo.velocity import Wanted, velocity_for_twist
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.scene.tool_frames import Tip, object_frame, tool_frames
from kinopt_ros.trajectory.braking import MotionState

TWIST, TARGET = "servo/twist", "servo/target_pose"
_SAME_CLOCK = 1_000_000_000
"""Largest difference of a stamp from now, ns; stamps farther away are of another clock, or old."""


@dataclass(frozen=True, eq=False)
class Command:
    """The newest command of servo."""

    name: str
    ends: int
    """Time until which the command holds, ns of the node's clock."""

    def wanted(self, setup: ServoSetup, state: MotionState, q: Annotated[Float64, "nq"], time: int) -> Wanted:
        """Return joint velocities that it wants in a state, at a time (ns)."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class TwistCommand(Command):
    """Command to move at a velocity."""

    twist: Annotated[Float64, "6"]
    axes: Tip
    """Frame that gives the axes of the twist."""

    def wanted(self, setup: ServoSetup, state: MotionState, q: Annotated[Float64, "nq"], time: int) -> Wanted:
        """Return joint velocities; see Command."""
        R = setup.T_base_frame(q, self.axes.link, self.axes.T_link_tip)[:3, :3]
        return velocity_for_twist(setup, state, q, np.concatenate([R @ self.twist[:3], R @ self.twist[3:]]))


@dataclass(frozen=True, eq=False)
class TargetCommand(Command):
    """Command to go to a pose, and stay."""

    target: Target
    gain: float
    tolerance: tuple[float, float]

    def wanted(self, setup: ServoSetup, state: MotionState, q: Annotated[Float64, "nq"], time: int) -> Wanted:
        """Return joint velocities; see Command."""
        return velocity_to_follow(setup, state, q, self.target, time, self.gain, self.tolerance)


def twist_command(
    context: Context, setup: ServoSetup, message: Any, arrived: int, q: Annotated[Float64, "nq"]
) -> TwistCommand:
    """Read geometry_msgs/TwistStamped.

    Raises:
        KinoptError: a number that is not finite, a frame that nobody knows, or it is old.
    """
    linear, angular = message.twist.linear, message.twist.angular
    twist = np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z])
    if not np.isfinite(twist).all():
        raise InvalidGoalError(f"twist must be 6 finite numbers, not {twist.tolist()}")
    _check_is_recent(context, TWIST, message, arrived, "servo.timeout")
    axes = _frame(context, setup, message.header.frame_id, q)
    return TwistCommand(TWIST, arrived + _ns(context, "servo.timeout"), twist, axes)


def target_command(
    context: Context,
    setup: ServoSetup,
    message: Any,
    arrived: int,
    q: Annotated[Float64, "nq"],
    before: Command | None,
) -> TargetCommand:
    """Read geometry_msgs/PoseStamped; ``before``: the command until now, of whose stream it may be.

    Raises:
        KinoptError: no pose, a frame that nobody knows, or it is old.
    """
    pose = matrices_from_poses([message.pose], "pose")[0]
    _check_is_recent(context, TARGET, message, arrived, "servo.target_timeout")
    frame = _frame(context, setup, message.header.frame_id, q)
    T_base_target = setup.T_base_frame(q, frame.link, frame.T_link_tip) @ pose
    stamp = _stamp(context, message)
    # What the sender says is when the target is there; where it says nothing, or something else, arrival has to do.
    time = stamp if abs(stamp - arrived) < _SAME_CLOCK else arrived
    if isinstance(before, TargetCommand):
        target = before.target.followed_by(T_base_target, time)
    else:
        target = Target(T_base_target, time)
    tolerance = context.parameter("ik.position_tolerance"), context.parameter("ik.orientation_tolerance")
    ends = arrived + _ns(context, "servo.target_timeout")
    return TargetCommand(TARGET, ends, target, context.parameter("servo.gain"), tolerance)


def _check_is_recent(context: Context, name: str, message: Any, arrived: int, parameter: str) -> None:
    """Raise InvalidGoalError if a command is stamped before what it would hold for: it lay somewhere, and what was
    wanted then is not wanted now. (moveit_servo does so, too.)"""
    stamp = _stamp(context, message)
    age, allowed = (arrived - stamp) / 1e9, context.parameter(parameter)
    if stamp and age > allowed:
        raise InvalidGoalError(
            f"~/{name} is stamped {age:.2f} s before it came; allowed is {allowed:g} s (parameter {parameter}). Set "
            "the sender's clock as the node's, or leave the stamp at 0"
        )


def _stamp(context: Context, message: Any) -> int:
    """Return a command's stamp, ns, in the time that motions are in; 0: none. Senders go by the node's clock."""
    stamp = nanoseconds(message.header.stamp)
    return stamp + context.now() - int(context.node.get_clock().now().nanoseconds) if stamp else 0


def _frame(context: Context, setup: ServoSetup, name: str, q: Annotated[Float64, "nq"]) -> Tip:
    """Return a frame by name: the base link, a link, a tool frame, an object, or what tf knows, fixed to the root
    link."""
    robot = setup.robot
    if not name:
        return Tip(setup.base)
    if name in robot.link_index:
        return Tip(name)
    frames = tool_frames(context.parameter("tool_frames"))
    if name in frames:
        return frames[name]
    of_object = object_frame(robot, context.scene.of(robot), name)
    if of_object is not None:
        return Tip(of_object.link, of_object.T_link_frame)
    return Tip(robot.root_link, context.frames.T_root_frame(robot, name, q).copy())


def _ns(context: Context, name: str) -> int:
    return int(1e9 * context.parameter(name))
