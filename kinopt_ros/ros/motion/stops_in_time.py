"""Stops of motions that the robot does in time: whole, with a stamp, from where the motion has the joints."""

from collections.abc import Callable

from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.planning.servo.stop import LEAD, quickest_stop
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.motion.drives import is_there, time_in
from kinopt_ros.ros.motion.published import (
    EARLIEST_AT_ONCE,
    Published,
    check_clock,
    check_keeps_stamps,
    followed,
    told_by,
)
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND
from kinopt_ros.verification.verify import VerifiedMotion

LEADS = (LEAD, 4 * LEAD, 16 * LEAD)
"""Times until a stop begins, ns, in the order of trial, besides its way to the controller: a busy machine needs longer
until it is sent."""
_STILL_SENT = ("position limits", "velocity limits", "acceleration limits", "jerk limits")
"""Checks that the stop of one of this node's motions may fail and still be sent.

The motion was verified, and a robot that brakes as fast as it can cannot do better. (All joints have their
accelerations back at zero at the same time; until then one at its velocity limit may pass that by a little. A stop that
stays where its motion leads may take up to 1.7 times a limit of acceleration.)"""


def is_in_time(context: Context, setup: ServoSetup, state: RobotState, running: Published, now: int) -> bool:
    """Check whether the robot is in a motion with a stamp at the time that the node reckons with, or was when it was
    heard of last.

    Args:
        context: the node's.
        setup: the robot, and the motion's joints.
        state: as measured.
        running: the motion, of these joints.
        now: ns of the node's clock.
    """
    published = running.commanded(setup.joints)
    if published is None:
        return False
    try:
        check_clock(state, setup, EARLIEST_AT_ONCE)
        # Joints that are behind may lag, or be slowed down. What begins where they are measured jerks those that lag,
        # where the controller sets its commands back; else it suits both.
        if context.sets_back():
            told = told_by(running, setup.joints)
            if told is not None and time_in(told, setup, state, now, trusting=True) is not None:
                return True
        check_keeps_stamps(published, setup, state, now)
    except StartStateError:
        return False
    tolerance = context.parameter("servo.tracking_tolerance")
    return followed(published, setup, state, now, tolerance) and is_there(published, setup, state, now)


def stop_in_time(
    setup: ServoSetup, published: Commanded, state: RobotState, clock: Callable[[], int]
) -> tuple[Commanded, VerifiedMotion, int]:
    """Return the quickest stop of a motion, as ``quickest_stop``, and when it was made; ``clock``: the node's, ns."""
    way, spent = state.way(setup.variables), list[int]()
    for lead in LEADS:
        if (
            len(spent) == len(LEADS) - 1
        ):  # a machine that is slow each time; one that slept once is quick again
            lead = max(lead, 2 * min(spent))
        now = clock()
        stop, motion = quickest_stop(setup, published, now, state.q, lead, way=way)
        spent.append(clock() - now)
        if now + spent[-1] + way < stop.leave:  # else a controller would jump to it
            break
    return stop, motion, now


def may_be_sent(motion: VerifiedMotion) -> bool:
    """Check whether a stop fails only what one may fail."""
    return all(violation.check in _STILL_SENT for violation in motion.report.violations)


def stop_message(stop: Commanded, motion: VerifiedMotion, setup: ServoSetup) -> TrajectoryMessage:
    """Return the message of a stop, with its stamp."""
    message = trajectory_message(motion.trajectory, setup.robot.root_link)
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stop.start, NANOSECONDS_PER_SECOND)
    return message
