"""A planning scene without a node, and what MoveIt's clients send to one."""

from collections.abc import Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from geometry_msgs.msg import Point, Pose, Quaternion
from sensor_msgs.msg import JointState
from support.ros_requests import READY

from kinopt_ros.planning.scene_holder import SceneHolder
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.robot.frames import Frames
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.scene.scene import Scene


class SceneWorld:
    """MoveIt's planning scene of a robot that stands at READY, and what it says in its log."""

    def __init__(self, robot: RobotModel, scene: Scene | None = None) -> None:
        self.robot = robot
        self.log: list[str] = []
        logger = SimpleNamespace(info=lambda text: None, warning=self.log.append)
        node: Any = SimpleNamespace(get_logger=lambda: logger)
        self.holder = SceneHolder(self.log.append)
        if scene is not None:
            self.holder.start(lambda: scene)
        self.holder.serve(robot)
        states = JointStates()
        states.update(JointState(name=list(READY), position=list(READY.values())))
        loader: Any = SimpleNamespace(loaded=SimpleNamespace(model=robot))
        frames = Frames(node, self.holder.of)
        self.context = Context(node, loader, states, frames, self.holder)
        self.context.remembered.values["state_timeout"] = 1e9
        self.moveit = import_module("kinopt_ros.ros.moveit.planning_scene").MoveItScene(self.context)

    @property
    def scene(self) -> Scene:
        """The scene now."""
        return self.holder.of(self.robot)


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0, w: float = 1.0, **q: float) -> Pose:
    """A pose."""
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(w=w, **q))


def primitive(kind: str, *dimensions: float) -> Any:
    """A shape_msgs/SolidPrimitive."""
    solid = import_module("shape_msgs.msg").SolidPrimitive
    return solid(type=getattr(solid, kind), dimensions=list(dimensions))


def mesh(vertices: Sequence[Sequence[float]], triangles: Sequence[Sequence[int]]) -> Any:
    """A shape_msgs/Mesh."""
    types = import_module("shape_msgs.msg")
    return types.Mesh(
        vertices=[Point(x=float(x), y=float(y), z=float(z)) for x, y, z in vertices],
        triangles=[types.MeshTriangle(vertex_indices=list(row)) for row in triangles],
    )


def collision_object(
    id: str, *primitives: Any, pose: Pose | None = None, frame: str = "", **rest: Any
) -> Any:
    """A moveit_msgs/CollisionObject to add, of primitives at its own pose."""
    operation = rest.pop("operation", "ADD")
    kind = import_module("moveit_msgs.msg").CollisionObject
    message = kind(id=id, primitives=list(primitives), pose=pose or Pose(), **rest)
    message.operation = getattr(kind, operation)
    message.header.frame_id = frame
    return message


def attached_object(link: str, given: Any, *touch_links: str) -> Any:
    """A moveit_msgs/AttachedCollisionObject."""
    kind = import_module("moveit_msgs.msg").AttachedCollisionObject
    return kind(link_name=link, object=given, touch_links=list(touch_links))


def scene_diff(**fields: Any) -> Any:
    """A moveit_msgs/PlanningScene that is a diff."""
    message = import_module("moveit_msgs.msg").PlanningScene(is_diff=True, **fields)
    message.robot_state.is_diff = True
    return message
