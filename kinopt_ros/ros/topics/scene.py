"""~/scene: the scene as it is, latched."""

import threading
from typing import Any

from kinopt_ros.errors import KinoptError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.scenes import scene_message
from kinopt_ros.scene.scene import Scene


class ScenePublisher:
    """Publishes the scene on ~/scene whenever it has changed. Thread-safe."""

    def __init__(self, context: Context, scenes: Any) -> None:
        self._context = context
        self._scenes = scenes
        self._lock = threading.Lock()
        self._published: tuple[Scene, RobotModel] | None = None
        self._closed = False

    def close(self) -> None:
        """Publish no more, from now on."""
        with self._lock:
            self._closed = True

    def publish(self) -> None:
        """Publish the scene unless that was done already."""
        with self._lock:  # so that an older one never comes last
            if self._closed:
                return
            try:
                robot = self._context.loaded.model
            except KinoptError:  # no robot, in whose frame it is
                return
            scene = self._context.scene.of(robot)
            if self._published is None or (scene, robot) != self._published:
                self._scenes.publish(scene_message(scene, robot))
                self._published = scene, robot
