"""The emergency stop without a node: whatever is not known or not ready, what moves is stopped."""

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from support.looks import Trusting
from support.scene_holders import serving
from trajectory_msgs.msg import JointTrajectory

import kinopt_ros.ros.topics.emergency_stop as emergency_stop
from kinopt_ros.planning.servo.brake import brake_on_the_way
from kinopt_ros.planning.servo.commanded import Commanded, begun
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.planning.servo.stop import quickest_stop
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.client.simulated_actions import given
from kinopt_ros.ros.messages.conversions import trajectory_from_message, trajectory_message
from kinopt_ros.ros.motion import stops_in_time
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.robot import joint_states
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.topics.emergency_stop import EmergencyStop
from kinopt_ros.trajectory.braking import MotionState, pieces_to_rest, planning_limits
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.jerk_phases import MotionLimits
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory as Trajectory
from kinopt_ros.trajectory.simulated_controller import SimulatedController
from kinopt_ros.trajectory.timing import point_to_point
from kinopt_ros.verification.sweep import WayContact

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
LIMITS = MotionLimits(*(getattr(PANDA.limits, name)[:7] for name in ("velocity", "acceleration", "jerk")))
PARAMETERS = {
    "servo.avoid_collisions": True,
    "ik.avoid_collisions": False,
    "ik.clearance": 0.0,
    "start_state_tolerance": 1e-3,
    "servo.state_timeout": 10.0,
    "servo.tracking_tolerance": 0.05,
}


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is of the time that a test says, however long the test takes."""
    monkeypatch.setattr(joint_states, "time", SimpleNamespace(monotonic=lambda: 0.0))


def planned_for(robot: RobotModel) -> Any:
    """Return what a motion was planned for, where nobody checks it."""
    return SimpleNamespace(loaded=SimpleNamespace(model=robot), goes_on=False, stops=False)


class World:
    """A robot that is told to move, at a time that the test sets."""

    def __init__(self, robot: RobotModel, motion: Any) -> None:
        self.now = 10**15
        self.messages: list[Any] = []
        self.said: list[str] = []
        self.again: list[bool] = []
        self.states = JointStates()
        self.logged: list[str] = []
        quiet = SimpleNamespace(warning=self.logged.append, error=pytest.fail)
        self.loaded = SimpleNamespace(model=robot)
        context: Any = SimpleNamespace(
            node=SimpleNamespace(get_logger=lambda: quiet),
            now=self._tick,
            loaded=self.loaded,
            parameter=PARAMETERS.__getitem__,
            joint_states=self.states,
            sets_back=lambda: False,
            scene=serving(robot),
        )
        self.output = MotionOutput(
            SimpleNamespace(publish=self.messages.append),
            Trusting(),
            lambda: self.now,
            begin=lambda message, model: self.now,
        )
        self.stop = EmergencyStop(
            context,
            self.output,
            lambda stopped, text: self.said.append(text),
            list,
            lambda: self.again.append(True),
        )
        assert self.output.claim("test", lambda owner: None).publish(
            trajectory_message(motion, "panda_link0"), planned_for(robot)
        )
        self.motion = Commanded(motion, self.now, self.now, self.now)

    def _tick(self) -> int:
        return self.now

    def measured(self, state: MotionState) -> None:
        self.states.update(
            JointState(name=ARM, position=state.position.tolist(), velocity=state.velocity.tolist())
        )

    def looked(self) -> None:
        """Wait until the stops are looked at."""
        for thread in threading.enumerate():
            if thread.name == "stop_look":
                thread.join()

    def emergency(self) -> Any:
        """The stop that is published."""
        self.stop.take(Bool(data=True))
        assert len(self.messages) == 2, self.said
        return self.messages[-1]


def a_move() -> Any:
    return point_to_point(
        ARM, PANDA.default_q[:7], PANDA.default_q[:7] + np.array([2.0, *[0.3] * 6]), *vars(LIMITS).values()
    )


def ends_at_rest(message: JointTrajectory) -> bool:
    return not np.abs(message.points[-1].velocities).any()


@pytest.mark.parametrize(("ahead", "as_measured"), [(0, False), (100_000_000, True)])
def test_a_controller_that_does_not_keep_stamps_is_stopped_where_it_is(ahead: int, as_measured: bool) -> None:
    """It has begun when the motion came, before the stamp: the stop of the published motion set it back by 0.2 rad."""
    world = World(PANDA, a_move())
    world.now += 300_000_000
    world.measured(world.motion.at(world.now + ahead))
    stop = world.emergency()
    assert ends_at_rest(stop)
    assert ("from where it was measured" in world.said[0]) == as_measured


def test_a_motion_that_began_when_it_came_is_stopped_where_it_is() -> None:
    """Nobody knows when that was: a stop at a time of the clock had its controller jump, at 8 times the limits."""
    world = World(PANDA, a_move())
    (published,) = world.output.published
    published.message.header.stamp.sec = published.message.header.stamp.nanosec = 0
    world.now += 300_000_000
    world.measured(world.motion.at(world.now - 5_000_000))
    stop = world.emergency()
    assert ends_at_rest(stop)
    assert (stop.header.stamp.sec, stop.header.stamp.nanosec) == (0, 0)
    assert "from where it was measured" in world.said[0]


def test_a_robot_whose_driver_measures_no_velocity_is_not_sent_back() -> None:
    """It was to be within 0.1 s where it had been measured, though it went at 1 rad/s."""
    world = World(PANDA, a_move())
    world.now += 300_000_000
    elsewhere = PANDA.default_q[:7] - 0.3
    for k in range(11):
        position = elsewhere.copy()
        position[0] += 0.02 * k
        message = JointState(name=ARM, position=position.tolist())
        world.states.update(message, world.now - (10 - k) * 20_000_000, world.now)
    stop = world.emergency()
    assert ends_at_rest(stop)
    assert "from where it was measured" in world.said[0]
    assert stop.points[-1].positions[0] > position[0] + 0.04
    np.testing.assert_allclose(stop.points[-1].positions[1:], position[1:], atol=1e-12)


def test_a_stop_does_not_wait_for_collision_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load_robot("panda")  # which nobody has prepared, and looking would take a compiler
    monkeypatch.setattr(emergency_stop, "first_contact", lambda *given, **options: pytest.fail("looked"))
    world = World(robot, a_move())
    world.now += 300_000_000
    assert ends_at_rest(world.emergency())
    world.looked()
    assert "within the limits" in world.said[0]
    assert "nobody looked at collisions" in world.said[1]


def test_nothing_waits_for_the_look_at_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    let_look = threading.Event()

    def contact(*given: Any, **options: Any) -> WayContact:
        assert let_look.wait(60.0)
        return WayContact("panda_hand", "wall", -0.01, 0.1)

    monkeypatch.setattr(emergency_stop, "check_ready", lambda robot: None)
    monkeypatch.setattr(emergency_stop, "first_contact", contact)
    world = World(PANDA, a_move())
    world.now += 300_000_000
    assert ends_at_rest(world.emergency())
    assert len(world.said) == 1
    let_look.set()
    world.looked()
    assert "'panda_hand' is 0.0100 m deep in 'wall'" in world.said[1]
    assert world.said[1] in world.logged[1]


def test_a_controller_that_gets_a_stop_late_stops_all_the_same() -> None:
    """Controllers drop what ends in the past, and go on with the motion before."""
    world = World(PANDA, a_move())
    controller = SimulatedController(ARM, PANDA.default_q[:7])
    controller.take(*given(world.messages[0]), world.now)
    moves_until = controller.end
    world.now += 300_000_000
    message = world.emergency()
    late = world.now + 500_000_000
    assert late < moves_until
    controller.take(*given(message), late)
    assert not controller.state(late).velocity.any()
    assert not controller.state(moves_until).velocity.any()
    assert message.points[-1].positions == message.points[-2].positions
    assert world.output.published[0].end < late  # the robot stands, and another motion may begin


def test_the_log_says_what_a_stop_did_and_that_it_is_over() -> None:
    world = World(PANDA, a_move())
    world.now += 300_000_000
    world.emergency()
    world.looked()
    world.stop.take(Bool(data=False))
    did, _, over = world.logged
    assert "the robot brakes for" in did
    assert "over" in over


def test_a_joint_that_gets_faster_than_its_limit_while_it_is_stopped_is_stopped_all_the_same() -> None:
    # The first joint needs 50 ms to take its acceleration back; meanwhile the second one, about to reach its velocity
    # limit, would pass it: all joints take the same time for that.
    jerk = PANDA.limits.jerk.copy()
    jerk[0] = 300.0
    robot = replace(PANDA, limits=replace(PANDA.limits, jerk=jerk))
    setup = servo_setup(
        robot, "panda_link0", "panda_link0", ARM, velocity_scaling=1.0, acceleration_scaling=1.0
    )
    most = LIMITS.velocity[1] - 0.006

    def both(first: float, second: float) -> np.ndarray:
        return np.array([first, second, *[0.0] * 5])

    ramp, even, brief = 0.1, round((most - 0.25 - 0.5) / 5.0, 3), 0.002
    q = PANDA.default_q[:7] - np.array([0.0, 1.0, *[0.0] * 5])
    states = [MotionState(q, np.zeros(7), np.zeros(7))]
    accelerations = (
        (ramp, 0, 5),
        (even, 0, 5),
        (ramp, 14, 5),
        (brief, 14, 0),
        (0.05, 14, 0),
        (ramp, 0, 0),
        (0.1, 0, 0),
    )
    pieces = []
    for seconds, first, second in accelerations:
        states.append(states[-1].after(seconds, both(first, second)))
        pieces.append((round(1e9 * seconds), states[-1]))
    pieces += pieces_to_rest(
        states[-1], planning_limits(MotionLimits(LIMITS.velocity, LIMITS.acceleration, jerk[:7]))
    )
    motion = begun(ARM, states[0], 0, 1_000_000, setup.planning).going_on(0, 1_000_000, pieces).trajectory
    assert setup.check(motion, states[0], PANDA.default_q).report.ok
    world = World(robot, motion)
    world.now += round(1e9 * (ramp + even + ramp)) - 9_000_000
    assert ends_at_rest(world.emergency())
    assert "The velocity of joint 'panda_joint2' reaches" in world.said[0]


def test_a_stop_that_took_long_to_be_made_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(PANDA, a_move())
    world.now += 300_000_000
    made = []

    def slowly(*given: Any, **named: Any) -> Any:
        stop = quickest_stop(*given, **named)
        world.now += 0 if made else 30_000_000
        made.append(stop)
        return stop

    monkeypatch.setattr(stops_in_time, "quickest_stop", slowly)
    stop = trajectory_from_message(world.emergency())
    assert len(made) == 2
    start = world.messages[-1].header.stamp.sec * 10**9 + world.messages[-1].header.stamp.nanosec
    done = Commanded(stop, start, start, start)
    # At whatever time it comes, nothing jumps.
    np.testing.assert_allclose(done.at(world.now).position, world.motion.at(world.now).position, atol=1e-9)
    np.testing.assert_allclose(done.at(world.now).velocity, world.motion.at(world.now).velocity, atol=1e-7)


def test_velocities_that_cannot_be_do_not_keep_a_motion_from_being_stopped() -> None:
    world = World(PANDA, a_move())
    world.now += 300_000_000
    there = world.motion.at(world.now)
    world.measured(MotionState(there.position + 0.5, there.velocity + 50.0, there.acceleration))
    assert ends_at_rest(world.emergency())
    start = np.array(world.messages[-1].points[0].positions)
    np.testing.assert_allclose(start, there.position, atol=1e-6)


@pytest.mark.parametrize("late", [0.0, 0.2])
def test_a_robot_that_is_elsewhere_is_stopped_from_where_it_is_by_now(late: float) -> None:
    """Its controller has another clock, say. What was measured is from before: it was set back to there."""
    world = World(PANDA, a_move())
    world.now += 1_000_000_000
    there = world.motion.at(world.now - 500_000_000)
    measured = JointState(name=ARM, position=there.position.tolist(), velocity=there.velocity.tolist())
    world.states.update(measured, world.now - round(1e9 * late), world.now)
    message = world.emergency()
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)  # it counts when it comes
    assert ends_at_rest(message)
    now = there.position + late * there.velocity
    way = np.array(message.points[0].positions) - now
    assert (way * np.sign(there.velocity) > 0.0).all()  # it brakes on the way
    assert np.abs(way).max() < 0.6  # it has become faster since
    assert "from where it was measured" in world.said[0]


@pytest.mark.parametrize("spent", [0.0, 0.05, 0.1])
def test_a_stop_from_where_it_is_keeps_the_limits_whenever_it_comes(spent: float) -> None:
    """A joint state took 0.1 s to come, so a stop may take as long, but the next one was there at once."""
    world = World(PANDA, a_move())
    world.now += 1_000_000_000
    there = world.motion.at(world.now - 600_000_000)
    measured = JointState(name=ARM, position=there.position.tolist(), velocity=there.velocity.tolist())
    world.states.update(measured, world.now - 100_000_000, world.now)
    world.states.update(measured, world.now, world.now)
    point = world.emergency().points[0]
    assert "from where it was measured" in world.said[0]
    time, still = point.time_from_start.sec + point.time_from_start.nanosec / 1e9, np.zeros(7)
    stop = Trajectory(
        ARM,
        np.array([0.0, time]),
        np.array([there.position + spent * there.velocity, point.positions]),
        np.array([there.velocity, still]),
        np.array([still, still]),
    )
    _, velocity, acceleration = evaluate(stop, np.linspace(0.0, time, 401))
    assert (np.abs(velocity) <= 1.02 * LIMITS.velocity).all()
    assert (np.abs(acceleration) <= 1.02 * LIMITS.acceleration).all()


def test_a_stop_counts_whole_turns_as_they_were_commanded() -> None:
    """Drivers may measure angles between half a turn and minus that: a joint was sent once round."""
    robot = robot_from_urdf(
        '<robot name="wheel"><link name="panda_link0"/><link name="l"/><joint name="j" type="continuous">'
        '<parent link="panda_link0"/><child link="l"/><axis xyz="0 0 1"/><limit velocity="2" effort="1"/></joint>'
        "</robot>"
    )
    rest = np.zeros(1)
    begin, limits = np.array([3.0]), (np.array([2.0]), np.array([2.0]), np.array([20.0]))
    world = World(robot, point_to_point(("j",), begin, begin + 4.0, *limits))
    world.now += 1_500_000_000
    there = world.motion.at(world.now - 300_000_000)
    assert there.position[0] > np.pi
    measured = JointState(
        name=["j"], position=[float(there.position[0]) - 2.0 * np.pi], velocity=there.velocity.tolist()
    )
    world.states.update(measured, world.now, world.now)
    stop = world.emergency().points[-1]
    assert there.position[0] < stop.positions[0] < there.position[0] + 4.0
    np.testing.assert_array_equal(stop.velocities, rest)


def test_another_description_does_not_keep_a_motion_from_being_stopped() -> None:
    world = World(PANDA, a_move())
    world.now += 300_000_000
    world.loaded.model = load_robot("ur5")
    assert ends_at_rest(world.emergency())
    assert "the robot brakes" in world.said[0]


@pytest.mark.parametrize("position", [1e308, -85.77])
@pytest.mark.parametrize("velocity", [0.0, 1e12, 1e300])
def test_a_stop_does_not_begin_where_the_robot_cannot_be(position: float, velocity: float) -> None:
    world = World(PANDA, a_move())
    world.now += 300_000_000
    there = world.motion.at(world.now)
    q, v = there.position.copy(), there.velocity.copy()
    q[1], v[1] = position, velocity  # in degrees, say
    world.measured(MotionState(q, v, there.acceleration))
    assert ends_at_rest(world.emergency())
    start = np.array(world.messages[-1].points[0].positions)
    np.testing.assert_allclose(start, there.position, atol=0.03)


def test_a_motion_that_ends_sooner_than_a_stop_would_is_left_alone() -> None:
    world = World(PANDA, a_move())
    world.now = world.motion.end - 5_000_000
    world.measured(world.motion.at(world.now))
    world.stop.take(Bool(data=True))
    assert len(world.messages) == 1
    assert "sooner" in world.said[0]


def test_what_the_stops_before_were_is_not_looked_at_again() -> None:
    """The stops of a marker's menu are kept from being looked at: they were told as what the robot does now."""
    world = World(PANDA, a_move())
    world.now += 300_000_000
    world.measured(world.motion.at(world.now))
    world.stop.stop_all("the menu of a marker", lasting=False)
    assert len(world.stop._sent) == 1
    world.now += 10_000_000_000
    world.stop.stop_all("the menu of a marker", lasting=False)
    assert len(world.stop._sent) == 1


def test_motions_of_different_joints_are_all_stopped() -> None:
    q = PANDA.default_q[:7]
    parts = []
    for chosen in (slice(0, 3), slice(3, 7)):
        limits = (values[chosen] for values in vars(LIMITS).values())
        parts.append(point_to_point(ARM[chosen], q[chosen], q[chosen] + 0.5, *limits))
    world = World(PANDA, parts[0])
    # No request gets that far; should it happen, a stop is to stop both.
    message = trajectory_message(parts[1], "panda_link0")
    world.output._send(message, PANDA, message)
    world.now += 200_000_000
    world.stop.take(Bool(data=True))
    stops = world.messages[2:]
    assert [stop.joint_names for stop in stops] == [list(ARM[:3]), list(ARM[3:])], world.said
    assert all(ends_at_rest(stop) for stop in stops)
    assert "brakes" in world.said[0]


@pytest.mark.parametrize("way", [1_000_000, 30_000_000, 80_000_000])
def test_a_stop_comes_before_it_begins(way: int) -> None:
    """On a way of 30 ms it came when the brake was half over, and the joints stepped."""
    world = World(PANDA, a_move())
    world.now += 300_000_000
    measured = world.motion.at(world.now - way)
    message = JointState(name=ARM, position=measured.position.tolist(), velocity=measured.velocity.tolist())
    world.states.update(message, world.now - way, world.now)
    stop = world.emergency()
    assert "within the limits" in world.said[0]
    start = stop.header.stamp.sec * 10**9 + stop.header.stamp.nanosec
    done = Commanded(trajectory_from_message(stop), start, start, start)
    came = world.now + way
    for part in ("position", "velocity"):
        now, then = (getattr(motion.at(came), part) for motion in (done, world.motion))
        np.testing.assert_allclose(now, then, atol=1e-7)


def braking(world: World, after: int) -> Trajectory:
    """Brake the motion of a world so many ns later, from where it is by then, as a cancel does; return the brake."""
    world.now += after
    there = world.motion.at(world.now)
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, ARM)
    brake = brake_on_the_way(setup, there.position, there.velocity, 0.03)
    running = world.output.published[-1]
    assert world.output.brake(running, trajectory_message(brake, "panda_link0"), lambda message: None)
    return brake


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("heard", [True, False])
def test_a_brake_that_runs_is_left_alone(share: float, heard: bool) -> None:
    """Another one began beside it, as if nothing slowed the robot down, and led up to 0.36 rad farther."""
    world = World(PANDA, a_move())
    brake = braking(world, 600_000_000)
    begin, seconds = world.now, share * brake.duration
    world.now += round(1e9 * seconds)
    if heard:
        world.measured(MotionState(*(rows[0] for rows in evaluate(brake, np.array([seconds])))))
    world.stop.take(Bool(data=True))
    assert len(world.messages) == 2
    assert world.said == ["the robot brakes already"]
    assert world.output.halted
    (stopped,) = world.stop._stopped
    assert stopped.end == begin + round(1e9 * brake.duration)
    np.testing.assert_allclose(stopped.position, brake.position[-1])


@pytest.mark.parametrize("passed", [150_000_000, 300_000_000])
def test_a_robot_that_is_not_in_its_brake_is_stopped_where_it_is(passed: int) -> None:
    """The brake was lost, or its controller is late: the robot goes on, and is near it for a while."""
    world = World(PANDA, a_move())
    braking(world, 600_000_000)
    world.now += passed
    world.measured(world.motion.at(world.now))
    world.stop.take(Bool(data=True))
    assert len(world.messages) == 3
    assert ends_at_rest(world.messages[-1])
    assert "from where it was measured" in world.said[0]


def test_a_button_that_bounces_stops_once() -> None:
    """The second stop was taken for a motion that the robot is in from its first point, and it jumped to the third."""
    world = World(PANDA, a_move())
    world.now += 1_000_000_000
    there = world.motion.at(world.now - 500_000_000)
    world.measured(there)
    first = world.emergency()
    assert "from where it was measured" in world.said[0]
    point = first.points[0]
    rest = np.array(point.positions)
    seconds, still = point.time_from_start.sec + point.time_from_start.nanosec / 1e9, np.zeros(7)
    done = Trajectory(
        ARM,
        np.array([0.0, seconds]),
        np.array([there.position, rest]),
        np.array([there.velocity, still]),
        np.array([still, still]),
    )
    for passed in (0.01, 0.02, 0.05):
        world.stop.take(Bool(data=False))
        world.now += 10_000_000
        world.measured(MotionState(*(rows[0] for rows in evaluate(done, np.array([passed])))))
        world.stop.take(Bool(data=True))
    assert len(world.messages) == 2, world.said


@pytest.mark.parametrize("ahead", [-0.3, -0.2, 0.1])
@pytest.mark.parametrize("share", [0.55, 0.7, 0.85])
def test_a_stop_leads_no_farther_than_its_motion_whenever_the_controller_has_begun(
    ahead: float, share: float
) -> None:
    """A joint that slowed down already was taken to go on at its speed, and led up to 0.5 rad beyond the goal."""
    world = World(PANDA, a_move())
    then = world.now + round(1e9 * share * world.motion.trajectory.time[-1])
    world.now = then - round(1e9 * ahead)
    there = world.motion.at(then)
    measured = JointState(name=ARM, position=there.position.tolist(), velocity=there.velocity.tolist())
    world.states.update(measured, world.now, world.now)
    world.emergency()
    assert "from where it was measured" in world.said[0]
    rest = np.array(world.messages[-1].points[-1].positions)
    assert (rest <= world.motion.trajectory.position[-1] + 2e-3).all()
    assert (rest >= there.position).all()


@pytest.mark.parametrize("scale", [0.97, 0.9, 0.5])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_controller_that_slows_motions_down_gets_no_stop_that_it_has_to_hurry_to(
    scale: float, share: float
) -> None:
    """A robot behind its motion by a speed slider was to be within 10 ms where a stop left that: 10 times its limit."""
    world = World(PANDA, a_move())
    passed = share * world.motion.trajectory.time[-1]
    there = world.motion.at(world.now + round(1e9 * scale * passed))
    world.now += round(1e9 * passed)
    velocity = (scale * there.velocity).tolist()
    world.states.update(
        JointState(name=ARM, position=there.position.tolist(), velocity=velocity), world.now, world.now
    )
    message = world.emergency()
    assert "from where it was measured" in world.said[0]
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)
    rest = np.array(message.points[-1].positions)
    assert (rest <= world.motion.trajectory.position[-1] + 2e-3).all()
