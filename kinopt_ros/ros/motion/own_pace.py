"""Joints that go to the end of a motion at their own pace: those of grippers, which are told positions alone.

Such a joint is on the way of its motion, but nobody knows when it is where. So besides what all motions have to keep,
it must not meet what the other joints of its motion move, whatever the timing of the two (``verification/beside.py``).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_ros.array import Float64
from kinopt_ros.errors import KinoptError, quoted
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.ros.motion.controllers import Part, only
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.scene.scene import Scene
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.beside import Way, first_meeting


class OwnPaceError(KinoptError):
    """A motion is free only if all joints keep its time, and some do not."""

    status = Status.VERIFICATION_FAILED


def in_time(running: Published, parts: Sequence[Part] | None) -> Published:
    """Return the part of a motion that is done in time, or all of it if no part is, or every one."""
    own = running.message.joint_names
    kept = [name for name in kept_joints(parts or ()) if name in own]  # a brake leaves out what stands
    if not kept or len(kept) == len(own):
        return running
    return of_joints(running, kept)


def of_joints(running: Published, joints: Sequence[str]) -> Published:
    """Return a motion of some of its joints."""
    return replace(running, message=only(running.message, joints))


def check_own_pace(
    robot: RobotModel,
    scene: Scene,
    q: Annotated[Float64, "nq"],
    whole: TrajectoryMessage,
    left: JointTrajectory,
    parts: Sequence[Part],
    clearance: float,
) -> None:
    """Check that joints that go at their own pace meet nothing that the others of their motion move.

    Args:
        robot: the robot.
        scene: what is around it.
        q: values of the joints that the motion leaves out, rad or m.
        whole: the motion.
        left: what is left of it.
        parts: the motion, by controllers.
        clearance: least distance (m) of bodies that must not touch.

    Raises:
        OwnPaceError: they may meet, or there are too many to say.
    """
    kept, own = (
        kept_joints(parts),
        [part.message.joint_names for part in parts if not part.controller.kind.keeps_time],
    )
    groups = [names for names in (kept, *own) if names]
    if len(groups) < 2 or not own:
        return  # one joint alone is on its way, whenever
    said = ", ".join(quoted(name) for names in own for name in names[:8])
    if len(groups) > 2:
        raise OwnPaceError(
            f"{said} go at the own paces of {len(own)} controllers: allowed is one such controller in a motion of "
            "other joints. Move one after the other"
        )
    ways = [
        _way(robot, left if names is kept else trajectory_from_message(whole), tuple(names))
        for names in groups
    ]
    meeting = first_meeting(robot, scene, q, ways[1], ways[0], clearance)
    if meeting is not None:
        raise OwnPaceError(
            f"{said} goes at its controller's own pace, and whatever that is it must not meet what the other joints "
            f"move, but {meeting.a!r} may come within {max(meeting.distance, 0.0):.4f} m of {meeting.b!r}. Move one "
            "after the other"
        )


def kept_joints(parts: Sequence[Part]) -> list[str]:
    """Return the joints of controllers that keep a motion's time, and end where it does."""
    return [name for part in parts if part.controller.kind.keeps_time for name in part.message.joint_names]


def _way(robot: RobotModel, motion: JointTrajectory, joints: tuple[str, ...]) -> Way:
    """Return the way of some joints of a motion."""
    columns = [motion.joint_names.index(name) for name in joints]
    rows = (array[:, columns] for array in (motion.position, motion.velocity, motion.acceleration))
    variables = np.array([robot.variable_index[name] for name in joints])
    return Way(variables, JointTrajectory(joints, motion.time, *rows))
