"""Planning scenes and objects as MoveIt's clients send them, and octomaps, read as the node reads them."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from interface_packages import provide

from fuzz.kinds.messages import ROBOT, context, message_of
from fuzz.source import Source
from kinopt_ros.geometry.octree import read_octree, write_octree
from kinopt_ros.geometry.shapes import Octomap
from kinopt_ros.ros.context import Context

_TOPICS = {
    "CollisionObject": "apply_object",
    "AttachedCollisionObject": "apply_attached",
    "PlanningSceneWorld": "apply_world",
    "PlanningScene": "apply_scene",
}
_TREE, _RESOLUTION = write_octree(
    Octomap(np.array([[0.05, 0.05, 0.05], [1.3, 0.1, 0.1]]), np.array([0.1, 0.2]))
)


def _scene() -> Any:
    """Return MoveIt's planning scene of what requests are read in."""
    quiet = SimpleNamespace(warning=lambda text: None)
    known = context()
    node: Any = SimpleNamespace(get_logger=lambda: quiet, get_parameter=known.node.get_parameter)
    parts = (known.loader, known.joint_states, known.frames, known.scene)
    return import_module("kinopt_ros.ros.moveit.planning_scene").MoveItScene(Context(node, *parts))


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    del folder
    provide()
    _scene().apply_scene(_scene().message())


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    del folder
    if source.often(0.3):
        read_octree(
            source.torn_bytes(_TREE), source.choice((_RESOLUTION, source.number())), source.often(0.5)
        )
        return
    scene = _scene()
    context().scene.__init__(lambda sentence: None)  # type: ignore[misc]  # every input begins with the same scene
    for _ in range(source.choice((1, 2, 4))):
        name = source.choice(tuple(_TOPICS))
        message = message_of(
            source, getattr(import_module("moveit_msgs.msg"), name), source.choice((0.4, 0.9))
        )
        if name == "PlanningScene" and source.often(0.8):
            message.robot_model_name = source.choice(("", ROBOT.name))
            message.link_scale, message.fixed_frame_transforms = [], []
        getattr(scene, _TOPICS[name])(message)
    scene.apply_scene(scene.message())
