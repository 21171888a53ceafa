"""~/get_scene: the scene as it is."""

from typing import Any

from kinopt_msgs.srv import GetScene
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.conversions import status_message
from kinopt_ros.ros.messages.scenes import scene_message
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.service import QueuedService
from kinopt_ros.status import Status


class GetSceneService(QueuedService):
    """Service that returns the scene in service."""

    name = "get_scene"
    type = GetScene

    def task(self, request: Any, reply: Reply) -> Task:
        """Return the task of a request, as QueuedService has it."""
        return HandlerTask(self.handle, request, reply)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if no robot is loaded."""
        robot = self._context.loaded.model
        response.scene = scene_message(self._context.scene.of(robot), robot, request.without_shapes)
        response.status = status_message(Status.SUCCESS)
