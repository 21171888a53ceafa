"""Path constraints of MoveIt's requests, as what holds all along a motion of ours.

MoveIt measures turns by angles about x, y, z one after the other, or by a rotation vector; ``PoseAlong`` by a rotation
vector, or by the swing where one axis is free (``kinematics/pose_errors.py``). So tolerances are narrowed here: what
keeps ours keeps MoveIt's, and every motion is evaluated once more by MoveIt's own measure (``broken``).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Point, Pose

from kinopt_msgs.msg import JointRange, PoseAlong
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, KinoptError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import matrices_from_poses, poses_from_matrices
from kinopt_ros.ros.moveit.constraints import (
    CYLINDER,
    SPHERE,
    VECTOR,
    evaluate,
    evaluate_all,
    refuse_constraints,
)
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate as interpolate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

_WIDEST = 1.2
"""Largest tilt (rad) that two angles about x and y may leave together; tolerances beyond are narrowed to it."""
_TURNED = 0.45
"""Share of tolerances that is left where the third axis turns freely: at half a turn a rotation vector is longer than
the tilt by pi/2, and lies between the two axes."""
_FIRST_ANGLES = 0.7
"""Share of tolerances of three angles of up to ``_SMALL`` that a rotation vector may use."""
_SMALL = 0.5
"""rad."""
SAMPLE = 0.02
"""Time between the samples of a motion that are evaluated, s."""
_FEWEST, _MOST = 50, 500


class StartBreaksError(KinoptError):
    """The start breaks path_constraints."""

    status = Status.START_STATE_VIOLATES_PATH_CONSTRAINTS


@dataclass(frozen=True)
class Kept:
    """Fields of kinopt_msgs/PlanTrajectory for what holds all the way."""

    along: list[PoseAlong] = field(default_factory=list)
    joint_ranges: list[JointRange] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.along or self.joint_ranges)


def kept_along(context: Context, robot: RobotModel, constraints: Any, q: Annotated[Float64, "nq"]) -> Kept:
    """Return what has to hold all the way, for path_constraints whose frames are where they are in configuration q.

    Raises:
        InvalidGoalError: constraints of other kinds, or that cannot be used.
    """
    refuse_constraints(constraints, "path_constraints", ("visibility_constraints",))
    evaluate(context, robot, constraints, q)  # refuses what cannot be evaluated
    kept = Kept()
    for one in constraints.joint_constraints:
        if one.joint_name not in robot.variable_index:
            raise InvalidGoalError(
                f"path_constraints names {one.joint_name!r}, which has no variable of its own; allowed are joints that "
                "move by themselves"
            )
        lower, upper = one.position - one.tolerance_below, one.position + one.tolerance_above
        kept.joint_ranges.append(JointRange(joint=one.joint_name, lower=lower, upper=upper))
    for k, one in enumerate(constraints.position_constraints):
        kept.along.append(_region(context, robot, one, q, f"path_constraints.position_constraints[{k}]"))
    for k, one in enumerate(constraints.orientation_constraints):
        kept.along.extend(
            _orientation(context, robot, one, q, f"path_constraints.orientation_constraints[{k}]")
        )
    return kept


def _region(context: Context, robot: RobotModel, one: Any, q: Float64, what: str) -> PoseAlong:
    region = one.constraint_region
    if len(region.primitives) != 1:
        raise InvalidGoalError(
            f"{what} has a region of {len(region.primitives)} primitives; allowed all along a motion is one"
        )
    shape, size = region.primitives[0], list(region.primitives[0].dimensions)
    if shape.type == SPHERE:
        half = [size[0] / math.sqrt(3.0)] * 3
    elif shape.type == CYLINDER:
        half = [size[1] / math.sqrt(2.0)] * 2 + [size[0] / 2.0]
    else:
        half = [length / 2.0 for length in size]
    centre = matrices_from_poses(region.primitive_poses, what)[0]
    T = context.frames.T_root_frame(robot, one.header.frame_id, q, one.header.stamp) @ centre
    offset = one.target_point_offset
    return PoseAlong(
        link=one.link_name,
        tool=Pose(position=Point(x=offset.x, y=offset.y, z=offset.z)),
        pose=poses_from_matrices(T[None]),
        position_tolerances=half,
    )


def _orientation(context: Context, robot: RobotModel, one: Any, q: Float64, what: str) -> Iterator[PoseAlong]:
    given = [one.absolute_x_axis_tolerance, one.absolute_y_axis_tolerance, one.absolute_z_axis_tolerance]
    tolerances = narrowed(given, one.parameterization == VECTOR)
    if not any(map(math.isfinite, tolerances)):
        return  # all turns are allowed
    wanted = matrices_from_poses([Pose(orientation=one.orientation)], what)[0]
    T = context.frames.T_root_frame(robot, one.header.frame_id, q, one.header.stamp) @ wanted
    yield PoseAlong(link=one.link_name, pose=poses_from_matrices(T[None]), orientation_tolerances=tolerances)


def narrowed(given: list[float], as_vector: bool) -> list[float]:
    """Return tolerances (rad) of a PoseAlong's orientation that imply those given, as far as is known.

    Args:
        given: about x, y, z; half a turn or more frees an axis.
        as_vector: whether they bound a rotation vector, not angles about x, then y, then z.

    Raises:
        InvalidGoalError: nothing of ours implies them.
    """
    free = [tolerance >= math.pi for tolerance in given]
    if free == [False, False, True] and not as_vector:
        return _two_angles(given[0], given[1])
    if not any(free):
        share = 1.0 if as_vector else _FIRST_ANGLES
        most = math.inf if as_vector else _SMALL
    elif sum(free) == 1:
        share, most = _TURNED, min(given)  # the two axes change places as the third one turns
    elif as_vector or all(free):
        share, most = _TURNED, math.inf
    else:
        raise InvalidGoalError(
            f"an orientation all along a motion has tolerances {given}; angles one after the other of which two are "
            "free are not supported: allowed is one free axis, or none, or parameterization 1 (ROTATION_VECTOR)"
        )
    return [
        math.inf if axis_free else share * min(tolerance, most)
        for tolerance, axis_free in zip(given, free, strict=True)
    ]


def _two_angles(x: float, y: float) -> list[float]:
    """Return tolerances of the swing that leave angles a about x and then b about y within x and y (rad).

    For a swing (s_x, s_y) of size t, tan a = s_x tan(t) / t and sin b = s_y sin(t) / t.
    """
    tilt = math.hypot(x, y)
    if tilt > _WIDEST:
        x, y, tilt = x * _WIDEST / tilt, y * _WIDEST / tilt, _WIDEST
    return [math.tan(x) * tilt / math.tan(tilt) if tilt > 0.0 else 0.0, y, math.inf]


def check_start(
    context: Context,
    robot: RobotModel,
    constraints: Any,
    start: Annotated[Float64, "nq"],
    frames: Annotated[Float64, "nq"],
) -> None:
    """Raise StartBreaksError if a start breaks path_constraints; arguments as of ``broken``."""
    met = [one for one, _ in evaluate(context, robot, constraints, start, frames)]
    if not all(met):
        raise StartBreaksError(f"path_constraints: constraint {met.index(False)} is not kept at the start")


def broken(
    context: Context,
    robot: RobotModel,
    constraints: Any,
    trajectory: JointTrajectory,
    start: Annotated[Float64, "nq"],
    frames: Annotated[Float64, "nq"],
) -> str:
    """Return where a motion breaks path_constraints by MoveIt's measure, as a sentence; empty if nowhere.

    Args:
        context: of the node.
        robot: the robot.
        constraints: moveit_msgs/Constraints.
        trajectory: the motion.
        start: configuration of the whole robot at its start.
        frames: configuration in which frames are placed.
    """
    count = int(np.clip(math.ceil(trajectory.duration / SAMPLE), _FEWEST, _MOST))
    # At the points, too: a way turns there.
    times = np.union1d(np.linspace(0.0, trajectory.duration, count + 1), trajectory.time)
    columns = [robot.variable_index[name] for name in trajectory.joint_names]
    q = np.repeat(start[None], len(times), axis=0)
    q[:, columns] = interpolate(trajectory, times)[0]
    met = evaluate_all(context, robot, constraints, q, frames)[0]
    breaks = np.flatnonzero(~met.all(axis=0))
    if not len(breaks):
        return ""
    first = int(breaks[0])
    return (
        f"path_constraints: constraint {int(met[:, first].argmin())} is not kept after {times[first]:.3f} s"
    )
