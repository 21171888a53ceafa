"""Holder of the scene in service: readers get it as it is now, and changes are made completely or not at all."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from kinopt_ros.errors import EnvironmentChangedError, InvalidRequestError, KinoptError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.robots import for_robot
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene
from kinopt_ros.solvers.readiness import prepare_scene

Change: TypeAlias = Callable[[Scene], Scene]
_T = TypeVar("_T")


class SceneHolder:
    """The scene in service. Thread-safe. Scenes are immutable: a request works on the one that it took, whatever
    happens meanwhile.

    The scene follows the robot in service (``serve``); without one nobody changes it. Requests that took an earlier one
    may still be at work: they see the scene, but neither change it nor make it lose what they do not know.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        """``report(sentence)`` is called when something of the scene does not fit a new robot."""
        self._report = report
        self._lock = threading.Lock()
        """Guards the scene and the robot, and is never held while anything is computed.

        It is the first of the locks that a motion is sent with."""
        self._changing = threading.Lock()
        """Serializes changes of the scene; readers do not wait for it."""
        self._scene = EMPTY_SCENE
        self._robot: RobotModel | None = None

    def serve(self, robot: RobotModel) -> None:
        """Put a robot into service; drop what does not fit it from the scene, and report that (see ``for_robot``)."""
        with self._lock:
            self._scene, said = for_robot(self._scene, self._robot, robot)
            self._robot = robot
        for sentence in said:
            self._report(sentence)

    def forget(self) -> None:
        """Take the robot out of service, and all that is in the scene; its version goes on growing."""
        with self._changing, self._lock:
            self._scene, self._robot = replace(EMPTY_SCENE, version=self._scene.version + 1), None

    def of(self, robot: RobotModel) -> Scene:
        """Return the scene now; for a robot that is not in service, without what does not fit it."""
        with self._lock:
            if robot is self._robot:
                return self._scene
            view, _ = for_robot(self._scene, self._robot, robot)
            return replace(view, version=self._scene.version) if view is not self._scene else view

    def while_it_is(self, robot: RobotModel, scene: Scene, act: Callable[[], _T]) -> _T | None:
        """Call ``act`` while nobody can change the scene; None if another scene or robot is in service by now.

        ``act`` must return at once, and ask nothing of this object.
        """
        with self._lock:
            return act() if self._scene is scene and self._robot is robot else None

    def start(self, make: Callable[[], Scene]) -> None:
        """Have the next robot begin with another scene than an empty one, unless there is a robot already.

        Raises:
            KinoptError: as ``make`` raises it.
        """
        with self._changing:
            if self._robot is not None:
                return
            made = make()
            with self._lock:
                if self._robot is None:
                    again = self._scene is not EMPTY_SCENE
                    self._scene = replace(made, version=self._scene.version + 1) if again else made

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
            KinoptError: as the change that was refused raises it, its message beginning with the change's name;
                InvalidRequestError for another version; or EnvironmentChangedError for a robot that is not in service.
                The scene is as it was.
        """
        with self._changing:
            before = self.of(robot)
            self._require(robot)
            if expected_version not in (None, before.version):
                raise InvalidRequestError(
                    f"expected_version is {expected_version}; the scene has version {before.version}"
                )
            scene = before
            for name, change in changes:
                try:
                    scene = change(scene)
                except KinoptError as error:
                    error.args = (f"{name}: {error}",)
                    raise
            scene = replace(scene, version=before.version + 1)
            prepare_scene(robot, scene)
            with self._lock:
                self._require(robot)
                self._scene = scene
                return scene

    def _require(self, robot: RobotModel) -> None:
        if robot is not self._robot:
            raise EnvironmentChangedError(
                "the robot's description was replaced, or taken out of service, while the scene was being changed: the "
                "scene is as it was; send the changes again"
            )
