"""The node: wires parameters, topics and services to the parts that do the work."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import sys
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

import rclpy
from geometry_msgs.msg import PoseStamped, TwistStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from kinopt_msgs.msg import MotionReport, Scene, SceneUpdate, ServoStatus
from kinopt_ros.errors import InvalidStateError, KinoptError
from kinopt_ros.pauses import begin_to_look, end_to_look
from kinopt_ros.planning.scene_holder import SceneHolder
from kinopt_ros.planning.scheduler import Scheduler
from kinopt_ros.ros.actions.optimize_trajectory import OptimizeTrajectoryAction
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.lifecycle import ManagedNode
from kinopt_ros.ros.messages.conversions import error_message
from kinopt_ros.ros.messages.qos import EACH_ONE, QUEUED
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.ros.motion.controllers import Controllers, unheard
from kinopt_ros.ros.motion.joining import joined
from kinopt_ros.ros.motion.last_look import LastLook
from kinopt_ros.ros.motion.output import ClosedError, InactiveError, MotionOutput
from kinopt_ros.ros.motion.published import begin_of
from kinopt_ros.ros.motion.set_back import SetBackWatch
from kinopt_ros.ros.motion.stop_watch import WATCHED_AT_THE_END
from kinopt_ros.ros.motion.watched import WatchedMotions
from kinopt_ros.ros.moveit.offer import MakeTask, offer_moveit_services
from kinopt_ros.ros.robot import controller_parameters, joint_limits, kinematics_parameters, parameters
from kinopt_ros.ros.robot.controller_names import SEVERAL
from kinopt_ros.ros.robot.description import NAMING, Description, check_names
from kinopt_ros.ros.robot.frames import Frames
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.robot.loader import RobotLoader
from kinopt_ros.ros.robot.motion_clock import MotionClock
from kinopt_ros.ros.robot.parameter_services import careful
from kinopt_ros.ros.robot.state_watch import StateWatch
from kinopt_ros.ros.robot.waiting_for_robot import WaitingForRobot
from kinopt_ros.ros.rviz.interactive_markers import offer_interactive_markers
from kinopt_ros.ros.services.every import SERVICES
from kinopt_ros.ros.serving.answers import answering
from kinopt_ros.ros.serving.diagnostics import create_diagnostics
from kinopt_ros.ros.serving.failure_records import FailureRecords
from kinopt_ros.ros.serving.retries import Retries
from kinopt_ros.ros.serving.service import ImmediateService, QueuedService
from kinopt_ros.ros.serving.serving import Serving
from kinopt_ros.ros.serving.twins import TwinWatch
from kinopt_ros.ros.topics.emergency_stop import EmergencyStop
from kinopt_ros.ros.topics.markers import MarkersTopic
from kinopt_ros.ros.topics.scene import ScenePublisher
from kinopt_ros.ros.topics.scene_update import SceneUpdateTopic
from kinopt_ros.ros.topics.servo import ServoTopic
from kinopt_ros.ros.topics.target_pose import TargetPoseTopic

_FIRST_NAMES = 100
"""How many names of a joint state are looked at for one of the robot's."""
_LATCHED = QoSProfile(
    depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL, reliability=ReliabilityPolicy.RELIABLE
)
_NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
HEARD_SECONDS = 0.5
"""Longest time that the node's shutdown waits until listeners have got its last stop, s."""
STOP_SECONDS = 2.0
"""Longest time that the node waits for controllers to say that they have stopped, s."""
ANSWER_SECONDS = 0.02
"""Time between two checks whether controllers have answered, s."""
_UPDATES = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)
"""QoS of messages each of which counts."""


class KinoptNode(ManagedNode):
    """Turns poses into verified joint motion for the robot of robot_description."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__("kinopt", **node_options)
        self.ending = False
        """Whether the process shall end, so that long work breaks off."""
        self._end = threading.Lock()
        self._ended = False
        parameters.declare(self)
        kinematics = kinematics_parameters.declare(self)
        controllers = controller_parameters.declare(self, parameters.value(self, SEVERAL))
        self._reports = self.create_publisher(MotionReport, "~/report", 100)
        scene = SceneHolder(self._report_scene)
        self._loader = RobotLoader(self._report_loading, scene.serve)
        self._motion_clock = MotionClock(
            lambda: int(self.get_clock().now().nanoseconds),
            self._time_is_simulated,
            lambda: self._motions.runs or self.watches,
        )
        self._shared = Context(
            self,
            self._loader,
            JointStates(self._simulated_time),
            Frames(self, scene.of),
            scene,
            publish_scene=lambda: self._scene.publish(),
            note_failures=lambda asked, result: self._records.note(asked, result),
            kinematics=kinematics,
            controllers=controllers,
            sets_back=lambda: bool(self._set_back.sentence),
            clock=self._motion_clock.now,
        )
        self._description = Description(self, self._loader, self._shared.scene, kinematics)
        self._records = FailureRecords(self, self._description)
        self._records.use(parameters.value(self, "record_failures"))
        self._waiting = WaitingForRobot(self, self._description)
        self._scheduler = self._create_scheduler()
        # Threads of their own: what takes seconds must not keep those busy that everybody else needs.
        self._trajectory_scheduler = Scheduler(
            quick_threads=0,
            slow_threads=parameters.value(self, "trajectory.threads"),
            capacity=parameters.value(self, "queue_size"),
        )
        self._create_topics()
        self._create_services()
        self.add_pre_set_parameters_callback(self._converted_parameters)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._parameters_changed)
        TwinWatch(self)
        if parameters.value(self, "managed"):
            self._refuse_all()
            self._description.want(False)
            self.manage()
        self._description.load()
        self._moves = lambda: self._motions.runs
        begin_to_look(self._moves)  # last: nobody closes a node that could not be made

    def end_motions(self) -> None:
        """Stop what this node moves, and refuse to move anything from now on.

        Returns at once, but for a stop that has to be heard. Controllers' goals have ended when ``moving`` is empty,
        and joints that were stopped are at rest when ``watches`` is false, for which the urgent executor has to go on.
        On any thread; a second caller waits for the first one.
        """
        with self._end:
            if not self._ended:
                self._ended = True
                self._end_motions()

    def _end_motions(self) -> None:
        self._motions.close(ClosedError("the node is shutting down: nothing moves any more"))
        said = self._emergency_stop.stop_all("the shutdown of the node")
        self._controllers.cancel()
        if said:
            self.get_logger().warning(f"shutdown: {said}")
            # The thread that takes joint states may have ended.
            self.create_subscription(
                JointState,
                "joint_states",
                self._take_joint_state,
                qos_profile_sensor_data,
                callback_group=self.urgent.group,
            )
            self._emergency_stop.watch(WATCHED_AT_THE_END)
            if not self._motions.wait_until_heard(HEARD_SECONDS):
                self.get_logger().error(
                    "shutdown: the stop of the motion that runs was not heard by all listeners"
                )

    def configure(self) -> None:
        """Begin to build the robot and its solvers; ~/ready says when they are there."""
        self._description.want(True)

    def activate(self) -> None:
        """Answer requests, and let the robot move, unless the node ends."""
        with self._end:
            if not self._ended:
                self._servo.wait_for_pause()  # a stream may have come all the time
                self._motions.open()
                self._shared.gate.open()

    def deactivate(self) -> None:
        """Stop what this node moves, wait for controllers to say that they have, and refuse all that comes."""
        self._refuse_all()
        self._servo.wait_for_pause()
        said = self._emergency_stop.stop_all("the deactivation of the node", lasting=False)
        self._controllers.cancel()
        if said:
            self.get_logger().warning(f"deactivated: {said}")
            self._emergency_stop.watch()
        end = time.monotonic() + STOP_SECONDS
        while (left := self.moving) and time.monotonic() < end:  # the urgent executor hears their answers
            time.sleep(ANSWER_SECONDS)
        for name in left:
            self.get_logger().error(
                f"the controller {name} has not said within {STOP_SECONDS:g} s that it stops"
            )

    def clean_up(self) -> None:
        """Forget the robot, its solvers and the scene; descriptions that came by topic are kept."""
        self._description.want(False)
        self._loader.unload()
        self._shared.scene.forget()

    def finalize(self) -> None:
        """Refuse all that comes for ever: the node was shut down, and its process is still there."""
        self.end_motions()
        self._shared.gate.close("the node was shut down (lifecycle): start it anew")

    def _stop_once(self) -> str:
        """Stop what this node moves, and allow motions again at once; return what was done."""
        self._servo.wait_for_pause()
        said = self._emergency_stop.stop_all("the menu of a marker", lasting=False)
        if said:
            self._emergency_stop.watch()
        return said

    def _refuse_all(self) -> None:
        """Refuse requests and motions: the node is not active."""
        name = self.get_fully_qualified_name()
        why = f"the node is not active: `ros2 lifecycle set {name} activate` (after `configure`) makes it so"
        self._shared.gate.close(why)
        with self._end:
            if not self._ended:
                self._motions.close(InactiveError(why))

    @property
    def moving(self) -> list[str]:
        """Controllers' actions that have not told the end of a motion yet."""
        return self._controllers.moving

    @property
    def watches(self) -> bool:
        """Whether it is not known yet that joints which were told to stop are at rest."""
        return self._emergency_stop.watches

    def together(self) -> AbstractContextManager[None]:
        """Build the robot once, for all parameters that are set meanwhile."""
        return self._description.together()

    def create_service(self, srv_type: Any, srv_name: str, callback: Any, **options: Any) -> Any:
        """Create a service as rclpy does; rclpy's parameter services are created by it, too, and are made
        ``careful``."""
        return super().create_service(srv_type, srv_name, careful(self, srv_type, callback), **options)

    def close(self) -> None:
        """Stop background work. The node cannot be used afterwards."""
        try:
            self._close()
        finally:
            end_to_look(self._moves)  # last: until then something may be braking

    def _close(self) -> None:
        if rclpy.ok():
            self.end_motions()
        elif self.moving or self._motions.runs:
            print("kinopt: ROS was shut down first: the motion that runs cannot be stopped", file=sys.stderr)
        if self._interactive_markers is not None:
            self._interactive_markers.close()
        for part in self._moveit:
            part.close()
        self._trajectory_action.close()
        self._trajectory_scheduler.close()
        self._scheduler.close()
        self._retries.close()
        self._servo.close()
        self._target_pose.close()
        self._watched.close()
        self._scene_updates.close()
        self._scene.close()
        self._markers.close()
        self._records.close()
        self._description.close()
        self._loader.close()
        for timer in tuple(self.timers):  # the executor may be somebody else's, and go on
            timer.cancel()

    def _create_topics(self) -> None:
        for name, take in (
            ("robot_description", self._description.take_urdf),
            ("robot_description_semantic", self._description.take_srdf),
        ):
            self.create_subscription(String, name, lambda message, take=take: take(message.data), _LATCHED)
        self.create_subscription(
            JointState,
            "joint_states",
            self._take_joint_state,
            qos_profile_sensor_data,
            callback_group=self.sensing.group,
        )
        motions = self.create_publisher(JointTrajectory, "~/joint_trajectory", _NEWEST)
        self._motions = MotionOutput(
            motions,
            LastLook(self._shared),
            self._shared.now,
            lambda: unheard(self._shared, motions),
            lambda message, robot: begin_of(
                message,
                robot,
                self._shared.joint_states.of(robot),
                self._shared.now(),
                self._shared.parameter("start_delay"),
                self._motions.published,
            ),
            lambda message, running: joined(
                message,
                running,
                self._shared.joint_states.of(running.robot),
                self._shared.now(),
            ),
        )
        self._controllers = Controllers(self._shared, self.urgent)
        self._set_back = SetBackWatch(
            self,
            lambda: [
                *self._controllers.endpoints(),
                *self.get_subscriptions_info_by_topic(motions.topic_name),
            ],
        )
        self._watched = WatchedMotions(self.get_logger(), self._reports)
        self._target_pose = TargetPoseTopic(self._shared, self._motions, self._watched, self._reports)
        self.create_subscription(PoseStamped, "~/target_pose", self._target_pose.take, _NEWEST)
        statuses = self.create_publisher(ServoStatus, "~/servo/status", _LATCHED)
        self._servo = ServoTopic(self._shared, self._motions, statuses)
        self.create_subscription(TwistStamped, "~/servo/twist", self._servo.take_twist, _NEWEST)
        self.create_subscription(PoseStamped, "~/servo/target_pose", self._servo.take_target, _NEWEST)
        stop = EmergencyStop(
            self._shared,
            self._motions,
            self._servo.announce_emergency,
            lambda: self.moving,
            self._controllers.cancel,
        )
        self._emergency_stop = stop
        # Who asks for what was published before hears latched publishers only: of them alone the second one does, and
        # no warning shall say of the others that nobody hears them.
        self.create_subscription(
            Bool, "~/emergency_stop", stop.take, _UPDATES, callback_group=self.urgent.group
        )
        silent = SubscriptionEventCallbacks(incompatible_qos=lambda event: None)
        self.create_subscription(
            Bool,
            "~/emergency_stop",
            stop.take,
            _LATCHED,
            event_callbacks=silent,
            callback_group=self.urgent.group,
        )
        self._scene = ScenePublisher(self._shared, self.create_publisher(Scene, "~/scene", _LATCHED))
        self._scene_updates = SceneUpdateTopic(
            self._shared, self._scene, self._reports, group=self.scenes.group
        )
        self.create_subscription(
            SceneUpdate,
            "~/scene_update",
            self._scene_updates.take,
            EACH_ONE,
            event_callbacks=SubscriptionEventCallbacks(message_lost=self._scene_updates.lost),
            callback_group=self._scene_updates.group,
        )
        self._marker_array = self.create_publisher(MarkerArray, "~/markers", 10)
        self._markers = MarkersTopic(self._shared, self._marker_array)

    def _create_services(self) -> None:
        context = self._shared
        self._retries = Retries(self)
        serving = Serving(context, self._scheduler, self._retries)
        trajectories = Serving(context, self._trajectory_scheduler, self._retries)
        tasks: dict[str, MakeTask] = {}
        for service in (kind(context) for kind in SERVICES):
            if isinstance(service, QueuedService):
                tasks[service.name] = service.task
                (trajectories if service.takes_seconds else serving).serve(service)
            elif isinstance(service, ImmediateService):
                group = self.urgent.group if service.urgent else None
                callback = answering(self, service.handle)
                self.create_service(
                    service.type, f"~/{service.name}", callback, qos_profile=QUEUED, callback_group=group
                )
        self._trajectory_action = OptimizeTrajectoryAction(
            context,
            self._trajectory_scheduler,
            self._motions,
            self._controllers,
            self._watched,
            self.urgent,
            self._retries,
        )
        self._moveit = offer_moveit_services(
            context,
            serving,
            trajectories,
            tasks,
            self._scene_updates,
            self._motions,
            self._controllers,
            self.urgent,
        )
        self._interactive_markers = offer_interactive_markers(
            context,
            self._scheduler,
            serving,
            trajectories,
            tasks,
            self._scene_updates,
            self._motions,
            self._controllers,
            self._stop_once,
            self._marker_array,
            self._reports,
        )
        states = StateWatch(context, self._motion_clock)
        self._diagnostics = create_diagnostics(
            self,
            context,
            self._scheduler,
            context.statistics,
            lambda: f"joint_states: {states.sentence}" if states.sentence else self._set_back.sentence,
        )

    def _create_scheduler(self) -> Scheduler:
        threads = parameters.value(self, "threads")
        return Scheduler(
            quick_threads=max(1, threads // 2),
            slow_threads=threads - max(1, threads // 2),
            capacity=parameters.value(self, "queue_size"),
            most_alike=parameters.value(self, "batching"),
        )

    def _take_joint_state(self, message: Any) -> None:
        stamp = nanoseconds(message.header.stamp)
        try:
            now = self._motion_clock.heard(*self._publisher(message.name, stamp))
            self._shared.joint_states.update(message, stamp, now)
        except InvalidStateError as error:
            self.get_logger().warning(f"joint_states: {error}", throttle_duration_sec=5.0)

    def _publisher(self, names: Sequence[str], stamp: int) -> tuple[str, int]:
        """Return by which joint of the robot somebody is told from others, and the stamp; of others' joints none."""
        known = self._loader.loaded.model.variable_index if self._loader.is_ready else {}
        name = next((name for name in islice(names, _FIRST_NAMES) if name in known), "")
        return name, stamp if name else 0

    def _converted_parameters(self, given: list[Parameter[Any]]) -> list[Parameter[Any]]:
        return joint_limits.converted(parameters.converted(given))

    def _check_parameters(self, given: list[Parameter[Any]]) -> SetParametersResult:
        if self._description.is_declaring:
            return SetParametersResult(successful=True)
        for check in (parameters.check, self._description.check, self._check_names):
            result = check(given)
            if not result.successful:
                return result
        return SetParametersResult(successful=True)

    def _check_names(self, given: list[Parameter[Any]]) -> SetParametersResult:
        """Refuse names of groups, joints and links that the robot in service does not have."""
        if not self._loader.is_ready or self._description.replaced_by(given):
            return SetParametersResult(successful=True)
        robot = self._loader.loaded.model
        try:
            for parameter in given:
                if parameter.name in NAMING:
                    check_names(robot, parameter.name, parameters.checked(parameter))
        except KinoptError as error:
            return parameters.refusal(str(error))
        return SetParametersResult(successful=True)

    def _parameters_changed(self, given: list[Parameter[Any]]) -> None:
        if self._description.is_declaring:
            return
        self._shared.forget_parameters()
        self._scheduler.capacity = self._trajectory_scheduler.capacity = parameters.value(self, "queue_size")
        self._scheduler.most_alike = parameters.value(self, "batching")
        self._description.was_set(given)

    def _report_loading(self, sentence: str, error: KinoptError | None) -> None:
        if error is None:
            self.get_logger().info(sentence)
            self._scene.publish()
            return
        self.get_logger().error(sentence)
        self._reports.publish(MotionReport(status=error_message(error)))

    def _simulated_time(self) -> int | None:
        return self._shared.now() if self._time_is_simulated() else None

    def _time_is_simulated(self) -> bool:
        clock: Any = self.get_clock()
        return bool(clock.ros_time_is_active)

    def _report_scene(self, sentence: str) -> None:
        self.get_logger().warning(f"scene: {sentence}")
