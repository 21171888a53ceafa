"""Whether joints go on that were to be stopped."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.paces import Paces
from kinopt_ros.ros.robot import joint_states
from kinopt_ros.ros.robot.joint_states import JointStates

PANDA = load_robot("panda")
NAMES = [f"panda_joint{i + 1}" for i in range(7)]
REST = PANDA.default_q[:7]
BEGIN = 10**15
MS = 10**6


class Robot:
    """Its first joint moves by a law, and the others by a tenth of that; it is told to stop at 0 s."""

    def __init__(self, speed: Callable[[float], float]) -> None:
        """``speed``: of the first joint, rad/s, so many s later."""
        self.speed = speed
        self.late = 0.0
        """How long joint states are on their way, s."""
        self.silent: list[str] = []
        """Joints of which nobody has said anything since."""
        self.noise = 0.0
        """Of positions (rad) and velocities (rad/s)."""

    clock = 0.0
    """The machine's time, s."""

    def is_kept(self, seconds: float, joints: list[str] = NAMES) -> bool:
        """Look each 10 ms whether it goes on."""
        random, states = np.random.default_rng(0), JointStates()
        way, kept, share, step = 0.0, False, np.array([1.0, *[0.1] * 6]), 0.01
        paces: Paces | None = None
        for k in range(round(seconds / step) + 1):
            time = k * step - self.late
            Robot.clock, now = k * step, BEGIN + round(1e9 * k * step)
            noise = self.noise * random.normal(size=(2, 7))
            heard = [i for i, name in enumerate(NAMES) if not k or name not in self.silent]
            said = SimpleNamespace(
                name=[NAMES[i] for i in heard],
                position=(REST + way * share + noise[0])[heard].tolist(),
                velocity=(self.speed(time) * share + noise[1])[heard].tolist(),
            )
            states.update(said, now - round(1e9 * self.late), now)
            state = states.of(PANDA)
            if paces is None:
                paces = Paces(PANDA, state, now)
            paces.look(state, now)
            kept = paces.are_kept(joints, state, now) or kept
            way += step * self.speed(time)
        return kept


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_states, "time", SimpleNamespace(monotonic=lambda: Robot.clock))


@pytest.mark.parametrize("speed", [-1.0, 0.05, 1.0])
@pytest.mark.parametrize(
    ("share", "kept"), [(1.5, True), (1.0, True), (0.95, True), (0.85, False), (0.0, False)]
)
def test_what_is_not_stopped_keeps_its_pace(speed: float, share: float, kept: bool) -> None:
    robot = Robot(lambda time: speed if time < 0.05 else share * speed)
    assert robot.is_kept(0.3) is kept
    assert robot.is_kept(0.3, NAMES[:1]) is kept


@pytest.mark.parametrize("speed", [0.005, 0.02, 0.15])
def test_what_goes_on_is_seen_by_its_way(speed: float) -> None:
    """Slow motions, and those that slow down themselves after they should have been stopped, went on to their end."""
    robot = Robot(lambda time: max(speed, 0.8 - 3.0 * max(time, 0.0)) if speed > 0.1 else speed)
    assert not robot.is_kept(0.65)
    assert robot.is_kept(2.0)


@pytest.mark.parametrize("begun", [1.0, 0.4])
@pytest.mark.parametrize("deceleration", [2.0, 4.0, 10.0])
def test_who_brakes_is_let_brake(begun: float, deceleration: float) -> None:
    """Also who is told while he gets faster, and takes a moment."""

    def speed(time: float) -> float:
        if time < 0.05:
            return begun + 2.0 * time * (begun < 1.0)
        return max(0.0, begun - deceleration * (time - 0.05))

    assert not Robot(speed).is_kept(2.0)


def test_what_begins_later_goes_on() -> None:
    assert Robot(lambda time: 0.1 if time > 0.15 else 0.0).is_kept(0.3)


def test_noise_is_no_pace() -> None:
    robot = Robot(lambda time: 0.0)
    robot.noise = 5e-4
    assert not robot.is_kept(2.0)


def test_what_was_measured_before_says_nothing() -> None:
    robot = Robot(lambda time: 1.0)
    robot.late = 0.15
    assert not robot.is_kept(0.3)
    assert robot.is_kept(0.4)


def test_joints_that_nobody_hears_of_hide_no_others() -> None:
    robot = Robot(lambda time: 1.0)
    robot.silent = NAMES[6:]
    assert robot.is_kept(0.3)
    assert not robot.is_kept(2.0, NAMES[6:])
