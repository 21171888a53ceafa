"""Servo as a whole, period by period: limits, collisions, rest at the end of every motion, whatever is wanted."""

import time

import numpy as np
import pytest
from support.arm_scenes import scene_of
from support.moving_base import base_urdf
from support.servo_runs import STARTS, Run, robot_of, setup_of
from support.thorough import times

from kinopt_ros.conformance.robots import continuous_and_prismatic
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.geometry.shapes import Box
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import pose, pose_error, so3_exp
from kinopt_ros.planning.servo import session
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.follow import Target, velocity_to_follow
from kinopt_ros.planning.servo.session import NotFollowingError
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.planning.servo.step import Step, Wish
from kinopt_ros.planning.servo.stop import LEAD
from kinopt_ros.planning.servo.velocity import velocity_for_twist
from kinopt_ros.robot.model import JointType
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.verification.collision import check_collisions

pytest.importorskip("coal")
CLUTTER = scene_of(
    (Box(0.2, 0.2, 0.4), (0.6, 0.3, 0.2)),
    (Box(0.2, 0.2, 0.4), (0.5, -0.4, 0.2)),
    (Box(1.0, 1.0, 0.1), (0.5, 0.0, 1.0)),
)
CLEARANCE = 0.01
TOLERANCE = (1e-4, 1e-3)


def twist_wish(setup: ServoSetup, twist: object) -> Wish:
    return lambda state, q, time: velocity_for_twist(setup, state, q, np.array(twist, dtype=np.float64))


def target_wish(setup: ServoSetup, target: Target, gain: float = 5.0) -> Wish:
    return lambda state, q, time: velocity_to_follow(setup, state, q, target, time, gain, TOLERANCE)


def tip_of(setup: ServoSetup, q: np.ndarray) -> np.ndarray:
    whole = setup.whole(setup.robot.default_q, q)
    T_root_base, T_root_tip = forward_kinematics(setup.robot, whole, links=(setup.base, setup.tip))
    return np.linalg.inv(T_root_base) @ T_root_tip


def assert_sound(setup: ServoSetup, sent: list[Commanded]) -> None:
    """Each motion by itself: inside all limits at every millisecond, at rest at the end, no step to the next one."""
    for number, motion in enumerate(sent):
        trajectory = motion.trajectory
        times = np.append(np.arange(0.0, trajectory.duration, 1e-3), trajectory.duration)
        q, v, a = evaluate(trajectory, times)
        assert (q >= setup.lower - 1e-7).all()
        assert (q <= setup.upper + 1e-7).all()
        assert (np.abs(v) <= setup.limits.velocity * (1 + 1e-6)).all()
        assert (np.abs(a) <= setup.limits.acceleration * (1 + 1e-6)).all()
        assert not trajectory.velocity[-1].any()
        assert not trajectory.acceleration[-1].any()
        if number == 0:
            continue
        before = sent[number - 1]
        arrived = motion.start + setup.period // 5  # a controller that gets it then sees no step
        old, new = before.at(arrived), motion.at(arrived)
        np.testing.assert_allclose(new.position, old.position, atol=1e-9)
        np.testing.assert_allclose(new.velocity, old.velocity, atol=1e-7)
        np.testing.assert_allclose(new.acceleration, old.acceleration, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "scene", "period", "scaling"),
    [("panda", CLUTTER, 0.01, 1.0), ("ur5", CLUTTER, 0.02, 1.0)],
)
def test_seconds_of_random_twists(name: str, scene: Scene, period: float, scaling: float) -> None:
    setup = setup_of(name, scene, scaling, period=period, clearance=CLEARANCE)
    run = Run(setup, STARTS[name])
    rng = np.random.default_rng(4)
    twist = np.zeros(6)
    for k in range(round(times(4, 10) / period)):
        if k % round(0.5 / period) == 0:
            twist = np.concatenate([rng.uniform(-0.4, 0.4, 3), rng.uniform(-1.0, 1.0, 3)])
        late = int(rng.integers(0, 2 * setup.period)) if k % 3 == 0 else 0
        run.period(twist_wish(setup, twist), late)
    assert len(run.sent) > 0.4 * len(run.steps)
    assert_sound(setup, run.sent)
    went = run.positions()
    assert np.ptp(went, axis=0).max() > 0.5
    assert any(step.part < 1.0 for step in run.steps)  # it has met something
    ends = [motion.trajectory.position[-1] for motion in run.sent[::10]]
    looked_at = np.array([setup.whole(run.q, q) for q in (*went[::20], *ends)])
    report = check_collisions(setup.robot, scene, looked_at, CLEARANCE - 1e-5, contacts=False)
    assert report.free.all()


def test_a_stopped_stream_ends_in_the_brake_of_the_last_motion() -> None:
    setup = setup_of("panda", EMPTY_SCENE)
    run = Run(setup, STARTS["panda"])
    for _ in range(25):
        run.period(twist_wish(setup, [0.2, 0, 0, 0, 0, 0]))
    moving = run.session.commanded.at(run.now).velocity
    assert np.abs(moving).max() > 0.1
    sent = len(run.sent)
    end = run.session.commanded.end
    assert end - run.now < 0.5e9
    while run.now < end:
        assert run.period(None).motion is None
    assert len(run.sent) == sent
    assert run.session.commanded.at(run.now).at_rest


def test_a_twist_moves_the_tip_by_it() -> None:
    setup = setup_of("panda", EMPTY_SCENE)
    run = Run(setup, STARTS["panda"])
    twist = [0.05, -0.03, 0.02, 0.0, 0.1, 0.2]
    for _ in range(50):
        step = run.period(twist_wish(setup, twist))
        assert step.part == 1.0
    (begin, first), (end, last) = run.was[-200], run.was[-1]
    seconds = (end - begin) / 1e9
    A, B = tip_of(setup, first.position), tip_of(setup, last.position)
    np.testing.assert_allclose((B - A)[:3, 3] / seconds, twist[:3], atol=2e-3)
    turned = A[:3, :3].T @ so3_exp(seconds * np.array(twist[3:])).T @ B[:3, :3]
    np.testing.assert_allclose(A[:3, :3] @ turned @ A[:3, :3].T, np.eye(3), atol=5e-3)


@pytest.mark.parametrize("period", [0.01, 0.02])
def test_a_target_on_a_circle_is_followed(period: float) -> None:
    """r = 0.1 m at 0.25 Hz; targets come at the rate of the periods, at times that vary by some milliseconds."""
    setup = setup_of("panda", EMPTY_SCENE, period=period)
    run = Run(setup, STARTS["panda"])
    T_start = tip_of(setup, np.array(STARTS["panda"]))
    begin = run.now
    rng = np.random.default_rng(1)

    def on_circle(time: int) -> np.ndarray:
        angle = 2.0 * np.pi * 0.25 * (time - begin) / 1e9
        return T_start @ pose(np.eye(3), np.array([0.1 * np.sin(angle), 0.1 * (np.cos(angle) - 1.0), 0.0]))

    target = Target(on_circle(run.now), run.now)
    for _ in range(round(5.0 / period)):
        stamp = run.now - int(rng.integers(0, 4_000_000))
        target = target.followed_by(on_circle(stamp), stamp)
        run.period(target_wish(setup, target))
    assert_sound(setup, run.sent[:60])
    kept = [(time, state) for time, state in run.was[::5] if time - begin > 1e9]
    errors = [np.linalg.norm((tip_of(setup, s.position) - on_circle(t))[:3, 3]) for t, s in kept]
    rms = float(np.sqrt(np.mean(np.square(errors))))
    print(f"RMS {1e3 * rms:.2f} mm, worst {1e3 * max(errors):.2f} mm")
    assert rms <= 5e-3


def until_reached(run: Run, wish: Wish, periods: int) -> None:
    """Follow a target until it is reached, within so many periods."""
    for _ in range(periods):
        step = run.period(wish)
        assert step.wanted is not None
        if step.wanted.reached:
            break
    assert step.wanted.reached


@pytest.mark.parametrize("scaling", [0.1, 1.0])
def test_a_target_that_stands_is_reached_and_not_passed(scaling: float) -> None:
    setup = setup_of("panda", EMPTY_SCENE, scaling)
    run = Run(setup, STARTS["panda"])
    T_start = tip_of(setup, np.array(STARTS["panda"]))
    goal = pose(so3_exp(np.array([0.0, 0.2, 0.3])) @ T_start[:3, :3], T_start[:3, 3] + [0.05, 0.15, -0.1])
    wish = target_wish(setup, Target(goal, run.now))
    until_reached(run, wish, 800)
    while run.now < run.session.commanded.end:
        run.period(None)
    position_error, orientation_error = pose_error(
        tip_of(setup, run.session.commanded.at(run.now).position), goal
    )
    assert position_error < 2e-4
    assert orientation_error < 2e-3
    straight = goal[:3, 3] - T_start[:3, 3]
    tips = np.array([tip_of(setup, q)[:3, 3] for q in run.positions()[::20]])
    along = (tips - T_start[:3, 3]) @ straight / (straight @ straight)
    assert along.max() < 1.01


def test_a_target_that_the_robot_only_passes_by_is_not_reached() -> None:
    setup = setup_of("panda", None, 0.3)
    run = Run(setup, STARTS["panda"])
    for _ in range(60):
        run.period(twist_wish(setup, [0, 0.2, 0, 0, 0, 0]))
    motion = run.session.commanded
    goal = tip_of(setup, motion.at(motion.turn).position)  # right where the next motion begins
    wish = target_wish(setup, Target(goal, run.now))
    until_reached(run, wish, 200)
    position_error, orientation_error = pose_error(
        tip_of(setup, run.session.commanded.trajectory.position[-1]), goal
    )
    assert position_error <= 1e-4
    assert orientation_error <= 1e-3
    assert_sound(setup, run.sent)


def test_a_joint_stops_before_its_limit_and_the_others_go_on() -> None:
    setup = setup_of("panda", EMPTY_SCENE, limit_margin=0.05)
    run = Run(setup, (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 2.5))
    blocked: set[str] = set()
    for _ in range(150):
        step = run.period(twist_wish(setup, [0, 0, 0, 0, 0, -1.0]))  # the flange looks down: joint 7 goes up
        assert step.wanted is not None
        blocked |= set(step.wanted.blocked)
    assert "panda_joint7" in blocked
    assert_sound(setup, run.sent)
    last = run.session.commanded.at(run.now).position[6]
    assert setup.upper[6] - 0.05 < last <= setup.upper[6] + 1e-7
    assert setup.upper[6] == pytest.approx(setup.robot.limits.upper[6] - 0.05)


def test_a_joint_within_its_margin_comes_out_of_it() -> None:
    setup = setup_of("panda", EMPTY_SCENE, limit_margin=0.05)
    upper = setup.robot.limits.upper[6]
    run = Run(setup, (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, upper - 0.01))
    for _ in range(10):
        run.period(twist_wish(setup, [0, 0, 0, 0, 0, -0.5]))
    assert (run.positions()[:, 6] <= upper - 0.01 + 1e-9).all()
    for _ in range(40):
        run.period(twist_wish(setup, [0, 0, 0, 0, 0, 0.5]))
    assert run.positions()[-1, 6] < upper - 0.05


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_a_stretched_arm_stays_calm(name: str) -> None:
    stretched = {
        "panda": (0.0, 0.0, 0.0, -0.2, 0.0, 1.9, 0.785),
        "ur5": (0.0, -1.2, 0.05, -1.9, -1.5, 0.0),
    }[name]
    setup = setup_of(name, None)
    run = Run(setup, stretched)
    seen = False
    for twist in ([0, 0, 0.3, 0, 0, 0], [0.3, 0, 0.3, 0, 0, 0], [-0.3, 0, 0, 0, 0, 0]):
        for _ in range(40):
            step = run.period(twist_wish(setup, twist))
            assert step.wanted is not None
            seen = seen or step.wanted.near_singular
    assert seen
    assert np.isfinite(run.positions()).all()
    assert_sound(setup, run.sent)


def test_where_nothing_is_free_nothing_is_sent() -> None:
    walls = scene_of((Box(0.5, 0.5, 0.5), (0.3, 0.0, 0.5)))
    run = Run(setup_of("panda", walls), STARTS["panda"])
    step = run.period(twist_wish(run.setup, [0.1, 0, 0, 0, 0, 0]))
    assert step.motion is None
    assert step.status is Status.START_STATE_IN_COLLISION
    assert "object 0" in step.sentence
    assert not run.sent


def test_a_twist_of_nothing_sends_nothing() -> None:
    run = Run(setup_of("panda", EMPTY_SCENE), STARTS["panda"])
    step = run.period(twist_wish(run.setup, np.zeros(6)))
    assert step.motion is None
    assert step.status is Status.SUCCESS


def test_a_twist_that_no_joint_can_make_is_said_to_be_none() -> None:
    robot = robot_of("panda")
    setup = servo_setup(robot, "panda_link0", "panda_link8", ["panda_joint7"])
    run = Run(setup, (0.785,))
    step = run.period(twist_wish(setup, [0, 0, 0.1, 0, 0, 0]))
    assert step.motion is None
    assert step.status is Status.SERVO_INFEASIBLE
    assert "has no joints for it" in step.sentence
    # About its own axis it can.
    axis = tip_of(setup, np.array([0.785]))[:3, 2]
    step = run.period(twist_wish(setup, [0, 0, 0, *(0.3 * axis)]))
    assert step.motion is not None
    assert (step.status, step.sentence) == (Status.SUCCESS, "")


def test_a_twist_that_a_limit_is_in_the_way_of_names_the_joint() -> None:
    setup = servo_setup(robot_of("panda"), "panda_link0", "panda_link8", ["panda_joint7"], limit_margin=0.05)
    run = Run(setup, (setup.upper[0],))
    axis = tip_of(setup, setup.upper)[:3, 2]
    step = run.period(twist_wish(setup, [0, 0, 0, *(0.3 * axis)]))
    assert step.motion is None
    assert step.status is Status.SERVO_INFEASIBLE
    assert "panda_joint7" in step.sentence


def a_run_into_a_wall() -> tuple[Run, Wish]:
    """Servo leads a Panda forwards, and a wall has just appeared ahead."""
    setup = setup_of("panda", EMPTY_SCENE, 0.2)
    run = Run(setup, STARTS["panda"])
    wish = twist_wish(setup, [0.3, 0, 0, 0, 0, 0])
    for _ in range(100):
        run.period(wish)
    ahead = tip_of(setup, run.session.commanded.at(run.now).position)[:3, 3] + [0.11, 0.0, 0.0]
    run.setup = setup_of("panda", scene_of((Box(0.1, 0.6, 0.6), tuple(ahead))), 0.2)
    return run, twist_wish(run.setup, [0.3, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("lead", [LEAD, 4 * LEAD])
def test_a_brake_begins_when_it_can_be_there(lead: int) -> None:
    run, wish = a_run_into_a_wall()
    q = run.session.commanded.at(run.now).position
    whole = run.setup.whole(run.setup.robot.default_q, q)
    step = run.session.advance(run.setup, run.now, whole, wish, takes=0, lead=lead)
    assert step.brakes
    assert run.now + lead <= step.commanded.leave < run.now + 2 * lead


def test_an_obstacle_that_appears_in_the_way_makes_the_robot_brake() -> None:
    run, wish = a_run_into_a_wall()
    usual = run.session.commanded.end
    step = run.period(wish)
    assert step.status is Status.ENVIRONMENT_CHANGED
    assert "object 0" in step.sentence
    assert step.motion is not None
    assert step.commanded.end < usual
    assert run.session.commanded.trajectory.velocity[-1].max() == 0.0
    own = run.setup.robot.limits.acceleration[:7]
    times = np.arange(0.0, step.commanded.trajectory.duration, 1e-3)
    assert (np.abs(evaluate(step.commanded.trajectory, times)[2]) <= own * (1 + 1e-6)).all()


def test_a_brake_that_cannot_be_made_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scene does not count as looked at before there is one."""
    run, wish = a_run_into_a_wall()
    with monkeypatch.context() as patched:
        patched.setattr(session, "_wrong", lambda motion: "it breaks a limit")
        step = run.period(wish)
        assert step.motion is None
        assert step.status is Status.ENVIRONMENT_CHANGED
        assert step.sentence.endswith("it breaks a limit")
    assert run.period(wish).brakes
    assert not run.period(wish).brakes


def test_a_robot_that_does_not_follow_is_noticed() -> None:
    setup = setup_of("panda", EMPTY_SCENE)
    run = Run(setup, STARTS["panda"])
    for _ in range(30):
        run.period(twist_wish(setup, [0.2, 0, 0, 0, 0, 0]))
        behind = run.session.commanded.at(run.now - 80_000_000).position  # as late as that is usual
        run.session.check_follows(setup, run.now, behind, 0.01, 0.01)
    with pytest.raises(NotFollowingError, match="panda_joint"):
        run.session.check_follows(setup, run.now, np.array(STARTS["panda"]), 0.01, 0.01)


def test_whole_turns_of_continuous_joints_are_no_distance() -> None:
    robot = continuous_and_prismatic()
    joints = robot.active_joints
    setup = servo_setup(robot, "l0", "l7", joints)
    run = Run(setup, robot.default_q[setup.variables])
    endless = np.array([robot.joint(name).type is JointType.CONTINUOUS for name in joints])
    assert endless.any()
    assert not endless.all()
    there = run.session.commanded.at(run.now).position
    turned = there + np.where(endless, 2.0 * np.pi, 0.0)
    run.session.check_follows(setup, run.now, turned - 1e-3, 0.01, 0.01)
    other = there + np.where(endless, 0.0, 2.0 * np.pi)
    with pytest.raises(NotFollowingError, match=r"6\.28"):
        run.session.check_follows(setup, run.now, other, 0.01, 0.01)


def test_one_jump_of_a_target_is_no_velocity() -> None:
    here, there = np.eye(4), pose(np.eye(3), np.array([0.5, 0.0, 0.0]))
    target = Target(here, 0).followed_by(here, 20_000_000).followed_by(there, 40_000_000)
    assert not target.at(60_000_000)[1].any()
    target = target.followed_by(there, 60_000_000)
    assert not target.at(80_000_000)[1].any()
    np.testing.assert_allclose(target.at(80_000_000)[0], there)


def test_a_steady_stream_is_taken_on_and_then_stands() -> None:
    target = Target(np.eye(4), 0)
    for k in range(1, 5):
        target = target.followed_by(pose(np.eye(3), np.array([0.01 * k, 0.0, 0.0])), k * 20_000_000)
    at_once = target.followed_by(target.T_base_target, target.time)  # no time between them
    np.testing.assert_array_equal(at_once.at(90_000_000)[1], target.at(90_000_000)[1])
    T, twist = target.at(90_000_000)
    assert T[0, 3] == pytest.approx(0.045)
    assert twist[0] == pytest.approx(0.5)
    T, twist = target.at(10**12)
    assert T[0, 3] == pytest.approx(0.04 + 0.5 * 0.14)
    assert not twist.any()


def test_what_is_not_allowed_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="period"):
        setup_of("panda", None, period=0.0)
    with pytest.raises(InvalidRequestError, match="limit_margin"):
        setup_of("panda", None, limit_margin=-1.0)
    with pytest.raises(InvalidRequestError, match="velocity_scaling"):
        setup_of("panda", None, scaling=2.0)


@pytest.mark.parametrize("scene", [None, CLUTTER], ids=["limits only", "with a scene"])
def test_a_step_costs_much_less_than_a_period(scene: Scene | None) -> None:
    """Time of this thread, as others may be at work; printed, and far from the limit even on slow machines."""
    run = Run(setup_of("panda", scene, 0.3, clearance=CLEARANCE), STARTS["panda"])
    wish = twist_wish(run.setup, [0.0, 0.05, 0.05, 0.0, 0.0, 0.1])
    took = []
    for _ in range(60):
        begin = time.thread_time()
        step = run.session.advance(run.setup, run.now, run.q, wish)
        took.append(time.thread_time() - begin)
        assert step.motion is not None
        run.session.accept(run.setup, step)
        run.now += run.setup.period
    median = float(np.median(took))
    print(f"a step of the Panda, {'limits only' if scene is None else 'with a scene'}: {1e3 * median:.2f} ms")
    assert median < 0.1


def test_steps_are_functions_of_state() -> None:
    """Equal states lead to equal motions."""
    steps: list[Step] = []
    for _ in range(2):
        run = Run(setup_of("panda", EMPTY_SCENE), STARTS["panda"])
        run.period(twist_wish(run.setup, [0.1, 0, 0, 0, 0, 0]))
        steps.append(run.period(twist_wish(run.setup, [0.1, 0, 0, 0, 0, 0])))
    np.testing.assert_array_equal(
        steps[0].commanded.trajectory.position, steps[1].commanded.trajectory.position
    )
    assert robot_of("panda") is run.setup.robot


def test_a_base_that_drives_takes_part() -> None:
    """Its three variables keep their limits, and the tip moves as it shall, beyond what the arm reaches."""
    robot = robot_from_urdf(base_urdf("planar"))
    prepare_collisions(robot)
    joints = ("drive/x", "drive/y", "drive/theta", "shoulder", "elbow", "wrist")
    full = {"velocity_scaling": 1.0, "acceleration_scaling": 1.0}
    setup = servo_setup(robot, "map", "tool", joints, scene=EMPTY_SCENE, **full)
    run = Run(setup, (0.0, 0.0, 3.0, 0.6, 0.6, 0.1))
    T_start = tip_of(setup, np.array(run.start))
    twist = [0.3, -0.2, 0.0, 0.0, 0.0, 0.4]
    for _ in range(500):
        run.period(twist_wish(setup, twist))
    assert_sound(setup, run.sent)
    assert run.positions()[-1, 2] > np.pi  # its angle goes on beyond half a turn
    moved = tip_of(setup, run.positions()[-1])[:3, 3] - T_start[:3, 3]
    seconds = 500 * setup.period / 1e9
    np.testing.assert_allclose(moved, seconds * np.array(twist[:3]), atol=0.15)


@pytest.mark.parametrize("way", [0, 8_000_000, 30_000_000, 90_000_000])
def test_motions_leave_one_another_after_they_have_come(way: int) -> None:
    """On a way of 30 ms they came 10 ms after that: joints stepped in three periods of four."""
    run = Run(setup_of("panda"), STARTS["panda"], way=way)
    left, right = (twist_wish(run.setup, [0.0, side, 0.0, 0.0, 0.0, 0.0]) for side in (0.3, -0.3))
    made = []
    for k in range(60):
        made.append(run.now)
        run.period(left if k // 10 % 2 else right)
    assert len(run.sent) == len(made)
    for motion, time_made in zip(run.sent, made, strict=True):
        assert motion.leave > time_made + way
    for before, motion, time_made in zip(run.sent, run.sent[1:], made[1:], strict=False):
        old, new = before.at(time_made + way), motion.at(time_made + way)
        np.testing.assert_allclose(new.position, old.position, atol=1e-9)
        np.testing.assert_allclose(new.velocity, old.velocity, atol=1e-7)
