"""The other side of a page beside the node: joint states and reports in, target poses out."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from geometry_msgs.msg import PoseStamped
from rcl_interfaces.srv import GetParameters
from rclpy._rclpy_pybind11 import RCLError
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from kinopt_msgs.msg import MotionReport
from kinopt_ros.array import Float64
from kinopt_ros.errors import NotReadyError, said_by, shown
from kinopt_ros.problems.chains import default_group
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.status import Status

_LOOK_SECONDS = 0.1
"""Time between two calls of ``on_look``, s."""
_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class RobotLink:
    """What a page needs of a running node, on a thread of its own.

    Set ``on_state``, ``on_report`` and ``on_look`` before ``start``; they are called on that thread.
    """

    def __init__(self, node: Node, target_node: str = "kinopt") -> None:
        """``node``: of this process; ``target_node``: name of the one that plans."""
        self._node, self._target_node = node, target_node
        self.on_state: Callable[[Mapping[str, float]], None] = lambda positions: None
        self.on_report: Callable[[str], None] = lambda sentence: None
        self.on_look: Callable[[], None] = lambda: None
        self._descriptions: dict[str, str] = {}
        self._heard = threading.Condition()
        self._targets = node.create_publisher(PoseStamped, f"{target_node}/target_pose", 1)
        self._parameters: Any = node.create_client(GetParameters, f"{target_node}/get_parameters")
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
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(node)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._spin, name="robot link", daemon=True)

    def start(self) -> None:
        """Hear messages from now on."""
        self._thread.start()

    def send(self, T_root_tip: Annotated[Float64, "4 4"], tip: str, robot: RobotModel) -> None:
        """Ask the node to move a tip to a pose in the root link, if that is the tip which it places; else report which
        one it does place. Returns at once."""
        message = PoseStamped(pose=poses_from_matrices(T_root_tip[None])[0])
        message.header.frame_id = robot.root_link
        if not self._parameters.service_is_ready():
            self.on_report(f"there is no node {self._target_node!r} to ask")
            return

        def answered(future: Any) -> None:
            try:
                group, placed = (value.string_value for value in future.result().values)
                if not placed:
                    of_group = robot.groups[group] if group in robot.groups else default_group(robot)
                    placed = of_group.tip_link or ""
                if placed == tip:
                    self._targets.publish(message)
                else:
                    self.on_report(
                        f"the node does not move the robot: it places {placed!r}, not {tip!r}; its parameters "
                        "target_pose.tip_link and default_group say so"
                    )
            except Exception as error:  # nothing ends the thread
                self._defect(error)

        self._parameters.call_async(
            GetParameters.Request(names=["default_group", "target_pose.tip_link"])
        ).add_done_callback(answered)

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
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._executor.shutdown()

    def _spin(self) -> None:
        looked = 0.0
        context = self._executor.context
        try:
            while not self._closed.is_set() and context.ok():
                self._executor.spin_once(timeout_sec=_LOOK_SECONDS)
                if time.monotonic() >= looked + _LOOK_SECONDS:
                    looked = time.monotonic()
                    self._look()
        except (ExternalShutdownException, RCLError):  # the latter where ROS ends in the middle of a turn
            if context.ok():
                raise

    def _look(self) -> None:
        try:
            self.on_look()
        except Exception as error:  # nothing ends the thread
            self._defect(error)

    def _take_description(self, name: str, text: str) -> None:
        with self._heard:
            self._descriptions[name] = text
            self._heard.notify_all()

    def _take_state(self, message: Any) -> None:
        pairs = zip(message.name, message.position, strict=False)
        try:
            self.on_state({name: value for name, value in pairs if math.isfinite(value)})
        except Exception as error:  # nothing ends the thread
            self._defect(error)

    def _take_report(self, message: Any) -> None:
        try:
            self.on_report(report_sentence(message))
        except Exception as error:  # as above
            self._defect(error)

    def _defect(self, error: Exception) -> None:
        self._node.get_logger().error(f"in the page: {said_by(error)}", throttle_duration_sec=1.0)


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
