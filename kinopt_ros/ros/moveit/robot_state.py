"""Reading and writing of moveit_msgs/RobotState."""

from array import array
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Transform, Vector3
from sensor_msgs.msg import JointState

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidStateError, UnknownJointError, shortened
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse, matrix_to_quaternion
from kinopt_ros.robot.model import Joint, JointType, RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import (
    configuration_from_joint_state,
    matrices_from_poses,
    pose_of_transform,
    poses_from_matrices,
)

_SEVERAL = (JointType.PLANAR, JointType.FLOATING)


def joint_state_of(state: Any, robot: RobotModel) -> JointState:
    """Return what a RobotState says of joints; those it does not name keep their present state, with is_diff and
    without.

    Raises:
        InvalidStateError: it attaches objects, or is not usable.
        UnknownJointError: a joint that the robot does not have.
    """
    if state.attached_collision_objects:
        names = shortened([attached.object.id for attached in state.attached_collision_objects])
        raise InvalidStateError(
            f"robot_state attaches {names} in attached_collision_objects, which is not supported here: attach them in "
            "the scene by ~/apply_scene; attached objects of the scene always count"
        )
    return joints_of(state, robot)


def joints_of(state: Any, robot: RobotModel) -> JointState:
    """Return what a RobotState says of joints, as ``joint_state_of`` does, whatever it attaches."""
    given = state.joint_state
    if len(given.name) != len(given.position):
        raise InvalidStateError(
            f"robot_state.joint_state has {len(given.name)} names and {len(given.position)} positions; they must be "
            "equal"
        )
    several = state.multi_dof_joint_state
    if len(several.joint_names) != len(several.transforms):
        raise InvalidStateError(
            f"robot_state.multi_dof_joint_state has {len(several.joint_names)} names and {len(several.transforms)} "
            "transforms; they must be equal"
        )
    if not several.joint_names:  # most robots
        return given
    result = JointState(name=list(given.name), position=list(given.position), velocity=list(given.velocity))
    T = matrices_from_poses(
        [pose_of_transform(transform) for transform in several.transforms],
        "robot_state.multi_dof_joint_state.transforms",
        InvalidStateError,
    )
    for name, motion in zip(several.joint_names, T, strict=True):
        joint = _joint_of_several(robot, name)
        values = _variables(joint, motion)
        result.name.extend(robot.variable_names[i] for i in robot.variables_of(name))
        result.position.extend(values)
        if result.velocity:
            result.velocity.extend([0.0] * len(values))
    return result


def configuration_of(context: Context, state: JointState, frames: Sequence[str]) -> Annotated[Float64, "nq"]:
    """Return the configuration that a request is about, complete as far as the poses of some frames need it.

    Raises:
        KinoptError: the present state lacks what they need, or ``state`` is not usable.
    """
    robot = context.loaded.model
    ways = [(robot.root_link, frame) for frame in frames]
    present = context.configuration(robot, ways, frozenset(state.name))
    return configuration_from_joint_state(state, robot, present)


def fill_robot_state(message: Any, robot: RobotModel, q: Annotated[Float64, "nq"]) -> None:
    """Write the state of all joints that move into a RobotState, mimic joints included, as MoveIt does."""
    names: list[str] = []
    positions = array("d")
    values = q.tolist()
    several = message.multi_dof_joint_state
    for joint in robot.joints:
        if joint.type is JointType.FIXED:
            continue
        if joint.type in _SEVERAL:
            if joint.is_active:
                several.joint_names.append(joint.name)
                several.transforms.append(_motion(robot, joint, q))
            continue
        names.append(joint.name)
        positions.append(joint.multiplier * values[joint.first_variable] + joint.offset)
    message.joint_state.name = names
    message.joint_state.position = positions
    message.joint_state.header.frame_id = robot.root_link
    several.header.frame_id = robot.root_link


def _joint_of_several(robot: RobotModel, name: str) -> Joint:
    joint = robot.joint_by_name.get(name)
    if joint is None or joint.type not in _SEVERAL or not joint.is_active:
        virtual = robot.virtual_joint
        if joint is None and virtual is not None and virtual.name == name:
            raise InvalidStateError(
                f"multi_dof_joint_state moves the virtual joint {name!r}, which is held: set parameter virtual_joint, "
                "or leave it out"
            )
        if joint is None:
            raise UnknownJointError(name, robot.joint_by_name)
        raise InvalidStateError(
            f"multi_dof_joint_state names {name!r}, which is a {joint.type.value} joint; allowed are planar and "
            "floating ones"
        )
    if joint.type is JointType.PLANAR and not np.allclose(joint.axis, [0.0, 0.0, 1.0]):
        raise InvalidStateError(
            f"multi_dof_joint_state names {name!r}, whose plane is not x y: give its variables "
            f"{', '.join(robot.variable_names[i] for i in robot.variables_of(name))} in joint_state"
        )
    return joint


def _variables(joint: Joint, T: Annotated[Float64, "4 4"]) -> list[float]:
    """Return the variables of a planar or floating joint for its motion."""
    if joint.type is JointType.PLANAR:
        return [float(T[0, 3]), float(T[1, 3]), float(np.arctan2(T[1, 0], T[0, 0]))]
    return [*T[:3, 3].tolist(), *matrix_to_quaternion(T[:3, :3]).tolist()]


def _motion(robot: RobotModel, joint: Joint, q: Annotated[Float64, "nq"]) -> Transform:
    """Return the motion of a planar or floating joint."""
    T_root_parent, T_root_child = forward_kinematics(robot, q, links=(joint.parent_link, joint.child_link))
    [pose] = poses_from_matrices((inverse(T_root_parent @ joint.T_parent_joint) @ T_root_child)[None])
    p = pose.position
    return Transform(translation=Vector3(x=p.x, y=p.y, z=p.z), rotation=pose.orientation)
