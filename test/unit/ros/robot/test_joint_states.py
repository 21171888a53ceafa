"""The newest value of every joint, of one publisher or several."""

import math
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("sensor_msgs", reason="ROS messages are not installed")

from sensor_msgs.msg import JointState

from kinopt_ros.conformance.robots import six_revolute
from kinopt_ros.errors import InvalidStateError, StaleStateError
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.robot.joint_states import JUMP_SECONDS, JointStates

ROBOT = six_revolute()
ALL = np.arange(6)


def test_parts_of_several_publishers_are_put_together() -> None:
    states = JointStates()
    states.update(JointState(name=["j6", "j1", "j2"], position=[0.6, 0.1, 0.2], velocity=[6.0, 1.0, 2.0]))
    states.update(JointState(name=["j3", "j4", "gripper"], position=[0.3, 0.4, 7.0]))
    state = states.of(ROBOT)
    np.testing.assert_array_equal(state.q, [0.1, 0.2, 0.3, 0.4, ROBOT.default_q[4], 0.6])
    np.testing.assert_array_equal(state.velocity, [1.0, 2.0, 0.0, 0.0, 0.0, 6.0])
    assert state.known.tolist() == [True, True, True, True, False, True]


def test_unknown_joints_are_named() -> None:
    states = JointStates()
    states.update(JointState(name=["j1"], position=[0.0]))
    with pytest.raises(InvalidStateError, match="j2, j3, j4, j5, j6"):
        states.of(ROBOT).require_known(ALL, ROBOT)
    states.of(ROBOT).require_known(np.array([0]), ROBOT)


def test_old_values_are_stale_and_never_received_ones_are_not() -> None:
    states = JointStates()
    states.of(ROBOT).require_fresh(ALL, ROBOT, 0.01)
    states.update(JointState(name=["j1"], position=[0.0]))
    time.sleep(0.05)
    with pytest.raises(StaleStateError, match="j1"):
        states.of(ROBOT).require_fresh(ALL, ROBOT, 0.01)
    states.of(ROBOT).require_fresh(ALL, ROBOT, 10.0)
    states.of(ROBOT).require_fresh(ALL[1:], ROBOT, 0.01)


def test_simulated_time_that_is_slower_than_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long ago joints were measured is told in the time that motions are in: at 0.3 times that of the machine a
    robot was taken to be 23 ms farther on than it was, so stops set it back. What is stale is told by the machine's."""
    now, clock = [100.0], [5_000_000_000]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    states = JointStates(lambda: clock[0])
    names = [f"j{k}" for k in range(1, 7)]
    states.update(JointState(name=names, position=[0.0] * 6), 4_999_000_000, clock[0])
    now[0], clock[0] = 100.02, 5_006_000_000
    state = states.of(ROBOT)
    np.testing.assert_allclose(state.age, 0.02)
    np.testing.assert_allclose(state.behind, 0.007)
    assert state.seen(ALL, clock[0]) == 4_999_000_000
    assert state.later(4_000_000).seen(ALL, clock[0] + 4_000_000) == 4_999_000_000
    now[0] = 101.0  # it stands
    assert states.of(ROBOT).seen(ALL, clock[0]) == 4_999_000_000
    with pytest.raises(StaleStateError):
        states.of(ROBOT).require_fresh(ALL, ROBOT, 0.5)
    clock[0] = 0  # and begins anew
    assert states.of(ROBOT).behind.max() <= 0.001 + 1e-9
    now[0] = 101.01
    states.update(JointState(name=names, position=[0.0] * 6), 0, 0)
    now[0], clock[0] = 101.02, 10**12  # and jumps
    assert states.of(ROBOT).behind.max() < 0.31


def test_silence_is_what_lasts_longer_than_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where messages come in heaps of five, or seldom."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    names = [f"j{k}" for k in range(1, 7)]
    for every, heap, least in ((0.004, 1, 0.015), (0.02, 5, 0.03), (0.05, 1, 0.075)):
        states = JointStates()
        assert not states.of(ROBOT).is_silent(ALL)
        for k in range(100):
            now[0] += every
            for _ in range(heap):
                states.update(JointState(name=names, position=[0.01 * k] * 6))
        assert not states.of(ROBOT).is_silent(ALL)
        now[0] += least - 0.001
        assert not states.of(ROBOT).is_silent(ALL)
        now[0] += 0.002
        assert states.of(ROBOT).is_silent(ALL)
        states.update(JointState(name=names[1:], position=[0.0] * 5))
        assert states.of(ROBOT).is_silent(ALL)
        assert not states.of(ROBOT).is_silent(ALL[1:])


def test_one_hiccup_is_not_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """After one of 0.2 s servo sent for 0.4 s into the next one: the robot was set on by 182 mrad. What lasts is
    usual soon: joint states at 5 Hz."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    states = JointStates()

    def heard(every: float, count: int, stamped_before: float = 0.0) -> None:
        for _ in range(count):
            now[0] += every
            stamp = round(1e9 * (now[0] - stamped_before))
            states.update(JointState(name=["j1"], position=[0.0]), stamp, round(1e9 * now[0]))

    def silent_after(seconds: float) -> bool:
        now[0] += seconds
        silent = states.of(ROBOT).is_silent(ALL[:1])
        now[0] -= seconds
        return silent

    heard(0.01, 100)
    heard(0.2, 1, 0.19)
    heard(0.01, 5)
    assert silent_after(0.031)
    assert not silent_after(0.014)
    heard(0.2, 1, 0.19)
    heard(0.01, 30)
    assert silent_after(0.061)
    heard(0.2, 6)
    assert not silent_after(0.29)


def test_what_lies_unread_is_waited_for() -> None:
    """A compiler may keep the thread that reads messages waiting for a second."""
    states = JointStates()
    states.update(JointState(name=["j1"], position=[0.0]))
    time.sleep(0.05)
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(0.01):
            states.update(JointState(name=["j1"], position=[0.7]))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert states.fresh(ROBOT, ALL, 0.04, patience=60.0).q[0] == 0.7
    finally:
        ended.set()
        reader.join()


def test_who_is_silent_is_not_waited_for_for_ever() -> None:
    states = JointStates()
    states.update(JointState(name=["j1"], position=[0.0]))
    time.sleep(0.05)
    with pytest.raises(StaleStateError, match="j1"):
        states.fresh(ROBOT, ALL, 0.01, patience=0.05)
    assert states.fresh(ROBOT, ALL[1:], 0.01, patience=0.05).known[0]  # others do not matter


@pytest.mark.parametrize(
    "broken",
    [
        JointState(name=["j1", "j2"], position=[0.0]),
        JointState(name=["j1"], position=[0.0], velocity=[0.0, 0.0]),
        JointState(name=["j1"], position=[float("nan")]),
    ],
)
def test_a_broken_message_changes_nothing(broken: JointState) -> None:
    states = JointStates()
    states.update(JointState(name=["j1"], position=[0.5]))
    with pytest.raises(InvalidStateError):
        states.update(broken)
    assert states.of(ROBOT).q[0] == 0.5


def test_a_joint_without_a_position_does_not_take_the_others_along() -> None:
    states = JointStates()
    with pytest.raises(InvalidStateError, match="j2"):
        states.update(JointState(name=["j1", "j2"], position=[0.5, float("nan")]))
    assert states.of(ROBOT).known.tolist() == [True, False, False, False, False, False]


def test_velocities_that_nobody_measures_are_none() -> None:
    states = JointStates()
    states.update(JointState(name=["j1", "j2"], position=[0.1, 0.2], velocity=[float("nan"), 0.3]))
    np.testing.assert_array_equal(states.of(ROBOT).velocity[:2], [0.0, 0.3])


def test_a_flood_of_names_does_not_push_living_joints_out() -> None:
    states = JointStates()
    own = JointState(name=[f"j{i + 1}" for i in range(6)], position=[0.1] * 6)
    states.update(own)
    states.update(JointState(name=[f"x{i}" for i in range(9_998)], position=[0.0] * 9_998))
    states.update(own)
    states.update(JointState(name=["y1", "y2", "y3"], position=[0.0] * 3))
    assert states.of(ROBOT).known.all()


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (JointState(name=["j1", "j2", "j1"], position=[0.1, 0.2, 0.3]), "joint state names 'j1' twice"),
        (
            JointState(name=[f"x{i}" for i in range(10_001)], position=[0.0] * 10_001),
            "10001 names; at most 10000",
        ),
        (JointState(name=["x" * 10**6], position=[0.0]), "1000000 characters"),
    ],
    ids=["twice", "many", "long"],
)
def test_names_that_are_no_names_of_a_robot_change_nothing(message: JointState, why: str) -> None:
    states = JointStates()
    states.update(JointState(name=["j1"], position=[0.5]))
    with pytest.raises(InvalidStateError, match=why) as caught:
        states.update(message)
    assert len(str(caught.value)) < 1_000
    assert states.of(ROBOT).q[0] == 0.5
    assert not states.of(ROBOT).known[1]


@pytest.mark.parametrize("far", [1.0, -1e308])
def test_a_position_that_jumps_is_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch, far: float) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    states = JointStates()
    for position in (-far, far, far, far):
        states.update(JointState(name=["j1", "j2"], position=[position, 0.01 * now[0]]))
        now[0] += 0.02
    state = states.of(ROBOT)
    assert state.fastest[0] > 10.0
    assert state.fastest[1] < 0.01
    now[0] += 2.0 * JUMP_SECONDS
    assert states.of(ROBOT).fastest[0] == 0.0


def test_no_jump_is_forgotten_when_a_later_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two publishers the same one may be heard twice right then."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    states = JointStates()
    for k in range(400):
        now[0] += 0.01
        states.update(JointState(name=["j1"], position=[0.5 * (k % 7 < 3)]))
        if k > 10:
            assert states.of(ROBOT).fastest[0] > 1.0, k


ONE = """<robot name="one"><link name="a"/><link name="b"/><joint name="j" type="{}">
<parent link="a"/><child link="b"/><axis xyz="0 0 1"/>{}</joint></robot>"""
ENDS = '<limit lower="-6.28" upper="6.28" velocity="2" effort="1"/>'


def test_turns_are_no_jumps_of_joints_without_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    endless = robot_from_urdf(ONE.format("continuous", '<limit velocity="2" effort="1"/>'))
    ends = robot_from_urdf(ONE.format("revolute", ENDS))
    states = JointStates()
    for position in (3.14, -3.14):
        states.update(JointState(name=["j"], position=[position]))
    assert states.of(endless).jumped([0], endless) is None
    assert states.of(ends).jumped([0], ends) == "j"  # it is a turn away from where it was
    now[0] += JUMP_SECONDS + 0.1
    assert states.of(ends).jumped([0], ends) is None


@pytest.mark.parametrize("stamped", [True, False])
def test_a_second_publisher_makes_joints_jump(monkeypatch: pytest.MonkeyPatch, stamped: bool) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    robot = robot_from_urdf(ONE.format("revolute", ENDS))
    states = JointStates()
    away = 0.1 if stamped else 0.4  # messages without stamps may come in a heap
    for _ in range(5):
        for position in (0.5, 0.5 + away):
            now[0] += 0.01
            stamp = round(1e9 * now[0]) if stamped else 0
            states.update(JointState(name=["j"], position=[position]), stamp, round(1e9 * now[0]))
    assert states.of(robot).jumped([0], robot) == "j"


@pytest.mark.parametrize("rate", [10.0, 50.0, 1000.0])
@pytest.mark.parametrize("stamped", [True, False])
def test_a_joint_at_its_limit_of_velocity_does_not_jump(
    monkeypatch: pytest.MonkeyPatch, rate: float, stamped: bool
) -> None:
    """Though messages come in heaps of five, or a simulation is ten times as quick as the machine's clock."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    robot = robot_from_urdf(ONE.format("revolute", ENDS))
    for quicker in (1.0, 10.0) if stamped else (1.0,):
        states = JointStates()
        for k in range(60):
            heap = k // 5 * 5 / rate if rate > 20.0 else k / rate
            now[0] = 100.0 + heap / quicker
            stamp = round(1e9 * (100.0 + k / rate)) if stamped else 0
            states.update(JointState(name=["j"], position=[2.0 * k / rate]), stamp, round(1e9 * now[0]))
            assert states.of(robot).jumped([0], robot) is None, (k, quicker)


def test_stamps_say_when_joints_were_measured() -> None:
    states = JointStates()
    states.update(JointState(name=["j1"], position=[0.1]), 10**15, 10**15 + 300_000_000)
    states.update(JointState(name=["j2"], position=[0.1]), 10**15, 10**15 + 3_000_000_000)
    states.update(JointState(name=["j3"], position=[0.1]), 0, 10**15 + 7)
    state = states.of(ROBOT)
    assert state.stamp[:3].tolist() == [10**15, 10**15, 10**15 + 7]
    np.testing.assert_allclose(state.late[:3], [0.3, 3.0, 0.0])
    assert [state.way([k]) for k in range(3)] == [100_000_000, 0, 0]  # slower ones are not waited for
    behind = state.behind - state.age
    np.testing.assert_allclose(behind[:3], [0.3, 0.0, 0.0], atol=1e-9)  # that far behind is another clock


def test_the_slowest_way_of_late_counts_and_fades(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops came too late where the newest joint state happened to be a quick one."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    states = JointStates()

    def heard(late: int) -> int:
        now[0] += 0.02
        states.update(JointState(name=["j1"], position=[0.1]), 10**15, 10**15 + late)
        return states.of(ROBOT).way([0])

    assert heard(30_000_000) == 30_000_000
    heard(1_000_000)
    assert 25_000_000 < heard(1_000_000) < 30_000_000
    assert heard(60_000_000) == 60_000_000
    assert heard(700_000_000) > 50_000_000  # another clock says nothing
    for _ in range(250):
        heard(1_000_000)
    assert heard(1_000_000) == 1_000_000


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize(("rate", "measured"), [(100.0, 20.0), (50.0, 10.0), (1000.0, 10.0), (50.0, 5.0)])
def test_a_driver_that_repeats_what_it_measured_last_is_believed(
    monkeypatch: pytest.MonkeyPatch, rate: float, measured: float, stamped: bool
) -> None:
    """99 of 100 joint states of a healthy robot counted as jumps."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    robot = robot_from_urdf(ONE.format("revolute", ENDS))
    states = JointStates()
    repeated = round(rate / measured)
    for k in range(10 * repeated):
        now[0] = 100.0 + k / rate
        stamp = round(1e9 * now[0]) if stamped else 0
        position = 2.0 * (k // repeated) / measured
        states.update(JointState(name=["j"], position=[position]), stamp, round(1e9 * now[0]))
        assert states.of(robot).jumped([0], robot) is None, k


@pytest.mark.parametrize("rate", [100.0, 1000.0])
@pytest.mark.parametrize("stamped", [True, False])
def test_noise_of_a_slow_joint_is_no_jump(
    monkeypatch: pytest.MonkeyPatch, rate: float, stamped: bool
) -> None:
    """As of a lift of 1 cm/s: a fifth of a millimetre of noise is faster than that."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    slow = '<limit lower="0" upper="0.3" velocity="0.01" effort="1"/>'
    robot = robot_from_urdf(ONE.format("prismatic", slow))
    states = JointStates()
    for k in range(100):
        now[0] += 1.0 / rate
        stamp = round(1e9 * now[0]) if stamped else 0
        states.update(JointState(name=["j"], position=[0.1 + 2e-4 * (k % 2)]), stamp, round(1e9 * now[0]))
        assert states.of(robot).jumped([0], robot) is None, k


def swung(
    velocity_of: Callable[[float, int], list[float]], noise: float = 0.0, period: float = 3.0
) -> np.ndarray:
    """Contradictions of a robot that swings for six seconds; velocities are told by the true one and a number."""
    states, random = JointStates(), np.random.default_rng(1)
    pace = math.tau / period
    for k in range(1500):
        t = 0.004 * k
        position, velocity = 0.5 - 0.5 * math.cos(pace * t), 0.5 * pace * math.sin(pace * t)
        told = JointState(
            name=["j1", "j2", "j3"],
            position=[position + noise * random.normal(), 0.3 + noise * random.normal(), 0.1],
            velocity=velocity_of(velocity, k),
        )
        states.update(told, 10**9 + 4_000_000 * k, 10**9 + 4_000_000 * k + 1_000_000)
    return states.contradictions(ROBOT)


@pytest.mark.parametrize("unit", [0.5, 2.0, math.degrees(1.0), -1.0])
def test_velocities_that_positions_contradict_are_found(unit: float) -> None:
    """Of a gear's other side, or degrees: a stop led a robot by 0.4 rad beyond its motion's end, and made it faster."""
    found = swung(lambda velocity, k: [unit * velocity, 0.0, 0.0], noise=1e-5)
    assert found[0] == pytest.approx(1.0 / unit, rel=0.05)
    assert (found[1:] == 1.0).all()


@pytest.mark.parametrize("unit", [0.8, 1.0, 1.2])
def test_velocities_that_are_about_so_are_not_contradicted(unit: float) -> None:
    random = np.random.default_rng(2)
    found = swung(lambda velocity, k: random.normal([unit * velocity, 0.0, 0.0], 0.05).tolist(), noise=3e-4)
    assert (found == 1.0).all()


@pytest.mark.parametrize("period", [1.0, 3.0])
@pytest.mark.parametrize("lag", [0.02, 0.1])
def test_nor_are_those_of_filters_and_of_joints_that_stand(period: float, lag: float) -> None:
    filtered = [0.0]

    def told(velocity: float, k: int) -> list[float]:
        filtered[0] += 0.004 / lag * (velocity - filtered[0])
        noise = 0.1 * (-1.0) ** (k // 50)  # which does not fade within 0.2 s
        return [filtered[0], 0.0, noise]

    found = swung(told, period=period)
    assert (found == 1.0).all()


def test_a_driver_that_repeats_itself_or_tells_nonsense_once_is_not_contradicted() -> None:
    """Positions and velocities of 0.3 s ago, with stamps of now: their velocities say nothing about the way."""
    told: list[float] = []

    def repeated(velocity: float, k: int) -> list[float]:
        if k == 600:
            return [1e200, 0.0, 0.0]
        told[:] = told if 200 <= k % 400 < 275 and told else [velocity, 0.0, 0.0]
        return list(told)

    states = JointStates()
    position: list[float] = []
    for k in range(1500):
        t = 0.004 * k
        velocity = repeated(math.sin(2.0 * t), k)
        if not (200 <= k % 400 < 275 and position):
            position = [0.5 - 0.5 * math.cos(2.0 * t)]
        message = JointState(name=["j1", "j2", "j3"], position=[*position, 0.0, 0.0], velocity=velocity)
        states.update(message, 10**9 + 4_000_000 * k, 10**9 + 4_000_000 * k)
    assert (states.contradictions(ROBOT) == 1.0).all()


def test_a_driver_that_is_mended_is_not_contradicted_any_more() -> None:
    found = swung(lambda velocity, k: [(2.0 if k < 500 else 1.0) * velocity, 0.0, 0.0])
    assert (found == 1.0).all()
