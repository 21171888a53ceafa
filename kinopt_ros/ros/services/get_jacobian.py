"""~/get_jacobian: how joint velocities move a tip."""

from typing import Any

from kinopt_msgs.srv import GetJacobian
from kinopt_ros.kinematics.differential import frame_jacobian
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.conversions import flat_array
from kinopt_ros.ros.requests.differential import fill_common, read_differential_request
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.service import QueuedService


class GetJacobianService(QueuedService):
    """Service that computes the Jacobian of a tip in one state."""

    name = "get_jacobian"
    type = GetJacobian

    def task(self, request: Any, reply: Reply) -> Task:
        """Return the task of a request, as QueuedService has it."""
        return HandlerTask(self.handle, request, reply)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if the request cannot be answered."""
        asked = read_differential_request(self._context, request)
        jacobian = frame_jacobian(
            asked.robot, asked.base, asked.tip, asked.variables, asked.q, asked.frame, asked.T_link_tool
        )
        response.jacobian = flat_array(jacobian.J)
        fill_common(self._context, response, asked, jacobian)
