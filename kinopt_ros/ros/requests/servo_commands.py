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
        KinoptError: a number that is not finite, or a frame that nobody knows.
    """
    linear, angular = message.twist.linear, message.twist.angular
    twist = np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z])
    if not np.isfinite(twist).all():
        raise InvalidGoalError(f"twist must be 6 finite numbers, not {twist.tolist()}")
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
        KinoptError: no pose, or a frame that nobody knows.
    """
    pose = matrices_from_poses([message.pose], "pose")[0]
    frame = _frame(context, setup, message.header.frame_id, q)
    T_base_target = setup.T_base_frame(q, frame.link, frame.T_link_tip) @ pose
    stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
    # What the sender says is when the target is there; where it says nothing, or something else, arrival has to do.
    time = stamp if abs(stamp - arrived) < _SAME_CLOCK else arrived
    if isinstance(before, TargetCommand):
        target = before.target.followed_by(T_base_target, time)
    else:
        target = Target(T_base_target, time)
    tolerance = context.parameter("ik.position_tolerance"), context.parameter("ik.orientation_tolerance")
    ends = arrived + _ns(context, "servo.target_timeout")
    return TargetCommand(TARGET, ends, target, context.parameter("servo.gain"), tolerance)


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
