"""~/apply_scene and ~/get_scene."""

from typing import Any

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import error_message, status_message
from kinopt_ros.ros.messages.scenes import is_large, scene_message
from kinopt_ros.ros.requests import scene_changes
from kinopt_ros.ros.serving.serving import HandlerTask, Reply
from kinopt_ros.ros.topics.scene_topic import ScenePublisher
from kinopt_ros.status import Status

QUICK_OPERATIONS = 20
"""Requests of more go to the slow lane."""


class ApplySceneService:
    """Handler of kinopt_msgs/ApplyScene."""

    def __init__(self, context: Context, publisher: ScenePublisher) -> None:
        self._context = context
        self._publisher = publisher

    def task(self, request: Any, reply: Reply) -> Task:
        """The task of a request."""
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
        self._publisher.publish()


class GetSceneService:
    """Handler of kinopt_msgs/GetScene."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def task(self, request: Any, reply: Reply) -> Task:
        """The task of a request."""
        return HandlerTask(self.handle, request, reply)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if no robot is loaded."""
        robot = self._context.loaded.model
        response.scene = scene_message(self._context.scene.of(robot), robot, request.without_shapes)
        response.status = status_message(Status.SUCCESS)
