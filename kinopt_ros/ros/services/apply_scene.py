"""~/apply_scene: changes of the scene."""

from typing import Any

from kinopt_msgs.srv import ApplyScene
from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.conversions import error_message, status_message
from kinopt_ros.ros.messages.scenes import is_large
from kinopt_ros.ros.requests import scene_changes
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.service import QueuedService
from kinopt_ros.status import Status

QUICK_OPERATIONS = 20
"""Most operations of a quick request; requests of more go to the slow lane."""


class ApplySceneService(QueuedService):
    """Changes of the scene, made together or not at all."""

    name = "apply_scene"
    type = ApplyScene
    counts = True  # as refusals say the version of the scene

    def task(self, request: Any, reply: Reply) -> Task:
        """Return the task of a request, as QueuedService has it."""
        operations = request.operations
        slow = len(operations) > QUICK_OPERATIONS or any(is_large(o.object.shapes) for o in operations)
        return HandlerTask(self.handle, request, reply, slow=slow)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if no robot is loaded."""
        robot = self._context.loaded.model
        try:
            scene, assumed = scene_changes.apply(self._context, request)
        except KinoptError as error:
            response.status = error_message(error)
            response.version = self._context.scene.of(robot).version
            return
        response.status = status_message(Status.SUCCESS, assumed)
        response.version = scene.version
        self._context.publish_scene()
