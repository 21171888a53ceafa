"""Brakes of motions that controllers do: from where the robot is measured, or else from where it should be.

They are for a controller that goes there from wherever its joints are when the brake comes, so nothing steps, whatever
its clock says.
"""

import numpy as np
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_ros.planning.servo.brake import brake_from_measured
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.session import LAG
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import trajectory_from_message, trajectory_message
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import FASTER, RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

BEYOND = 0.1
"""Distance beyond its position limits at which a joint may be measured, rad or m."""
FARTHEST = 1e6
"""Farthest that a joint without limits may be measured from 0, rad or m."""
SLOWER = 1.5
"""Times the quickest brake that one takes: a controller has its joints a little farther on when it comes."""
ON_THE_WAY = 0.02
"""Time that a brake may be on its way, s."""
_PEAK = 20.0
"""Factor of the acceleration by which a quintic from rest to rest makes up for a distance: its peak is 5.8 distances
per square of its time, and a third of the limit is for that."""


def credible(setup: ServoSetup, state: RobotState) -> bool:
    """Check whether a robot can be as measured. A stop that begins where it cannot be would make it jump."""
    index, limits = setup.variables, setup.robot.limits
    q, velocity = state.q[index], np.abs(state.velocity[index])
    inside = (
        (q >= limits.lower[index] - BEYOND) & (q <= limits.upper[index] + BEYOND) & (np.abs(q) <= FARTHEST)
    )
    believed = inside & (velocity <= FASTER * limits.velocity[index])
    # A position that has jumped, as of a driver that begins anew with zeros, is not where the robot is.
    return bool(believed.all()) and state.jumped(index, setup.robot) is None


def commanded_of(running: Published) -> Commanded:
    """Return a motion that a controller does, in the time of the node's clock. It may begin a little later."""
    motion = trajectory_from_message(running.message)
    return Commanded(motion, running.start, running.start, running.start)


def brake_of(context: Context, running: Published) -> TrajectoryMessage:
    """Return the brake of a motion, of two points; a controller gets the second one.

    Args:
        context: the node's.
        running: the motion.
    """
    robot, joints = running.robot, tuple(running.message.joint_names)
    setup = servo_setup(robot, robot.root_link, robot.root_link, joints)
    index = setup.variables
    commanded = commanded_of(running)
    now = int(context.node.get_clock().now().nanoseconds)
    at = commanded.at(now)
    position, velocity, unsure = at.position, at.velocity, LAG / NANOSECONDS_PER_SECOND
    state = context.joint_states.of(robot)
    heard = state.known[index].all() and state.age[index].max() <= context.parameter("servo.state_timeout")
    if heard and credible(setup, state):
        velocity, unsure = state.seen_velocity[index], float(state.behind[index].max()) + ON_THE_WAY
        # It has gone on since it was measured, and drivers may measure whole turns less than controllers command.
        position = setup.as_commanded(state.q[index] + state.behind[index] * velocity, at.position)
    share = float(np.max(np.abs(velocity) / robot.limits.acceleration[index]))
    least = float(np.sqrt(_PEAK * share * unsure))
    brake = brake_from_measured(setup, position, velocity, SLOWER, least, at.acceleration)
    return trajectory_message(brake, robot.root_link)
