"""The judge of motions sees what is wrong with them, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
pytest.importorskip("coal")
from kinopt_ros.bench.collision.scenes import _random_rotation
from kinopt_ros.bench.trajectory.interpolation import commands
from kinopt_ros.bench.trajectory.judge import STEP, MotionJudge, _box_gaps
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.collision.judge import distance
from kinopt_ros.geometry.shapes import Box, PlacedShape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.trajectory.timing import point_to_point

JOINTS = tuple(f"panda_joint{k}" for k in range(1, 8))
TIP = "panda_link8"


@pytest.fixture(scope="module")
def robot():
    return load_robot("panda")


@pytest.fixture(scope="module")
def judge(robot):
    text = find_robot("panda")[0].read_text(encoding="utf-8")
    return MotionJudge(Subject("panda", text, robot, "panda_link0", (TIP,)), JOINTS)


def ends(robot):
    """Joint 1 turns the arm about, all others stay but for the wrist."""
    start = robot.default_q.copy()
    start[0] = -0.6
    goal = start[:7].copy()
    goal[0], goal[6] = 0.6, 0.3
    return start, goal


def ask(robot, scene=EMPTY_SCENE, scaling=0.5, goal=None):
    start, configuration = ends(robot)
    return trajectory_problem(
        robot,
        configuration if goal is None else goal,
        joints=JOINTS,
        base_link="panda_link0",
        tip_link=TIP,
        start=start,
        scene=scene,
        velocity_scaling=scaling,
        acceleration_scaling=scaling,
    )


def move(robot, scaling=0.5):
    start, goal = ends(robot)
    limits = robot.limits
    return point_to_point(
        JOINTS,
        start[:7],
        goal,
        limits.velocity[:7] * scaling,
        limits.acceleration[:7] * scaling,
        limits.jerk[:7],
    )


def scene_with(shape, T):
    return Scene(objects={"thing": SceneObject("thing", (PlacedShape(shape, np.eye(4)),), T)})


def on_the_way(robot):
    """Return where the tip passes in the middle."""
    start, goal = ends(robot)
    q = start.copy()
    q[:7] = 0.5 * (start[:7] + goal)
    return forward_kinematics(robot, q[None], (TIP,))[0, 0].copy()


def test_a_good_motion_has_nothing_against_it(robot, judge):
    assert judge(ask(robot), move(robot)) == []


def test_a_thin_sheet_is_not_passed_through(robot, judge):
    T = np.eye(4)
    T[:3, 3] = on_the_way(robot)[:3, 3]
    scene = scene_with(Box(0.6, 1e-3, 0.4), T)
    found = judge(ask(robot, scene, 1.0), move(robot, 1.0))
    assert len(found) == 1
    assert "in collision" in found[0]
    assert "thing" in found[0]


@pytest.mark.parametrize("gap", [-0.02, -1e-4, 1e-3, 0.02])
def test_every_millisecond_is_looked_at(robot, judge, gap):
    """A ball beside the way, nearer and farther: as looking at every single command says."""
    T = np.eye(4)
    T[:3, 3] = on_the_way(robot)[:3, 3] + [0.0, 0.0, 0.14 - gap]
    problem, motion = ask(robot, scene_with(Sphere(0.05), T)), move(robot)
    found = judge(problem, motion)
    states = commands(motion, STEP).states[0]
    # Far from the middle nothing is near; that is what makes this test quick.
    near = np.flatnonzero(np.abs(states[:, 0]) < 0.06)
    hits = [k for k in near[::4] if judge.collision(judge._values(problem, states[k]))]
    assert bool(found) == bool(hits)


def test_the_arm_itself_counts(robot, judge):
    start, goal = ends(robot)
    folded = goal.copy()
    folded[3], folded[5] = -3.0, 0.1
    limits = robot.limits
    motion = point_to_point(
        JOINTS, start[:7], folded, limits.velocity[:7], limits.acceleration[:7], limits.jerk[:7]
    )
    problem = trajectory_problem(
        robot,
        folded,
        joints=JOINTS,
        start=start,
        scene=EMPTY_SCENE,
        velocity_scaling=1.0,
        acceleration_scaling=1.0,
    )
    assert any("in collision" in reason for reason in judge(problem, motion))
    assert judge(replace(problem, scene=None), motion) == []


@pytest.mark.parametrize("quantity", ["velocity", "acceleration"])
def test_limits_are_those_of_the_problem(robot, judge, quantity):
    scaling = {f"{quantity}_scaling": 0.4}
    [reason] = judge(replace(ask(robot), **scaling), move(robot))
    assert reason.startswith(quantity)
    assert "panda_joint1" in reason


def test_jerk_and_position_limits(robot, judge):
    motion = move(robot)
    half = replace(robot.limits, jerk=robot.limits.jerk * 0.5)
    slow = MotionJudge.__new__(MotionJudge)
    slow.__dict__ = dict(judge.__dict__, _robot=replace(robot, limits=half))
    assert [reason.split()[0] for reason in slow(ask(robot), motion)] == ["jerk"]
    position = motion.position.copy()
    position[1:-1, 3] = 0.05
    outside = replace(motion, position=position)
    assert any(reason.startswith("position of panda_joint4") for reason in judge(ask(robot), outside))


def test_ends_are_exact(robot, judge):
    motion = move(robot)
    for row, what in ((0, "start position"), (-1, "goal is missed")):
        position = motion.position.copy()
        position[row, 6] += 1e-8
        assert any(what in reason for reason in judge(ask(robot), replace(motion, position=position)))
    velocity = motion.velocity.copy()
    velocity[-1, 0] = 1e-8
    assert any("final velocity" in r for r in judge(ask(robot), replace(motion, velocity=velocity)))


def test_poses_are_judged_by_their_tolerances(robot, judge):
    _, goal = ends(robot)
    q = robot.default_q.copy()
    q[:7] = goal
    T = forward_kinematics(robot, q[None], (TIP,))[0, 0].copy()
    assert judge(ask(robot, goal=T.copy()), move(robot)) == []
    T[0, 3] += 2e-4
    [reason] = judge(ask(robot, goal=T), move(robot))
    assert reason.startswith("panda_link8 misses its pose by 0.0002")


def test_what_is_no_motion_is_said(robot, judge):
    motion = move(robot)
    time = motion.time.copy()
    time[1] = time[2]
    assert judge(ask(robot), replace(motion, time=time)) == ["times do not increase from 0"]
    velocity = motion.velocity.copy()
    velocity[1, 0] = np.nan
    assert judge(ask(robot), replace(motion, velocity=velocity)) == ["not all numbers are finite"]
    assert "joints are" in judge(ask(robot), replace(motion, joint_names=JOINTS[::-1]))[0]


def test_gaps_of_boxes_are_lower_bounds():
    rng = np.random.default_rng(0)
    turns = np.array([_random_rotation(rng) for _ in range(80)])
    halves, places = rng.uniform(0.02, 0.3, (80, 3)), rng.uniform(-0.6, 0.6, (80, 3))
    first, second = slice(0, 40), slice(40, 80)
    found = _box_gaps(
        turns[first], halves[first], turns[second], halves[second], places[second] - places[first]
    )
    T = np.repeat(np.eye(4)[None], 80, axis=0)
    T[:, :3, :3], T[:, :3, 3] = turns, places
    boxes = [Box(*(2.0 * half).tolist()) for half in halves]
    true = np.array([distance(boxes[k], T[k], boxes[40 + k], T[40 + k]).distance for k in range(40)])
    apart = true > 0.0
    assert apart.sum() > 10
    assert (found[apart] <= true[apart] + 1e-6).all()
    assert (found > 0.5 * true)[apart].mean() > 0.5
    assert (found[~apart] <= 1e-6).all()
