"""~/scene_update: changes of the scene by topic; ~/scene: the scene as it is, latched."""

import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kinopt_msgs.msg import MotionReport
from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import QueueFullError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros import scene_changes
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.conversions import error_message, status_message
from kinopt_ros.ros.scene_conversions import scene_message
from kinopt_ros.scene.scene import Scene
from kinopt_ros.status import Status

MOST_WAITING = 100
"""Most updates that wait; more are refused."""


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


class SceneUpdateTopic:
    """Handler of kinopt_msgs/SceneUpdate. Updates are made in the order in which they come."""

    def __init__(self, context: Context, publisher: ScenePublisher, reports: Any) -> None:
        self._context = context
        self._publisher = publisher
        self._reports = reports
        self._lock = threading.Lock()
        self._waiting = 0
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scene_update")

    def take(self, update: Any) -> None:
        """Make the changes, on a thread of its own."""
        with self._lock:
            full = self._waiting >= MOST_WAITING
            self._waiting += not full
        if full:
            self._report(QueueFullError(f"{MOST_WAITING} scene updates are waiting; try again later"))
            return
        self._worker.submit(self._handle, update)

    def close(self) -> None:
        """Take no more updates."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _handle(self, update: Any) -> None:
        """Make the changes. Never raises: what went wrong is reported on ~/report."""
        with self._lock:
            self._waiting -= 1
        try:
            scene_changes.apply(self._context, update)
            self._publisher.publish()
        except Exception as error:  # nothing ends the worker
            self._report(error)

    def _report(self, error: Exception) -> None:
        logger = self._context.node.get_logger()
        if isinstance(error, KinoptError):
            status = error_message(error)
            logger.warning(f"~/scene_update: {error}")
        else:  # a defect: say so, keep serving
            logger.error(f"internal error on ~/scene_update:\n{''.join(traceback.format_exception(error))}")
            status = status_message(
                Status.FAILURE, f"internal error ({type(error).__name__}); the node's log says more"
            )
        self._reports.publish(MotionReport(status=status))
