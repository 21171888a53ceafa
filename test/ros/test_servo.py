"""~/servo and ~/emergency_stop through a real node, whose motions a simulated controller does."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.clock import Clock, ClockType
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from support.ros_requests import READY, StartNode, pose, set_parameter, stand, target
from support.simulated_controller import SimulatedController
from support.trajectory_goals import COMPILER, Goals, joints

from kinopt_msgs.msg import ServoStatus
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.messages.conversions import matrices_from_poses, trajectory_from_message
from kinopt_ros.ros.motion.last_look import CALM_SECONDS
from kinopt_ros.status import Status

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)

PANDA = load_robot("panda")
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Slow machines have time: what a usual robot needs is in config/kinopt.yaml.
PATIENT = {
    "servo.period": 0.05,
    "servo.timeout": 1.0,
    "servo.state_timeout": 10.0,
    "servo.target_timeout": 60.0,
    "servo.tracking_tolerance": 0.5,
    "velocity_scaling": 0.3,
    "acceleration_scaling": 0.3,
}


@pytest.fixture(scope="module")
def panda_parameters(panda_parameters: dict[str, object]) -> dict[str, object]:
    return {**panda_parameters, **PATIENT}


class Servo:
    """Publishes commands, and hears what becomes of them."""

    def __init__(self, client: Client, node: str = "kinopt") -> None:
        self.client = client
        made = client.node
        self.statuses: list[ServoStatus] = []
        self._heard = made.create_subscription(
            ServoStatus, f"{node}/servo/status", self.statuses.append, LATCHED
        )
        self._twists = made.create_publisher(TwistStamped, f"{node}/servo/twist", 1)
        self._targets = made.create_publisher(PoseStamped, f"{node}/servo/target_pose", 1)
        self._stops = made.create_publisher(Bool, f"{node}/emergency_stop", 1)
        for publisher in (self._twists, self._targets, self._stops):
            assert client.spin_until(lambda p=publisher: p.get_subscription_count() > 0, 60.0)

    def twist(self, *linear: float, frame: str = "") -> None:
        """A velocity of the tip, m/s."""
        message = TwistStamped()
        message.header.frame_id = frame
        message.twist.linear.x, message.twist.linear.y, message.twist.linear.z = linear
        self._twists.publish(message)

    def to(self, goal: Any, frame: str = "") -> None:
        """A target pose."""
        self._targets.publish(target(goal, frame))

    def emergency(self, stop: bool) -> None:
        """Stop, or go on."""
        self._stops.publish(Bool(data=stop))

    def stream(self, seconds: float, *linear: float) -> None:
        """A velocity for some time."""
        for _ in range(max(1, round(seconds / 0.1))):
            self.twist(*linear)
            self.client.spin(0.1)

    def stream_until(self, holds: Callable[[], bool], *linear: float) -> None:
        """A velocity until something is so."""
        end = time.monotonic() + 60.0
        while not holds():
            assert time.monotonic() < end, "it never was"
            self.stream(0.1, *linear)

    def until(self, state: str, code: Status, seconds: float = 60.0) -> ServoStatus:
        """The next status of that state and code."""
        begin = len(self.statuses)

        def there() -> bool:
            return any(s.state == state and s.status.code == code for s in self.statuses[begin:])

        assert self.client.spin_until(there, seconds), [(s.state, s.status) for s in self.statuses[begin:]][
            -5:
        ]
        return next(s for s in self.statuses[begin:] if s.state == state and s.status.code == code)

    def close(self) -> None:
        """Leave the node alone."""
        for publisher in (self._twists, self._targets, self._stops):
            self.client.node.destroy_publisher(publisher)
        self.client.node.destroy_subscription(self._heard)


def prepared(servo: Servo) -> None:
    """Wait until collisions can be checked: a compiler may be at work."""
    for _ in range(round(COMPILER)):
        servo.statuses.clear()
        servo.twist(0.0, 0.0, 0.0)
        assert servo.client.spin_until(lambda: len(servo.statuses) > 0, 60.0)
        if servo.statuses[-1].status.code == Status.SUCCESS:
            break
        servo.client.spin(1.0)
    servo.until(ServoStatus.IDLE, Status.TIMED_OUT)


@pytest.fixture(scope="module")
def servo(client: Client) -> Iterator[Servo]:
    made = Servo(client)
    prepared(made)
    yield made
    made.close()


@pytest.fixture
def robot(client: Client, servo: Servo) -> Iterator[SimulatedController]:
    """A robot at READY that does what it is told."""
    client.stop_robot()
    made = SimulatedController(client, READY)
    client.spin(CALM_SECONDS)  # where it has jumped to does not count before
    yield made
    made.close()
    client.pretend_robot(READY)


def tip(robot: SimulatedController) -> np.ndarray:
    q = PANDA.default_q.copy()
    q[:7] = robot.state().position
    return forward_kinematics(PANDA, q, links=("panda_link8",))[0]


def assert_ends_at_rest(messages: list[Any]) -> None:
    for message in messages:
        assert np.abs(message.points[-1].velocities).max() == 0.0
        assert message.header.frame_id == "panda_link0"
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
        assert times[0] >= 0.0  # a stop from where the robot was measured begins with its end
        assert (np.diff(times) > 0.0).all()


def assert_no_jumps(messages: list[Any]) -> None:
    """Check that whoever replaces a motion by the next one soon after that was made finds equal states in both, or time
    enough to its first point: where the robot was measured beside the motion, as by this busy machine."""
    before: Commanded | None = None
    for message in messages:
        start = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        assert start > 0
        motion = Commanded(trajectory_from_message(message), start, start, start)
        soon = start + 10_000_000
        first = int(motion.times[0])
        if before is not None and first > soon:
            step = np.abs(motion.at(first).position - before.at(soon).position)
            assert (step <= (first - soon) / 1e9 * 1.2 * PANDA.limits.velocity[:7]).all()
        elif before is not None:
            np.testing.assert_allclose(motion.at(soon).position, before.at(soon).position, atol=1e-9)
            np.testing.assert_allclose(motion.at(soon).velocity, before.at(soon).velocity, atol=1e-7)
        before = motion


def test_a_twist_moves_the_tip_until_no_more_come(
    client: Client, servo: Servo, robot: SimulatedController
) -> None:
    begin, sent = tip(robot), len(client.trajectories)
    servo.statuses.clear()
    servo.stream(1.5, 0.0, 0.05, 0.0)
    moving = [s for s in servo.statuses if s.state == ServoStatus.MOVING]
    assert moving
    assert moving[-1].command == "servo/twist"
    assert {"velocity limits", "collisions on the way"} <= set(moving[-1].checks)
    assert moving[-1].clearance >= 0.0
    assert moving[-1].scale == 1.0
    # Of the fingers nobody says where they are, and the arm could hit what they hold.
    assert "joint_states has no value for panda_finger_joint1" in moving[-1].status.message
    stopped = servo.until(ServoStatus.IDLE, Status.TIMED_OUT)  # nobody says anything any more
    assert "twist" in stopped.status.message
    assert client.spin_until(robot.is_at_rest, 60.0)
    messages = client.trajectories[sent:]
    assert len(messages) > 5
    assert_ends_at_rest(messages)
    assert_no_jumps(messages)
    way = tip(robot)[:3, 3] - begin[:3, 3]
    assert way[1] > 0.05
    assert np.abs(way[[0, 2]]).max() < 0.02
    client.spin(0.5)
    assert len(client.trajectories) == sent + len(messages)  # idle means silent


def test_axes_of_the_tip(client: Client, servo: Servo, robot: SimulatedController) -> None:
    begin = tip(robot)
    for _ in range(10):
        servo.twist(0.0, 0.0, 0.05, frame="panda_link8")  # which looks down
        client.spin(0.1)
    servo.until(ServoStatus.IDLE, Status.TIMED_OUT)
    assert (tip(robot)[:3, 3] - begin[:3, 3])[2] < -0.02


def test_a_target_pose_is_reached(client: Client, servo: Servo, robot: SimulatedController) -> None:
    goal = pose(0.35, 0.1, 0.55)
    servo.to(goal)
    done = servo.until(ServoStatus.IDLE, Status.SUCCESS, 60.0)
    assert "reached" in done.status.message
    assert client.spin_until(robot.is_at_rest, 60.0)
    np.testing.assert_allclose(tip(robot), matrices_from_poses([goal])[0], atol=5e-3)
    assert done.position_error <= 1e-4


def test_the_robot_has_one_owner(client: Client, servo: Servo, robot: SimulatedController) -> None:
    end = time.monotonic() + 120.0
    taken: list[ServoStatus] = []
    # On a busy machine joint states are too old to leave a motion, or servo has ended before the pose comes.
    while not taken:
        assert time.monotonic() < end
        servo.stream(0.5, 0.0, 0.05, 0.0)
        servo.statuses.clear()
        report, trajectory = client.move_to(target(pose(0.35, 0.0, 0.5)))
        if report.status.code == Status.ROBOT_STATE_STALE:
            continue
        assert report.status.code == Status.SUCCESS, report.status.message
        assert trajectory is not None
        client.spin_until(lambda: any(s.status.code == Status.PREEMPTED for s in servo.statuses), 5.0)
        taken = [s for s in servo.statuses if s.status.code == Status.PREEMPTED]
    assert "~/target_pose" in taken[0].status.message
    sent = len(client.trajectories)
    client.spin(0.3)
    assert len(client.trajectories) == sent  # servo keeps quiet
    # Until it is asked again, in the middle of that motion.
    servo.stream_until(lambda: len(client.trajectories) > sent, 0.0, 0.05, 0.0)
    servo.until(ServoStatus.IDLE, Status.TIMED_OUT)
    assert client.spin_until(robot.is_at_rest, 60.0)


def test_an_emergency_stop_ends_servo_and_lasts(
    process: NodeProcess, client: Client, servo: Servo, robot: SimulatedController
) -> None:
    assert "No messages will be received" not in process.log_text()
    servo.stream(1.0, 0.0, 0.1, 0.0)
    usual = client.trajectories[-1]
    servo.statuses.clear()
    servo.emergency(True)
    try:
        assert client.spin_until(lambda: any(s.state == ServoStatus.EMERGENCY for s in servo.statuses), 60.0)
        assert client.spin_until(robot.is_at_rest, 60.0)
        said = next(s for s in servo.statuses if s.state == ServoStatus.EMERGENCY)
        assert said.status.code == Status.EMERGENCY_STOP
        assert "brakes" in said.status.message or "sooner" in said.status.message, said.status.message
        assert_ends_at_rest([usual, client.trajectories[-1]])
        sent, place = len(client.trajectories), tip(robot)
        client.spin(0.5)  # a pause, after which a stream begins while the stop lasts
        servo.stream(0.3, 0.0, 0.1, 0.0)
        servo.to(pose(0.35, 0.1, 0.55))
        report, trajectory = client.move_to(target(pose(0.35, 0.1, 0.55)))
        assert report.status.code == Status.EMERGENCY_STOP
        assert "~/emergency_stop" in report.status.message
        assert trajectory is None
        goals = Goals(client)
        _, result = goals.run(joint_goals=[joints(panda_joint1=0.3)], publish=True)
        assert result.status.code == Status.EMERGENCY_STOP
        goals.close()
        assert len(client.trajectories) == sent
        np.testing.assert_array_equal(tip(robot), place)
        servo.stream(0.3, 0.0, 0.1, 0.0)
    finally:
        servo.emergency(False)
        client.spin(0.1)
    servo.stream(1.5, 0.0, 0.05, 0.0)  # which was never interrupted: nothing moves because a stop has ended
    assert len(client.trajectories) == sent
    client.spin(1.4)
    servo.stream_until(lambda: len(client.trajectories) > sent, 0.0, 0.05, 0.0)
    servo.until(ServoStatus.IDLE, Status.TIMED_OUT)


def test_an_emergency_stop_ends_a_motion_of_target_pose(
    client: Client, servo: Servo, robot: SimulatedController
) -> None:
    report, motion = client.move_to(target(pose(0.1, 0.5, 0.4)))
    assert report.status.code == Status.SUCCESS, report.status.message
    assert report.duration > 1.0
    client.spin(0.4 * report.duration)
    sent = len(client.trajectories)
    servo.statuses.clear()
    servo.emergency(True)
    try:
        assert client.spin_until(lambda: len(client.trajectories) > sent, 60.0)
        assert client.spin_until(robot.is_at_rest, 60.0)
        stop = client.trajectories[-1]
        assert_ends_at_rest([stop])
        assert motion is not None
        away = np.array(motion.points[-1].positions) - robot.state().position
        assert np.abs(away).max() > 0.05  # it did not get there
        q = np.array([point.accelerations for point in stop.points])
        limits = PANDA.limits.acceleration[:7]
        assert (np.abs(q) <= limits * (1 + 1e-6)).all()
        # As fast as it can, whatever the scaling is.
        if len(stop.points) > 2:
            assert np.abs(q / limits).max() > 0.5
        else:  # where this machine was late: the way to the first point, at rest, is up to the controller
            assert stop.points[0].time_from_start.sec == 0
        client.spin(0.3)
        assert len(client.trajectories) == sent + 1
    finally:
        servo.emergency(False)
        client.spin(0.3)


@pytest.mark.parametrize(
    ("linear", "frame", "code"),
    [
        ((float("nan"), 0.0, 0.0), "", Status.INVALID_GOAL_CONSTRAINTS),
        ((0.1, 0.0, 0.0), "nowhere", Status.FRAME_TRANSFORM_FAILURE),
    ],
)
def test_a_bad_twist_moves_nothing(
    client: Client,
    servo: Servo,
    robot: SimulatedController,
    linear: tuple[float, float, float],
    frame: str,
    code: Status,
) -> None:
    sent = len(client.trajectories)
    servo.twist(*linear, frame=frame)
    said = servo.until(ServoStatus.IDLE, code)
    assert said.status.message
    client.spin(0.3)
    assert len(client.trajectories) == sent


def test_a_bad_message_stops_what_moves(client: Client, servo: Servo, robot: SimulatedController) -> None:
    servo.stream(0.5, 0.0, 0.05, 0.0)
    servo.to(pose(float("nan")))
    servo.until(ServoStatus.IDLE, Status.INVALID_GOAL_CONSTRAINTS)
    assert client.spin_until(robot.is_at_rest, 60.0)


def test_without_joint_states_nothing_moves(client: Client, servo: Servo, robot: SimulatedController) -> None:
    robot.close()
    assert set_parameter(client, "kinopt", "servo.state_timeout", 0.05).successful
    try:
        client.spin(0.1)
        sent = len(client.trajectories)
        servo.twist(0.0, 0.05, 0.0)
        said = servo.until(ServoStatus.IDLE, Status.ROBOT_STATE_STALE)
        assert "panda_joint" in said.status.message
        assert len(client.trajectories) == sent
    finally:
        patience = PATIENT["servo.state_timeout"]
        assert set_parameter(client, "kinopt", "servo.state_timeout", patience).successful


def test_nothing_is_sent_that_may_wait_in_the_network(
    client: Client, servo: Servo, robot: SimulatedController
) -> None:
    """After a hiccup of 0.2 s all came at once: the robot had come to rest, and was set into the midst of the newest
    motion, up to 0.1 rad away."""
    sent = len(client.trajectories)
    servo.stream_until(lambda: len(client.trajectories) > sent + 5, 0.0, 0.05, 0.0)
    robot.close()
    servo.stream(0.4, 0.0, 0.05, 0.0)  # what had come, and was under way, may still be sent
    sent = len(client.trajectories)
    servo.statuses.clear()
    servo.stream(1.0, 0.0, 0.05, 0.0)
    assert len(client.trajectories) == sent
    said = [one.status.message for one in servo.statuses if one.status.code == Status.TIMED_OUT]
    assert any("no joint states have come" in sentence for sentence in said)
    assert_ends_at_rest(client.trajectories[-1:])
    servo.until(ServoStatus.IDLE, Status.TIMED_OUT)


def test_a_robot_that_does_not_follow_is_stopped_until_the_commands_pause(
    client: Client, servo: Servo, robot: SimulatedController
) -> None:
    robot.plays = False
    servo.statuses.clear()
    for _ in range(150):
        servo.stream(0.1, 0.0, 0.1, 0.0)
        if any(s.status.code == Status.CONTROL_FAILED for s in servo.statuses):
            break
    said = next(s for s in servo.statuses if s.status.code == Status.CONTROL_FAILED)
    assert "servo.tracking_tolerance" in said.status.message
    for _ in range(60):  # the stop may come later than what is said of it
        sent = len(client.trajectories)
        servo.stream(0.5, 0.0, 0.1, 0.0)
        if len(client.trajectories) == sent:
            break
    assert len(client.trajectories) == sent
    client.spin(1.4)
    robot.plays = True
    servo.stream_until(lambda: len(client.trajectories) > sent, 0.0, 0.05, 0.0)
    servo.until(ServoStatus.IDLE, Status.TIMED_OUT)


def test_a_latched_emergency_stop_holds_for_a_node_that_starts_later(
    client: Client, start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    latched = client.node.create_publisher(Bool, "kinopt_late/emergency_stop", LATCHED)
    latched.publish(Bool(data=True))
    statuses: list[ServoStatus] = []
    client.node.create_subscription(ServoStatus, "kinopt_late/servo/status", statuses.append, LATCHED)
    _, other = start_node("kinopt_late", panda_parameters)
    stand(other)
    stopped = lambda: bool(statuses) and statuses[-1].state == ServoStatus.EMERGENCY  # noqa: E731
    assert client.spin_until(stopped, 60.0)
    report, trajectory = other.move_to(target(pose()))
    assert report.status.code == Status.EMERGENCY_STOP
    assert trajectory is None
    latched.publish(Bool(data=False))
    assert client.spin_until(lambda: not stopped(), 60.0)
    report, trajectory = other.move_to(target(pose()))
    assert report.status.code == Status.SUCCESS, report.status.message
    client.node.destroy_publisher(latched)


def test_simulated_time(start_node: StartNode, panda_parameters: dict[str, object]) -> None:
    rosgraph = pytest.importorskip("rosgraph_msgs.msg")
    far = {**panda_parameters, "use_sim_time": True, "servo.tracking_tolerance": 10.0}
    _, client = start_node("kinopt_simulated", far)
    client.node.set_parameters([Parameter("use_sim_time", value=True)])
    clock = client.node.create_publisher(rosgraph.Clock, "/clock", 10)
    servo = Servo(client, "kinopt_simulated")
    now, robot = [1000.0], [1000.0]
    state = JointState(name=list(READY), position=list(READY.values()), velocity=[0.0] * len(READY))

    def stamp(seconds: float) -> Time:
        return Time(sec=int(seconds), nanosec=int(seconds % 1.0 * 1e9))

    def tick() -> None:
        now[0] += 0.01
        robot[0] += 0.01
        clock.publish(rosgraph.Clock(clock=stamp(now[0])))
        state.header.stamp = stamp(robot[0])
        client.publish_joint_state(state)

    def lead() -> list[int]:
        """How far ahead of the robot's clock the next motions count, s."""
        before = len(client.trajectories)
        servo.stream_until(lambda: len(client.trajectories) > before + 5, 0.0, 0.05, 0.0)
        return [m.header.stamp.sec - int(robot[0]) for m in client.trajectories[before:]]

    steady = Clock(clock_type=ClockType.STEADY_TIME)
    timer = client.node.create_timer(0.01, tick, clock=steady)
    prepared(servo)
    servo.stream_until(lambda: len(client.trajectories) > 10, 0.0, 0.05, 0.0)
    assert_ends_at_rest(client.trajectories)
    stamps = [m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in client.trajectories]
    # A stamp may be ahead by the longest way to a controller that is reckoned with.
    assert 1000.0 < stamps[0] < stamps[-1] <= now[0] + 0.1
    now[0] = 500.0  # set back while the robot moves, as simulators do: its own clock has not heard of that
    servo.stream_until(lambda: 500 <= servo.statuses[-1].header.stamp.sec < 600, 0.0, 0.05, 0.0)
    assert all(abs(seconds) <= 1 for seconds in lead())
    robot[0] = now[0]
    servo.stream_until(lambda: 500 <= client.trajectories[-1].header.stamp.sec < 600, 0.0, 0.05, 0.0)
    assert all(abs(seconds) <= 1 for seconds in lead())
    client.node.destroy_timer(timer)
    client.spin(0.3)
    sent = len(client.trajectories)
    servo.stream(0.3, 0.0, 0.05, 0.0)  # while time stands still, nothing happens
    assert len(client.trajectories) <= sent + 1
    servo.close()
