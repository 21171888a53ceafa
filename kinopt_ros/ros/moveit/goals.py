"""Conversion of goals of motions, which MoveIt's clients give as constraints."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, UnknownJointError, shortened
from kinopt_ros.problems.trajectory_validation import check_number_of
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import matrices_from_poses, poses_from_matrices
from kinopt_ros.ros.moveit.constraints import BOX, CYLINDER, SPHERE, refuse_constraints

_Three = tuple[float, float, float]
_NAMED = 3
"""Most moved joints that a sentence names."""
_FREE = (math.inf, math.inf, math.inf)


@dataclass(frozen=True)
class _Shared:
    """Parts that all poses of a request have in common."""

    link: str
    offset: _Three
    """Offset of the constrained point in the link's frame, m."""
    position: _Three
    """Tolerances of the position along three axes, m."""
    orientation: _Three
    """Tolerances of the orientation about three axes, rad."""


def goal_fields(
    context: Context, robot: RobotModel, goals: Any, q: Annotated[Float64, "nq"]
) -> dict[str, Any]:
    """Return fields of kinopt_msgs/PlanTrajectory for goal_constraints, which are alternatives there, too.

    A goal is joint_constraints, or a position_constraint and an orientation_constraint, or one of these.

    Joint goals are reached exactly, positions to within the largest ball about the region's centre. Frames are where
    they are in configuration q; poses come out in the root link's frame.

    Raises:
        InvalidGoalError: constraints of other kinds, or poses of different links or tolerances.
    """
    joint_goals: list[JointState] = []
    T: list[Float64] = []
    shared: _Shared | None = None
    check_number_of("goal_constraints", len(goals))
    for k, goal in enumerate(goals):
        what = f"goal_constraints[{k}]"
        refuse_constraints(goal, what, ("visibility_constraints",))
        placed = (*goal.position_constraints, *goal.orientation_constraints)
        if bool(goal.joint_constraints) == bool(placed):
            raise InvalidGoalError(
                f"{what} has {len(goal.joint_constraints)} joint_constraints and {len(placed)} constraints of poses; "
                "allowed is one of the two kinds"
            )
        if goal.joint_constraints:
            names = [one.joint_name for one in goal.joint_constraints]
            for name in names:
                if name not in robot.variable_index and name not in robot.joint_by_name:
                    raise InvalidGoalError(f"{what}: {UnknownJointError(name, robot.variable_names)}")
            positions = [one.position for one in goal.joint_constraints]
            joint_goals.append(JointState(name=names, position=positions))
            continue
        T_root_goal, asked = _pose(context, robot, goal, q, what)
        if shared is not None and asked != shared:
            raise InvalidGoalError(
                f"{what} is for {asked}; the goal before it is for {shared}: these must be the same for all poses"
            )
        shared = asked
        T.append(T_root_goal)
    fields: dict[str, Any] = {"joint_goals": joint_goals}
    if shared is not None:
        fields |= {"poses": poses_from_matrices(np.array(T)), "tip_link": shared.link, "tool": Pose()}
        fields["tool"].position.x, fields["tool"].position.y, fields["tool"].position.z = shared.offset
        for kind in ("position", "orientation"):
            three = getattr(shared, kind)
            if len(set(three)) == 1 and math.isfinite(three[0]):
                fields[f"{kind}_tolerance"] = three[0]
            else:
                fields[f"{kind}_tolerances"] = list(three)
    return fields


def keep_limits(robot: RobotModel, goals: Any, tolerance: float) -> str:
    """Move joint constraints that are beyond a position limit to it; return a sentence that says so, or an empty one.

    They are moved as far as their own tolerances reach, or ``tolerance`` (rad or m).
    """
    moved = []
    for k, goal in enumerate(goals):
        for one in goal.joint_constraints:
            i = robot.variable_index.get(one.joint_name)
            if i is None:
                continue
            limit = min(max(one.position, robot.limits.lower[i]), robot.limits.upper[i])
            allowed = max(one.tolerance_below if limit < one.position else one.tolerance_above, tolerance)
            if limit != one.position and abs(limit - one.position) <= allowed:
                moved.append(
                    f"goal_constraints[{k}] moves {one.joint_name!r} from {one.position:.9g} to its limit {limit:.9g}"
                )
                one.position = float(limit)
    return "; ".join(moved[:_NAMED]) + (f"; and {len(moved) - _NAMED} more" if len(moved) > _NAMED else "")


def _pose(
    context: Context, robot: RobotModel, goal: Any, q: Float64, what: str
) -> tuple[Annotated[Float64, "4 4"], _Shared]:
    positions, orientations = goal.position_constraints, goal.orientation_constraints
    links = {one.link_name for one in (*positions, *orientations)}
    if len(positions) > 1 or len(orientations) > 1 or len(links) != 1:
        raise InvalidGoalError(
            f"{what} has {len(positions)} position_constraints and {len(orientations)} orientation_constraints of "
            f"links {shortened(sorted(links)) or 'none'}; allowed is one of each, of the same link"
        )
    T = np.eye(4)
    offset, near, turned = (0.0, 0.0, 0.0), _FREE, _FREE
    for one in positions:
        region = one.constraint_region
        if len(region.primitives) != 1 or len(region.primitive_poses) != 1 or region.meshes:
            raise InvalidGoalError(
                f"{what} has a region of {len(region.primitives)} primitives, {len(region.primitive_poses)} "
                f"primitive_poses and {len(region.meshes)} meshes; allowed is one primitive with its pose"
            )
        centre = matrices_from_poses(region.primitive_poses, f"{what}.primitive_poses")[0]
        T[:3, 3] = (context.frames.T_root_frame(robot, one.header.frame_id, q, one.header.stamp) @ centre)[
            :3, 3
        ]
        near = (_radius(region.primitives[0], what),) * 3
        offset = (one.target_point_offset.x, one.target_point_offset.y, one.target_point_offset.z)
    for one in orientations:
        wanted = matrices_from_poses([Pose(orientation=one.orientation)], f"{what}.orientation")[0]
        T[:3, :3] = (context.frames.T_root_frame(robot, one.header.frame_id, q, one.header.stamp) @ wanted)[
            :3, :3
        ]
        turned = (
            _angle(one.absolute_x_axis_tolerance),
            _angle(one.absolute_y_axis_tolerance),
            _angle(one.absolute_z_axis_tolerance),
        )
    return T, _Shared(links.pop(), offset, near, turned)


def _radius(shape: Any, what: str) -> float:
    """Return the radius (m) of the largest ball about the centre of a shape that is inside it."""
    size = list(shape.dimensions)
    if (shape.type, len(size)) not in ((BOX, 3), (SPHERE, 1), (CYLINDER, 2)):
        raise InvalidGoalError(
            f"{what} has a region of type {shape.type} with {len(size)} dimensions; allowed are boxes with 3, spheres "
            "with 1 and cylinders with 2"
        )
    if shape.type == SPHERE:
        return float(size[0])
    if shape.type == BOX:
        return float(min(size)) / 2.0
    return float(min(size[0] / 2.0, size[1]))


def _angle(tolerance: float) -> float:
    """Return the tolerance about an axis; infinite for half a turn or more, since no turn is farther."""
    return math.inf if tolerance >= math.pi else float(tolerance)
