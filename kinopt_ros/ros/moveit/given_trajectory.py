"""Check of trajectories that clients bring: they go through the same gate as those that the node makes."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_ros.errors import EnvironmentChangedError, KinoptError, StartStateError, UnsupportedFeatureError
from kinopt_ros.planning.motion import commanded_variables
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import joint_named
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.ros.motion.last_look import PlannedFor, check_is_at
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.trajectory import TrajectoryLimits
from kinopt_ros.verification.verify import Start, Surroundings, verify

_UNCHECKED = "With parameter ik.avoid_collisions: false the robot moves unchecked"
_LOOK_SECONDS = 0.02
"""Time between two looks whether all is prepared, s."""


class InvalidMotionError(KinoptError):
    """A trajectory that is not usable, or breaks a limit."""

    status = Status.VERIFICATION_FAILED


class StartInCollisionError(KinoptError):
    """The robot is in collision where a trajectory begins."""

    status = Status.START_STATE_IN_COLLISION


def given_joints(given: Any, robot: RobotModel) -> list[str]:
    """Return the joints of a moveit_msgs/RobotTrajectory.

    Raises:
        KinoptError: it has no points, or joints that the robot does not have or that no controller moves.
    """
    if given.multi_dof_joint_trajectory.points or given.multi_dof_joint_trajectory.joint_names:
        raise UnsupportedFeatureError(
            "multi_dof_joint_trajectory is given, which is not supported here: planar joints are named by their "
            "variables in joint_trajectory (base/x)"
        )
    if not given.joint_trajectory.points:
        raise InvalidMotionError("joint_trajectory has no points; allowed are at least two")
    commanded_variables(robot, given.joint_trajectory.joint_names)
    return list(given.joint_trajectory.joint_names)


def check_numbers(context: Context, message: TrajectoryMessage) -> None:
    """Check a trajectory as far as that needs no look at the robot: numbers, and limits.

    A motion that runs is ended for one that passes, so that nobody's mistake stops the robot.

    Raises:
        KinoptError: it is not usable, or breaks a limit.
    """
    _check_points(message)
    motion = trajectory_from_message(message)
    if motion.time[0] != 0.0:
        raise InvalidMotionError(
            f"the first point is at {motion.time[0]:g} s; allowed is 0: nobody says how the robot gets to it"
        )
    _judge(context, context.loaded.model, motion, None)


def check_begin(context: Context, message: TrajectoryMessage) -> None:
    """Raise StartStateError unless the robot is where a trajectory begins that has passed ``check_numbers``: a motion
    that runs has taken it from there, or takes it there later, and is not ended for it."""
    robot = context.loaded.model
    variables = commanded_variables(robot, message.joint_names)
    state = context.joint_states.of(robot)
    begin = state.q.copy()
    begin[variables] = message.points[0].positions
    check_is_at(robot, state, begin, variables.tolist())


def check_given(
    context: Context, message: TrajectoryMessage, wanted: Callable[[], bool] = lambda: True
) -> PlannedFor:
    """Check a trajectory that has passed ``check_numbers``: limits of the robot, collisions all the way in the scene as
    it is now. Not on the executor's thread.

    Args:
        context: the node's.
        message: the trajectory.
        wanted: asked while it is waited; with False this ends.

    Returns:
        What the trajectory holds for, to be looked at once more before it is sent.

    Raises:
        KinoptError: it is not usable, breaks a limit or hits something; or nobody can say so.
    """
    loaded = context.loaded
    robot = loaded.model
    motion = trajectory_from_message(message)
    variables = commanded_variables(robot, motion.joint_names)
    needed = variables.tolist()
    state = context.joint_states.fresh(robot, needed, context.parameter("state_timeout"))
    state.require_known(needed, robot)
    around, scene, clearance = None, None, 0.0
    if context.parameter("ik.avoid_collisions"):
        deadline = time.monotonic() + context.parameter("trajectory.timeout")
        while wanted() and loaded.pool.must_wait(True, False, deadline):
            time.sleep(_LOOK_SECONDS)
        loaded.pool.check_prepared(True, False)
        scene, clearance = context.scene.of(robot), context.parameter("trajectory.clearance")
        around = Surroundings(robot, scene, state.q, variables, clearance)
    _judge(context, robot, motion, around)
    return PlannedFor(loaded, state.q, scene, clearance, _UNCHECKED)


def _judge(context: Context, robot: RobotModel, motion: JointTrajectory, around: Surroundings | None) -> None:
    """Raise a KinoptError unless a trajectory from rest keeps the limits, and hits nothing around it.

    Jerk is limited where the robot's description limits it.
    """
    variables = commanded_variables(robot, motion.joint_names)
    outside = context.parameter("start_state_tolerance")
    start = Start(motion.position[0], np.zeros(len(variables)), outside)
    found = verify(motion, _limits(robot, motion.joint_names, variables), start, around)
    if found.contact is not None:
        if found.contact.time == 0.0:
            raise StartInCollisionError(found.report.violations[0].message)
        raise EnvironmentChangedError(found.report.violations[0].message)
    if not found.report.ok:
        said = "; ".join(violation.message for violation in found.report.violations[:3])
        if any(violation.check.startswith("start") for violation in found.report.violations):
            raise StartStateError(said)
        raise InvalidMotionError(f"the trajectory is refused: {said}")


def _check_points(message: TrajectoryMessage) -> None:
    """Raise InvalidMotionError unless all points have all numbers."""
    n = len(message.joint_names)
    for k, point in enumerate(message.points):
        counts = {name: len(getattr(point, name)) for name in ("positions", "velocities", "accelerations")}
        wrong = [name for name, count in counts.items() if count != n]
        if wrong:
            raise InvalidMotionError(
                f"point {k} has {counts[wrong[0]]} {wrong[0]} for {n} joints; allowed is one each: controllers join "
                "points without them by lines or cubics, whose accelerations or jerks have no limit"
            )
        if any(point.effort):  # zeros, which some clients fill in, ask for nothing
            raise InvalidMotionError(
                f"point {k} has efforts other than 0, which are not supported here; leave them out. How hard a gripper "
                "grips is said by max_effort of its controller"
            )


def _limits(robot: RobotModel, joints: tuple[str, ...], variables: Any) -> TrajectoryLimits:
    """Return the robot's own limits; of jerk only those that its description gives."""
    own = robot.limits
    jerk = np.array(
        [
            np.inf if joint_named(robot, name).jerk is None else own.jerk[i]
            for name, i in zip(joints, variables, strict=True)
        ]
    )
    return TrajectoryLimits(
        own.lower[variables], own.upper[variables], own.velocity[variables], own.acceleration[variables], jerk
    )
