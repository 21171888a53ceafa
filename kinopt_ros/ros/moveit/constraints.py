"""Evaluation of moveit_msgs/Constraints in a configuration, and refusal of those that are not supported."""

from typing import Annotated, Any, TypeAlias

import numpy as np
from geometry_msgs.msg import Pose

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import InvalidGoalError, UnknownJointError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse, so3_log
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.ros.robot.tips import tip_of

_KINDS = ("joint_constraints", "position_constraints", "orientation_constraints", "visibility_constraints")
MOST = 64
"""Most constraints of poses in one message, their primitives counted; and of joints besides one for each."""
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
    """Evaluate constraints in one configuration: whether each is met, and its distance; see ``evaluate_all``.

    Frames are placed as in configuration ``frames``, by default as in q.
    """
    met, distance = evaluate_all(context, robot, constraints, q[None], q if frames is None else frames)
    return [(bool(one[0]), float(other[0])) for one, other in zip(met, distance, strict=True)]


def evaluate_all(
    context: Context,
    robot: RobotModel,
    constraints: Any,
    q: Annotated[Float64, "N nq"],
    frames: Annotated[Float64, "nq"],
) -> tuple[Annotated[Bool, "C N"], Annotated[Float64, "C N"]]:
    """Evaluate C constraints in N configurations, in MoveIt's order: joints, positions, orientations.

    Returns for each whether it is met, and its weight times the distance from the wanted value (rad or m; a sum of
    three angles for orientations). Frames are placed as in configuration ``frames``.

    Raises:
        KinoptError: one that is not usable, or not supported (visibility, meshes, cones and prisms), or too many.
    """
    refuse_constraints(constraints, "constraints", ("visibility_constraints",))
    _refuse_many(robot, constraints)
    found = [
        *(_joint(robot, one, q) for one in constraints.joint_constraints),
        *(
            _position(context, robot, one, q, frames, f"position_constraints[{k}]")
            for k, one in enumerate(constraints.position_constraints)
        ),
        *(
            _orientation(context, robot, one, q, frames, f"orientation_constraints[{k}]")
            for k, one in enumerate(constraints.orientation_constraints)
        ),
    ]
    shape = (len(found), len(q))
    met = np.array([one for one, _ in found], dtype=bool).reshape(shape)
    return met, np.array([distance for _, distance in found], dtype=np.float64).reshape(shape)


def _refuse_many(robot: RobotModel, constraints: Any) -> None:
    """Refuse more constraints than anybody needs: each is evaluated all along a motion."""
    joints, most = len(constraints.joint_constraints), len(robot.joint_by_name) + MOST
    if joints > most:
        raise InvalidGoalError(f"{joints} joint_constraints are given; allowed are up to {most}")
    shapes = sum(len(one.constraint_region.primitives) for one in constraints.position_constraints)
    placed = max(shapes, len(constraints.position_constraints)) + len(constraints.orientation_constraints)
    if placed > MOST:
        raise InvalidGoalError(
            f"{placed} primitives of position_constraints and orientation_constraints are given; allowed are up to "
            f"{MOST} in all"
        )


_Found: TypeAlias = tuple[Annotated[Bool, "N"], Annotated[Float64, "N"]]
"""Whether a constraint is met, and its weighted distance, in each configuration."""


def _joint(robot: RobotModel, constraint: Any, q: Annotated[Float64, "N nq"]) -> _Found:
    name = constraint.joint_name
    joint = robot.joint_by_name.get(name)
    if name in robot.variable_index:
        value = q[:, robot.variable_index[name]]
    elif joint is not None and joint.mimics is not None:
        value = joint.multiplier * q[:, joint.first_variable] + joint.offset
    else:
        raise UnknownJointError(name, robot.variable_names)
    _finite(
        [constraint.position, constraint.tolerance_above, constraint.tolerance_below],
        f"the constraint of joint {name!r}",
    )
    away = value - constraint.position
    if continuous_joints(robot, (name,))[0]:
        away = np.arctan2(np.sin(away), np.cos(away))
    met = (-constraint.tolerance_below - _ROUNDING <= away) & (away <= constraint.tolerance_above + _ROUNDING)
    return met, constraint.weight * np.abs(away)


def _position(
    context: Context,
    robot: RobotModel,
    constraint: Any,
    q: Annotated[Float64, "N nq"],
    frames: Annotated[Float64, "nq"],
    what: str,
) -> _Found:
    region = constraint.constraint_region
    shapes, poses = list(region.primitives), list(region.primitive_poses)
    if region.meshes or not shapes or len(shapes) != len(poses):
        raise InvalidGoalError(
            f"{what} has {len(shapes)} primitives, {len(poses)} primitive_poses and {len(region.meshes)} meshes; "
            "allowed is at least one primitive, a pose for each, and no mesh"
        )
    o = constraint.target_point_offset
    _finite([o.x, o.y, o.z], f"{what}.target_point_offset")
    points = _T_root_link(context, robot, constraint.link_name, q) @ np.array([o.x, o.y, o.z, 1.0])
    T = context.frames.T_root_frame(
        robot, constraint.header.frame_id, frames, constraint.header.stamp
    ) @ matrices_from_poses(poses, f"{what}.primitive_poses")
    inside = np.array(
        [
            _is_inside(shape, (points @ inverse(T_root_shape).T)[:, :3], what)
            for shape, T_root_shape in zip(shapes, T, strict=True)
        ]
    )
    met = np.asarray(inside.any(axis=0))
    nearest = np.where(met, inside.argmax(axis=0), len(shapes) - 1)  # the first one that it is in
    return met, constraint.weight * np.linalg.norm(points[:, :3] - T[nearest, :3, 3], axis=1)


def _is_inside(shape: Any, p: Annotated[Float64, "N 3"], what: str) -> Annotated[Bool, "N"]:
    counts = {BOX: 3, SPHERE: 1, CYLINDER: 2}
    size = list(shape.dimensions)
    if shape.type not in counts or len(size) != counts[shape.type]:
        raise InvalidGoalError(
            f"{what} has a primitive of type {shape.type} with {len(size)} dimensions; allowed are boxes with 3, "
            "spheres with 1 and cylinders with 2"
        )
    _finite(size, f"{what}.dimensions")
    if shape.type == BOX:
        inside = np.asarray((np.abs(p) <= np.array(size) / 2.0 + _ROUNDING).all(axis=1))
    elif shape.type == SPHERE:
        inside = np.linalg.norm(p, axis=1) <= size[0] + _ROUNDING
    else:
        height, radius = size
        inside = (np.abs(p[:, 2]) <= height / 2.0 + _ROUNDING) & (
            np.hypot(p[:, 0], p[:, 1]) <= radius + _ROUNDING
        )
    return inside


def _orientation(
    context: Context,
    robot: RobotModel,
    constraint: Any,
    q: Annotated[Float64, "N nq"],
    frames: Annotated[Float64, "nq"],
    what: str,
) -> _Found:
    if constraint.parameterization not in (EULER, VECTOR):
        raise InvalidGoalError(
            f"{what}.parameterization is {constraint.parameterization}; allowed are 0 (XYZ_EULER_ANGLES) and 1 "
            "(ROTATIONVECTOR)"
        )
    wanted = matrices_from_poses([Pose(orientation=constraint.orientation)], what)[0]
    T_root_wanted = (
        context.frames.T_root_frame(robot, constraint.header.frame_id, frames, constraint.header.stamp)
        @ wanted
    )
    R = (inverse(T_root_wanted) @ _T_root_link(context, robot, constraint.link_name, q))[:, :3, :3]
    tolerance = [
        constraint.absolute_x_axis_tolerance,
        constraint.absolute_y_axis_tolerance,
        constraint.absolute_z_axis_tolerance,
    ]
    _finite(tolerance, f"the tolerances of {what}")
    angles = np.abs(so3_log(R) if constraint.parameterization == VECTOR else euler_xyz(R))
    met = np.asarray((angles <= np.array(tolerance) + _ROUNDING).all(axis=1))
    return met, constraint.weight * angles.sum(axis=1)


def euler_xyz(R: Annotated[Float64, "... 3 3"]) -> Annotated[Float64, "... 3"]:
    """Return the angles of Rx(a) Ry(b) Rz(c), b in [-pi/2, pi/2]."""
    angles: Float64 = np.stack(
        [
            np.arctan2(-R[..., 1, 2], R[..., 2, 2]),
            np.arctan2(R[..., 0, 2], np.hypot(R[..., 0, 0], R[..., 0, 1])),
            np.arctan2(-R[..., 0, 1], R[..., 0, 0]),
        ],
        axis=-1,
    )
    return angles


def _T_root_link(
    context: Context, robot: RobotModel, name: str, q: Annotated[Float64, "N nq"]
) -> Annotated[Float64, "N 4 4"]:
    tip = tip_of(context, robot, name)
    T: Float64 = forward_kinematics(robot, q, links=(tip.link,))[:, 0]
    return T if tip.T_link_tip is None else T @ tip.T_link_tip


def _finite(values: list[float], what: str) -> None:
    if not np.isfinite(values).all():
        raise InvalidGoalError(f"{what}: {values} is not finite")
