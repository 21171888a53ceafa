"""Joints that move on after an emergency stop are stopped once more, without a node; time is the test's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from support.looks import Trusting

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.planning.scene_holder import SceneHolder
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.simulated_robot import given
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.motion import stop_watch
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.stop_watch import MOST
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.topics.emergency_stop import EmergencyStop
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
        self.speeds = True
        self.arm = SimulatedController(ARM, PANDA.default_q[:7])
        self.states = JointStates()
        log = SimpleNamespace(warning=self.logged.append, error=self.logged.append)
        clock = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=self.now))
        context: Any = SimpleNamespace(
            node=SimpleNamespace(get_clock=lambda: clock, get_logger=lambda: log),
            parameter=PARAMETERS.__getitem__,
            joint_states=self.states,
            scene=SceneHolder(lambda *said: None),
        )
        self.output = MotionOutput(SimpleNamespace(publish=self._publish), Trusting(), lambda: self.now)
        self.stop = EmergencyStop(
            context, self.output, lambda stopped, text: self.said.append(text), list, lambda: None
        )
        monkeypatch.setattr(
            stop_watch, "time", SimpleNamespace(monotonic=lambda: self.now / 1e9, sleep=self.spend)
        )
        self.motion = point_to_point(
            ARM, PANDA.default_q[:7], PANDA.default_q[:7] + np.array([2.0, *[0.3] * 6]), *vars(SLOW).values()
        )
        planned: Any = SimpleNamespace(loaded=SimpleNamespace(model=PANDA))
        claim = self.output.claim("test", lambda owner: None)
        assert claim.publish(trajectory_message(self.motion, "panda_link0"), planned)
        self.goal = self.motion.position[-1]

    def _publish(self, message: Any) -> None:
        self.messages.append(message)
        if self.deaf:
            return
        try:
            self.arm.take(*given(message), self._controllers_time())
        except InvalidRequestError:
            self.dropped += 1

    def _controllers_time(self) -> int:
        return BEGIN + self.ahead + round(self.pace * (self.now - BEGIN))

    def spend(self, seconds: float) -> None:
        """Let time pass; then the robot says where it is."""
        self.now += round(1e9 * seconds)
        state = self.arm.state(self._controllers_time())
        position = state.position + self.drift * (self.now - BEGIN) / 1e9
        velocity = self.pace * state.velocity + self.drift
        self.states.update(
            JointState(
                name=ARM,
                position=position.tolist(),
                velocity=velocity.tolist() if self.speeds else [],
            )
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


def test_a_stop_that_is_published_again_keeps_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, 5.0)
    world.spend(2.0)
    world.emergency()
    knots = world.arm._knots
    for time in np.linspace(knots[0].time, knots[1].time, 200).astype(np.int64).tolist():
        state = world.arm.state(time)
        assert (np.abs(state.velocity) <= LIMITS.velocity).all()
        assert (np.abs(state.acceleration) <= LIMITS.acceleration).all()


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
        if world.now > BEGIN + 2_100_000_000:
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
