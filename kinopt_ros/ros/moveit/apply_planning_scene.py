"""apply_planning_scene, as move_group offers it."""

from collections.abc import Callable
from typing import Any

from moveit_msgs.srv import ApplyPlanningScene

from kinopt_msgs.srv import ApplyScene
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.conversions import status_message
from kinopt_ros.ros.moveit.planning_scene import MoveItScene
from kinopt_ros.ros.moveit.scene_objects import objects_of
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.status import Status

QUICK_OBJECTS = 20
"""Most objects of a quick request; more, and meshes and octomaps, go to the slow lane."""


class ApplyPlanningSceneService(MoveItService):
    """Changes of the scene by a diff, or a whole one in its place: all of it or nothing."""

    name = "apply_planning_scene"
    type = ApplyPlanningScene
    answer = ApplyScene.Response
    counts = True

    def __init__(self, scene: MoveItScene, publish: Callable[[], None]) -> None:
        """``publish``: publishes the scene."""
        self._scene = scene
        self._publish = publish

    def task(self, request: Any, reply: Reply) -> tuple[Task, Any]:
        """Return the task of a request, as MoveItService has it."""
        objects = objects_of(request.scene)
        large = len(objects) > QUICK_OBJECTS or any(one.meshes for one in objects)
        slow = large or len(request.scene.world.octomap.octomap.data) > 0
        return HandlerTask(self._handle, request, reply, slow=slow), None

    def write(self, response: Any, answer: Any, asked: Any) -> None:
        """Fill the response; the log says why it went wrong."""
        response.success = answer.status.code == Status.SUCCESS

    def _handle(self, request: Any, answer: Any) -> None:
        self._scene.apply_scene(request.scene)
        self._publish()
        answer.status = status_message(Status.SUCCESS)
