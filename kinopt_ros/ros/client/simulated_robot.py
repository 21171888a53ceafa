"""A simulated robot in ROS: joint states out, trajectories in, as its controllers would have it.

``kinopt_simulated_robot panda`` is a robot of its own: it publishes its description, too. Without a name it is the
robot of robot_description, which somebody else publishes.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import math
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import rclpy
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.expand_topic_name import expand_topic_name
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.time_source import CLOCK_TOPIC
from rclpy.utilities import remove_ros_args
from rclpy.validate_full_topic_name import validate_full_topic_name
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.errors import InvalidRequestError, KinoptError, cut, quoted
from kinopt_ros.interrupts import heard_at_once
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.moveit_controllers import ControllerEntry
from kinopt_ros.robot.ros2_controllers import FROM_DESIRED
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.client.simulated_actions import GRIPPERS, actions_of, given
from kinopt_ros.ros.messages.stamps import hearing_times
from kinopt_ros.ros.robot import controller_parameters
from kinopt_ros.ros.robot.controller_names import joints_of_controllers
from kinopt_ros.ros.robot.parameters import LONGEST_OF_ACTION
from kinopt_ros.ros.serving.guarded_executor import GuardedExecutor
from kinopt_ros.ros.serving.start_errors import argument_error, naming_arguments
from kinopt_ros.trajectory.simulated_controller import SimulatedController, check_faults
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

NODE = "simulated_robot"
RATE = 50.0
"""Number of joint states per second."""
TOPIC = "kinopt/joint_trajectory"
"""Topic on which the node publishes, unless it is remapped."""
GRIPPER = "ParallelGripperCommand"
"""Type of the action of grippers."""
_LATCHED = QoSProfile(
    depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL, reliability=ReliabilityPolicy.RELIABLE
)


class SimulatedRobotTopics:
    """The topics and actions of a simulated robot, in the namespace of a node.

    In: ``<controller>/joint_trajectory`` of each controller, and topics where trajectories go to the controller that
    has their joints; the actions ``<controller>/follow_joint_trajectory`` and, for a controller of one joint,
    ``<controller>/gripper_cmd``, or what MoveIt's parameters say, where control_msgs is installed. Out:
    ``joint_states``.
    """

    def __init__(
        self,
        node: Node,
        robot: SimulatedRobot,
        topics: Sequence[str] = (TOPIC,),
        rate: float = RATE,
        gripper: str = GRIPPER,
        entries: Mapping[str, ControllerEntry] | None = None,
    ) -> None:
        """
        Args:
            node: that has them.
            robot: the robot.
            topics: where trajectories go to the controller that has their joints.
            rate: of joint states, 1/s.
            gripper: type of the action of grippers, a key of ``GRIPPERS``.
            entries: how controllers are told motions, by their names; None: in the usual way.
        """
        self.robot = robot
        self._node = node
        self._latest = 0
        self._states = node.create_publisher(JointState, "joint_states", 10)
        self._subscriptions = [
            node.create_subscription(
                JointTrajectory,
                f"{name}/joint_trajectory",
                lambda message, one=controller: self._take(one, message),
                10,
            )
            for name, controller in robot.controllers.items()
        ]
        self._subscriptions += [
            node.create_subscription(JointTrajectory, topic, lambda message: self._take(None, message), 10)
            for topic in topics
        ]
        self._actions = actions_of(robot, node, self.now, self.preempt, gripper, entries or {})
        self._timer = node.create_timer(1.0 / rate, self._advance)
        self._advance()

    def now(self) -> int:
        """Present time, ns of the node's clock. If that was set back, motions that are over are not done again."""
        now, last = int(self._node.get_clock().now().nanoseconds), self._latest
        self._latest = now
        if now < last:
            for controller in self.robot.controllers.values():
                controller.set_back(last, now)
        return now

    def at_rest(self) -> bool:
        """Whether all motions are over."""
        return all(controller.end <= self.now() for controller in self.robot.controllers.values())

    def preempt(self, controller: SimulatedController) -> None:
        """Let another motion take the place of an action's goal."""
        for action in self._actions:
            if action.controller is controller:
                action.end("replaced", "another motion has taken its place")

    def close(self) -> None:
        """Leave the graph."""
        self._node.destroy_timer(self._timer)
        for action in self._actions:
            action.close()
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._node.destroy_publisher(self._states)

    def _take(self, controller: SimulatedController | None, message: Any) -> None:
        """Take a trajectory by topic.

        What cannot be followed is dropped, with a line in the log, as controllers do.
        """
        try:
            chosen = controller or self.robot.controller_of(message.joint_names)
            chosen.take(*given(message), self.now())
        except KinoptError as error:
            self._node.get_logger().error(f"a trajectory is dropped: {error}")
            return
        self.preempt(chosen)

    def _advance(self) -> None:
        now = self.now()
        names, position, velocity = self.robot.states(now)
        message = JointState(name=list(names), position=position.tolist(), velocity=velocity.tolist())
        # Not any later: on a busy machine the next one would seem to come sooner, and the robot to jump.
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(now, 10**9)
        self._states.publish(message)
        for action in self._actions:
            action.advance()


class SimulatedRobotNode(Node):
    """A simulated robot by itself: of a name or file, or of robot_description."""

    def __init__(self, source: str | None = None, **options: Any) -> None:
        """``source``: of ``load_robot``; None: the description comes by parameter or topic."""
        super().__init__(NODE, **options)
        self._texts = {
            name: str(self._given(name, "")) for name in ("robot_description", "robot_description_semantic")
        }
        self._start = str(self._given("start", ""))
        self._rate = _rate(self._given("rate", RATE, any_type=True))
        self._gripper = _gripper(str(self._given("gripper_action", GRIPPER)))
        self._drive_lag = _number("drive_lag", self._given("drive_lag", 0.0, any_type=True))
        self._speed_scaling = _number("speed_scaling", self._given("speed_scaling", 1.0, any_type=True))
        self._from_desired = _switch(FROM_DESIRED[0], self._given(FROM_DESIRED[0], True, any_type=True))
        check_faults(self._drive_lag, self._speed_scaling)  # and not when a description comes
        self._topics = [str(topic) for topic in self._given("trajectory_topics", [TOPIC])]
        self._controllers = [str(word) for word in self._given("controllers", [""])]
        self._entries = controller_parameters.declare(self, filter(None, self._controllers))
        for topic in (*self._topics, *(word.partition("=")[0] for word in self._controllers)):
            if topic:
                validate_topic_name(topic)  # raises here and not when a description comes
        self._topics_of_robot: SimulatedRobotTopics | None = None
        if source is not None:
            urdf, srdf = find_robot(source)
            self._texts["robot_description"] = urdf.read_text(encoding="utf-8")
            self._texts["robot_description_semantic"] = srdf.read_text(encoding="utf-8") if srdf else ""
            self._told = [self._tell(name, text) for name, text in self._texts.items() if text]
        if self._texts["robot_description"]:
            self._build()
        else:
            for name in self._texts:
                self.create_subscription(
                    String, name, lambda message, name=name: self._hear(name, message.data), _LATCHED
                )
            self.get_logger().info("waiting for robot_description")

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Any, qos_profile: Any, **options: Any
    ) -> Any:
        """Subscribe as rclpy does; /clock is heard as far as it says times."""
        if topic == CLOCK_TOPIC:
            callback = hearing_times(self, callback)
        return super().create_subscription(msg_type, topic, callback, qos_profile, **options)

    def _given(self, name: str, default: Any, any_type: bool = False) -> Any:
        """Return a parameter's value; it counts as the robot begins, so nobody sets it afterwards."""
        descriptor = ParameterDescriptor(name=name, read_only=True, dynamic_typing=any_type)
        return self.declare_parameter(name, default, descriptor).value

    def _tell(self, name: str, text: str) -> Any:
        publisher = self.create_publisher(String, name, _LATCHED)
        publisher.publish(String(data=text))
        return publisher

    def _hear(self, name: str, text: str) -> None:
        if self._texts[name] == text:
            return
        self._texts[name] = text
        if not self._texts["robot_description"]:
            return
        try:
            self._build()
        except KinoptError as error:  # the robot before stays
            self.get_logger().error(f"no robot of this description: {error}")

    def _build(self) -> None:
        semantic = self._texts["robot_description_semantic"]
        model = robot_from_urdf(self._texts["robot_description"], semantic or None)
        words = [word for word in self._controllers if word]
        chosen = joints_of_controllers(model, words) if words else None  # else the usual ones
        robot = SimulatedRobot(
            model, chosen, self._where(model), self._drive_lag, self._speed_scaling, self._from_desired
        )
        for name in robot.controllers:  # before the robot before goes
            self._check_controller(name)
        if self._topics_of_robot is not None:
            self._topics_of_robot.close()
        self._topics_of_robot = SimulatedRobotTopics(
            self, robot, self._topics, self._rate, self._gripper, self._entries
        )
        controllers = ", ".join(robot.controllers) or "none"
        self.get_logger().info(f"simulated robot {model.name!r} with controllers {controllers}")

    def _check_controller(self, name: str) -> None:
        """Raise InvalidRequestError for a controller after which no topic or action can be called."""
        try:
            for topic in (f"{name}/joint_trajectory", f"{name}/follow_joint_trajectory{LONGEST_OF_ACTION}"):
                validate_full_topic_name(expand_topic_name(topic, self.get_name(), self.get_namespace()))
        except (NameValidationException, ValueError) as error:
            said = str(error).splitlines()[0].rstrip(":")
            raise InvalidRequestError(
                f"no topic can be called after the controller {quoted(name)}: {cut(said, 200)}"
            ) from error

    def _where(self, model: RobotModel) -> dict[str, float]:
        """Return where the joints begin: where they were, else in the state that a parameter names."""
        q = named_configuration(model, self._start) if self._start else model.default_q
        start = dict(zip(model.variable_names, q.tolist(), strict=True))
        before = self._topics_of_robot
        if before is not None:
            names, position, _ = before.robot.states(before.now())
            limits = model.limits
            for name, value in zip(names, position.tolist(), strict=True):
                k = model.variable_index.get(name)
                if k is not None and limits.lower[k] <= value <= limits.upper[k]:
                    start[name] = value
        active = SimulatedRobot(model, {}).joints
        return {name: start[name] for name in active}


def _rate(given: Any) -> float:
    number = float(given) if type(given) in (int, float) else math.nan
    if not 1.0 <= number <= 1000.0:
        said = f"{number:g}" if math.isfinite(number) else cut(repr(given), 100)
        raise InvalidRequestError(f"rate is {said}; allowed is 1 to 1000 joint states per second")
    return number


def _number(name: str, given: Any) -> float:
    if type(given) not in (int, float):
        raise InvalidRequestError(f"{name} is {cut(repr(given), 100)}; it is a number")
    return float(given)


def _switch(name: str, given: Any) -> bool:
    if type(given) is not bool:
        raise InvalidRequestError(f"{name} is {cut(repr(given), 100)}; it is true or false")
    return given


def _gripper(given: str) -> str:
    if given not in GRIPPERS:
        raise InvalidRequestError(f"gripper_action is {quoted(given)}; allowed are {', '.join(GRIPPERS)}")
    return given


def main(arguments: list[str] | None = None) -> int:
    """Run a robot until the process is interrupted: ``kinopt_simulated_robot [ROBOT] --ros-args ...``."""
    words = sys.argv if arguments is None else arguments
    try:
        with naming_arguments():
            rest = remove_ros_args(words)[1:]
            if len(rest) > 1:
                raise InvalidRequestError(f"{len(rest)} robots were given; allowed is one")
            rclpy.init(args=words, signal_handler_options=SignalHandlerOptions.NO)
        _serve(rest[0] if rest else None)
    except KinoptError as error:
        print(f"kinopt: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):  # while it begins
        pass
    finally:
        rclpy.try_shutdown()
    return 0


def _serve(source: str | None) -> None:
    """Run a robot until Ctrl-C or SIGTERM, which end it between two callbacks: an exception could come out anywhere."""
    stopping = threading.Event()
    executor = GuardedExecutor()

    def stop() -> None:
        stopping.set()
        executor.interrupt()

    with heard_at_once(stop, signal.SIGINT, signal.SIGTERM):
        try:
            node = SimulatedRobotNode(source)
        except (ParameterException, NameValidationException) as error:
            raise argument_error(error) from error
        executor.add_node(node)
        while not stopping.is_set():
            executor.spin_once(timeout_sec=1.0)  # not for ever: ROS may end unnoticed


if __name__ == "__main__":
    sys.exit(main(sys.argv))
