"""get_planning_scene, as move_group offers it: the scene, or parts of it."""

from typing import Any

from moveit_msgs.srv import GetPlanningScene

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.conversions import status_message
from kinopt_ros.ros.moveit.planning_scene import MoveItScene
from kinopt_ros.ros.moveit.scene_answers import EVERYTHING
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.status import Status


class _Answer:
    """A scene, and how it went."""

    def __init__(self) -> None:
        self.status = StatusMsg()
        self.scene: Any = None


class GetPlanningSceneService(MoveItService):
    """The components that are asked for; 0 are all."""

    name = "get_planning_scene"
    type = GetPlanningScene
    answer = _Answer

    def __init__(self, scene: MoveItScene) -> None:
        self._scene = scene

    def task(self, request: Any, reply: Reply) -> tuple[Task, Any]:
        """Return the task of a request, as MoveItService has it."""
        return HandlerTask(self._handle, request, reply, slow=True), None

    def write(self, response: Any, answer: Any, asked: Any) -> None:
        """Fill the response: an empty scene if it went wrong."""
        if answer.scene is not None:
            response.scene = answer.scene

    def _handle(self, request: Any, answer: Any) -> None:
        answer.scene = self._scene.message(request.components.components or EVERYTHING)
        answer.status = status_message(Status.SUCCESS)
