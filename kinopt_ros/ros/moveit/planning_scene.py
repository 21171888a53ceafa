"""The scene in service as MoveIt's planning scene: read, changed and asked for in its terms.

Everything that comes changes the one scene of the node, as ~/apply_scene does, all or nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any

from kinopt_ros.errors import quoted
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.moveit.looks import Looks
from kinopt_ros.ros.moveit.scene_answers import EVERYTHING, UNSAID, planning_scene
from kinopt_ros.ros.moveit.scene_messages import Named, SceneReader, clear_octomap
from kinopt_ros.ros.moveit.scene_objects import check_sizes, objects_of


class MoveItScene:
    """Changes the scene by messages of MoveIt, and writes it into them. Thread-safe."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._looks = Looks()

    def apply_scene(self, message: Any) -> None:
        """Make a moveit_msgs/PlanningScene count. KinoptError: the scene is as it was."""
        colors = {one.id: one.color for one in message.object_colors}
        self._change(message, lambda reader: reader.scene(message), colors)

    def apply_world(self, message: Any) -> None:
        """Make a moveit_msgs/PlanningSceneWorld count. Raises as above."""
        self._change(message, lambda reader: reader.world(message))

    def apply_object(self, message: Any) -> None:
        """Make a moveit_msgs/CollisionObject count. Raises as above."""
        self._change(message, lambda reader: [(f"object {quoted(message.id)}", reader.world_object(message))])

    def apply_attached(self, message: Any) -> None:
        """Make a moveit_msgs/AttachedCollisionObject count. Raises as above."""
        self._change(
            message, lambda reader: [(f"object {quoted(message.object.id)}", reader.attached_object(message))]
        )

    def clear_octomap(self) -> None:
        """Remove the octomap, if there is one."""
        robot = self._context.loaded.model
        self._context.scene.change(robot, [("clear_octomap", clear_octomap)])

    def message(self, components: int = EVERYTHING) -> Any:
        """Return the moveit_msgs/PlanningScene of now; KinoptError: no robot is loaded."""
        robot = self._context.loaded.model
        scene, state = self._context.scene.of(robot), self._context.joint_states.of(robot)
        return planning_scene(scene, robot, state, self._looks, components)

    def _change(
        self, message: Any, read: Callable[[SceneReader], Named], colors: dict[str, Any] | None = None
    ) -> None:
        robot = self._context.loaded.model
        check_sizes(message)
        reader = SceneReader(self._context, robot)
        changes = read(reader)
        reader.make_ready()
        scene = self._context.scene.change(robot, changes) if changes else self._context.scene.of(robot)
        self._looks.take(colors or {}, _types(objects_of(message)), (*scene.objects, *scene.attached))
        for remark in reader.remarks:
            self._context.node.get_logger().warning(f"planning scene: {remark}")


def _types(objects: Iterable[Any]) -> dict[str, Any]:
    """Return the types of objects that say one."""
    return {
        one.id: one.type
        for one in objects
        if (one.type.key or one.type.db) and one.type.key != UNSAID and one.operation == one.ADD
    }
