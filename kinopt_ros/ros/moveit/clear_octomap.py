"""clear_octomap, as move_group offers it."""

from collections.abc import Callable
from typing import Any

from std_srvs.srv import Empty

from kinopt_msgs.srv import ApplyScene
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.conversions import status_message
from kinopt_ros.ros.moveit.planning_scene import MoveItScene
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.status import Status


class ClearOctomapService(MoveItService):
    """Removes the octomap; what else is in the scene stays."""

    name = "clear_octomap"
    type = Empty
    answer = ApplyScene.Response

    def __init__(self, scene: MoveItScene, publish: Callable[[], None]) -> None:
        """``publish``: publishes the scene."""
        self._scene = scene
        self._publish = publish

    def task(self, request: Any, reply: Reply) -> tuple[Task, Any]:
        """Return the task of a request, as MoveItService has it."""
        return HandlerTask(self._handle, request, reply), None

    def write(self, response: Any, answer: Any, asked: Any) -> None:
        """Leave the response empty: it has no room for how it went, the log has."""

    def _handle(self, request: Any, answer: Any) -> None:
        del request
        self._scene.clear_octomap()
        self._publish()
        answer.status = status_message(Status.SUCCESS)
