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
        self.moves = False
        self.clock = MotionClock(
            lambda: self.set + round(self.rate * self.machine), lambda: simulated, lambda: self.moves
        )
        monkeypatch.setattr(motion_clock, "time", SimpleNamespace(monotonic_ns=lambda: self.machine))

    def pass_ms(self, count: int, way: int = 2 * MS, every: int = 10, **robots: int) -> int:
        """Let time pass; now and then robots say where they are, ``way`` later, by clocks so far (ns) from the node's
        first one."""
        now = 0
        for _ in range(count // every):
            self.machine += every * MS
            for name, off in robots.items():
                now = self.clock.heard(name, 10**18 + round(self.rate * self.machine) + off - way)
        return now or self.clock.now()

    @property
    def usual(self) -> int:
        """What the clock would say if it had not been set."""
        return 10**18 + round(self.rate * self.machine)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


STEPS = [60 * MS, 300 * MS, 5 * SECOND, -60 * MS, -300 * MS, -5 * SECOND]


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("ahead", STEPS)
def test_motions_do_not_see_a_step_that_the_robot_does_not_share(
    clocks: Clocks, ahead: int, moves: bool
) -> None:
    clocks.moves = moves
    clocks.pass_ms(100, arm=0)
    clocks.set += ahead
    assert clocks.clock.now() == clocks.usual
    for _ in range(50):
        assert clocks.pass_ms(100, arm=0) == clocks.usual
    assert clocks.clock.set_ahead == pytest.approx(ahead / SECOND)
    clocks.set -= ahead  # it is set right again
    assert clocks.pass_ms(200, arm=0) == clocks.usual
    assert clocks.clock.set_ahead == 0.0


@pytest.mark.parametrize("ahead", STEPS)
@pytest.mark.parametrize("silent", [130, 1_200, 100_000])
def test_silence_is_no_proof(clocks: Clocks, ahead: int, silent: int) -> None:
    """A robot of which nobody had heard for a second was taken to share a step of long ago: 0.63 rad within a ms."""
    clocks.moves = True
    clocks.pass_ms(100, arm=0)
    clocks.set += ahead
    clocks.pass_ms(1_000, arm=0)
    clocks.pass_ms(silent)
    assert clocks.clock.look() == clocks.usual
    assert clocks.pass_ms(100, arm=0) == clocks.usual


@pytest.mark.parametrize("ahead", STEPS)
@pytest.mark.parametrize("every", [125, 400])
def test_who_is_seldom_heard_of_is_waited_for(clocks: Clocks, ahead: int, every: int) -> None:
    clocks.pass_ms(10 * every, every=every, arm=0)
    clocks.set += ahead
    clocks.machine += every // 2 * MS
    assert clocks.clock.look() == clocks.usual
    assert clocks.pass_ms(20 * every, every=every, arm=0) == clocks.usual


@pytest.mark.parametrize("ahead", [-300 * MS, -60 * MS])
def test_a_slow_network_is_no_proof(clocks: Clocks, ahead: int) -> None:
    clocks.pass_ms(100, arm=0)
    clocks.set += ahead
    clocks.pass_ms(100, arm=0)
    clocks.pass_ms(150, way=-ahead - 20 * MS, arm=0)  # later than it ever was, as by another clock
    assert clocks.pass_ms(150, arm=0) == clocks.usual


@pytest.mark.parametrize("ahead", STEPS)
def test_a_network_that_gets_quicker_is_no_proof(clocks: Clocks, ahead: int) -> None:
    clocks.pass_ms(100, way=10 * MS, arm=0)
    clocks.set += ahead
    clocks.pass_ms(100, way=10 * MS, arm=0)
    clocks.pass_ms(300, way=MS, arm=0)
    assert clocks.pass_ms(300, arm=0) == clocks.usual


def test_a_robot_of_another_clock_keeps_it_while_it_moves(clocks: Clocks) -> None:
    clocks.moves = True
    clocks.pass_ms(100, arm=-7 * SECOND)
    clocks.set += 2 * SECOND
    assert clocks.pass_ms(500, arm=-7 * SECOND) == clocks.usual
    clocks.moves = False
    assert clocks.pass_ms(50, arm=-7 * SECOND) == clocks.usual + 2 * SECOND


@pytest.mark.parametrize("wrong", [-100 * SECOND, -3 * SECOND, -700 * MS, 700 * MS, 3 * SECOND])
def test_a_clock_that_is_set_right_counts_when_the_motion_is_over(clocks: Clocks, wrong: int) -> None:
    clocks.set += wrong
    clocks.moves = True
    clocks.pass_ms(500, arm=0)
    clocks.set -= wrong
    assert clocks.pass_ms(1_000, arm=0) == clocks.usual + wrong
    clocks.moves = False
    assert clocks.pass_ms(150, arm=0) == clocks.usual
    assert clocks.clock.set_ahead == 0.0


@pytest.mark.parametrize("moves", [False, True])
def test_a_step_that_all_share_counts(clocks: Clocks, moves: bool) -> None:
    clocks.moves = moves
    clocks.pass_ms(100, arm=0, gripper=0)
    clocks.set += 3 * SECOND
    clocks.pass_ms(300, arm=3 * SECOND, gripper=3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND
    assert clocks.clock.set_ahead == 0.0


def test_the_clock_of_a_gripper_on_this_machine_does_not_hide_that_of_the_arm(clocks: Clocks) -> None:
    clocks.pass_ms(100, arm=0, gripper=0)
    clocks.set += 3 * SECOND
    assert clocks.pass_ms(1000, arm=0, gripper=3 * SECOND) == clocks.usual
    # The arm is heard of no more.
    clocks.pass_ms(1200, gripper=3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


def test_a_clock_of_its_own_does_not_hold_the_others(clocks: Clocks) -> None:
    """A gripper whose stamps count from its start: servo refused the arm for ever."""
    clocks.pass_ms(100, arm=0, gripper=-(10**17))
    clocks.set += 3 * SECOND
    clocks.pass_ms(150, arm=3 * SECOND, gripper=-(10**17))
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


def test_who_comes_later_with_the_nodes_clock_does_not_hold_it(clocks: Clocks) -> None:
    clocks.pass_ms(100, arm=0)
    clocks.set -= 300 * MS
    clocks.pass_ms(100, arm=0)
    clocks.pass_ms(500, arm=0, gripper=-300 * MS)
    assert clocks.clock.now() == clocks.usual
    clocks.pass_ms(600, arm=-300 * MS, gripper=-300 * MS)  # the arm's is set, too
    assert clocks.clock.now() == clocks.usual - 300 * MS


def test_a_driver_that_begins_anew_has_the_clock_that_it_says(clocks: Clocks) -> None:
    clocks.pass_ms(100, arm=0)
    clocks.set += 3 * SECOND
    clocks.pass_ms(100, arm=0)
    assert clocks.pass_ms(2000, other=0) == clocks.usual  # by another name
    clocks.pass_ms(2000, third=3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


def test_the_robots_clock_may_be_set_later(clocks: Clocks) -> None:
    clocks.pass_ms(100, arm=0)
    clocks.set += 3 * SECOND
    clocks.pass_ms(1000, arm=0)
    clocks.pass_ms(150, arm=3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


def test_clocks_may_drift(clocks: Clocks) -> None:
    """As one that is set right slowly."""
    off = 0
    for _ in range(200):
        off -= MS // 2
        clocks.pass_ms(1000, every=100, arm=off)
    clocks.set += 3 * SECOND
    assert clocks.pass_ms(500, arm=off) == clocks.usual
    clocks.pass_ms(500, arm=off + 3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


@pytest.mark.parametrize("moves", [False, True])
def test_without_stamps_a_step_counts_when_nothing_moves(clocks: Clocks, moves: bool) -> None:
    clocks.moves = moves
    clocks.clock.now()
    clocks.set += 3 * SECOND
    clocks.clock.heard("arm", 0)
    assert clocks.clock.now() == clocks.usual
    clocks.machine += 110 * MS
    assert clocks.clock.look() == clocks.usual + (0 if moves else 3 * SECOND)
    assert clocks.clock.set_ahead == 0.0  # nobody says so
    clocks.moves = False
    assert clocks.clock.look() == clocks.usual + 3 * SECOND


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
        assert not clocks.clock._set


def test_a_clock_that_is_read_slowly_is_read_again(clocks: Clocks) -> None:
    """Else a step would be wrong by what the process waited for."""
    clocks.pass_ms(100, arm=0)
    read, slow = clocks.clock._clock, [True]

    def once_slowly() -> int:
        said = read()
        if slow.pop() if slow else False:
            clocks.machine += 400 * MS
        return said

    clocks.set += 3 * SECOND
    clocks.clock._clock = once_slowly
    assert clocks.clock.now() == clocks.usual


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


@pytest.mark.parametrize(("every", "rate"), [(200, 1.0), (100, 10.0), (500, 0.5), (1000, 1.0)])
def test_simulated_time_may_be_told_seldom(monkeypatch: pytest.MonkeyPatch, every: int, rate: float) -> None:
    clocks = Clocks(monkeypatch, simulated=True)
    clock = MotionClock(lambda: clocks.set, lambda: True, lambda: True)
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
    clocks.pass_ms(100, arm=20 * SECOND)
    assert clocks.clock.now() == clocks.usual + 20 * SECOND


def test_simulated_time_may_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch, simulated=True)
    clocks.pass_ms(200, arm=0)
    clocks.set -= 50 * SECOND
    clocks.pass_ms(150, arm=-50 * SECOND)
    assert clocks.clock.now() == clocks.usual - 50 * SECOND


def test_simulated_time_may_begin_after_joint_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come as soon as the node is there, and the time is 0 until somebody says otherwise."""
    clocks = Clocks(monkeypatch, simulated=True)
    clock = MotionClock(lambda: clocks.set, lambda: True, lambda: False)
    clocks.set = 0
    for _ in range(5):
        clocks.machine += 10 * MS
        clock.heard("arm", 100 * SECOND)
    clocks.set = 100 * SECOND
    assert clock.now() == 100 * SECOND
    assert clock.set_ahead == 0.0


@pytest.mark.parametrize("late", [0, 30 * MS])
@pytest.mark.parametrize("ahead", [-500 * SECOND, 500 * SECOND, 3 * SECOND])
def test_simulated_time_in_bursts_may_be_set(monkeypatch: pytest.MonkeyPatch, ahead: int, late: int) -> None:
    """Two ticks that come at once are no hundredfold pace: the time of motions was wrong by seconds, for ever."""
    clocks = Clocks(monkeypatch, simulated=True)
    said = [100 * SECOND]
    clock = MotionClock(lambda: said[0], lambda: True, lambda: True)

    def pass_ticks(count: int) -> int:
        now = 0
        for k in range(count):  # six ticks at once, every 60 ms
            clocks.machine += 60 * MS if k % 6 == 0 else MS // 5
            said[0] += 10 * MS
            now = clock.heard("arm", said[0] - late)
        return now

    for _ in range(20):
        pass_ticks(17)
        said[0] += ahead
        assert pass_ticks(24) == said[0]
        said[0] -= ahead
        assert pass_ticks(24) == said[0]


@pytest.mark.parametrize("moves", [False, True])
def test_the_robot_may_hear_first_that_simulated_time_begins(
    monkeypatch: pytest.MonkeyPatch, moves: bool
) -> None:
    clocks = Clocks(monkeypatch, simulated=True)
    said = [0]
    clock = MotionClock(lambda: said[0], lambda: True, lambda: moves)
    for _ in range(5):
        clocks.machine += 10 * MS
        clock.heard("arm", 1000 * SECOND)
    for begin in (1000 * SECOND, 500 * SECOND):  # it begins, and is set back
        said[0] = begin
        for _ in range(20):
            clocks.machine += 10 * MS
            said[0] += 10 * MS
            now = clock.heard("arm", said[0])
        assert now == said[0]


@pytest.mark.parametrize("first", [1, 5, 30, 900])
@pytest.mark.parametrize("ahead", [3 * SECOND, 500 * SECOND, -3 * SECOND])
def test_the_robot_may_hear_first_that_a_clock_was_set(clocks: Clocks, ahead: int, first: int) -> None:
    """Its joint states seemed to be of another clock from then on, whose motions go on by the old one."""
    clocks.moves = True
    clocks.pass_ms(500, arm=0)
    clocks.pass_ms(10 * first, arm=ahead)
    assert clocks.clock.now() == clocks.usual
    clocks.set += ahead
    clocks.pass_ms(300, arm=ahead)
    assert clocks.clock.now() == clocks.usual + ahead


@pytest.mark.parametrize("ahead", STEPS)
@pytest.mark.parametrize("first", [900, 1_500, 6_000])
def test_the_robots_clock_may_be_set_long_before(clocks: Clocks, ahead: int, first: int) -> None:
    clocks.pass_ms(500, arm=0)
    clocks.pass_ms(10 * first, arm=ahead)
    clocks.set += ahead
    clocks.pass_ms(500, arm=ahead)
    assert clocks.clock.now() == clocks.usual + ahead
    assert clocks.clock.set_ahead == 0.0


@pytest.mark.parametrize("every", [4, 10, 20, 50, 100])
@pytest.mark.parametrize("ahead", [-60 * MS, -100 * MS, -150 * MS, -3 * SECOND])
@pytest.mark.parametrize("longer", [20, 300])
def test_what_is_held_up_on_its_way_is_no_proof(clocks: Clocks, ahead: int, every: int, longer: int) -> None:
    """The network, or the node, waits for longer than the step; then the last five messages come at once."""
    clocks.moves = True
    clocks.pass_ms(1_000, every=every, arm=0)
    clocks.set += ahead
    for _ in range(10):
        clocks.pass_ms(1_000, every=every, arm=0)
        stall = -ahead // MS + longer
        clocks.machine += stall * MS
        for k in reversed(range(min(5, stall // every))):
            clocks.clock.heard("arm", clocks.usual - k * every * MS - 2 * MS)
        assert clocks.pass_ms(500, every=every, arm=0) == clocks.usual


@pytest.mark.parametrize("ahead", [60 * MS, 300 * MS, SECOND])
def test_a_jam_that_ends_is_no_proof(clocks: Clocks, ahead: int) -> None:
    clocks.moves = True
    clocks.pass_ms(500, arm=0)
    clocks.set += ahead
    clocks.pass_ms(10_000, way=28 * MS, arm=0)
    assert clocks.pass_ms(1_000, way=0, arm=0) == clocks.usual
    assert clocks.pass_ms(1_000, arm=20 * MS) == clocks.usual  # its clock is set a little


@pytest.mark.parametrize("silent", [1_100, 5_000])
@pytest.mark.parametrize("node", [False, True])
def test_who_is_silent_amid_a_motion_is_not_gone(clocks: Clocks, silent: int, node: bool) -> None:
    """The gripper is on the node's machine, whose clock was set."""
    clocks.moves = True
    clocks.pass_ms(500, arm=0, gripper=0)
    clocks.set += 3 * SECOND
    clocks.pass_ms(500, arm=0, gripper=3 * SECOND)
    if node:  # it gets no CPU, and reads what the gripper said first
        clocks.machine += silent * MS
    assert clocks.pass_ms(100 if node else silent, gripper=3 * SECOND) == clocks.usual
    assert clocks.pass_ms(500, arm=0, gripper=3 * SECOND) == clocks.usual


def test_who_was_silent_before_a_step_does_not_hold_it(clocks: Clocks) -> None:
    clocks.moves = True
    clocks.pass_ms(500, arm=0, dead=0)
    clocks.pass_ms(1_500, arm=0)
    clocks.set += 3 * SECOND
    clocks.pass_ms(300, arm=3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


def test_who_is_silent_for_long_holds_no_step_at_rest(clocks: Clocks) -> None:
    clocks.pass_ms(500, arm=0)
    clocks.set += 3 * SECOND
    clocks.pass_ms(2_000, arm=0)
    for passed in range(100):
        clocks.machine += SECOND
        for _ in range(10):
            clocks.machine += 100 * MS
            clocks.clock.look()
        if passed < 20:
            assert clocks.clock.now() == clocks.usual
    assert clocks.clock.now() == clocks.usual + 3 * SECOND
    assert clocks.clock.set_ahead == 0.0


@pytest.mark.parametrize("ahead", STEPS)
def test_the_first_message_may_be_late(clocks: Clocks, ahead: int) -> None:
    clocks.moves = True
    clocks.pass_ms(10, way=200 * MS, arm=0)
    clocks.pass_ms(300, arm=0)
    clocks.set += ahead
    assert clocks.pass_ms(1_000, arm=0) == clocks.usual


def test_one_late_message_of_somebody_new_is_no_proof(clocks: Clocks) -> None:
    clocks.moves = True
    clocks.pass_ms(500, arm=0)
    clocks.set -= 150 * MS
    clocks.pass_ms(1_200)
    clocks.pass_ms(10, way=140 * MS, gripper=0)
    assert clocks.pass_ms(1_000, arm=0, gripper=0) == clocks.usual


def test_a_clock_that_is_set_right_is_no_other_one(clocks: Clocks) -> None:
    clocks.moves = True
    clocks.pass_ms(500, arm=20 * SECOND)  # ahead
    clocks.pass_ms(500, arm=0)
    clocks.set += 3 * SECOND
    clocks.pass_ms(300, arm=3 * SECOND)
    assert clocks.clock.now() == clocks.usual + 3 * SECOND


def test_what_many_publishers_say_is_forgotten(clocks: Clocks) -> None:
    for number in range(1000):
        clocks.clock.heard(f"joint{number % 100}", clocks.usual)
        clocks.clock.heard("arm", clocks.usual)
    assert len(clocks.clock._known) <= 64
    assert "arm" in clocks.clock._known
