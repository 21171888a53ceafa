"""Motions in which a floating base flies and turns, judged by Pinocchio and coal."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba")
pin = pytest.importorskip("pinocchio")
pytest.importorskip("coal")

from support.base_judge import BaseJudge
from support.moving_base import base_urdf, box_scene

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, UnsupportedFeatureError
from kinopt_ros.kinematics.angled_robot import angled_robot
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import matrix_to_quaternion, so3_exp
from kinopt_ros.planning import turning
from kinopt_ros.planning.cartesian.plan import plan_cartesian_path
from kinopt_ros.planning.motion import commanded_variables
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.planning.turning import TURN_LIMITS, TURNING, configurations_along
from kinopt_ros.problems.constraints.pose_along import upright
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.trajectory import CostWeights, JointGoal, PoseGoal, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.paths import PathRequest, Progress
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.motion import verify_motion
from kinopt_ros.verification.sweep import first_contact

WALL = ((0.1, 1.6, 2.0), (1.2, 0.0, 0.5))
SHEET = ((0.002, 12.0, 12.0), (1.2, 0.0, 0.5))
TIPS = {"base_link": "map", "tip_link": "tool"}


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return robot_from_urdf(base_urdf("floating"))


@pytest.fixture(scope="module")
def solver(robot: RobotModel) -> CpuSolver:
    solver = CpuSolver()
    solver.configure(robot)
    prepare_collisions(robot)
    return solver


def named(robot: RobotModel, q: Float64) -> dict[str, float]:
    return dict(zip(robot.variable_names, q.tolist(), strict=True))


def turned(*vector: float) -> Float64:
    return matrix_to_quaternion(so3_exp(np.array(vector)))


def moved(result: TrajectoryResult) -> JointTrajectory:
    assert result.success, result.message
    assert result.trajectory is not None
    return result.trajectory


def along(
    robot: RobotModel, problem: TrajectoryProblem, result: TrajectoryResult, step: float = 2e-3
) -> tuple[Float64, Float64]:
    """Times and configurations of the whole robot."""
    duration = moved(result).duration
    times = np.linspace(0.0, duration, int(duration / step) + 2)
    return times, configurations_along(robot, problem, result, times)


def quaternion_of(q: Float64) -> "pin.Quaternion":
    w, x, y, z = q[..., 3:7].tolist()
    return pin.Quaternion(w, x, y, z)


def check_motion(
    robot: RobotModel, problem: TrajectoryProblem, result: TrajectoryResult, boxes: tuple = ()
) -> Float64:
    """Start, rest of the robot, speeds and accelerations by differences, unit quaternions, distances by coal; returns
    configurations."""
    times, q = along(robot, problem, result)
    np.testing.assert_allclose(q[0], problem.start, atol=1e-9)
    others = np.setdiff1d(np.arange(robot.nq), problem.variables)
    assert (q[:, others] == problem.start[others]).all()
    np.testing.assert_allclose(np.linalg.norm(q[:, 3:7], axis=1), 1.0, atol=1e-12)
    h = times[1] - times[0]
    limits = robot.limits
    plain = [i for i in problem.variables if not 3 <= i < 7]
    speed = np.diff(q[:, plain], axis=0) / h
    assert (np.abs(speed).max(axis=0) <= problem.velocity_scaling * limits.velocity[plain] * 1.001).all()
    assert (
        np.abs(np.diff(speed, axis=0) / h).max(axis=0)
        <= problem.acceleration_scaling * limits.acceleration[plain] * 1.01 + 1e-6
    ).all()
    assert np.abs(speed[-1]).max(initial=0.0) <= 2.0 * h
    rotations = [quaternion_of(row).matrix() for row in q]
    spin = np.array([pin.log3(a.T @ b) for a, b in itertools.pairwise(rotations)]) / h
    most = problem.velocity_scaling * limits.velocity[3:7].min()
    assert np.linalg.norm(spin, axis=1).max() <= most * 1.001
    assert np.linalg.norm(spin[-1]) <= 2.0 * h
    if problem.scene is not None:
        judge = BaseJudge("floating", boxes)
        every = q[:: max(1, len(q) // 1500)]
        assert min(judge.distance(named(robot, row)) for row in every) > 0.0
    return q


def test_a_turn_is_the_geodesic(robot: RobotModel, solver: CpuSolver) -> None:
    states = random_configurations(robot, 24, 3)
    states[:, :3] *= 4.0
    for start, end in states.reshape(12, 2, -1):
        problem = trajectory_problem(
            robot, end[:10], start=start, **TIPS, velocity_scaling=1.0, acceleration_scaling=1.0
        )
        result = plan_trajectory(solver, problem)
        q = check_motion(robot, problem, result)
        assert TURNING in result.checks
        np.testing.assert_allclose(q[-1, [0, 1, 2, 7, 8, 9]], end[[0, 1, 2, 7, 8, 9]], atol=1e-9)
        first, last = quaternion_of(start), quaternion_of(end)
        assert quaternion_of(q[-1]).angularDistance(last) <= 1e-7
        whole = first.angularDistance(last)
        for row in q[:: len(q) // 20]:
            here = quaternion_of(row)
            share = first.angularDistance(here) / whole
            assert here.angularDistance(first.slerp(share, last)) <= 1e-6
        # About one axis: the limit of the angular velocity is that of the first angle, and holds exactly.
        spin = [quaternion_of(a).angularDistance(quaternion_of(b)) for a, b in itertools.pairwise(q)]
        times = along(robot, problem, result)[0]
        assert max(spin) / (times[1] - times[0]) <= robot.limits.velocity[3] * 1.001


@pytest.mark.parametrize(
    "vector", [(np.pi, 0.0, 0.0), (0.0, -np.pi, 0.0), (0.0, 0.0, np.pi), (-2.0, 1.0, 2.0)]
)
def test_half_turns_are_no_exception(robot: RobotModel, solver: CpuSolver, vector: tuple[float, ...]) -> None:
    length = np.linalg.norm(vector)
    goal = np.array([0.5, 0.0, 0.3, *turned(*(np.pi / length * np.array(vector))), 0.1, 0.2, 0.3])
    problem = trajectory_problem(robot, goal, **TIPS, scene=EMPTY_SCENE)
    q = check_motion(robot, problem, plan_trajectory(solver, problem))
    assert quaternion_of(q[-1]).angularDistance(quaternion_of(goal)) <= 1e-7


def test_the_base_flies_around_a_wall(robot: RobotModel, solver: CpuSolver) -> None:
    goal = np.array([2.4, 0.2, 0.1, *turned(0.8, 0.5, 2.0), 0.4, -0.5, 0.3])
    problem = trajectory_problem(robot, goal, **TIPS, scene=box_scene(WALL), velocity_scaling=0.5)
    result = plan_trajectory(solver, problem)
    q = check_motion(robot, problem, result, (WALL,))
    np.testing.assert_allclose(q[-1, :3], goal[:3], atol=1e-9)
    assert quaternion_of(q[-1]).angularDistance(quaternion_of(goal)) <= 1e-6
    assert result.clearance > 0.0


def test_poses_are_reached_with_the_base(robot: RobotModel, solver: CpuSolver) -> None:
    judge = BaseJudge("floating")
    for start, there in random_configurations(robot, 12, 5).reshape(6, 2, -1):
        start[7:] = 0.1
        T = judge.place(named(robot, there), "tool")
        problem = trajectory_problem(robot, T, start=start, **TIPS, scene=EMPTY_SCENE)
        result = plan_trajectory(solver, problem)
        q = check_motion(robot, problem, result)
        found = judge.place(named(robot, q[-1]), "tool")
        assert np.linalg.norm(found[:3, 3] - T[:3, 3]) <= 1e-4 + 1e-9
        assert np.linalg.norm(pin.log3(found[:3, :3].T @ T[:3, :3])) <= 1e-3 + 1e-6


def test_several_tips_are_reached_with_the_base(robot: RobotModel, solver: CpuSolver) -> None:
    judge = BaseJudge("floating")
    there = np.array([1.5, -0.8, 0.4, *turned(1.0, -0.6, 0.3), 0.5, 0.4, -0.6, 1.1])
    poses = {link: judge.place(named(robot, there), link) for link in ("tool", "mast")}
    goal = PoseGoal(tuple(PoseTarget(link, T[None]) for link, T in poses.items()))
    joints = ("drive", "shoulder", "elbow", "wrist", "pan")
    problem = trajectory_problem(robot, goal, joints=joints, base_link="map", scene=EMPTY_SCENE)
    result = plan_trajectory(solver, problem)
    q = check_motion(robot, problem, result)
    for link, T in poses.items():
        assert np.linalg.norm(judge.place(named(robot, q[-1]), link)[:3, 3] - T[:3, 3]) <= 1e-4 + 1e-9


def test_waypoints_are_passed_and_one_of_several_goals_is_reached(
    robot: RobotModel, solver: CpuSolver
) -> None:
    via = np.array([0.8, 0.6, 0.2, *turned(0.0, 1.2, 0.4), 0.2, 0.2, 0.2])
    far = np.array([9.0, 0.0, 0.0, *turned(3.0, 0.0, 0.0), 0.0, 0.0, 0.0])
    near = np.array([1.4, 0.0, 0.0, *turned(-0.5, 1.5, 0.9), 0.0, 0.0, 0.0])
    problem = trajectory_problem(robot, [far, near], **TIPS, waypoints=[via], scene=EMPTY_SCENE)
    result = plan_trajectory(solver, problem)
    q = check_motion(robot, problem, result)
    assert result.goal == 1
    off = [
        np.abs(row[[0, 1, 2, 7, 8, 9]] - via[[0, 1, 2, 7, 8, 9]]).max()
        + quaternion_of(row).angularDistance(quaternion_of(via))
        for row in q
    ]
    assert min(off) <= 4e-3
    assert quaternion_of(q[-1]).angularDistance(quaternion_of(near)) <= 1e-6


ROUNDABOUT = (
    np.array([0.3, 0.0, 0.0, *turned(0.0, 2.2, 0.9), 0.0, 0.0, 0.0]),
    np.array([0.6, 0.0, 0.0, *turned(1.5, 1.0, -1.2), 0.0, 0.0, 0.0]),
    np.array([0.9, 0.0, 0.0, *turned(-1.0, -1.0, 1.5), 0.0, 0.0, 0.0]),
)


def test_turns_about_several_axes_keep_the_limit_of_the_angular_velocity(
    robot: RobotModel, solver: CpuSolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = {"velocity_scaling": 1.0, "acceleration_scaling": 1.0}
    quick = apply_joint_limits(robot, {"drive": {"max_acceleration": 20.0, "max_jerk": 400.0}})
    own = CpuSolver()
    own.configure(quick)
    problem = trajectory_problem(quick, ROUNDABOUT[2], **TIPS, waypoints=ROUNDABOUT[:2], **full)
    result = plan_trajectory(own, problem)
    q = check_motion(quick, problem, result)
    assert TURN_LIMITS in result.checks
    times = along(quick, problem, result)[0]
    spin = [quaternion_of(a).angularDistance(quaternion_of(b)) for a, b in itertools.pairwise(q)]
    assert 0.7 <= max(spin) / (times[1] - times[0]) <= quick.limits.velocity[3] * 1.001
    monkeypatch.setattr(turning, "_ROUNDS", 1)
    refused = plan_trajectory(own, problem)
    assert refused.status is Status.PLANNING_FAILED
    assert "'drive' turns with" in refused.message
    assert refused.trajectory is None


def test_constraints_hold_while_the_base_flies(robot: RobotModel, solver: CpuSolver) -> None:
    start = robot.default_q.copy()
    goal = np.array([1.4, 0.5, 0.4, *turned(0.0, -0.5, 0.0), 0.6, -0.1, 0.3])
    judge = BaseJudge("floating")
    T0 = judge.place(named(robot, start), "tool")
    problem = trajectory_problem(robot, goal, **TIPS, along=[upright(robot, "tool", 0.1)], scene=EMPTY_SCENE)
    q = check_motion(robot, problem, plan_trajectory(solver, problem))
    axis = [judge.place(named(robot, row), "tool")[:3, 2] for row in q[::20]]
    assert min(one @ T0[:3, 2] for one in axis) >= np.cos(0.1 * np.sqrt(2.0)) - 1e-6


def test_a_base_that_flies_at_the_start_goes_on(robot: RobotModel, solver: CpuSolver) -> None:
    start = robot.default_q.copy()
    start[3:7] = turned(0.4, -0.9, 0.3)
    spin = np.array([0.04, -0.05, 0.03])  # in the base's frame
    w, x, y, z = start[3:7]
    velocity = np.zeros(robot.nq)
    velocity[:3] = 0.05, 0.02, -0.03
    velocity[3:7] = 0.5 * np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]) @ spin
    goal = np.array([1.0, 0.4, 0.0, *turned(0.1, 0.5, -1.2), 0.1, 0.1, 0.1])
    problem = trajectory_problem(robot, goal, **TIPS, start=start, start_velocity=velocity, scene=EMPTY_SCENE)
    result = plan_trajectory(solver, problem)
    check_motion(robot, problem, result)
    h = 1e-4
    q = configurations_along(robot, problem, result, np.array([0.0, h]))
    found = pin.log3(quaternion_of(q[0]).matrix().T @ quaternion_of(q[1]).matrix()) / h
    np.testing.assert_allclose(found, spin, atol=1e-4)
    np.testing.assert_allclose((q[1, :3] - q[0, :3]) / h, velocity[:3], atol=1e-4)
    growing = velocity.copy()
    growing[3:7] += 0.01 * start[3:7]
    with pytest.raises(InvalidStateError, match="change its length"):
        plan_trajectory(solver, replace(problem, start_velocity=growing))


def test_single_axes_are_locked(robot: RobotModel, solver: CpuSolver) -> None:
    start = robot.default_q.copy()
    start[:7] = 0.4, -0.3, 0.2, *turned(0.3, -0.2, 0.9)
    flat = trajectory_problem(
        robot,
        np.array([1.9, 0.8, 0.5]),
        joints=("drive/trans_x", "drive/trans_y", "elbow"),
        base_link="map",
        start=start,
        scene=EMPTY_SCENE,
    )
    result = plan_trajectory(solver, flat)
    assert moved(result).joint_names == flat.joints
    assert not result.turning
    check_motion(robot, flat, result)
    turn = trajectory_problem(
        robot,
        turned(-1.0, 0.4, 0.2),
        joints=[f"drive/rot_{part}" for part in "wxyz"],
        base_link="map",
        start=start,
        scene=EMPTY_SCENE,
    )
    result = plan_trajectory(solver, turn)
    assert moved(result).joint_names == ("drive/turn_x", "drive/turn_y", "drive/turn_z")
    q = check_motion(robot, turn, result)
    assert (
        quaternion_of(q[-1]).angularDistance(quaternion_of(np.array([0, 0, 0, *turned(-1.0, 0.4, 0.2)])))
        <= 1e-6
    )
    with pytest.raises(InvalidRequestError, match="some of the quaternion"):
        trajectory_problem(robot, np.zeros(1), joints=("drive/rot_x",), base_link="map")


def test_limits_of_position_and_turning_hold(robot: RobotModel) -> None:
    limited = apply_joint_limits(
        robot,
        {
            "drive": {"max_velocity": 0.6, "max_acceleration": 0.9, "max_jerk": 5.0},
            "drive/rot_w": {"max_velocity": 0.25},
            "drive/trans_z": {"min_position": -0.1, "max_position": 0.3},
        },
    )
    solver = CpuSolver()
    solver.configure(limited)
    goal = np.array([0.4, 0.2, 0.3, *turned(0.0, 1.5, 0.0), 0.0, 0.0, 0.0])
    problem = trajectory_problem(limited, goal, **TIPS, velocity_scaling=1.0, acceleration_scaling=1.0)
    result = plan_trajectory(solver, problem)
    q = check_motion(limited, problem, result)
    assert q[:, 2].max() <= 0.3 + 1e-8
    trajectory = moved(result)
    column = trajectory.joint_names.index("drive/turn_x")
    assert np.abs(trajectory.velocity[:, column]).max() == pytest.approx(0.25, rel=0.02)
    tilted = apply_joint_limits(robot, {"drive/rot_w": {"min_position": 0.5, "max_position": 1.0}})
    solver.configure(tilted)
    with pytest.raises(UnsupportedFeatureError, match="'drive/rot_w' is limited"):
        plan_trajectory(solver, trajectory_problem(tilted, problem.goals[0], **TIPS))
    beyond = goal.copy()
    beyond[2] = 0.5
    with pytest.raises(Exception, match="drive/trans_z"):
        trajectory_problem(limited, beyond, **TIPS)


def test_nothing_thin_is_passed_through_while_the_base_turns(robot: RobotModel) -> None:
    """Motions of angles far and wide, several turns about all axes, against configurations by Pinocchio."""
    scene, judge = box_scene(SHEET), BaseJudge("floating", [SHEET])
    angled = angled_robot(robot)
    names = [f"drive/{part}" for part in ("trans_x", "trans_y", "trans_z", "turn_x", "turn_y", "turn_z")]
    names += ["shoulder", "elbow"]
    index = np.array([angled.robot.variable_index[name] for name in names])
    rng, hit = np.random.default_rng(17), 0
    for start in random_configurations(robot, 40, 8):
        state = angled.with_frames(start, np.array([turned(*rng.normal(size=3))]))
        ends = np.concatenate(
            [
                rng.uniform(-1.0, 1.2, (2, 3)) - [0.4, 0.0, 0.0],
                rng.uniform(-4.0, 4.0, (2, 3)),
                rng.uniform(-1.2, 1.2, (2, 2)),
            ],
            axis=1,
        )
        ends[1, 0] += rng.uniform(0.0, 1.2)
        motion = JointTrajectory(tuple(names), np.array([0.0, 1.0]), ends, np.zeros((2, 8)), np.zeros((2, 8)))
        contact = first_contact(angled.robot, scene, state, index, motion)
        share = np.linspace(0.0, 1.0, 801)[:, None]
        full = np.repeat(state[None], len(share), axis=0)
        full[:, index] = ends[0] + (10 * share**3 - 15 * share**4 + 6 * share**5) * (ends[1] - ends[0])
        distance = np.array([judge.distance(named(robot, row)) for row in angled.to_own(full)])
        if contact is None:
            assert distance.min() > 0.0
        else:
            hit += 1
            times = share[:, 0]
            assert (distance[times < contact.time - 2e-3] > -1e-9).all()
            assert distance[np.abs(times - contact.time) <= 5e-3].min() <= 0.03
    assert 5 <= hit <= 35


def test_paths_to_begin_from_and_rest_postures_have_quaternions(robot: RobotModel, solver: CpuSolver) -> None:
    goal = np.array([1.0, 0.0, 0.0, *turned(0.0, 0.0, 2.0), 0.2, 0.2, 0.2])
    share = np.linspace(0.0, 1.0, 32)
    path = np.array(
        [
            [s, 0.5 * np.sin(np.pi * s), 0.0, *turned(0.0, 0.0, 2.0 * s), 0.2 * s, 0.2 * s, 0.2 * s]
            for s in share
        ]
    )
    path[::2, 3:7] *= -1.0  # the same rotations
    rest = robot.default_q.copy()
    rest[:7] = 0.5, 0.3, 0.1, *turned(0.3, 0.0, 1.0)
    problem = trajectory_problem(
        robot,
        goal,
        **TIPS,
        scene=EMPTY_SCENE,
        paths=path,
        num_points=32,
        rest=rest,
        weights=CostWeights(rest=0.5),
    )
    q = check_motion(robot, problem, plan_trajectory(solver, problem))
    assert quaternion_of(q[-1]).angularDistance(quaternion_of(goal)) <= 1e-6
    path[3, 3:7] = 0.0
    with pytest.raises(InvalidRequestError, match="length 0"):
        plan_trajectory(solver, replace(problem, paths=path[None]))


def test_failures_speak_of_quaternions(robot: RobotModel, solver: CpuSolver) -> None:
    closed = box_scene(((0.1, 20.0, 20.0), (1.2, 0.0, 0.5)))
    goal = np.array([2.4, 0.0, 0.1, *turned(0.0, 0.0, 1.0), 0.0, 0.0, 0.0])
    problem = trajectory_problem(robot, goal, **TIPS, scene=closed, deadline=time.monotonic() + 1.5)
    begin = time.monotonic()
    result = plan_trajectory(solver, problem)
    assert not result.success
    assert time.monotonic() - begin < 20.0
    if result.attempt is not None:
        assert result.attempt.path.shape[1] == len(problem.variables)
        np.testing.assert_allclose(np.linalg.norm(result.attempt.path[:, 3:7], axis=1), 1.0, atol=1e-9)
    with pytest.raises(InvalidRequestError, match="there is no motion"):
        configurations_along(robot, problem, result, np.zeros(1))
    inside = goal.copy()
    inside[0] = 1.0
    stuck = plan_trajectory(solver, trajectory_problem(robot, inside, **TIPS, scene=closed))
    assert stuck.status is Status.GOAL_IN_COLLISION


def test_cancelling_ends_the_search(robot: RobotModel, solver: CpuSolver) -> None:
    def report(progress: Progress) -> bool:
        return False

    goal = np.array([2.4, 0.0, 0.1, *turned(0.0, 0.0, 1.0), 0.0, 0.0, 0.0])
    problem = trajectory_problem(robot, goal, **TIPS, scene=box_scene(WALL))
    assert plan_trajectory(solver, problem, report).status is Status.PREEMPTED


def test_same_problem_same_motion(robot: RobotModel, solver: CpuSolver) -> None:
    T = forward_kinematics(robot, random_configurations(robot, 1, 9)[0], links=("tool",))[0]
    problem = trajectory_problem(robot, T, **TIPS)
    one, other = (moved(plan_trajectory(solver, problem)) for _ in range(2))
    np.testing.assert_array_equal(one.position, other.position)


def test_two_floating_joints_turn_at_once() -> None:
    robot = robot_from_urdf(
        '<robot name="two"><link name="a"/><link name="b"/><link name="c"/>'
        '<joint name="one" type="floating"><parent link="a"/><child link="b"/></joint>'
        '<joint name="two" type="floating"><parent link="b"/><child link="c"/>'
        '<origin xyz="0.1 0.2 0.3"/></joint></robot>'
    )
    solver = CpuSolver()
    solver.configure(robot)
    start, end = random_configurations(robot, 2, 4)
    problem = trajectory_problem(robot, end, joints=("one", "two"), base_link="a", start=start)
    result = plan_trajectory(solver, problem)
    assert [turning.joint for turning in result.turning] == ["one", "two"]
    times = np.linspace(0.0, moved(result).duration, 50)
    q = configurations_along(robot, problem, result, times)
    wanted = forward_kinematics(robot, end, links=("b", "c"))
    np.testing.assert_allclose(forward_kinematics(robot, q[-1], links=("b", "c")), wanted, atol=1e-9)
    np.testing.assert_allclose(q[0], start, atol=1e-12)


def test_what_would_interpolate_a_quaternion_is_refused(robot: RobotModel, solver: CpuSolver) -> None:
    goal = np.array([1.0, 0.0, 0.0, *turned(0.0, 0.0, 1.0), 0.0, 0.0, 0.0])
    problem = trajectory_problem(robot, goal, **TIPS, scene=EMPTY_SCENE)
    motion = JointTrajectory(
        problem.joints,
        np.array([0.0, 9.0]),
        np.stack([problem.start[:10], goal]),
        np.zeros((2, 10)),
        np.zeros((2, 10)),
    )
    with pytest.raises(InvalidRequestError, match="quaternion"):
        verify_motion(robot, problem, motion, 0)
    with pytest.raises(InvalidRequestError, match="quaternion"):
        first_contact(robot, Scene(), problem.start, problem.variables, motion)
    paths = np.repeat(problem.start[None, None, problem.variables], problem.num_points, axis=1)
    request = PathRequest(paths, np.zeros(1, dtype=np.int64), np.zeros((1, 0), dtype=np.int64), 0.01)
    with pytest.raises(InvalidRequestError, match="plan_trajectory"):
        solver.optimize_trajectory(problem, request)
    with pytest.raises(UnsupportedFeatureError, match="do not turn floating joints"):
        plan_cartesian_path(robot, solver.solve_ik, np.eye(4), base_link="map", link="tool")
    with pytest.raises(InvalidStateError, match="'drive' turns the floating joint"):
        commanded_variables(robot, ["drive"])
    assert commanded_variables(robot, ["drive/trans_y", "elbow"]).tolist() == [1, 8]
    result = plan_trajectory(solver, problem)
    other = trajectory_problem(robot, np.zeros(1), joints=("elbow",), base_link="map")
    with pytest.raises(InvalidRequestError, match="other joints"):
        configurations_along(robot, other, result, np.zeros(1))


def test_solvers_for_the_other_robot_end_with_theirs(robot: RobotModel) -> None:
    solver = CpuSolver()
    solver.configure(robot, {"max_restarts": 17})
    other = solver.for_robot(angled_robot(robot).robot)
    assert solver.for_robot(angled_robot(robot).robot) is other
    assert other._max_restarts == 17
    solver.close()
    with pytest.raises(Exception, match="not configured"):
        _ = other.robot


def test_goals_may_be_given_as_objects(robot: RobotModel, solver: CpuSolver) -> None:
    goal = JointGoal(np.array([0.3, 0.0, 0.0, *(-turned(0.0, 0.0, 1.0)), 0.0, 0.0, 0.0]))
    problem = trajectory_problem(robot, goal, **TIPS, scene=EMPTY_SCENE)
    q = check_motion(robot, problem, plan_trajectory(solver, problem))
    assert abs(abs(q[-1, 3:7] @ goal.q[3:7]) - 1.0) <= 1e-12  # the shorter way, whatever the sign
