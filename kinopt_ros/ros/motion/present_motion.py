"""The motion that a robot is in, which the next one has to leave without a jump."""

import numpy as np
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.servo.commanded import Commanded, begun
from kinopt_ros.planning.servo.session import LAG
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.ros.motion.last_look import AWAY, allowed_velocity
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.robot.joint_states import FASTER, RobotState
from kinopt_ros.trajectory.braking import MotionState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory
from kinopt_ros.verification.motion import AT_REST


def published_motion(output: MotionOutput, joints: tuple[str, ...]) -> Commanded | None:
    """Return the motion of these joints that this node published last; it may be over.

    None if another motion has moved some of them since.
    """
    of_these = [p for p in output.published if sorted(p.message.joint_names) == sorted(joints)]
    if not of_these or len(of_these[0].message.points) < 2:
        return None
    last = of_these[0]
    given = trajectory_from_message(last.message)
    order = [given.joint_names.index(name) for name in joints]
    rows = (array[:, order] for array in (given.position, given.velocity, given.acceleration))
    return Commanded(JointTrajectory(joints, given.time, *rows), last.start, last.start, last.start)


def followed_motion(
    output: MotionOutput, setup: ServoSetup, state: RobotState, now: int, tolerance: float
) -> Commanded | None:
    """Return the motion of these joints that the node has published last if the robot is in it, as far as what was
    measured can say; else None. Arguments as of ``present_motion``."""
    published = published_motion(output, setup.joints)
    if published is None:
        return None
    behind = float(state.behind[setup.variables].max())
    if not published.start <= now < published.end + round(behind * NANOSECONDS_PER_SECOND):
        return None
    measured, since = state.q[setup.variables], now - round(behind * NANOSECONDS_PER_SECOND)
    # Where it was when it was measured counts: it may have begun, or ended, since.
    there, then = published.at(now), published.at(since)
    late = LAG / NANOSECONDS_PER_SECOND
    near = [
        (setup.away(measured, at.position) <= tolerance + late * np.abs(at.velocity)).all()
        for at in (there, then)
    ]
    return published if any(near) else None


def check_leaves(
    context: Context, output: MotionOutput, robot: RobotModel, message: TrajectoryMessage
) -> None:
    """Check that a motion which would begin now begins where the robot is if it does what the node has published last.

    What was measured may be from before that motion, or from its middle.

    Args:
        context: the node's.
        output: where motions are published.
        robot: the robot.
        message: the motion.

    Raises:
        StartStateError: it does not.
    """
    if not output.published:
        return
    motion = trajectory_from_message(message)
    setup = servo_setup(robot, robot.root_link, robot.root_link, motion.joint_names)
    now = int(context.node.get_clock().now().nanoseconds)
    published = followed_motion(output, setup, context.joint_states.of(robot), now, AWAY)
    if published is None:
        return
    there = published.at(now)
    away = setup.away(motion.position[0], there.position) - AWAY
    faster = np.abs(motion.velocity[0] - there.velocity) - allowed_velocity(setup.robot, setup.variables)
    excess = np.maximum(away, faster)
    if excess.max() > 0.0:
        raise StartStateError(
            f"the robot is in a motion that this node has published before: when the next one begins, joint "
            f"{setup.joints[int(np.argmax(excess))]!r} will be elsewhere, or faster or slower. Wait until the motion "
            "is over"
        )


def present_motion(
    output: MotionOutput, setup: ServoSetup, state: RobotState, now: int, lead: int, tolerance: float
) -> Commanded:
    """The motion that the node has published last, if it is not over and the robot is in it: the controller goes on
    from there. Else one that begins as measured and ends at rest.

    Args:
        output: where motions are published.
        setup: the robot and the joints.
        state: as measured, of all these joints.
        now: ns of the node's clock.
        lead: ns that a motion which begins as measured goes on like that.
        tolerance: rad or m by which the robot may be elsewhere than published, besides the way that it is late.

    Raises:
        StartStateError: the motion begins as measured, and a joint was measured to be faster than it can be. The brake
            from there would last for hours.
    """
    published = followed_motion(output, setup, state, now, tolerance)
    if published is not None:
        return published
    velocity = state.velocity[setup.variables]
    if (np.abs(velocity) <= AT_REST * setup.robot.limits.velocity[setup.variables]).all():
        velocity = np.zeros_like(velocity)
    limits = setup.robot.limits.velocity[setup.variables]
    if not (np.abs(velocity) <= FASTER * limits).all():
        i = int(np.argmax(np.abs(velocity) / limits))
        raise StartStateError(
            f"joint {setup.joints[i]!r} is measured to move at {velocity[i]:.3g}; its limit is {limits[i]:.3g}, and "
            f"more than {FASTER:g} times that is not believed"
        )
    as_measured = MotionState(state.q[setup.variables], velocity, np.zeros_like(velocity))
    return begun(setup.joints, as_measured, now, lead, setup.planning)
