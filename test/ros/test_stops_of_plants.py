"""Stops of robots with faults: drives that lag, speed sliders, messages that are lost; `make stops` tries many more."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from stops.judge import Verdict, verdict
from stops.plant import MS, PLANTS, Plant
from stops.scenarios import SCENARIOS
from stops.trials import ROBOTS, Trial, tried
from stops.world import World

from kinopt_ros import pauses
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.motion import brakes, stops_in_time
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.simulated_controller import Waypoint
from kinopt_ros.trajectory.timing import point_to_point

PANDA, ARM = ROBOTS["panda"]
REST, ACCELERATION, VELOCITY, BEYOND = 0.8, 1.75, 1.1, 0.02
"""What stops have to keep, s, shares of the limits, rad: docs/servo.md says more."""
HARDER = {
    "filter_50": 3.0,
    "filter_100": 8.0,
    "late_50": np.inf,
    "slider_95": 100.0,
    "slider_98": 100.0,
    "as_measured_noise": 20.0,
    "as_measured_lag_5_filtered": 30.0,
    "repeats_200": 3.0,
}
"""Accelerations of plants that pull harder for a moment: joint states that are far older than they say, stops that
come far later than joint states, a robot that is taken to be in its motion within 0.5 mrad, a controller that sets
its commands back where noise hides what drives do, and drivers that have said since before the begin that it stands."""
ANYTHING = ("as_measured_slider_80", "as_measured_slider_98", "as_measured_lag_30_no_velocities")
"""Plants whose robots step, as the pages say: `make stops` says how far."""
FASTER = {"late_50": np.inf}
"""Velocities of those that step on."""
LATER = {"slider_20": 1.5}
"""Times to rest of those that take longer."""
FARTHER = {
    "slider_50": 0.06,
    "slider_20": 0.06,
    "lag_30_slider_80": 0.04,
    "misses_cycles_lag_10": 0.2,
    "repeats_50": 0.15,
    "repeats_200": 0.15,
}
"""How far those may go beyond their motion that do."""


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant not in ANYTHING])
def test_a_robot_with_faults_comes_to_rest(plant: str, scenario: str) -> None:
    found, world = tried(Trial("panda", plant, scenario, seed=3, number=0))
    assert found.rest <= LATER.get(plant, REST), (found, world.said)
    assert found.velocity <= FASTER.get(plant, VELOCITY), (found, world.said)
    assert found.acceleration <= HARDER.get(plant, ACCELERATION), (found, world.said)
    assert found.beyond <= FARTHER.get(plant, BEYOND), (found, world.said)
    assert found.outside <= 1e-3, (found, world.said)


@pytest.mark.parametrize(
    ("plant", "scenario", "number"),
    [
        ("misses_cycles", "emergency", 4),
        ("misses_cycles", "emergency", 7),
        ("misses_cycles", "emergency_in_a_brake", 11),
        ("misses_cycles_lag_10", "cancel", 4),
        ("misses_cycles_lag_10", "deactivate", 3),
        ("misses_cycles_lag_10", "second_stop", 8),
    ],
)
def test_one_velocity_that_is_twice_too_great_leads_no_robot_on(
    plant: str, scenario: str, number: int
) -> None:
    """They went on by up to 1 rad beyond their motion, at 1.6 times their velocity."""
    found, world = tried(Trial("panda", plant, scenario, seed=3, number=number))
    assert found.rest <= REST, (found, world.said)
    assert found.velocity <= VELOCITY, (found, world.said)
    assert found.travel <= 0.5, (found, world.said)
    assert found.beyond <= 0.03, (found, world.said)


@pytest.mark.parametrize("number", [1, 9, 23])
def test_joints_that_lag_differently_are_known_by_the_motion_before(number: int) -> None:
    """What a joint that had just begun to move seemed to lag by was another lag than it had: 1,787 times a limit."""
    found, world = tried(Trial("panda", "as_measured_lags_5_to_15", "in_the_next", seed=3, number=number))
    assert found.told_acceleration <= ACCELERATION, (found, world.said)


def a_world(plant: Plant, scaling: float = 1.0) -> tuple[World, JointTrajectory]:
    """A Panda that is about to turn its first joint by 1.5 rad; ``scaling``: of its limits."""
    goal = PANDA.default_q.copy()
    goal[PANDA.variable_index[ARM[0]]] += 1.5
    motion = plan_joint_motion(
        PANDA, ARM, PANDA.default_q, np.zeros(PANDA.nq), goal, scaling, scaling, 0.01, None, 0.0, None
    ).trajectory
    return World(plant, PANDA, ARM, motion.position[0], [0]), motion


def judged(world: World, motion: JointTrajectory, ordered: int) -> Verdict:
    return verdict(PANDA, ARM, world.truth(), motion.position, ordered, ordered)


def stopped(world: World, motion: JointTrajectory, running: MotionRun, order: str, wait: float) -> Verdict:
    """Stop a motion; return how the robot has come to rest so many ms later."""
    world.cancel(running) if order == "cancel" else world.emergency(True)
    ordered = world.time.now
    world.pass_ms(wait)
    return judged(world, motion, ordered)


@pytest.mark.parametrize("after", [0.0, 10.0, 25.0])
def test_an_emergency_stop_right_after_a_brake_that_was_lost_stops(after: float) -> None:
    """The robot went on until 0.2 s after the brake's end: whether it brakes is not known so soon, and nobody looked
    again."""
    world, motion = a_world(Plant(loses_brakes=1))
    with world.own_time():
        world.pass_ms(50)
        running = world.move(motion)
        world.pass_ms(100 + 500)
        world.cancel(running)
        world.pass_ms(6 + after)
        world.emergency(True)
        ordered = world.time.now
        assert "brakes already" in world.said[-1]
        world.pass_ms(1500)
        found = judged(world, motion, ordered)
    brakes = [message for _, message in world.sent[1:]]
    assert len(brakes) == 2
    length = world.output.published[-1].end - world.sent[-1][0]
    assert world.sent[-1][0] < ordered + 200 * MS
    assert found.rest < 0.25 + length / 1e9
    assert found.acceleration <= ACCELERATION


@pytest.mark.parametrize("plant", [Plant(speed_scaling=0.98), Plant(drive_lag=0.01, speed_scaling=0.95)])
@pytest.mark.parametrize("after", [200, 400, 600, 800])
def test_a_robot_that_is_hardly_slowed_down_does_not_jump(plant: Plant, after: int) -> None:
    """It was taken for one whose drives lag, stopped in the motion, and was to be there at once: 46 mrad in 1 ms."""
    world, motion = a_world(plant)
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(100 + after)
        world.emergency(True)
        ordered = world.time.now
        world.pass_ms(1000)
        found = judged(world, motion, ordered)
    assert found.acceleration <= ACCELERATION, world.said
    assert found.velocity <= VELOCITY


@pytest.mark.parametrize("order", ["cancel", "emergency"])
@pytest.mark.parametrize(
    ("plant", "silent"),
    [(Plant(drive_lag=0.01), 8.0), (Plant(velocities=False), 12.0), (Plant(drive_lag=0.03), 12.0)],
)
@pytest.mark.parametrize("after", [240.0, 500.0])
def test_a_robot_that_falls_silent_as_a_motion_begins_is_not_taken_back_there(
    plant: Plant, silent: float, after: float, order: str
) -> None:
    """It was heard to stand where its motion had just begun to move it, and was told to be there: 1.95 rad back."""
    world, motion = a_world(plant)
    with world.own_time():
        world.pass_ms(50)
        running = world.move(motion)
        world.pass_ms(100 + silent)
        world.be_silent(world.time.now + 2000 * MS)
        world.pass_ms(after)
        ordered = world.time.now
        found = stopped(world, motion, running, order, 1500.0)
        time, told, _ = world.truth()
    assert found.acceleration <= 5.0, world.said  # docs/servo.md says how hard stops of silent robots may be
    assert found.velocity <= VELOCITY
    assert found.rest <= REST
    way = told[time >= ordered][:, 0]
    # Its controller may have begun 0.1 s later, and the brake suits that, too.
    assert (np.maximum.accumulate(way) - way).max() < 0.2


@pytest.mark.parametrize("order", ["cancel", "emergency"])
@pytest.mark.parametrize(("slept", "times"), [(300.0, 1), (60.0, 9)])
def test_a_process_that_sleeps_while_it_brakes_does_not_set_the_robot_back(
    slept: float, times: int, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An emergency's brake was made for where the robot had been 0.3 s before: it went back by 0.77 rad."""
    world, motion = a_world(Plant(drive_lag=0.02))
    made, left = brakes.brake_from_any, iter(range(times))

    def slow(*given: Any, **more: Any) -> JointTrajectory:
        found = made(*given, **more)
        if next(left, None) is not None:
            world.pass_ms(slept)
        return found

    with world.own_time():
        world.pass_ms(50)
        running = world.move(motion)
        world.pass_ms(100 + 400)
        monkeypatch.setattr(brakes, "brake_from_any", slow)
        ordered = world.time.now
        found = stopped(world, motion, running, order, 1500.0)
        time, told, _ = world.truth()
    assert found.acceleration <= ACCELERATION, world.said
    assert found.velocity <= VELOCITY
    way = told[time >= ordered][:, 0]
    assert (np.maximum.accumulate(way) - way).max() < 0.005


@pytest.mark.parametrize("order", ["deactivate", "emergency"])
def test_a_robot_that_nobody_hears_of_is_not_taken_to_be_at_its_end(order: str) -> None:
    """A slider has it move on after that: it did, to its goal, though the node was not active."""
    world, motion = a_world(Plant(speed_scaling=0.3))
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(100 + 1e3 * motion.duration)
        world.be_silent(world.time.now + 300 * MS)
        world.pass_ms(290)
        world.deactivate() if order == "deactivate" else world.emergency(True)
        ordered = world.time.now
        world.pass_ms(1500)
        found = judged(world, motion, ordered)
    assert found.rest < 1.2, world.said
    assert len(world.sent) > 1


@pytest.mark.parametrize("order", ["emergency", "cancel"])
@pytest.mark.parametrize("scaling", [0.5, 0.97, 1.0])
@pytest.mark.parametrize("share", [0.7, 1.05])
def test_a_robot_that_nobody_hears_of_is_where_it_was_going(order: str, scaling: float, share: float) -> None:
    """It was taken to be where the motion had it by now: one of a slider jumped there, by more than 1 rad, or to its
    goal within 0.07 s."""
    world, motion = a_world(Plant(speed_scaling=scaling))
    with world.own_time():
        world.pass_ms(50)
        running = world.move(motion)
        world.pass_ms(100 + share * 1e3 * motion.duration - 270)
        world.be_silent(world.time.now + 290 * MS)
        world.pass_ms(270)
        found = stopped(world, motion, running, order, 1500)
    assert found.rest < 1.0, world.said
    assert found.velocity <= VELOCITY, world.said
    assert found.acceleration <= ACCELERATION, world.said


@pytest.mark.parametrize("order", ["deactivate", "emergency"])
@pytest.mark.parametrize("idle", [0.5, 100.0])
def test_a_robot_that_stood_when_it_was_heard_of_last_is_left_alone(order: str, idle: float) -> None:
    """It was told to be where it had been measured, and all the time since was looked through: gigabytes of it."""
    world, motion = a_world(Plant(period=20 * MS))
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(1e3 * (0.1 + motion.duration + idle))
        world.be_silent(world.time.now + 3000 * MS)
        world.pass_ms(1000)
        world.deactivate() if order == "deactivate" else world.emergency(True)
        world.pass_ms(500)
    assert len(world.sent) == 1
    if order == "emergency":
        assert ("nobody has said lately" in world.said[0]) == (idle < 60.0)


@pytest.mark.parametrize("order", ["emergency", "cancel"])
@pytest.mark.parametrize("lag", [0.0, 0.01])
@pytest.mark.parametrize("heard", [10, 40, 100])
def test_a_robot_of_which_only_the_begin_of_a_motion_is_heard(order: str, lag: float, heard: int) -> None:
    """Places before the begin say nothing of its pace: it was taken to be far behind, and pulled back."""
    world, motion = a_world(Plant(drive_lag=lag))
    with world.own_time():
        world.pass_ms(50)
        running = world.move(motion)
        world.pass_ms(100 + heard)
        world.be_silent(world.time.now + 420 * MS)
        world.pass_ms(400)
        found = stopped(world, motion, running, order, 2500)
    assert found.velocity <= VELOCITY, world.said
    assert found.acceleration <= 2.0, world.said


@pytest.mark.parametrize("order", ["emergency", "cancel"])
def test_a_robot_of_which_one_joint_alone_is_not_heard(order: str) -> None:
    """Its joints were taken to have been measured when that one was: elsewhere, at 5 times a limit."""
    world, motion = a_world(Plant(drive_lag=0.01))
    with world.own_time():
        world.pass_ms(50)
        running = world.move(motion)
        world.pass_ms(100 + 0.6e3 * motion.duration - 400)
        update = world._states.update

        def of_others(message: JointState, *times: int) -> None:
            rows = message.name[1:], message.position[1:], message.velocity[1:]
            update(JointState(name=rows[0], position=rows[1], velocity=rows[2]), *times)

        world._states.update = of_others
        world.pass_ms(400)
        found = stopped(world, motion, running, order, 2500)
    assert found.velocity <= VELOCITY, world.said
    assert found.acceleration <= 2.0, world.said


def test_a_stop_that_began_since_joints_were_heard_of_is_left_alone() -> None:
    """What was measured before it says nothing of it: it was replaced, and the robot came to rest a second later."""
    world, motion = a_world(Plant())
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(100 + 0.4e3 * motion.duration)
        world.be_silent(world.time.now + 900 * MS)
        world.pass_ms(300)
        world.deactivate()
        ordered = world.time.now
        world.pass_ms(60)
        world.emergency(True)
        world.pass_ms(1500)
        found = judged(world, motion, ordered)
    assert len(world.sent) == 2
    assert found.rest < 0.4, world.said
    assert found.acceleration <= ACCELERATION, world.said


def test_a_robot_that_somebody_else_takes_back_is_not_in_its_motion_before() -> None:
    """Its way was the motion's, though backwards, and nobody heard of it: it was turned round, at 5 times the limit."""
    world, motion = a_world(Plant())
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(1000 + 1e3 * motion.duration)
        end, slower = motion.time[-1], 1.5
        back = [
            Waypoint(
                round(1e9 * slower * (end - time)), position, -velocity / slower, acceleration / slower**2
            )
            for time, position, velocity, acceleration in zip(
                motion.time, motion.position, motion.velocity, motion.acceleration, strict=True
            )
        ][::-1]
        world._record()
        world._controller.take(ARM, back, 0, world.time.now)
        world.pass_ms(1e3 * slower * 0.6 * motion.duration)
        world.be_silent(world.time.now + 420 * MS)
        world.pass_ms(400)
        world.emergency(True)
        world.pass_ms(100)
    assert len(world.sent) == 1
    assert "nobody has said lately" in world.said[0]


@pytest.mark.parametrize("order", ["emergency", "cancel"])
def test_a_driver_that_repeats_itself_before_it_is_silent(order: str) -> None:
    """The robot was pulled back to where it had been said to stand: at 9.7 times its limit of velocity."""
    world, motion = a_world(Plant())
    with world.own_time():
        world.pass_ms(50)
        running = world.move(motion)
        world.pass_ms(100 + 0.6e3 * motion.duration - 400)
        world.repeat_from(world.time.now)
        world.pass_ms(100)
        world.be_silent(world.time.now + 320 * MS)
        world.pass_ms(300)
        found = stopped(world, motion, running, order, 2500)
    assert found.velocity <= VELOCITY, world.said
    assert found.acceleration <= 2.0, world.said


def test_a_slow_robot_of_a_speed_slider_is_not_taken_for_one_that_lags() -> None:
    """At its begin, 9 mrad behind, it was to be where the motion was at once: at five times its limit of velocity."""
    world, motion = a_world(Plant(speed_scaling=0.8))
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(100 + 75)
        world.emergency(True)
        ordered = world.time.now
        world.pass_ms(1000)
        found = judged(world, motion, ordered)
    assert "from where it was measured" in world.said[-1]
    assert found.acceleration <= ACCELERATION


def test_the_judge_sees_a_robot_that_jumps() -> None:
    """Else all of this would say nothing."""
    world, motion = a_world(Plant())
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(100 + 400)
        ordered = world.time.now
        world.truth()
        there = world._controller.state(ordered).position
        world._controller.hold(ordered)  # at once
        world.pass_ms(100)
        found = judged(world, motion, ordered)
    assert found.acceleration > 20.0
    assert found.rest <= 0.003
    np.testing.assert_allclose(world.truth()[1][-1], there)


def test_a_trial_is_the_same_again() -> None:
    trial = Trial("panda", "busy", "bounce", seed=5, number=2)
    assert tried(trial)[0] == tried(trial)[0]


@pytest.mark.parametrize("order", ["cancel", "emergency"])
@pytest.mark.parametrize("after", [20.0, 60.0, 100.0])
def test_a_motion_that_was_lost_moves_nothing_when_it_is_stopped(after: float, order: str) -> None:
    """The robot was taken to have begun with it, and went on by 33 mrad."""
    world, motion = a_world(Plant(loses_brakes=1))
    with world.own_time():
        world.pass_ms(50)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(world, "_take", lambda message: None)
            running = world.move(motion)
            world.pass_ms(100 + after)
        found = stopped(world, motion, running, order, 1000.0)
    assert found.travel < 1e-3, world.said


def test_a_process_that_sleeps_once_while_it_makes_a_stop_stops_hardly_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next try was to begin twice as late as the first one had taken: 0.6 s, at full speed."""
    world, motion = a_world(Plant())
    made, left = stops_in_time.quickest_stop, iter([300.0])

    def slow(*given: Any, **more: Any) -> Any:
        found = made(*given, **more)
        world.pass_ms(next(left, 0.0))
        return found

    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(100 + 300)
        monkeypatch.setattr(stops_in_time, "quickest_stop", slow)
        world.emergency(True)
        ordered = world.time.now  # it slept before
        world.pass_ms(1500.0)
        found = judged(world, motion, ordered)
    assert found.acceleration <= ACCELERATION, world.said
    assert found.rest <= 0.4


@pytest.mark.parametrize("order", ["emergency", "cancel"])
@pytest.mark.parametrize("ahead", [0.06, 0.3, 1.0, 5.0, -0.3, -2.0])
@pytest.mark.parametrize("plant", [Plant(), Plant(drive_lag=0.03)])
def test_a_robot_stops_as_ever_after_the_nodes_clock_was_set(plant: Plant, ahead: float, order: str) -> None:
    """The brake began where the motion would have been by the node's clock: 0.7 rad farther, into what it was for."""
    assert_stops_as_ever_after_a_step(plant, 50, ahead, order)


@pytest.mark.parametrize("order", ["emergency", "cancel"])
@pytest.mark.parametrize("ahead", [-2.0, -1.0, -0.6, 0.3, 3.0])
@pytest.mark.parametrize(("before", "silent"), [(20_000, 1_200), (20_000, 300), (0, 130)])
def test_silence_does_not_say_that_the_robots_clock_was_set(
    before: int, silent: int, ahead: float, order: str
) -> None:
    """A robot stepped by 0.63 rad within a ms, as nobody had heard of it for 1.1 s, by a step of long before."""
    world, motion = a_world(Plant(), 0.3)
    with world.own_time():
        world.pass_ms(200)
        if before:
            world.set_clock(round(1e9 * ahead))
            world.pass_ms(before)
        running = world.move(motion)
        world.pass_ms(700)
        if not before:
            world.set_clock(round(1e9 * ahead))
        world.be_silent(world.time.now + silent * MS)
        world.pass_ms(silent)
        assert_stops_as_ever(world, motion, running, order)


@pytest.mark.parametrize("order", ["emergency", "cancel"])
@pytest.mark.parametrize("wrong", [0.7, 3.0, -0.7, -3.0])
def test_a_robot_stops_as_ever_after_the_nodes_clock_was_set_right(wrong: float, order: str) -> None:
    """It went 0.16 rad beyond its motion."""
    assert_stops_as_ever_after_a_step(Plant(clock=round(1e9 * wrong)), 500, wrong, order)


def assert_stops_as_ever_after_a_step(plant: Plant, wait: float, ahead: float, order: str) -> None:
    """``wait``: until the motion, ms; ``ahead``: by how much the node's clock is set in it, s."""
    world, motion = a_world(plant)
    with world.own_time():
        world.pass_ms(wait)
        running = world.move(motion)
        world.pass_ms(400)
        world.set_clock(round(1e9 * ahead))
        world.pass_ms(100)
        assert_stops_as_ever(world, motion, running, order)


def assert_stops_as_ever(world: World, motion: JointTrajectory, running: MotionRun, order: str) -> None:
    found = stopped(world, motion, running, order, 2000)
    assert found.rest <= REST, (found, world.said)
    assert found.acceleration <= ACCELERATION, (found, world.said)
    assert found.velocity <= VELOCITY, (found, world.said)
    assert found.travel <= 0.5, (found, world.said)
    assert found.beyond <= BEYOND, (found, world.said)


@pytest.mark.parametrize("order", ["emergency", "cancel"])
def test_a_clock_that_is_far_behind_leads_no_robot_with_a_slider_on(order: str) -> None:
    """Its joint states counted as unread for long, so that it might have gone on as commanded: 0.76 rad."""
    world, motion = a_world(Plant(clock=-1000 * MS, speed_scaling=0.3))
    with world.own_time():
        world.pass_ms(1500)
        running = world.move(motion)
        world.pass_ms(1500)
        found = stopped(world, motion, running, order, 2000)
    assert found.rest <= REST, (found, world.said)
    assert found.travel <= 0.2, (found, world.said)


@pytest.mark.parametrize("order", ["emergency", "cancel"])
@pytest.mark.parametrize("silent", [80, 120, 200])
@pytest.mark.parametrize("slider", [0.3, 0.5])
@pytest.mark.parametrize("after", [500, 700, 1000, 1500])
def test_a_hiccup_of_joint_states_leads_no_robot_with_a_slider_on(
    after: int, slider: float, silent: int, order: str
) -> None:
    """The brake led to where the motion would have been without the slider: 0.8 rad, into what it was for."""
    world, motion = a_world(Plant(speed_scaling=slider))
    with world.own_time():
        world.pass_ms(500)
        running = world.move(motion)
        world.pass_ms(after)
        world.be_silent(world.time.now + silent * MS)
        world.pass_ms(silent)
        found = stopped(world, motion, running, order, 2000)
    assert found.rest <= REST, (found, world.said)
    assert found.travel <= 0.25, (found, world.said)
    assert found.acceleration <= ACCELERATION, (found, world.said)


@pytest.mark.parametrize("order", ["cancel", "emergency"])
def test_a_stop_in_the_time_of_its_motion_is_known_as_one(order: str) -> None:
    """What leaves it has to know how hard it is."""
    world, motion = a_world(Plant(from_desired=False))
    with world.own_time():
        world.pass_ms(50)
        running = world.move(motion, judged=True)
        world.pass_ms(ms_to_end(world) - 500 * motion.duration)
        world.cancel(running) if order == "cancel" else world.emergency(True)
        world.pass_ms(20)
        one = world.output.published[-1]
        world.pass_ms(2000)
    assert (one.stops, one.brakes, one.stamped) == (True, False, True), world.said


def joined(one: JointTrajectory, two: JointTrajectory) -> JointTrajectory:
    """Do one motion, and then another from where it ends."""
    rows = [
        np.concatenate([first, second[1:]])
        for first, second in zip(
            (one.position, one.velocity, one.acceleration),
            (two.position, two.velocity, two.acceleration),
            strict=True,
        )
    ]
    return JointTrajectory(one.joint_names, np.append(one.time, one.duration + two.time[1:]), *rows)


def back(there: JointTrajectory, share: float = 1.0) -> JointTrajectory:
    """Return the motion from where one ends to where it begins, or by another share of its way."""
    way = there.position - there.position[0]
    return JointTrajectory(
        there.joint_names,
        there.time,
        there.position[-1] - share * way,
        -share * there.velocity,
        -share * there.acceleration,
    )


def a_world_of_a_loop(plant: Plant | None = None, scaling: float = 1.0) -> tuple[World, JointTrajectory]:
    """A Panda that is about to turn its first joint by 1.5 rad, and back."""
    world, there = a_world(plant or Plant(), scaling)
    return world, joined(there, back(there))


def ms_to_end(world: World) -> float:
    """Return how long the motion that was published last goes on, ms."""
    return (world.output.published[-1].end - world.time.now) / MS


@pytest.mark.parametrize("from_desired", [False, True])
@pytest.mark.parametrize("late", [-1000.0, -1.0, 500.0, 5000.0])
@pytest.mark.parametrize("order", ["deactivate", "emergency", "cancel"])
def test_a_loop_that_waits_at_its_begin_is_stopped(order: str, late: float, from_desired: bool) -> None:
    """It seemed to be over, as it ends there, and nothing was sent: the robot did all of it when its slider went up."""
    world, motion = a_world_of_a_loop(Plant(from_desired=from_desired))
    with world.own_time():
        world.wait()
        world.pass_ms(50)
        running = world.move(motion, judged=order == "cancel")
        world.pass_ms(ms_to_end(world) + late)
        if order == "deactivate":
            world.deactivate()
        elif order == "emergency":
            world.emergency(True)
        else:
            world.cancel(running)
        world.pass_ms(1000)
        world.go_on()
        world.pass_ms(1e3 * motion.duration + 1000)
        told = world.truth()[1]
    assert np.abs(told - motion.position[0]).max() < 1e-3, world.said


@pytest.mark.parametrize("from_desired", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_a_loop_that_nobody_has_seen_to_begin_is_no_success(waits: bool, from_desired: bool) -> None:
    world, motion = a_world_of_a_loop(Plant(from_desired=from_desired))
    with world.own_time():
        if waits:
            world.wait()
        world.pass_ms(50)
        world.move(motion, judged=True)
        world.pass_ms(100 + 1e3 * motion.duration + 3000)
        [ended] = world.ended
        assert ended.code == (Status.CONTROL_FAILED if waits else Status.SUCCESS), ended
        if waits:
            world.go_on()
        world.pass_ms(1e3 * motion.duration + 1000)
        told = world.truth()[1]
    assert np.abs(told - motion.position[0]).max() < 1e-3 if waits else len(world.sent) == 1, world.said


def test_a_loop_that_is_done_is_not_stopped() -> None:
    """It was told to stay where it stood, and the log said that it was elsewhere."""
    world, motion = a_world_of_a_loop()
    with world.own_time():
        world.pass_ms(50)
        world.move(motion, judged=True)
        world.pass_ms(100 + 1e3 * motion.duration + 3000)
        world.emergency(True)
        world.pass_ms(1000)
    assert len(world.sent) == 1
    assert "no motion that this node has published is running" in world.said[-1]


@pytest.mark.parametrize("judged", [False, True])
def test_a_motion_that_comes_twice_to_its_end_is_not_over_the_first_time(judged: bool) -> None:
    """At half its pace the robot was there when it should have been over, and did the rest unwatched."""
    world, once = a_world_of_a_loop(Plant(speed_scaling=0.5))
    motion = joined(once, once)
    with world.own_time():
        world.pass_ms(50)
        world.move(motion, judged)
        world.pass_ms(ms_to_end(world) + 300)
        assert not world.ended
        world.pass_ms(1e3 * motion.duration + 3000)
        [ended] = world.ended
        told = world.truth()[1]
    assert ended.code == (Status.TIMED_OUT if judged else Status.SUCCESS), ended
    assert len(world.sent) == 1 + judged
    assert np.abs(told[-1000:] - told[-1]).max() < 1e-3


def test_a_motion_that_comes_twice_to_its_end_is_done() -> None:
    world, once = a_world_of_a_loop()
    motion = joined(once, once)
    with world.own_time():
        world.pass_ms(50)
        world.move(motion, judged=True)
        world.pass_ms(ms_to_end(world) + 1000)
    [ended] = world.ended
    assert ended.code == Status.SUCCESS, ended
    assert len(world.sent) == 1


def test_the_stop_of_a_marker_that_is_lost_is_published_again() -> None:
    """Nobody looked whether the robot stood, as motions are allowed again at once."""
    world, motion = a_world(Plant(speed_scaling=0.5, loses_brakes=1))
    with world.own_time():
        world.pass_ms(50)
        world.move(motion, judged=True)
        world.pass_ms(600)
        world.stop_by_marker()
        world.pass_ms(1e3 * motion.duration + 2000)
        told = world.truth()[1]
    assert np.abs(told[-1] - motion.position[-1]).max() > 0.3, world.said
    assert any("published again" in text for text in world.said)


def test_what_comes_after_the_stop_of_a_marker_is_not_braked() -> None:
    world, motion = a_world(Plant())
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(300)
        world.stop_by_marker()
        world.pass_ms(1000)
        onward = world.onward(np.random.default_rng(1))
        world.move(onward, judged=True)
        world.pass_ms(1e3 * onward.duration + 3000)
        told = world.truth()[1]
    assert world.ended[-1].code == Status.SUCCESS, world.ended
    assert np.abs(told[-1] - onward.position[-1]).max() < 1e-3
    assert len(world.sent) == 3


def three_times(there: JointTrajectory) -> JointTrajectory:
    """There and back, three times."""
    once = joined(there, back(there))
    return joined(joined(once, once), once)


def rests_after_a_pass(there: JointTrajectory) -> JointTrajectory:
    """Passes its end, turns, rests there, and does all that once more."""
    half = back(there, 0.5)
    once = joined(joined(there, half), back(half))
    return joined(once, half)


@pytest.mark.parametrize("from_desired", [False, True])
@pytest.mark.parametrize("order", ["", "cancel", "unjudged"])
@pytest.mark.parametrize(("made", "after"), [(three_times, 2), (three_times, 4), (rests_after_a_pass, 2)])
def test_a_motion_that_is_held_where_it_ends_before_its_end_is_no_success(
    made: Callable[[JointTrajectory], JointTrajectory], after: int, order: str, from_desired: bool
) -> None:
    """It was said to be done, and the robot did the rest of it when its slider went up."""
    world, there = a_world(Plant(from_desired=from_desired))
    motion = made(there)
    with world.own_time():
        world.pass_ms(50)
        running = world.move(motion, order != "unjudged")
        world.pass_ms(ms_to_end(world) - 1e3 * (motion.duration - after * there.duration))
        world.wait()
        if order == "cancel":
            world.pass_ms(ms_to_end(world) + 200)
            world.cancel(running)
        world.pass_ms(ms_to_end(world) + 8000)  # it might be slow
        world.go_on()
        world.pass_ms(1e3 * motion.duration + 2000)
        told = world.truth()[1]
    [ended] = world.ended
    assert ended.code == (Status.PREEMPTED if order == "cancel" else Status.CONTROL_FAILED), ended
    assert np.abs(told[-3000:] - motion.position[-1]).max() < 0.02, world.said


@pytest.mark.parametrize(
    "plant",
    [
        Plant(drive_lag=0.03, from_desired=False),
        Plant(drive_lag=0.07),
        Plant(drive_lag=0.03, period=20 * MS),
        Plant(period=100 * MS),
        Plant(velocities=False),
        Plant(noise=2e-4, velocity_noise=1e-3),
        Plant(speed_scaling=0.95),
    ],
)
@pytest.mark.parametrize("made", [three_times, rests_after_a_pass])
def test_a_motion_that_comes_more_than_once_to_its_end_is_done(
    made: Callable[[JointTrajectory], JointTrajectory], plant: Plant
) -> None:
    world, there = a_world(plant)
    with world.own_time():
        world.pass_ms(50)
        world.move(made(there), judged=True)
        world.pass_ms(ms_to_end(world) + 3000)
        [ended] = world.ended
    assert ended.code == Status.SUCCESS, ended
    assert len(world.sent) == 1


@pytest.mark.parametrize("slider", [0.3, 0.1])
def test_a_slow_robot_that_pauses_where_its_motion_does_is_let_go_on(slider: float) -> None:
    """It seemed to be left there, and was told to stay."""
    world, there = a_world(Plant(speed_scaling=slider), 0.3)
    motion = joined(there, back(there, 0.5))
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(1e3 * motion.duration / slider + 3000)
        told = world.truth()[1]
    [ended] = world.ended
    assert ended.code == Status.SUCCESS, ended
    assert len(world.sent) == 1
    assert told[-1] == pytest.approx(motion.position[-1], abs=1e-3)


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("before", [100.0, 4000.0])
@pytest.mark.parametrize("after", [150.0, 5000.0])
def test_a_robot_that_pauses_where_its_motion_ends_is_stopped(
    after: float, before: float, judged: bool
) -> None:
    """It seemed to be over, and the robot did the rest of it under the stop."""
    world, once = a_world_of_a_loop(Plant(speed_scaling=0.5))
    motion = joined(once, once)
    with world.own_time():
        world.pass_ms(50)
        world.move(motion, judged)
        world.pass_ms(ms_to_end(world) + 100)
        world.wait()
        world.pass_ms(before)
        world.emergency(True)
        world.pass_ms(after)
        world.go_on()
        world.pass_ms(1e3 * motion.duration + 2000)
        told = world.truth()[1]
    assert np.abs(told[-3000:] - motion.position[-1]).max() < 0.02, world.said


def test_others_give_way_to_a_stop() -> None:
    world, motion = a_world(Plant())
    seen: list[bool] = []
    world.stop._announce = lambda stopped, sentence: seen.append(bool(pauses._urgent))
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        world.pass_ms(200)
        world.emergency(True)
        world.pass_ms(2000)
    assert seen == [True]
    assert not pauses._urgent


def a_world_of_a_finger(plant: Plant | None = None, opens: bool = False) -> tuple[World, JointTrajectory]:
    """A finger of a Panda that is about to close, or to open."""
    finger, begin = ("panda_finger_joint1",), np.array([0.0 if opens else 0.04])
    motion = point_to_point(finger, begin, 0.04 - begin, np.array([0.1]), np.array([0.5]), np.array([5.0]))
    return World(plant or Plant(), PANDA, finger, begin, [0]), motion


def waits(world: World, motion: JointTrajectory, judged: bool = True) -> None:
    """Have a controller wait with a motion from its begin until long after it."""
    world.wait()
    world.pass_ms(50)
    world.move(motion, judged)
    world.pass_ms(1e3 * motion.duration + 3000)


@pytest.mark.parametrize("judged", [False, True])
def test_fingers_that_have_not_begun_are_stopped(judged: bool) -> None:
    """They seemed to hold something, and closed under the stop."""
    world, motion = a_world_of_a_finger()
    with world.own_time():
        waits(world, motion, judged)
        world.emergency(True)
        world.pass_ms(3000)
        world.go_on()
        world.pass_ms(1e3 * motion.duration + 1000)
        told = world.truth()[1]
    assert np.abs(told - motion.position[0]).max() < 1e-3, world.said


@pytest.mark.parametrize("opens", [False, True])
def test_fingers_that_do_not_begin_have_failed(opens: bool) -> None:
    """Nobody does it: that was a success. They may hold something already, which a brake would loosen."""
    world, motion = a_world_of_a_finger(opens=opens)
    with world.own_time():
        waits(world, motion)
    [ended] = world.ended
    assert ended.code == Status.CONTROL_FAILED
    assert "panda_finger_joint1 of an end effector has not moved since the motion was sent" in ended.message
    assert len(world.sent) == 1


def a_world_of_arm_and_finger() -> tuple[World, JointTrajectory]:
    """A Panda that is about to turn its first joint by 1.5 rad and back, while a finger closes."""
    joints, way = (*ARM, "panda_finger_joint1"), np.zeros(len(ARM) + 1)
    begin = PANDA.default_q[[PANDA.variable_index[name] for name in joints]]
    begin[-1], way[0] = 0.04, 1.5
    end = begin + way
    end[-1] = 0.0
    limits = [
        limit[[PANDA.variable_index[name] for name in joints]]
        for limit in (PANDA.limits.velocity, PANDA.limits.acceleration, PANDA.limits.jerk)
    ]
    there = point_to_point(joints, begin, end, *limits)
    again = end - way
    return World(Plant(), PANDA, joints, begin, [0]), joined(
        there, point_to_point(joints, end, again, *limits)
    )


def test_an_arm_does_not_go_on_unwatched_as_fingers_have_not_begun() -> None:
    """The arm ends where it begins, and waits, too."""
    world, motion = a_world_of_arm_and_finger()
    with world.own_time():
        waits(world, motion)
        [ended] = world.ended
        assert ended.code == Status.CONTROL_FAILED
        assert "has not moved since the motion was sent" in ended.message
        assert len(world.sent) == 2
        world.go_on()
        world.pass_ms(1e3 * motion.duration + 1000)
        told = world.truth()[1]
    assert np.abs(told[:, :-1] - motion.position[0, :-1]).max() < 0.02, world.said


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("held", [0.02, 0.036, 0.0375])
@pytest.mark.parametrize("judged", [False, True])
def test_fingers_that_hold_something_are_not_loosened(judged: bool, held: float, noise: float) -> None:
    """An emergency stop long after their motion told them to stay where they were measured."""
    world, motion = a_world_of_a_finger(Plant(velocity_noise=noise))
    with world.own_time():
        world.pass_ms(50)
        world.move(motion, judged)
        time = np.interp(-held, -motion.position[:, 0], motion.time)
        world.pass_ms(ms_to_end(world) - 1e3 * (motion.duration - time))
        world.wait()
        world.pass_ms(1e3 * motion.duration + 3000)
        [ended] = world.ended
        assert ended.code == Status.SUCCESS, ended
        world.emergency(True)
        world.pass_ms(1000)
    assert len(world.sent) == 1, world.said


@pytest.mark.parametrize("judged", [False, True])
def test_a_robot_that_waits_on_its_way_does_not_go_on_unwatched(judged: bool) -> None:
    """It waited for longer than its motion was looked at, and went on into what had come meanwhile."""
    world, motion = a_world(Plant())
    with world.own_time():
        world.pass_ms(50)
        world.move(motion, judged)
        world.pass_ms(100 + 500)
        world.wait()
        world.pass_ms(1e3 * motion.duration + 3000)
        before = world.truth()[1][-1]
        [ended] = world.ended
        assert ended.code == Status.CONTROL_FAILED
        world.go_on()
        world.pass_ms(1e3 * motion.duration)
        told = world.truth()[1][-1]
    assert np.abs(motion.position[-1] - before).max() > 0.1
    assert told == pytest.approx(before, abs=0.02)


@pytest.mark.parametrize("judged", [False, True])
def test_a_robot_that_does_nothing_is_held_only_where_somebody_waits_for_it(judged: bool) -> None:
    """Else somebody may look at what is published, or have it done later."""
    world, motion = a_world(Plant())
    with world.own_time():
        world.wait()
        world.pass_ms(50)
        world.move(motion, judged)
        world.pass_ms(1e3 * motion.duration + 3000)
    assert len(world.sent) == 1 + judged


def test_a_driver_that_leaves_out_whole_turns_has_arrived() -> None:
    """The joint was elsewhere by a turn: the motion had failed."""
    robot = robot_from_urdf(
        '<robot name="wheel"><link name="base"/><link name="l"/><joint name="j" type="continuous"><parent link="base"/>'
        '<child link="l"/><axis xyz="0 0 1"/><limit velocity="2" effort="1"/></joint></robot>'
    )
    begin, limits = np.array([2.0]), (np.array([2.0]), np.array([2.0]), np.array([20.0]))
    world = World(Plant(wraps=True), robot, ("j",), begin, [0])
    with world.own_time():
        world.pass_ms(50)
        motion = point_to_point(("j",), begin, begin + 2.0, *limits)
        world.move(motion, judged=True)
        world.pass_ms(100 + 1e3 * motion.duration + 3000)
    [ended] = world.ended
    assert ended.code == Status.SUCCESS, ended
    assert len(world.sent) == 1


def test_a_robot_that_hangs_down_a_little_gets_no_brake() -> None:
    """It would sink by as much again."""
    world, motion = a_world(Plant())
    with world.own_time():
        world.pass_ms(50)
        world.move(motion)
        begin = (world.output.published[-1].start - world.time.now) / MS
        left = np.abs(motion.position - motion.position[-1]).max(axis=1)
        world.pass_ms(begin + 1e3 * np.interp(-0.035, -left, motion.time))
        world.wait()
        short = np.abs(motion.position[-1] - world.truth()[1][-1]).max()
        assert 0.011 < short < 0.05
        world.pass_ms(3000)
    assert len(world.sent) == 1
    assert [ended.code for ended in world.ended] == [Status.SUCCESS]
