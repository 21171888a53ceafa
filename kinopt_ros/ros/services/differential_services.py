"""~/get_jacobian and ~/twist_to_joint_velocity."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Twist, Vector3

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.differential import BASE, CHECKS, FrameJacobian, frame_jacobian, joint_velocity
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.problems.chains import resolve_joints
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import (
    configuration_from_joint_state,
    flat_array,
    matrices_from_poses,
    nonnegative,
    status_message,
)
from kinopt_ros.ros.robot.tips import tip_of
from kinopt_ros.ros.serving.serving import HandlerTask, Reply
from kinopt_ros.status import Status

SINGULAR_LOG_SECONDS = 5.0
"""At most one line about singularities in so many seconds; every answer says it in ``near_singular``."""


@dataclass(frozen=True, eq=False)
class _Asked:
    """What both requests have in common."""

    robot: RobotModel
    base: str
    tip: str
    variables: Annotated[Int64, "n"]
    q: Annotated[Float64, "nq"]
    T_link_tool: Annotated[Float64, "4 4"]
    frame: str
    assumed: str


class JacobianService:
    """Handler of kinopt_msgs/GetJacobian."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def task(self, request: Any, reply: Reply) -> Task:
        """The task of a request."""
        return HandlerTask(self.handle, request, reply)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if the request cannot be answered."""
        asked = _read(self._context, request)
        jacobian = frame_jacobian(
            asked.robot, asked.base, asked.tip, asked.variables, asked.q, asked.frame, asked.T_link_tool
        )
        response.jacobian = flat_array(jacobian.J)
        _fill(self._context, response, asked, jacobian)


class TwistService:
    """Handler of kinopt_msgs/TwistToJointVelocity."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def task(self, request: Any, reply: Reply) -> Task:
        """The task of a request."""
        return HandlerTask(self.handle, request, reply)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if the request cannot be answered."""
        asked = _read(self._context, request)
        linear, angular = request.twist.linear, request.twist.angular
        answer = joint_velocity(
            asked.robot,
            asked.base,
            asked.tip,
            asked.variables,
            asked.q,
            np.array([linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]),
            asked.frame,
            asked.T_link_tool,
            nonnegative(request.velocity_scaling, "velocity_scaling", InvalidRequestError, 1.0),
        )
        response.velocities = flat_array(answer.velocity)
        response.scale = answer.scale
        response.achieved = _twist_message(answer.achieved)
        response.residual = _twist_message(answer.residual)
        response.blocked_joints = list(answer.blocked)
        response.checks = list(CHECKS)
        _fill(self._context, response, asked, answer.jacobian)


def _read(context: Context, request: Any) -> _Asked:
    robot = context.loaded.model
    group = request.group or None
    if group is None and not request.tip_link:
        group = context.group_name(robot)
    tip = tip_of(context, robot, request.tip_link) if request.tip_link else None
    base, tips, joints = resolve_joints(
        robot,
        group,
        request.base_link or None,
        None if tip is None else (tip.link,),
        (),
        tuple(request.locked_joints),
        (),
    )
    ways = [(base, tips[0]), (robot.root_link, base)]
    state = context.joint_states.of(robot)
    q = context.configuration(robot, ways, frozenset(request.state.name), state)
    q = configuration_from_joint_state(request.state, robot, q)
    T_tip_tool = matrices_from_poses([request.tool], "tool")[0]
    T_link_tool = None if tip is None else tip.with_tool(T_tip_tool)
    return _Asked(
        robot,
        base,
        tips[0],
        variables_of_joints(robot, joints),
        q,
        T_tip_tool if T_link_tool is None else T_link_tool,
        request.frame or BASE,
        context.assumed(robot, ways, set(request.state.name), state),
    )


def _fill(context: Context, response: Any, asked: _Asked, jacobian: FrameJacobian) -> None:
    response.joint_names = [asked.robot.variable_names[i] for i in asked.variables]
    response.smallest_singular_value = jacobian.smallest
    response.largest_singular_value = jacobian.largest
    response.near_singular = jacobian.near_singular
    response.status = status_message(Status.SUCCESS, asked.assumed)
    if jacobian.near_singular:
        context.node.get_logger().warning(
            f"near a singularity: the singular values of {asked.tip!r} against {asked.base!r} reach from "
            f"{jacobian.smallest:.3g} to {jacobian.largest:.3g}",
            throttle_duration_sec=SINGULAR_LOG_SECONDS,
        )


def _twist_message(twist: Annotated[Float64, "6"]) -> Twist:
    vx, vy, vz, wx, wy, wz = twist.tolist()
    return Twist(linear=Vector3(x=vx, y=vy, z=vz), angular=Vector3(x=wx, y=wy, z=wz))
