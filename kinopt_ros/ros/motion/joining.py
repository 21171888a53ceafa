"""What a controller gets of a motion that leaves one without a stamp."""

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.ros.motion.drives import THERE
from kinopt_ros.ros.motion.published import QUINTIC, Published
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory as Motion

_LONGEST = 1.0
"""Longest time in which a controller may join a motion, s: robots of low limits of acceleration need it."""
_SHARE = 0.5
"""Share of a limit of acceleration that is left for joining."""
_SOONER, _SOONEST = 0.75, 0.02
"""Factor between two times to join in that are tried, and the least one, s."""
_BESIDE = 1e-3
"""How far a controller that is in time may be beside the motion that was verified, rad or m."""
_LOOKS = 12
"""Number of places at which a controller's way is compared with the motion."""


def joined(message: JointTrajectory, running: Published, state: RobotState, now: int) -> JointTrajectory:
    """Return a motion that leaves another one without the points that a controller cannot join without a step.

    A motion without a stamp began when its controller got it, later than the node reckons. So what leaves it begins,
    for the controller, as much later as it takes from wherever that is; but no later than a controller that is in time
    does the same motion, as that alone was verified, to within 1 mrad or mm.

    What leaves a motion with a stamp is given whole: who is beside that lags by its drives, and a controller that goes
    to its first point from where the robot is *measured*, as joint_trajectory_controller does by default, would set it
    back by that.

    Args:
        message: the motion, with a stamp; it begins as the other one goes on.
        running: the other motion.
        state: of the robot, as measured.
        now: ns of the node's clock.
    """
    joints = tuple(message.joint_names)
    left = None if running.stamped else running.commanded(joints)
    if left is None:
        return message
    robot = running.robot
    index = np.array([robot.variable_index[name] for name in joints])
    told = left.at(state.seen(index, now)).position
    beside = apart(state.q[index] - told, continuous_joints(robot, joints))
    if not state.known[index].all() or beside.max() <= THERE:
        return message
    needed = float(np.sqrt(QUINTIC * beside / (_SHARE * robot.limits.acceleration[index])).max())
    start = nanoseconds(message.header.stamp)
    motion = Commanded(trajectory_from_message(message), start, start, start)
    seconds = min(needed, _LONGEST)
    while seconds > _SOONEST and _deviates(motion, now, seconds) > _BESIDE:
        seconds *= _SOONER
    first = now + round(seconds * NANOSECONDS_PER_SECOND)
    there = motion.at(first)
    point = JointTrajectoryPoint(
        positions=there.position.tolist(),
        velocities=there.velocity.tolist(),
        accelerations=there.acceleration.tolist(),
    )
    point.time_from_start.sec, point.time_from_start.nanosec = divmod(first - start, NANOSECONDS_PER_SECOND)
    later = [one for one, time in zip(message.points, motion.times, strict=True) if time > first]
    return JointTrajectory(header=message.header, joint_names=message.joint_names, points=[point, *later])


def _deviates(motion: Commanded, now: int, seconds: float) -> float:
    """Return how far a controller that is in a motion now, and gets only what begins so much later, is beside it on
    its way there, rad or m."""
    ends = motion.at(now), motion.at(now + round(seconds * NANOSECONDS_PER_SECOND))
    rows = (
        np.array([getattr(end, name) for end in ends]) for name in ("position", "velocity", "acceleration")
    )
    way = Motion(motion.trajectory.joint_names, np.array([0.0, seconds]), *rows)
    seconds_on = np.linspace(0.0, seconds, _LOOKS)
    times = now + np.round(seconds_on * NANOSECONDS_PER_SECOND).astype(np.int64)
    return float(np.abs(evaluate(way, seconds_on)[0] - motion.at_all(times)[0]).max())
