"""The other side of a page beside the node: joint states and reports in, target poses out."""

import math
import threading
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from kinopt_msgs.msg import MotionReport
from kinopt_ros.array import Float64
from kinopt_ros.errors import NotReadyError, shown
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.status import Status

_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class RobotLink:
    """What a page needs of a running node, on a thread of its own.

    Set ``on_state`` and ``on_report`` before ``start``; they are called on that thread.
    """

    def __init__(self, node: Node, target_node: str = "kinopt") -> None:
        """``node``: of this process; ``target_node``: name of the one that plans."""
        self._node, self._target_node = node, target_node
        self.on_state: Callable[[Mapping[str, float]], None] = lambda positions: None
        self.on_report: Callable[[str], None] = lambda sentence: None
        self._descriptions: dict[str, str] = {}
        self._heard = threading.Condition()
        self._targets = node.create_publisher(PoseStamped, f"{target_node}/target_pose", 1)
        namespace, slash, _ = target_node.rpartition("/")
        self._subscriptions = [
            node.create_subscription(JointState, f"{namespace}{slash}joint_states", self._take_state, 10),
            node.create_subscription(MotionReport, f"{target_node}/report", self._take_report, 10),
        ]
        for name in ("robot_description", "robot_description_semantic"):
            self._subscriptions.append(
                node.create_subscription(
                    String,
                    f"{namespace}{slash}{name}",
                    lambda message, name=name: self._take_description(name, message.data),
                    _LATCHED,
                )
            )
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._thread = threading.Thread(target=self._spin, name="robot link", daemon=True)

    def start(self) -> None:
        """Hear messages from now on."""
        self._thread.start()

    def send(self, T_root_tip: Annotated[Float64, "4 4"], root_link: str) -> None:
        """Ask the node to move its tip to a pose in the root link."""
        message = PoseStamped(pose=poses_from_matrices(T_root_tip[None])[0])
        message.header.frame_id = root_link
        self._targets.publish(message)

    def description(self, timeout: float) -> tuple[str, str]:
        """Wait for URDF and SRDF (empty without one) on the topics of that name, at most so long (s).

        Raises:
            NotReadyError: nobody publishes a description.
        """
        with self._heard:
            if not self._heard.wait_for(lambda: "robot_description" in self._descriptions, timeout):
                raise NotReadyError(
                    f"nobody has published robot_description within {timeout:g} s; name the robot, as in "
                    "`kinopt view panda --node`"
                )
            self._heard.wait_for(lambda: "robot_description_semantic" in self._descriptions, 0.5)
            return self._descriptions["robot_description"], self._descriptions.get(
                "robot_description_semantic", ""
            )

    def close(self) -> None:
        """Leave the graph."""
        self._executor.shutdown()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _spin(self) -> None:
        try:
            while rclpy.ok() and self._executor.context.ok():
                self._executor.spin_once(timeout_sec=0.1)
        except ExternalShutdownException:
            return

    def _take_description(self, name: str, text: str) -> None:
        with self._heard:
            self._descriptions[name] = text
            self._heard.notify_all()

    def _take_state(self, message: Any) -> None:
        pairs = zip(message.name, message.position, strict=False)
        self.on_state({name: value for name, value in pairs if math.isfinite(value)})

    def _take_report(self, message: Any) -> None:
        self.on_report(report_sentence(message))


def report_sentence(report: Any) -> str:
    """Say what became of a motion, from kinopt_msgs/MotionReport."""
    status = report.status
    if status.code == Status.SUCCESS.value:
        said = f": {status.message}" if status.message else ""
        return (
            f"the node moves the robot for {report.duration:.2f} s (error at the end: "
            f"{report.position_error * 1e3:.4f} mm, {report.orientation_error * 1e3:.4f} mrad){said}"
        )
    try:
        name = Status(status.code).name
    except ValueError:
        name = shown(status.code)
    return f"the node does not move the robot ({name}): {status.message}"
