"""Joints that move on after an emergency stop are stopped once more, without a node; time is the test's."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from support.looks import Trusting
from support.scene_holders import serving

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.simulated_actions import given
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.motion import published_end, run, stop_watch
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.ros.motion.stop_watch import MOST
from kinopt_ros.ros.robot import joint_states
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.topics.emergency_stop import EmergencyStop
from kinopt_ros.status import Status
from kinopt_ros.trajectory.jerk_phases import MotionLimits
from kinopt_ros.trajectory.simulated_controller import SimulatedController
from kinopt_ros.trajectory.timing import point_to_point

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
LIMITS = MotionLimits(*(getattr(PANDA.limits, name)[:7] for name in ("velocity", "acceleration", "jerk")))
SLOW = MotionLimits(0.1 * LIMITS.velocity, 0.1 * LIMITS.acceleration, LIMITS.jerk)
PARAMETERS = {
    "servo.avoid_collisions": False,
    "ik.avoid_collisions": False,
    "start_state_tolerance": 1e-3,
    "servo.state_timeout": 10.0,
    "servo.tracking_tolerance": 0.05,
}
BEGIN = 10**15


@pytest.fixture(autouse=True)
def _one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joint states get older by the world's time, too."""
    monkeypatch.setattr(joint_states, "time", SimpleNamespace(monotonic=lambda: stop_watch.time.monotonic()))


class World:
    """A robot in a motion, with a controller of another clock. Time passes while the watch sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ahead: float = 0.0, pace: float = 1.0) -> None:
        """
        Args:
            ahead: s by which the controller's clock is ahead of the node's.
            pace: of the controller's motions.
        """
        self.now = BEGIN
        self.ahead, self.pace = round(ahead * 1e9), pace
        self.messages: list[Any] = []
        self.said: list[str] = []
        self.logged: list[str] = []
        self.dropped = 0
        self.deaf = False
        self.drift = 0.0
        self.late = 0.0
        self.speeds = True
        self.arm = SimulatedController(ARM, PANDA.default_q[:7])
        self.states = JointStates()
        log = SimpleNamespace(warning=self.logged.append, error=self.logged.append)
        self.context: Any = SimpleNamespace(
            node=SimpleNamespace(get_logger=lambda: log),
            now=lambda: self.now,
            parameter=PARAMETERS.__getitem__,
            joint_states=self.states,
            sets_back=lambda: False,
            scene=serving(PANDA),
        )
        self.output = MotionOutput(
            SimpleNamespace(publish=self._publish),
            Trusting(),
            lambda: self.now,
            begin=lambda *given: self.now,
        )
        self.stop = EmergencyStop(
            self.context, self.output, lambda stopped, text: self.said.append(text), list, lambda: None
        )
        monkeypatch.setattr(
            stop_watch, "time", SimpleNamespace(monotonic=lambda: self.now / 1e9, sleep=self.spend)
        )
        for module in (run, published_end):
            monkeypatch.setattr(module, "time", stop_watch.time)
        self.motion = point_to_point(
            ARM, PANDA.default_q[:7], PANDA.default_q[:7] + np.array([2.0, *[0.3] * 6]), *vars(SLOW).values()
        )
        planned: Any = SimpleNamespace(loaded=SimpleNamespace(model=PANDA), goes_on=False, stops=False)
        claim = self.output.claim("test", lambda owner: None)
        assert claim.publish(trajectory_message(self.motion, "panda_link0"), planned)
        self.goal = self.motion.position[-1]

    def _publish(self, message: Any) -> None:
        self.messages.append(message)
        if self.deaf:
            return
        names, points, start = given(message)
        try:  # motions begin when they come, and stops by a clock
            self.arm.take(names, points, start if self.output.stops else 0, self._controllers_time())
        except InvalidRequestError:
            self.dropped += 1

    def _controllers_time(self) -> int:
        return BEGIN + self.ahead + round(self.pace * (self.now - BEGIN))

    def spend(self, seconds: float) -> None:
        """Let time pass; then the robot says where it is."""
        self.now += round(1e9 * seconds)
        measured = round(1e9 * self.late)
        state = self.arm.state(self._controllers_time() - measured)
        position = state.position + self.drift * (self.now - BEGIN) / 1e9
        velocity = self.pace * state.velocity + self.drift
        self.states.update(
            JointState(
                name=ARM,
                position=position.tolist(),
                velocity=velocity.tolist() if self.speeds else [],
            ),
            self.now - measured if measured else 0,
            self.now,
        )

    def moves(self) -> bool:
        """Whether the controller will ever move the robot again."""
        before = self.arm.state(self._controllers_time()).position
        return bool(np.abs(self.arm.state(self.arm.end).position - before).max() > 1e-9)

    def emergency(self) -> None:
        """Stop, and wait until the watch is over."""
        self.stop.take(Bool(data=True))
        self.watched()

    def watched(self) -> None:
        """Wait until the watch is over."""
        for thread in self.stop._watch._threads:
            thread.join(60.0)
            assert not thread.is_alive()


def test_a_stop_that_works_is_published_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.spend(2.0)
    world.emergency()
    assert len(world.messages) == 2
    assert not world.moves()
    assert len(world.logged) == 1


@pytest.mark.parametrize("speeds", [True, False])
@pytest.mark.parametrize("ahead", [5.0, 1e6, -5.0])
def test_a_controller_of_another_clock_stops_all_the_same(
    monkeypatch: pytest.MonkeyPatch, ahead: float, speeds: bool
) -> None:
    """It drops a stop that is over by its own clock, and waits for one that is to come; then the first motion would go
    on."""
    world = World(monkeypatch, ahead)
    world.speeds = speeds
    world.spend(2.0)
    there = world.arm.state(world._controllers_time()).position
    world.emergency()
    assert world.dropped == (ahead > 0.0)
    assert len(world.messages) == 3, world.logged
    again = world.messages[-1]
    assert (again.header.stamp.sec, again.header.stamp.nanosec) == (0, 0)
    assert len(again.points) == 2  # rest, and to stay there
    assert again.points[0].positions == again.points[1].positions
    assert not world.moves()
    at = world.arm.state(world._controllers_time()).position
    assert np.abs(at - there).max() < 0.3
    assert np.abs(world.goal - at).max() > 0.5
    assert "still moves, so the stop was published again" in world.logged[-1]
    assert world.said[-1] in world.logged[-1]


def keeps_limits(world: World) -> None:
    """Check that the motion to rest, as the robot does it, keeps the limits."""
    knots = world.arm._motion.knots
    for time in np.linspace(knots[0].time, knots[1].time, 200).astype(np.int64).tolist():
        state = world.arm.state(time)
        assert (np.abs(state.velocity) <= LIMITS.velocity).all()
        assert (np.abs(state.acceleration) <= LIMITS.acceleration).all()


def test_a_stop_that_is_published_again_keeps_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, 5.0)
    world.spend(2.0)
    world.emergency()
    keeps_limits(world)


def test_a_motion_that_its_controller_slows_down_is_stopped_after_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the speed slider of a robot does: the motion should be over, and is not."""
    world = World(monkeypatch, pace=0.3)
    world.spend(world.motion.duration + 2.0)
    assert world.moves()
    world.emergency()
    assert not world.moves()
    assert np.abs(world.goal - world.arm.state(world.arm.end).position).max() > 0.5


def test_who_stands_still_is_not_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.spend(world.motion.duration + 2.0)
    world.emergency()
    assert len(world.messages) == 1
    assert world.logged == ["emergency stop: no motion that this node has published is running"]


def test_a_robot_that_cannot_be_stopped_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.drift = 0.1
    world.spend(2.0)
    world.emergency()
    assert len(world.messages) == 2 + MOST
    assert "who moves it?" in world.logged[-1]
    world.stop.take(Bool(data=True))  # the watch begins once more, and there is but one
    world.stop.take(Bool(data=True))
    world.watched()
    assert len(world.messages) <= 2 + 3 * MOST
    assert len(world.messages) >= 2 + 2 * MOST


def test_nothing_is_published_after_the_end_of_the_emergency(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.deaf = True
    world.spend(2.0)
    stops = world.output.stops
    slept = world.spend

    def spend(seconds: float) -> None:
        slept(seconds)
        if world.now > BEGIN + 2_030_000_000:
            world.output.release()

    monkeypatch.setattr(stop_watch.time, "sleep", spend)
    world.emergency()
    assert len(world.messages) == 2
    assert not world.output.stop_again(stops + 1, world.messages[-1], PANDA)
    assert len(world.messages) == 2


def reading(world: World, position: np.ndarray) -> None:
    """Somebody says where the robot is."""
    world.states.update(JointState(name=ARM, position=position.tolist()))


@pytest.mark.parametrize("every", [0, 1, 2])
@pytest.mark.parametrize("away", [0.05, -1.5])
def test_a_wrong_joint_state_does_not_send_the_robot_there(
    monkeypatch: pytest.MonkeyPatch, every: int, away: float
) -> None:
    """Of a driver that begins anew with zeros, or of a second publisher: once, or again and again."""
    world = World(monkeypatch)
    world.spend(2.0)
    slept, looks = world.spend, [0]

    def spend(seconds: float) -> None:
        slept(seconds)
        looks[0] += 1
        if looks[0] == 40 if every == 0 else looks[0] % (every + 1) == 0:
            reading(world, world.arm.state(world._controllers_time()).position + away)

    monkeypatch.setattr(stop_watch.time, "sleep", spend)
    world.emergency()
    assert len(world.messages) == 2, world.logged
    if abs(away) > 1.0:
        assert "jumps" in world.logged[-1]


def test_joint_states_that_come_once_a_second_are_watched_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In 2 s there are two of them, and one step may be a jump."""
    world = World(monkeypatch, 5.0)
    monkeypatch.setattr(joint_states, "time", SimpleNamespace(monotonic=lambda: world.now / 1e9))
    world.spend(1.0)
    slept, told = world.spend, [world.now]

    def spend(seconds: float) -> None:
        if world.now - told[0] < 1_100_000_000:
            world.now += round(1e9 * seconds)
            return
        told[0] = world.now
        slept(seconds)

    monkeypatch.setattr(stop_watch.time, "sleep", spend)
    world.emergency()
    assert len(world.messages) == 3, world.logged
    assert not world.moves()


def test_a_robot_of_which_nobody_says_where_it_is_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It went on for 0.7 rad, and nothing was said."""
    world = World(monkeypatch, 5.0)
    monkeypatch.setattr(joint_states, "time", SimpleNamespace(monotonic=lambda: world.now / 1e9))
    world.spend(2.0)
    slept, silent = world.spend, [True]

    def spend(seconds: float) -> None:
        if silent[0] and world.now < BEGIN + 4_500_000_000:
            world.now += round(1e9 * seconds)
        else:
            slept(seconds)

    monkeypatch.setattr(stop_watch.time, "sleep", spend)
    world.emergency()
    nobody = [text for text in world.said if "nobody says where the robot is" in text]
    assert len(nobody) == 1
    assert len(world.messages) == 3  # and when somebody does, it is stopped
    assert not world.moves()


def test_a_slow_motion_is_watched_for_as_long_as_it_would_have_lasted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In 2 s it moves by less than what counts."""
    world = World(monkeypatch, 2.0)
    world.spend(world.motion.duration + 3.0)
    slow = MotionLimits(5e-4 * LIMITS.velocity, LIMITS.acceleration, LIMITS.jerk)
    back = point_to_point(ARM, world.goal, PANDA.default_q[:7], *vars(slow).values())
    message = trajectory_message(back, "panda_link0")
    planned: Any = SimpleNamespace(loaded=SimpleNamespace(model=PANDA), goes_on=False, stops=False)
    assert world.output.claim("test", lambda owner: None).publish(message, planned)
    world.spend(5.0)
    world.ahead = 10**10  # the clock is set
    world.emergency()
    assert world.dropped == 1
    assert len(world.messages) == 4, world.logged
    assert not world.moves()


def test_a_motion_that_is_at_rest_sooner_than_a_stop_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It brakes already; 0.2 s later it still moved, so it was stopped once more, and later than it would have been."""
    world = World(monkeypatch)
    slow = MotionLimits(LIMITS.velocity, 0.05 * LIMITS.acceleration, LIMITS.jerk)
    own = PANDA.limits
    robot = replace(PANDA, limits=replace(own, acceleration=0.05 * own.acceleration))
    planned: Any = SimpleNamespace(loaded=SimpleNamespace(model=robot), goes_on=False, stops=False)
    world.spend(world.motion.duration + 1.0)
    back = point_to_point(ARM, world.goal, PANDA.default_q[:7], *vars(slow).values())
    claim = world.output.claim("test", lambda owner: None)
    assert claim.publish(trajectory_message(back, "panda_link0"), planned)
    while world.now < BEGIN + round(1e9 * (world.motion.duration + 1.0 + back.duration - 0.6)):
        world.spend(0.02)
    world.emergency()
    assert world.logged == [
        "emergency stop: the motion that runs is at rest sooner than another one could be"
    ]
    assert len(world.messages) == 2
    assert not world.moves()


def test_noise_is_no_movement(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.spend(2.0)
    slept, random = world.spend, np.random.default_rng(0)

    def spend(seconds: float) -> None:
        slept(seconds)
        reading(world, world.arm.state(world._controllers_time()).position + random.normal(0.0, 1e-3, 7))

    monkeypatch.setattr(stop_watch.time, "sleep", spend)
    world.emergency()
    assert len(world.messages) == 2, world.logged


def test_a_wrong_velocity_does_not_send_the_robot_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a driver that measures degrees: the way says how quick a joint is."""
    world = World(monkeypatch, 5.0)
    world.spend(2.0)
    slept = world.spend

    def spend(seconds: float) -> None:
        slept(seconds)
        state = world.arm.state(world._controllers_time())
        world.states.update(
            JointState(name=ARM, position=state.position.tolist(), velocity=(57.3 * state.velocity).tolist())
        )

    monkeypatch.setattr(stop_watch.time, "sleep", spend)
    world.emergency()
    assert len(world.messages) == 3, world.logged
    there = np.array(world.messages[-1].points[-1].positions)
    assert np.abs(there - world.arm.state(world.now + world.ahead).position).max() < 0.1
    assert not world.moves()


@pytest.mark.parametrize("over", [False, True])
def test_a_wrong_joint_state_right_before_a_stop_does_not_send_the_robot_there(
    monkeypatch: pytest.MonkeyPatch, over: bool
) -> None:
    world = World(monkeypatch)
    world.spend(2.0 if not over else world.motion.duration + 2.0)
    there = world.arm.state(world._controllers_time()).position
    reading(world, np.zeros(7))
    reading(world, np.zeros(7))  # a driver goes on like that
    world.emergency()
    for message in world.messages[1:]:
        assert np.abs(np.array(message.points[0].positions) - there).max() < 0.05
    assert len(world.messages) == (1 if over else 2)


def brake(world: World) -> None:
    """An obstacle comes into the way of the motion; return when its watch is over."""
    watching = MotionRun(world.context, world.output, None, judged=False)
    [watching._running] = world.output.published
    watching._planned = SimpleNamespace(scene=None)  # type: ignore[assignment]
    watching.stop(Status.ENVIRONMENT_CHANGED, "a box has come")
    assert watching.watch().code == Status.ENVIRONMENT_CHANGED


def test_a_brake_that_works_is_published_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.spend(2.0)
    brake(world)
    assert len(world.messages) == 2
    assert not world.moves()
    assert not world.logged


@pytest.mark.parametrize("ends", ["by a brake", "by an emergency stop"])
def test_late_joint_states_of_a_robot_that_brakes_do_not_say_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """A node whose machine is busy reads them late: a robot that stood was sent on, by one more brake from there."""
    world = World(monkeypatch)
    world.spend(1.0)
    world.late = 0.45
    world.spend(1.0)
    if ends == "by a brake":
        brake(world)
    else:
        world.emergency()
    assert len(world.messages) == 2, world.logged
    assert not world.moves()


@pytest.mark.parametrize("speeds", [True, False])
def test_a_brake_that_is_lost_is_published_again(monkeypatch: pytest.MonkeyPatch, speeds: bool) -> None:
    """The robot went on into the obstacle, and the log said that it still moved."""
    world = World(monkeypatch)
    world.speeds = speeds
    world.spend(2.0)
    slept = world.spend

    def spend(seconds: float) -> None:
        world.deaf = False
        slept(seconds)

    monkeypatch.setattr(stop_watch.time, "sleep", spend)
    world.deaf = True
    brake(world)
    assert len(world.messages) == 3, world.logged
    assert not world.moves()
    assert np.abs(world.goal - world.arm.state(world.arm.end).position).max() > 0.5
    keeps_limits(world)


def test_a_brake_whose_place_another_motion_has_taken_is_not_published_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch)
    world.deaf = True
    world.spend(2.0)
    slept = world.spend

    def spend(seconds: float) -> None:
        slept(seconds)
        if len(world.messages) == 2:
            planned: Any = SimpleNamespace(loaded=SimpleNamespace(model=PANDA), goes_on=False, stops=False)
            claim = world.output.claim("another one", lambda owner: None)
            assert claim.publish(trajectory_message(world.motion, "panda_link0"), planned)

    monkeypatch.setattr(stop_watch.time, "sleep", spend)
    brake(world)
    assert len(world.messages) == 3
    assert not world.logged  # it moves by that one
