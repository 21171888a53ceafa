"""The time that motions are in, while clocks are set."""

from types import SimpleNamespace

import pytest

from kinopt_ros.ros.robot import motion_clock
from kinopt_ros.ros.robot.motion_clock import MotionClock

MS = 10**6
SECOND = 1000 * MS


class Clocks:
    """The machine's time, the node's clock, and those of robots."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, simulated: bool = False) -> None:
        self.machine = 5 * SECOND
        self.set, self.rate = 10**18, 1.0
        self.clock = MotionClock(lambda: self.set + round(self.rate * self.machine), lambda: simulated)
        monkeypatch.setattr(motion_clock, "time", SimpleNamespace(monotonic_ns=lambda: self.machine))

    def pass_ms(self, count: int, **robots: int) -> int:
        """Let time pass; each 10 ms robots say where they are, 2 ms later, by clocks so far (ns) from the node's."""
        now = 0
        for _ in range(count // 10):
            self.machine += 10 * MS
            for name, off in robots.items():
                now = self.clock.heard(name, 10**18 + round(self.rate * self.machine) + off - 2 * MS)
        return now or self.clock.now()

    @property
    def usual(self) -> int:
        """What the clock would say if it had not been set."""
        return 10**18 + round(self.rate * self.machine)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.mark.parametrize("ahead", [60 * MS, 300 * MS, 5 * SECOND, -300 * MS, -5 * SECOND])
def test_motions_do_not_see_a_step_that_the_robot_does_not_share(clocks: Clocks, ahead: int) -> None:
    clocks.pass_ms(100, arm=0)
    clocks.set += ahead
    assert clocks.clock.now() == clocks.usual
    for _ in range(50):
        assert clocks.pass_ms(100, arm=0) == clocks.usual
    assert clocks.clock.set_ahead == pytest.approx(ahead / SECOND)
    clocks.set -= ahead  # it is set right again
    assert clocks.pass_ms(200, arm=0) == clocks.usual
    assert clocks.clock.set_ahead == 0.0


def test_a_robot_of_another_clock_keeps_it(clocks: Clocks) -> None:
    clocks.pass_ms(100, arm=-7 * SECOND)
    clocks.set += 2 * SECOND
    assert clocks.pass_ms(500, arm=-7 * SECOND) == clocks.usual


def test_a_step_that_all_share_counts(clocks: Clocks) -> None:
    clocks.pass_ms(100, arm=0, gripper=0)
    clocks.set += 3 * SECOND
    clocks.pass_ms(150, arm=3 * SECOND, gripper=3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND
    assert clocks.clock.set_ahead == 0.0


def test_the_clock_of_a_gripper_on_this_machine_does_not_hide_that_of_the_arm(clocks: Clocks) -> None:
    clocks.pass_ms(100, arm=0, gripper=0)
    clocks.set += 3 * SECOND
    assert clocks.pass_ms(1000, arm=0, gripper=3 * SECOND) == clocks.usual
    # The arm is heard of no more.
    clocks.pass_ms(1200, gripper=3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


def test_the_robots_clock_may_be_set_later(clocks: Clocks) -> None:
    clocks.pass_ms(100, arm=0)
    clocks.set += 3 * SECOND
    clocks.pass_ms(1000, arm=0)
    clocks.pass_ms(150, arm=3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


@pytest.mark.parametrize("stamped", [True, False])
def test_without_stamps_that_tell_the_clock_counts_soon(clocks: Clocks, stamped: bool) -> None:
    clocks.pass_ms(100, **({"arm": 0} if stamped else {}))
    clocks.clock.now()
    clocks.set += 3 * SECOND
    clocks.clock.heard("arm", 0)
    assert clocks.clock.now() == clocks.usual
    clocks.machine += 110 * MS
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


def test_a_process_that_gets_no_cpu_sees_no_step(clocks: Clocks) -> None:
    """It reads the clock, or the machine's time, long before or after the other."""
    clocks.pass_ms(100, arm=0)
    clocks.machine += 700 * MS  # between two looks
    assert clocks.clock.now() == clocks.usual
    read = clocks.clock._clock

    def slowly() -> int:
        said = read()
        clocks.machine += 400 * MS
        return said

    for clock in (slowly, read, slowly, slowly, read):
        clocks.clock._clock = clock
        clocks.machine += 10 * MS
        clocks.clock.now()
        assert clocks.clock.set_ahead == 0.0


@pytest.mark.parametrize("rate", [0.1, 1.0, 15.0])
def test_simulated_time_may_be_slow_or_quick(monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
    clocks = Clocks(monkeypatch, simulated=True)
    clocks.rate = rate
    for _ in range(20):
        assert clocks.pass_ms(50, arm=0) == clocks.usual
    clocks.set += 5 * SECOND
    assert clocks.pass_ms(50, arm=0) == pytest.approx(clocks.usual, abs=round(rate * 20 * MS) + 20 * MS)
    clocks.set -= 10 * SECOND
    assert clocks.pass_ms(50, arm=0) == pytest.approx(clocks.usual, abs=round(rate * 40 * MS) + 40 * MS)


def test_simulated_time_may_begin_after_joint_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come as soon as the node is there, and the time is 0 until somebody says otherwise."""
    clocks = Clocks(monkeypatch, simulated=True)
    clock = MotionClock(lambda: clocks.set, lambda: True)
    clocks.set = 0
    for _ in range(5):
        clocks.machine += 10 * MS
        clock.heard("arm", 100 * SECOND)
    clocks.set = 100 * SECOND
    assert clock.now() == 100 * SECOND
    assert clock.set_ahead == 0.0


@pytest.mark.parametrize("wrong", [-100 * SECOND, -3 * SECOND, 3 * SECOND])
def test_a_clock_that_is_set_right_counts(clocks: Clocks, wrong: int) -> None:
    """As where simulated time is switched on, too."""
    clocks.set += wrong
    clocks.pass_ms(100, arm=0)
    clocks.set -= wrong
    clocks.pass_ms(150, arm=0)
    assert clocks.clock.now() == clocks.usual
    assert clocks.clock.set_ahead == 0.0


@pytest.mark.parametrize(("every", "rate"), [(200, 1.0), (100, 10.0), (500, 0.5), (1000, 1.0)])
def test_simulated_time_may_be_told_seldom(monkeypatch: pytest.MonkeyPatch, every: int, rate: float) -> None:
    clocks = Clocks(monkeypatch, simulated=True)
    clock = MotionClock(lambda: clocks.set, lambda: True)
    for k in range(3000):
        clocks.machine += MS
        if k % every == 0:
            clocks.set += round(rate * every * MS)
        assert clock.heard("arm", clocks.set) == clocks.set


def test_steps_that_come_again_and_again_are_shared_soon(clocks: Clocks) -> None:
    clocks.pass_ms(100, arm=0)
    for k in range(20):
        clocks.set += SECOND
        clocks.pass_ms(50, arm=(k + 1) * SECOND)
        assert clocks.usual + (k - 4) * SECOND <= clocks.clock.now()


def test_simulated_time_may_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch, simulated=True)
    clocks.pass_ms(200, arm=0)
    clocks.set -= 50 * SECOND
    clocks.pass_ms(150, arm=-50 * SECOND)
    assert clocks.clock.now() == clocks.usual - 50 * SECOND


def test_what_many_publishers_say_is_forgotten(clocks: Clocks) -> None:
    for number in range(1000):
        clocks.clock.heard(f"joint{number}", clocks.usual)
    assert len(clocks.clock._late) <= 64
