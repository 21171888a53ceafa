"""Client of the node for the demonstration, benchmarks and tests: calls, a pretended robot, what is published."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from kinopt_msgs.msg import MotionReport, Scene, SceneUpdate
from kinopt_ros.ros.messages.qos import QUEUED
from kinopt_ros.ros.services.every import SERVICES
from kinopt_ros.status import Status

PREPARED_SECONDS = 800.0
"""Longest time to wait for the node's compilers on a new and busy machine, s."""
ANSWER_SECONDS = 30.0
"""Longest time that clients wait for an answer, s."""


STALE_TIMES = 10
"""Times that a request is sent while joint states come late."""

A = TypeVar("A")


class NodeTimeoutError(Exception):
    """The node did not answer in time."""


class Client:
    """Client of the node ``kinopt`` of this domain, or of another one (``/left/kinopt``).

    It also publishes joint states where that node listens. Call rclpy.init before, close after.
    """

    def __init__(
        self, name: str = "kinopt_client", node: str = "kinopt", patience: float = ANSWER_SECONDS
    ) -> None:
        """``patience``: longest time to wait for an answer where a call says nothing else, s."""
        self.node = Node(name)
        self._patience = patience
        self._target_node = node
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._targets = self.node.create_publisher(PoseStamped, f"{node}/target_pose", 1)
        self._scene_updates = self.node.create_publisher(SceneUpdate, f"{node}/scene_update", 100)
        namespace, slash, _ = node.rpartition("/")
        self._joint_states = self.node.create_publisher(JointState, f"{namespace}{slash}joint_states", 10)
        self._timer: Any = None
        self.trajectories: list[JointTrajectory] = []
        self.reports: list[MotionReport] = []
        self.scenes: list[Scene] = []
        self.node.create_subscription(
            JointTrajectory, f"{node}/joint_trajectory", self.trajectories.append, 10
        )
        self.node.create_subscription(MotionReport, f"{node}/report", self.reports.append, 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_subscription(Scene, f"{node}/scene", self.scenes.append, latched)
        # The last ones to be made: a node discovers in this order, so who answers hears and is heard on all topics.
        self._clients: dict[str, Any] = {
            service.name: self.node.create_client(service.type, f"{node}/{service.name}", qos_profile=QUEUED)
            for service in SERVICES
        }

    def know(self, service: str, service_type: Any) -> None:
        """Let ``call`` ask a service of another type than the node's own, by its name in this client's namespace."""
        self._clients[service] = self.node.create_client(service_type, service, qos_profile=QUEUED)

    def call(self, service: str, request: Any, timeout: float | None = None) -> Any:
        """Send a request; return the node's answer.

        Raises:
            NodeTimeoutError: none came within the timeout (s).
        """
        timeout = self._patience if timeout is None else timeout
        future = self.send(service, request, timeout)
        self._executor.spin_until_future_complete(future, timeout)
        if not future.done():
            self._clients[service].remove_pending_request(future)
            raise NodeTimeoutError(
                f"service {self._target_node}/{service} did not answer within {timeout:g} s"
            )
        return future.result()

    def send(self, service: str, request: Any, timeout: float | None = None) -> Any:
        """Send a request and return the future of its answer, which comes while this client spins.

        Raises:
            NodeTimeoutError: the service is not there within the timeout (s).
        """
        timeout = self._patience if timeout is None else timeout
        client = self._clients[service]
        if not client.wait_for_service(timeout):
            raise NodeTimeoutError(f"service {self._target_node}/{service} is not there after {timeout:g} s")
        return client.call_async(request)

    def wait_until_found(self, timeout: float = 60.0) -> None:
        """Wait until the node answers this client. A node drops answers to a client that it has not discovered yet,
        even if that client has long discovered the node.

        Raises:
            NodeTimeoutError: no answer came within the timeout (s).
        """
        end = time.monotonic() + timeout
        while True:
            try:
                self.call("ready", Trigger.Request(), timeout=2.0)
                return
            except NodeTimeoutError:
                if time.monotonic() > end:
                    raise

    def wait_until_heard(self, timeout: float = 60.0) -> None:
        """Wait until the node knows all publishers, subscriptions and clients that this process has made so far: it
        discovers them in the order in which they were made, and answers one that is made here.

        Raises:
            NodeTimeoutError: no answer came within the timeout (s).
        """
        end = time.monotonic() + timeout
        newest: Any = self.node.create_client(Trigger, f"{self._target_node}/ready", qos_profile=QUEUED)
        try:
            while not (
                self.spin_until(newest.service_is_ready, min(2.0, timeout))
                and self.spin_until(newest.call_async(Trigger.Request()).done, 2.0)
            ):
                if time.monotonic() > end:
                    raise NodeTimeoutError(
                        f"{self._target_node} did not discover this client in {timeout:g} s"
                    )
        finally:
            self.node.destroy_client(newest)

    def wait_until_ready(self, timeout: float = 180.0, alive: Callable[[], bool] = lambda: True) -> str:
        """Wait until a robot is in service; returns the node's sentence about it."""
        end = time.monotonic() + timeout
        sentence = "it did not start"
        patience = 0.1
        while time.monotonic() < end:
            if not alive():
                raise NodeTimeoutError("the node's process has ended")
            try:
                answer = self.call("ready", Trigger.Request(), timeout=patience)
            except NodeTimeoutError:  # the answer is lost if the node has not discovered this client yet
                patience = min(2.0 * patience, 2.0)
                continue
            if answer.success:
                return str(answer.message)
            sentence = answer.message
            time.sleep(0.05)
        raise NodeTimeoutError(f"the node is not ready after {timeout:g} s: {sentence}")

    def pretend_robot(self, positions: Mapping[str, float], rate: float = 50.0) -> None:
        """Publish joint states from now on, as a robot at rest there would; call again to move it."""
        self.stop_robot()
        message = JointState(name=list(positions), position=list(positions.values()))
        message.velocity = [0.0] * len(positions)

        def publish() -> None:
            message.header.stamp = self.node.get_clock().now().to_msg()
            self._joint_states.publish(message)

        publish()
        self._timer = self.node.create_timer(1.0 / rate, publish)

    def stop_robot(self) -> None:
        """Publish no more joint states."""
        if self._timer is not None:
            self.node.destroy_timer(self._timer)
            self._timer = None

    def publish_joint_state(self, message: JointState) -> None:
        """Publish one joint state as it is."""
        self._joint_states.publish(message)

    def publish_scene_update(self, update: SceneUpdate) -> None:
        """Publish on ~/scene_update once the node listens."""
        self.spin_until(lambda: self._scene_updates.get_subscription_count() > 0, 5.0)
        self._scene_updates.publish(update)

    def publish_target(self, target: PoseStamped) -> None:
        """Publish on ~/target_pose once the node listens."""
        self.spin_until(lambda: self._targets.get_subscription_count() > 0, 5.0)
        self._targets.publish(target)

    def move_to(
        self, target: PoseStamped, timeout: float | None = None, patience: float = PREPARED_SECONDS
    ) -> tuple[MotionReport, JointTrajectory | None]:
        """Ask for a motion; return the report, and the trajectory if one was published.

        While the node prepares what it needs for that, ask again, for ``patience`` (s).
        """
        end = time.monotonic() + patience
        timeout = self._patience if timeout is None else timeout
        while True:
            report, trajectory = self._move_to(target, timeout)
            if report.status.code != report.status.NOT_READY or time.monotonic() > end:
                return report, trajectory
            self.spin(1.0)

    def _move_to(self, target: PoseStamped, timeout: float) -> tuple[MotionReport, JointTrajectory | None]:
        reports, trajectories = len(self.reports), len(self.trajectories)
        self.publish_target(target)
        if not self.spin_until(lambda: len(self.reports) > reports, timeout):
            raise NodeTimeoutError(f"no report on {self._target_node}/report within {timeout:g} s")
        report = self.reports[-1]
        if report.duration > 0.0:
            self.spin_until(lambda: len(self.trajectories) > trajectories, timeout)
        else:
            self.spin(0.1)  # would show a trajectory that should not be there
        return report, self.trajectories[-1] if len(self.trajectories) > trajectories else None

    def ask_while_stale(
        self, ask: Callable[[], A], code_of: Callable[[A], int], stale: Callable[[], object] = lambda: None
    ) -> A:
        """Ask for something; where joint states come late, as beside compilers, hear what lies unread and ask again.

        Args:
            ask: sends the request and returns the answer.
            code_of: the status code of an answer.
            stale: called before each further time.
        """
        answer = ask()
        for _ in range(STALE_TIMES - 1):
            if code_of(answer) != Status.ROBOT_STATE_STALE:
                break
            stale()
            self.spin(0.1)
            answer = ask()
        return answer

    def spin(self, duration: float) -> None:
        """Handle what arrives for some seconds."""
        self.spin_until(lambda: False, duration)

    def spin_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Handle what arrives until a condition holds; return whether it did within the timeout (s)."""
        end = time.monotonic() + timeout
        while not condition():
            remaining = end - time.monotonic()
            if remaining <= 0.0 or not rclpy.ok():
                return condition()
            self._executor.spin_once(timeout_sec=min(remaining, 0.05))
        return True

    def close(self) -> None:
        """Leave the ROS graph."""
        self._executor.shutdown()
        self.node.destroy_node()
