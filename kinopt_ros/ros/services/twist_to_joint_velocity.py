"""~/twist_to_joint_velocity: joint velocities that move a tip as wanted."""

from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Twist, Vector3

from kinopt_msgs.srv import TwistToJointVelocity
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.differential import CHECKS, joint_velocity
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.conversions import flat_array, nonnegative
from kinopt_ros.ros.requests.differential import fill_common, read_differential_request
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.service import QueuedService


class TwistToJointVelocityService(QueuedService):
    """Service that computes joint velocities within the limits for a twist of a tip."""

    name = "twist_to_joint_velocity"
    type = TwistToJointVelocity

    def task(self, request: Any, reply: Reply) -> Task:
        """Return the task of a request, as QueuedService has it."""
        return HandlerTask(self.handle, request, reply)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if the request cannot be answered."""
        asked = read_differential_request(self._context, request)
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
        fill_common(self._context, response, asked, answer.jacobian)


def _twist_message(twist: Annotated[Float64, "6"]) -> Twist:
    vx, vy, vz, wx, wy, wz = twist.tolist()
    return Twist(linear=Vector3(x=vx, y=vy, z=vz), angular=Vector3(x=wx, y=wy, z=wz))
