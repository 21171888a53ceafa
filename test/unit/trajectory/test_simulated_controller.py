"""The simulated controller and robot: they do what joint_trajectory_controller does, at times that the test sets."""

from typing import Any

import numpy as np
import pytest

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.simulated_controller import SimulatedController, Waypoint
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot, usual_controllers

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
SECOND = 10**9
NOW = 5_000 * SECOND


def controller() -> SimulatedController:
    return SimulatedController(["a", "b"], np.array([0.1, -0.2]))


def at(one: SimulatedController, seconds: float) -> tuple[list[float], list[float]]:
    state = one.state(NOW + round(seconds * SECOND))
    return state.position.tolist(), state.velocity.tolist()


def test_it_stands_until_it_is_told_to_move() -> None:
    assert at(controller(), 0.0) == ([0.1, -0.2], [0.0, 0.0])


def test_positions_are_joined_by_lines() -> None:
    one = controller()
    one.take(["b", "a"], [Waypoint(SECOND, [0.8, 0.3]), Waypoint(3 * SECOND, [0.8, 0.5])], 0, NOW)
    for seconds, position, velocity in (
        (0.0, [0.1, -0.2], [0.2, 1.0]),
        (0.5, [0.2, 0.3], [0.2, 1.0]),
        (2.0, [0.4, 0.8], [0.1, 0.0]),
        (3.0, [0.5, 0.8], [0.0, 0.0]),
        (9.0, [0.5, 0.8], [0.0, 0.0]),
    ):
        p, v = at(one, seconds)
        np.testing.assert_allclose(p, position, atol=1e-12)
        np.testing.assert_allclose(v, velocity, atol=1e-12)


def test_velocities_make_cubics_that_meet_them() -> None:
    one = controller()
    points = [Waypoint(SECOND, [0.3, 0.0], [0.4, -0.1]), Waypoint(2 * SECOND, [0.5, 0.0], [0.0, 0.0])]
    one.take(["a", "b"], points, 0, NOW)
    p, v = at(one, 1.0)
    np.testing.assert_allclose((p, v), ([0.3, 0.0], [0.4, -0.1]), atol=1e-12)
    # x(s) of the second piece: a cubic with these ends, at its middle.
    p, v = at(one, 1.5)
    np.testing.assert_allclose(p[0], (0.3 + 0.5) / 2 + (0.4 - 0.0) / 8, atol=1e-12)
    np.testing.assert_allclose(v[0], 1.5 * 0.2 - 0.4 / 4, atol=1e-12)


def test_a_whole_motion_is_what_is_verified() -> None:
    start = PANDA.default_q
    motion = plan_joint_motion(
        PANDA, ARM, start, np.zeros(8), start + np.array([0.8, 0.3, *[0.1] * 5, 0.0]), 0.5, 0.5
    ).trajectory
    one = SimulatedController(ARM, start[:7])
    rows = zip(motion.nanoseconds, motion.position, motion.velocity, motion.acceleration, strict=True)
    one.take(ARM, [Waypoint(int(t), p, v, a) for t, p, v, a in rows], 0, NOW)
    times = np.linspace(0.0, motion.duration, 301)
    position, velocity, _ = evaluate(motion, times)
    states = [one.state(NOW + round(t * SECOND)) for t in times]
    np.testing.assert_allclose([state.position for state in states], position, atol=1e-8)
    np.testing.assert_allclose([state.velocity for state in states[:-1]], velocity[:-1], atol=1e-6)
    assert one.end == NOW + int(motion.nanoseconds[-1])


def test_a_trajectory_that_counts_later_or_has_begun_already() -> None:
    one = controller()
    one.take(["a", "b"], [Waypoint(0, [0.1, -0.2]), Waypoint(SECOND, [0.3, -0.2])], NOW + SECOND, NOW)
    assert at(one, 0.5)[0] == [0.1, -0.2]
    np.testing.assert_allclose(at(one, 1.5)[0], [0.2, -0.2])
    one = controller()
    points = [Waypoint(k * SECOND, [0.1 + 0.1 * k, -0.2]) for k in range(4)]
    one.take(["a", "b"], points, NOW - SECOND - SECOND // 2, NOW)
    np.testing.assert_allclose(at(one, 0.0)[0], [0.25, -0.2])  # in the middle of the second piece, at once
    np.testing.assert_allclose(at(one, 1.5)[0], [0.4, -0.2])


def test_a_newer_trajectory_begins_where_the_one_before_has_come_to() -> None:
    one = controller()
    one.take(["a", "b"], [Waypoint(2 * SECOND, [1.1, -0.2])], 0, NOW)
    one.take(["a", "b"], [Waypoint(SECOND, [0.6, 0.8])], 0, NOW + SECOND)
    np.testing.assert_allclose(at(one, 1.0)[0], [0.6, -0.2])
    np.testing.assert_allclose(at(one, 1.5)[0], [0.6, 0.3])


def test_hold_stops_at_once() -> None:
    one = controller()
    one.take(["a", "b"], [Waypoint(2 * SECOND, [1.1, -0.2])], 0, NOW)
    one.hold(NOW + SECOND)
    for seconds in (1.0, 3.0):
        np.testing.assert_allclose(at(one, seconds), ([0.6, -0.2], [0.0, 0.0]))
    assert one.end <= NOW + SECOND


GOOD: dict[str, Any] = {"names": ["a", "b"], "points": [Waypoint(SECOND, [0.2, 0.1])], "start": 0}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"names": []}, "joints are none"),
        ({"names": ["a"], "points": [Waypoint(SECOND, [0.2])]}, "joints are a;"),
        ({"names": ["a", "c"]}, "the controller's are a, b"),
        ({"names": ["a", "b", "b"]}, "controller's are"),
        ({"points": []}, "no points"),
        ({"start": NOW - 2 * SECOND}, "past"),
        ({"points": [Waypoint(SECOND, [0.2, 0.1]), Waypoint(SECOND, [0.2, 0.1])]}, "time of point 1"),
        ({"points": [Waypoint(-1, [0.2, 0.1])]}, "time of point 0"),
        ({"points": [Waypoint(SECOND, [0.2])]}, "1 positions for 2 joints"),
        ({"points": [Waypoint(SECOND, [])]}, "0 positions"),
        ({"points": [Waypoint(SECOND, [0.2, 0.1], [0.0])]}, "1 velocities"),
        ({"points": [Waypoint(SECOND, [0.2, 0.1], [0.0, 0.0], [0.0])]}, "1 accelerations"),
        ({"points": [Waypoint(SECOND, [0.2, 0.1], effort=[1.0, 1.0])]}, "efforts"),
        ({"points": [Waypoint(SECOND, [0.2, 0.1], [0.0, 1e-3])]}, "'b' is 0.001"),
        ({"points": [Waypoint(SECOND, [0.2, float("nan")])]}, "not finite"),
    ],
)
def test_what_the_controller_refuses_leaves_it_as_it_was(bad: dict[str, Any], said: str) -> None:
    one = controller()
    one.take(["a", "b"], [Waypoint(10 * SECOND, [1.1, -0.2])], 0, NOW)
    with pytest.raises(KinoptError, match=said):
        one.take(**{**GOOD, **bad}, now=NOW)
    np.testing.assert_allclose(at(one, 5.0)[0], [0.6, -0.2])
    one.take(**GOOD, now=NOW)
    np.testing.assert_allclose(at(one, 5.0)[0], [0.2, 0.1])


def test_groups_of_any_name_have_controllers_that_topics_can_be_called_after() -> None:
    joints = "".join(
        f"<link name='l{i}'/><joint name='j{i}' type='revolute'><parent link='root'/><child link='l{i}'/>"
        "<axis xyz='0 0 1'/><limit lower='-1' upper='1' effort='1' velocity='1'/></joint>"
        for i in range(4)
    )
    names = ("left-arm", "left arm", "7", "wrist_")
    groups = "".join(f"<group name='{name}'><joint name='j{i}'/></group>" for i, name in enumerate(names))
    robot = robot_from_urdf(
        f"<robot name='r'><link name='root'/>{joints}</robot>", f"<robot name='r'>{groups}</robot>"
    )
    assert list(usual_controllers(robot).items()) == [
        ("left_arm_controller", ("j0",)),
        ("left_arm_controller_2", ("j1",)),
        ("group_7_controller", ("j2",)),
        ("wrist_controller", ("j3",)),
    ]


def test_a_robot_has_a_controller_for_each_group_and_none_has_joints_of_another() -> None:
    assert usual_controllers(PANDA) == {
        "panda_arm_controller": ARM,
        "hand_controller": ("panda_finger_joint1",),
    }
    robot = SimulatedRobot(PANDA, start={"panda_joint1": 0.4})
    names, position, velocity = robot.states(NOW)
    assert names == (*ARM, "panda_finger_joint1", "panda_finger_joint2")
    assert position[0] == 0.4
    assert not velocity.any()
    robot.follow(["panda_finger_joint1"], [Waypoint(SECOND, [0.04])], 0, NOW)
    robot.follow(ARM[::-1], [Waypoint(SECOND, [0.1] * 3 + [-1.0] + [0.1] * 3)], 0, NOW)
    _, position, _ = robot.states(NOW + SECOND)
    np.testing.assert_allclose(position, [0.1] * 3 + [-1.0] + [0.1] * 3 + [0.04] * 2)


def test_mimic_joints_are_where_their_drivers_take_them() -> None:
    joints = "".join(
        f"<link name='l{i}'/><joint name='j{i}' type='revolute'><parent link='root'/><child link='l{i}'/>"
        f"<axis xyz='0 0 1'/><limit lower='-9' upper='9' effort='1' velocity='9'/>{mimic}</joint>"
        for i, mimic in enumerate(("<mimic joint='j1' multiplier='-2' offset='0.5'/>", ""))
    )
    robot = SimulatedRobot(robot_from_urdf(f"<robot name='r'><link name='root'/>{joints}</robot>"))
    robot.follow(["j1"], [Waypoint(SECOND, [1.0])], 0, NOW)
    names, position, velocity = robot.states(NOW + SECOND // 2)
    assert names == ("j1", "j0")
    assert 0.0 < position[0] < 1.0
    assert velocity[0] > 0.0
    np.testing.assert_allclose(position[1], 0.5 - 2.0 * position[0])
    np.testing.assert_allclose(velocity[1], -2.0 * velocity[0])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"controllers": {"x": ["panda_joint1"], "y": ["panda_joint1"]}}, "one of two controllers: x and y"),
        ({"controllers": {"x": ["panda_finger_joint2"]}}, "follows"),
        ({"controllers": {"x": ["panda_joint8"]}}, "fixed"),
        ({"controllers": {"x": ["elbow"]}}, "elbow"),
        ({"controllers": {"x": []}}, "not none"),
        ({"start": {"panda_joint4": 0.5}}, "limits"),
        ({"start": {"panda_joint4": float("nan")}}, "limits"),
        ({"drive_lag": -0.01}, "drive_lag is -0.01; allowed is 0 to 1 s"),
        ({"drive_lag": float("nan")}, "drive_lag is nan"),
        ({"speed_scaling": 0.0}, "speed_scaling is 0; allowed is 0.01 to 1"),
        ({"speed_scaling": 1.5}, "speed_scaling is 1.5"),
    ],
)
def test_a_robot_that_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(KinoptError, match=said):
        SimulatedRobot(PANDA, **given)


def test_joints_of_no_controller() -> None:
    robot = SimulatedRobot(PANDA)
    with pytest.raises(
        KinoptError, match=r"exactly the joints panda_joint1; there are panda_arm_controller: "
    ):
        robot.follow(["panda_joint1"], [Waypoint(SECOND, [0.1])], 0, NOW)


def test_a_clock_that_is_set_back_moves_nothing() -> None:
    """Simulations begin anew: a motion that is over is not done again, and one that was broken off is no error."""
    one = controller()
    one.take(["a", "b"], [Waypoint(SECOND, [0.5, 0.5])], 0, NOW)
    one.set_back(NOW + 4 * SECOND, NOW + SECOND // 2)  # it was over
    assert at(one, 0.5) == ([0.5, 0.5], [0.0, 0.0])
    one.take(["a", "b"], [Waypoint(SECOND, [0.7, 0.7])], 0, NOW)
    one.set_back(NOW + SECOND // 2, NOW - 1000 * SECOND)
    assert at(one, -1000.0)[1] == [0.0, 0.0]
    np.testing.assert_allclose(at(one, 5.0)[0], [0.6, 0.6])
    one.hold(NOW)
    assert at(one, -100.0)[1] == [0.0, 0.0]
    one.take(["a", "b"], [Waypoint(SECOND, [0.9, 0.9])], 0, NOW)
    one.set_back(NOW + SECOND // 2, NOW + SECOND // 4)  # by little, while it moves: it goes on
    assert at(one, 0.25)[1] == pytest.approx([0.3, 0.3])


def ramp(lag: float = 0.0, scaling: float = 1.0) -> SimulatedController:
    """A joint that is told to go at 1 rad/s for 2 s, from a second after NOW on."""
    one = SimulatedController(["a"], np.array([0.0]), lag, scaling)
    one.take(["a"], [Waypoint(0, [0.0]), Waypoint(2 * SECOND, [2.0])], NOW + SECOND, NOW)
    return one


def test_a_speed_scaling_slows_motions_down() -> None:
    one = ramp(scaling=0.5)
    assert at(one, 1.9) == ([0.0], [0.0])
    np.testing.assert_allclose(at(one, 3.0), ([0.5], [0.5]), atol=1e-12)
    assert one.end == NOW + 6 * SECOND
    assert at(one, 6.0) == ([2.0], [0.0])


def test_a_motion_that_comes_begins_as_fast_as_a_slowed_one_is() -> None:
    one = ramp(scaling=0.5)
    now = NOW + 4 * SECOND
    one.take(["a"], [Waypoint(SECOND, [1.4], [0.0], [0.0])], 0, now)
    np.testing.assert_allclose(at(one, 4.0), ([1.0], [0.5]), atol=1e-12)
    assert one.end == now + 2 * SECOND


@pytest.mark.parametrize("every", [0.001, 0.02, 0.7])
def test_drives_are_behind_by_their_lag(every: float) -> None:
    """As the equation of the first order says, however often somebody looks."""
    one = ramp(lag=0.05)
    for seconds in np.arange(0.0, 4.0, every).tolist():
        where = one.measured(NOW + round(seconds * SECOND))
        told = min(max(seconds - 1.0, 0.0), 2.0)
        if 1.0 < seconds < 3.0:
            gap = 0.05 * (1.0 - np.exp(-(seconds - 1.0) / 0.05))
        else:
            gap = 0.05 * np.exp(-(seconds - 3.0) / 0.05) if seconds >= 3.0 else 0.0
        np.testing.assert_allclose(where.position, told - gap, atol=2e-4 if every > 0.1 else 1e-4)
    np.testing.assert_allclose(one.measured(NOW + 9 * SECOND).position, 2.0, atol=1e-12)


def test_drives_know_what_they_were_told_before_another_motion() -> None:
    one = ramp(lag=0.05)
    now = NOW + 2 * SECOND
    before = ramp(lag=0.05).measured(now)
    one.take(["a"], [Waypoint(SECOND, [-1.0])], 0, now)
    there = one.measured(now)
    np.testing.assert_allclose(there.position, before.position, atol=1e-9)
    np.testing.assert_allclose(there.position, 0.95, atol=1e-4)
    np.testing.assert_allclose(there.velocity, 1.0, atol=1e-3)


def test_drives_at_many_times_are_as_at_each() -> None:
    one, other = ramp(lag=0.03, scaling=0.8), ramp(lag=0.03, scaling=0.8)
    times = NOW + np.arange(0, 4 * SECOND, SECOND // 250)
    places = one.drive_on(times)
    each = [other.measured(time).position for time in times.tolist()]
    np.testing.assert_allclose(places, each, atol=1e-12)


def test_a_robot_that_lags_says_so() -> None:
    robot = SimulatedRobot(PANDA, drive_lag=0.1)
    name = next(iter(robot.controllers))
    joints = robot.controllers[name].joints
    goal = [0.1] * len(joints)
    robot.follow(joints, [Waypoint(SECOND, goal)], 0, NOW)
    names, position, velocity = robot.states(NOW + SECOND)
    told = robot.controllers[name].state(NOW + SECOND).position
    k = names.index(joints[0])
    assert 0.005 < abs(told[0] - position[k]) < 0.1
    assert velocity[k] != 0.0


def test_a_controller_that_begins_as_measured_sets_its_commands_back() -> None:
    """By what the drives lag, as joint_trajectory_controller does by default; where the first point is over, it does
    not."""
    away = [Waypoint(0, [0.0], [0.0]), Waypoint(SECOND, [1.0], [0.0])]
    for from_desired, first, expected in ((True, 1, 0.0), (False, 1, 0.02), (False, 0, 0.0)):
        one = SimulatedController(["a"], np.array([0.0]), drive_lag=0.02, from_desired=from_desired)
        one.take(["a"], away, 0, NOW)
        later = NOW + SECOND // 2
        told, there = one.state(later), one.measured(later)
        assert told.position[0] - there.position[0] > 0.02
        points = [Waypoint(0, told.position, told.velocity), Waypoint(SECOND, [0.9], [0.0])]
        one.take(["a"], points[first:], 0, later)
        assert told.position[0] - one.state(later).position[0] == pytest.approx(expected, abs=0.01)
        if expected:
            assert one.state(later).velocity[0] == pytest.approx(there.velocity[0])
    one.hold(later)
    assert one.state(later).position[0] == pytest.approx(there.position[0])
