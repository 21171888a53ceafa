"""What a controller gets of a motion that leaves another one, if the robot may be beside that."""

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.ros.motion.drives import THERE
from kinopt_ros.ros.motion.published import QUINTIC, Published
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

_SHARE = 0.5
"""Share of a limit of acceleration that is left for joining."""


def joined(
    message: JointTrajectory, running: Published, longest: float, state: RobotState, now: int
) -> JointTrajectory:
    """Return a motion that leaves another one without the points that a controller cannot join without a step.

    A robot that is measured behind its motion may lag by its drives, and its controller is in time. Or its controller
    slows the motion down, and would be set on to where it should be. What was measured does not tell the two apart. So
    the motion begins, for the controller, as much later as it takes from wherever that is. For one that is in time that
    is the same motion, to within a fifth of what the robot is behind.

    Args:
        message: the motion, with a stamp; it begins as the other one goes on.
        running: the other motion.
        longest: time after which it is joined in any case, s.
        state: of the robot, as measured.
        now: ns of the node's clock.
    """
    joints = tuple(message.joint_names)
    motion = running.commanded(joints)
    if motion is None:
        return message
    robot = running.robot
    index = np.array([robot.variable_index[name] for name in joints])
    beside = apart(
        state.q[index] - motion.at(state.seen(index, now)).position, continuous_joints(robot, joints)
    )
    if not state.known[index].all() or beside.max() <= THERE:
        return message
    seconds = np.sqrt(QUINTIC * beside / (_SHARE * robot.limits.acceleration[index])).max()
    first = now + round(min(float(seconds), longest) * NANOSECONDS_PER_SECOND)
    stamp = message.header.stamp
    start = stamp.sec * NANOSECONDS_PER_SECOND + stamp.nanosec
    left = [
        point
        for point in message.points
        if start + point.time_from_start.sec * NANOSECONDS_PER_SECOND + point.time_from_start.nanosec >= first
    ]
    return JointTrajectory(
        header=message.header, joint_names=message.joint_names, points=left or message.points[-1:]
    )
