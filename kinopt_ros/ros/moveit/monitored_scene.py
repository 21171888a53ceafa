"""monitored_planning_scene: the scene for RViz and other monitors, as move_group publishes it.

Whole scenes follow changes and new listeners, diffs with the robot's state follow its motion. Nothing is written while
nobody listens.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from moveit_msgs.msg import PlanningScene

from kinopt_ros.errors import KinoptError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.moveit.planning_scene import MoveItScene
from kinopt_ros.ros.moveit.scene_answers import fill_known_joints
from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.scene.scene import Scene

SECONDS = 0.1
"""Time between two looks at what has changed, s."""


class MonitoredScene:
    """Publisher of moveit_msgs/PlanningScene."""

    def __init__(self, context: Context, scene: MoveItScene, scenes: Any) -> None:
        """``scenes``: the publisher."""
        self._context = context
        self._scene = scene
        self._scenes = scenes
        self._closed = False
        self._listeners = 0
        self._published: tuple[Scene, RobotModel] | None = None
        self._q = b""
        self._busy = threading.Lock()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="monitored_planning_scene")
        self._timer = context.node.create_timer(SECONDS, self._look)

    def close(self) -> None:
        """Publish no more."""
        self._closed = True
        self._timer.cancel()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _look(self) -> None:
        """Publish, on a thread of its own, if somebody listens and it is not being done."""
        listeners = self._scenes.get_subscription_count()
        if listeners == 0:
            self._listeners = 0
        elif self._context.loader.is_ready and self._busy.acquire(blocking=False):
            self._worker.submit(self._publish, listeners)

    def _publish(self, listeners: int) -> None:
        """Publish what has changed. Never raises."""
        logger = self._context.node.get_logger()
        try:
            self._publish_changes(listeners)
        except KinoptError as error:
            logger.warning(f"monitored_planning_scene: {error}", throttle_duration_sec=30.0)
        except Exception as error:  # nothing ends the thread
            if not self._closed:  # else the publisher went away in the middle of it
                log_defect(logger, "on monitored_planning_scene", error, seconds=30.0)
        finally:
            self._busy.release()

    def _publish_changes(self, listeners: int) -> None:
        robot = self._context.loaded.model
        now = self._context.scene.of(robot), robot
        state = self._context.joint_states.of(robot)
        q, before = state.q.tobytes(), self._q
        self._q = q
        grown = listeners > self._listeners
        self._listeners = listeners
        if grown or now != self._published:
            self._published = now
            self._scenes.publish(self._scene.message())
        elif q != before:
            message = PlanningScene(name="kinopt", robot_model_name=robot.name, is_diff=True)
            message.robot_state.is_diff = True
            fill_known_joints(message.robot_state, robot, state)
            self._scenes.publish(message)
