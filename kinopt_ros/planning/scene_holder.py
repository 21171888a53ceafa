"""The scene in service: who asks gets it as it is now, who changes it gets all of the changes or none."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from kinopt_ros.errors import InvalidRequestError, KinoptError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.robots import for_robot
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene

Change: TypeAlias = Callable[[Scene], Scene]


class SceneHolder:
    """Thread-safe. Scenes are immutable: a request works on the one that it took, whatever happens meanwhile."""

    def __init__(self, report: Callable[[str], None]) -> None:
        """``report(sentence)`` is called when something of the scene does not fit a new robot."""
        self._report = report
        self._lock = threading.Lock()
        self._scene = EMPTY_SCENE
        self._robot: RobotModel | None = None

    def of(self, robot: RobotModel) -> Scene:
        """The scene now, for a robot: what does not fit it is dropped and reported (see ``for_robot``)."""
        with self._lock:
            said = self._adapt(robot)
            scene = self._scene
        for sentence in said:
            self._report(sentence)
        return scene

    def start(self, robot: RobotModel, make: Callable[[], Scene]) -> None:
        """Begin with another scene than an empty one, unless the scene was changed or begun already.

        Raises:
            KinoptError: as ``make`` raises it.
        """
        with self._lock:
            if self._scene is EMPTY_SCENE:
                self._scene, self._robot = make(), robot

    def change(
        self,
        robot: RobotModel,
        changes: Sequence[tuple[str, Change]],
        expected_version: int | None = None,
    ) -> Scene:
        """Make changes, all of them or none, and return the scene that they make: of the next version.

        Args:
            robot: the robot that they are meant for.
            changes: what to do in order, each with its name for messages. They are called one after the other while
                nobody else changes the scene: reading files and the like is to be done before.
            expected_version: refuse them if the scene has another version; None: any.

        Raises:
            KinoptError: as the change that was refused raises it, its message beginning with the change's name; or
                InvalidRequestError for another version. The scene is as it was.
        """
        self.of(robot)  # reports outside of the lock
        with self._lock:
            self._adapt(robot)
            if expected_version not in (None, self._scene.version):
                raise InvalidRequestError(
                    f"expected_version is {expected_version}; the scene has version {self._scene.version}"
                )
            scene = self._scene
            for name, change in changes:
                try:
                    scene = change(scene)
                except KinoptError as error:
                    error.args = (f"{name}: {error}",)
                    raise
            self._scene = replace(scene, version=self._scene.version + 1)
            return self._scene

    def _adapt(self, robot: RobotModel) -> tuple[str, ...]:
        if robot is self._robot:
            return ()
        self._scene, said = for_robot(self._scene, self._robot, robot)
        self._robot = robot
        return said
