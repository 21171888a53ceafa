"""Evaluation of moveit_msgs/Constraints in a configuration, and refusal of those that are not supported."""

from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Pose

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, UnknownJointError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse, so3_log
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.ros.robot.tips import tip_of

_KINDS = ("joint_constraints", "position_constraints", "orientation_constraints", "visibility_constraints")
_ROUNDING = 1e-9
BOX, SPHERE, CYLINDER = 1, 2, 3
"""Types of shape_msgs/SolidPrimitive."""
EULER, VECTOR = 0, 1
"""Parameterizations of moveit_msgs/OrientationConstraint.

The first is angles about x, then the new y, then the new z; the second is a rotation vector."""


def refuse_constraints(constraints: Any, what: str, kinds: tuple[str, ...] = _KINDS) -> None:
    """Raise InvalidGoalError if there are constraints of some kinds."""
    given = [kind for kind in kinds if getattr(constraints, kind)]
    if given:
        raise InvalidGoalError(
            f"{what} has {' and '.join(given)}, which are not supported here; leave them out"
        )


def has_constraints(constraints: Any) -> bool:
    """Check whether there are constraints of any kind."""
    return any(getattr(constraints, kind) for kind in _KINDS)


def frames_of(constraints: Any) -> list[str]:
    """Return the frames that constraints are given in."""
    return [
        one.header.frame_id
        for one in (*constraints.position_constraints, *constraints.orientation_constraints)
    ]


def evaluate(
    context: Context,
    robot: RobotModel,
    constraints: Any,
    q: Annotated[Float64, "nq"],
    frames: Annotated[Float64, "nq"] | None = None,
) -> list[tuple[bool, float]]:
    """Evaluate constraints in MoveIt's order: joints, positions, orientations.

    Returns for each whether it is met, and its weight times the distance from the wanted value (rad or m; a sum of
    three angles for orientations). Frames are placed as in configuration ``frames``, by default as in q.

    Raises:
        KinoptError: one that is not usable, or not supported (visibility, meshes, cones and prisms).
    """
    refuse_constraints(constraints, "constraints", ("visibility_constraints",))
    at = q if frames is None else frames
    return [
        *(_joint(robot, one, q) for one in constraints.joint_constraints),
        *(
            _position(context, robot, one, q, at, f"position_constraints[{k}]")
            for k, one in enumerate(constraints.position_constraints)
        ),
        *(
            _orientation(context, robot, one, q, at, f"orientation_constraints[{k}]")
            for k, one in enumerate(constraints.orientation_constraints)
        ),
    ]


def _joint(robot: RobotModel, constraint: Any, q: Float64) -> tuple[bool, float]:
    name = constraint.joint_name
    joint = robot.joint_by_name.get(name)
    if name in robot.variable_index:
        value = q[robot.variable_index[name]]
    elif joint is not None and joint.mimics is not None:
        value = joint.multiplier * q[joint.first_variable] + joint.offset
    else:
        raise UnknownJointError(name, robot.variable_names)
    _finite(
        [constraint.position, constraint.tolerance_above, constraint.tolerance_below],
        f"the constraint of joint {name!r}",
    )
    away = float(value - constraint.position)
    if continuous_joints(robot, (name,))[0]:
        away = float(np.arctan2(np.sin(away), np.cos(away)))
    met = -constraint.tolerance_below - _ROUNDING <= away <= constraint.tolerance_above + _ROUNDING
    return bool(met), constraint.weight * abs(away)


def _position(
    context: Context, robot: RobotModel, constraint: Any, q: Float64, at: Float64, what: str
) -> tuple[bool, float]:
    region = constraint.constraint_region
    shapes, poses = list(region.primitives), list(region.primitive_poses)
    if region.meshes or not shapes or len(shapes) != len(poses):
        raise InvalidGoalError(
            f"{what} has {len(shapes)} primitives, {len(poses)} primitive_poses and {len(region.meshes)} meshes; "
            "allowed is at least one primitive, a pose for each, and no mesh"
        )
    o = constraint.target_point_offset
    _finite([o.x, o.y, o.z], f"{what}.target_point_offset")
    point = _T_root_link(context, robot, constraint.link_name, q) @ np.array([o.x, o.y, o.z, 1.0])
    T = context.frames.T_root_frame(
        robot, constraint.header.frame_id, at, constraint.header.stamp
    ) @ matrices_from_poses(poses, f"{what}.primitive_poses")
    inside = [
        _is_inside(shape, (inverse(T_root_shape) @ point)[:3], what)
        for shape, T_root_shape in zip(shapes, T, strict=True)
    ]
    nearest = inside.index(True) if any(inside) else len(shapes) - 1
    return any(inside), constraint.weight * float(np.linalg.norm(point[:3] - T[nearest, :3, 3]))


def _is_inside(shape: Any, p: Annotated[Float64, "3"], what: str) -> bool:
    counts = {BOX: 3, SPHERE: 1, CYLINDER: 2}
    size = list(shape.dimensions)
    if shape.type not in counts or len(size) != counts[shape.type]:
        raise InvalidGoalError(
            f"{what} has a primitive of type {shape.type} with {len(size)} dimensions; allowed are boxes with 3, "
            "spheres with 1 and cylinders with 2"
        )
    _finite(size, f"{what}.dimensions")
    if shape.type == BOX:
        return bool((np.abs(p) <= np.array(size) / 2.0 + _ROUNDING).all())
    if shape.type == SPHERE:
        return bool(np.linalg.norm(p) <= size[0] + _ROUNDING)
    height, radius = size
    return bool(abs(p[2]) <= height / 2.0 + _ROUNDING and np.hypot(p[0], p[1]) <= radius + _ROUNDING)


def _orientation(
    context: Context, robot: RobotModel, constraint: Any, q: Float64, at: Float64, what: str
) -> tuple[bool, float]:
    if constraint.parameterization not in (EULER, VECTOR):
        raise InvalidGoalError(
            f"{what}.parameterization is {constraint.parameterization}; allowed are 0 (XYZ_EULER_ANGLES) and 1 "
            "(ROTATIONVECTOR)"
        )
    wanted = matrices_from_poses([Pose(orientation=constraint.orientation)], what)[0]
    T_root_wanted = (
        context.frames.T_root_frame(robot, constraint.header.frame_id, at, constraint.header.stamp) @ wanted
    )
    R = (inverse(T_root_wanted) @ _T_root_link(context, robot, constraint.link_name, q))[:3, :3]
    tolerance = [
        constraint.absolute_x_axis_tolerance,
        constraint.absolute_y_axis_tolerance,
        constraint.absolute_z_axis_tolerance,
    ]
    _finite(tolerance, f"the tolerances of {what}")
    angles = np.abs(so3_log(R) if constraint.parameterization == VECTOR else euler_xyz(R))
    return bool((angles <= np.array(tolerance) + _ROUNDING).all()), constraint.weight * float(angles.sum())


def euler_xyz(R: Annotated[Float64, "3 3"]) -> Annotated[Float64, "3"]:
    """Return the angles of Rx(a) Ry(b) Rz(c), b in [-pi/2, pi/2]."""
    return np.array(
        [
            np.arctan2(-R[1, 2], R[2, 2]),
            np.arctan2(R[0, 2], np.hypot(R[0, 0], R[0, 1])),
            np.arctan2(-R[0, 1], R[0, 0]),
        ]
    )


def _T_root_link(context: Context, robot: RobotModel, name: str, q: Float64) -> Annotated[Float64, "4 4"]:
    tip = tip_of(context, robot, name)
    T: Float64 = forward_kinematics(robot, q, links=(tip.link,))[0]
    return T if tip.T_link_tip is None else T @ tip.T_link_tip


def _finite(values: list[float], what: str) -> None:
    if not np.isfinite(values).all():
        raise InvalidGoalError(f"{what}: {values} is not finite")
