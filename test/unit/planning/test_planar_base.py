"""Motions of an arm on a planar base, judged by Pinocchio and coal."""

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
pytest.importorskip("coal")
from support.base_judge import BaseJudge
from support.moving_base import base_urdf, box_scene, values_along

from kinopt_ros.bench.trajectory.interpolation import commands
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, UnknownJointError
from kinopt_ros.kinematics.se3 import pose, so3_exp
from kinopt_ros.planning.cartesian.plan import plan_cartesian_path
from kinopt_ros.planning.motion import commanded_variables, plan_joint_motion
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.trajectory import PoseGoal, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.robot.variables import one_variable_each
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.sweep import first_contact

BASE = ("drive/x", "drive/y", "drive/theta")
ARM = ("shoulder", "elbow", "wrist")
WALL = ((0.1, 1.6, 2.0), (1.2, 0.0, 0.5))
SHEET = ((0.002, 6.0, 2.0), (1.2, 0.0, 0.5))


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return robot_from_urdf(base_urdf("planar"))


@pytest.fixture(scope="module")
def solver(robot: RobotModel) -> Iterator[CpuSolver]:
    solver = CpuSolver()
    solver.configure(robot)
    prepare_collisions(robot)
    yield solver
    solver.close()


def solved_by(robot: RobotModel, problem: TrajectoryProblem) -> TrajectoryResult:
    solver = CpuSolver()
    solver.configure(robot)
    prepare_collisions(robot)
    return plan_trajectory(solver, problem)


def moved(result: TrajectoryResult) -> JointTrajectory:
    assert result.success, result.message
    assert result.trajectory is not None
    return result.trajectory


def check_limits(robot: RobotModel, problem: TrajectoryProblem, trajectory: JointTrajectory) -> None:
    """Every millisecond; limits of all variables, those of the base included."""
    states = commands(trajectory, 1e-3).states
    limits, variables = robot.limits, problem.variables
    for order, most in enumerate(
        (
            problem.velocity_scaling * limits.velocity[variables],
            problem.acceleration_scaling * limits.acceleration[variables],
            limits.jerk[variables],
        ),
        start=1,
    ):
        assert (np.abs(states[order]).max(axis=0) <= most * (1.0 + 1e-5)).all(), order
    assert (states[0] >= limits.lower[variables] - 1e-8).all()
    assert (states[0] <= limits.upper[variables] + 1e-8).all()
    np.testing.assert_allclose(trajectory.position[0], problem.start[variables], atol=1e-9)
    np.testing.assert_allclose(trajectory.velocity[[-1]], 0.0, atol=1e-9)


def check_free(
    judge: BaseJudge, robot: RobotModel, problem: TrajectoryProblem, trajectory: JointTrajectory
) -> None:
    every = values_along(robot.variable_names, problem.start, trajectory, 0.02)
    assert min(map(judge.distance, every)) > 0.0


def test_the_base_drives_around_a_wall(robot: RobotModel, solver: CpuSolver) -> None:
    goal = np.array([2.4, 0.2, 2.0, 0.4, -0.5, 0.3])
    problem = trajectory_problem(
        robot, goal, base_link="map", tip_link="tool", scene=box_scene(WALL), velocity_scaling=0.5
    )
    assert problem.joints == (*BASE, *ARM)
    trajectory = moved(plan_trajectory(solver, problem))
    assert trajectory.joint_names == (*BASE, *ARM)
    np.testing.assert_allclose(trajectory.position[-1], goal, atol=1e-9)
    check_limits(robot, problem, trajectory)
    check_free(BaseJudge("planar", [WALL]), robot, problem, trajectory)
    assert np.abs(trajectory.position[:, 1]).max() > 0.7  # around the wall


def test_an_angle_without_limits_takes_the_shorter_way_round(robot: RobotModel, solver: CpuSolver) -> None:
    start = robot.default_q.copy()
    start[2] = 3.0
    goal = np.array([0.1, 0.0, -3.0, 0.0, 0.0, 0.0])
    problem = trajectory_problem(robot, goal, base_link="map", tip_link="tool", start=start)
    trajectory = moved(plan_trajectory(solver, problem))
    assert trajectory.position[-1, 2] == pytest.approx(2 * np.pi - 3.0, abs=1e-9)
    whole_turns = trajectory_problem(
        robot, goal + 4 * np.pi * np.eye(6)[2], base_link="map", tip_link="tool", start=start
    )
    again = moved(plan_trajectory(solver, whole_turns))
    assert again.position[-1, 2] == pytest.approx(2 * np.pi - 3.0, abs=1e-9)


def test_limits_of_each_variable_hold(robot: RobotModel) -> None:
    limited = apply_joint_limits(
        robot,
        {
            "drive": {"max_acceleration": 0.8, "max_jerk": 4.0},
            "drive/x": {"max_velocity": 0.4, "min_position": -1.0, "max_position": 2.0},
            "drive/y": {"max_velocity": 2.0},
            "drive/theta": {"max_velocity": 0.7, "min_position": -3.1, "max_position": 3.1},
        },
    )
    assert not continuous_joints(limited, BASE).any()
    assert continuous_joints(robot, BASE).tolist() == [False, False, True]
    start = limited.default_q.copy()
    start[:3] = 0.0, 0.0, 3.0
    problem = trajectory_problem(
        limited,
        np.array([1.8, 1.0, -3.0, 0.2, 0.1, 0.0]),
        base_link="map",
        tip_link="tool",
        start=start,
        velocity_scaling=1.0,
        acceleration_scaling=1.0,
    )
    trajectory = moved(solved_by(limited, problem))
    assert trajectory.position[-1, 2] == pytest.approx(-3.0, abs=1e-9)  # the long way: it has ends now
    check_limits(limited, problem, trajectory)
    speed = np.abs(commands(trajectory, 1e-3).states[1]).max(axis=0)
    assert speed[2] == pytest.approx(0.7, rel=0.02)  # the slowest one is what takes the time


def test_poses_are_reached_with_the_base(robot: RobotModel, solver: CpuSolver) -> None:
    judge, rng = BaseJudge("planar"), np.random.default_rng(5)
    for _ in range(5):
        values = np.concatenate(
            [rng.uniform(-4.0, 4.0, 2), rng.uniform(-3.0, 3.0, 1), rng.uniform(-1.0, 1.0, 4)]
        )
        T = judge.place(dict(zip(robot.variable_names, values.tolist(), strict=True)), "tool")
        problem = trajectory_problem(robot, T, base_link="map", tip_link="tool", scene=EMPTY_SCENE)
        trajectory = moved(plan_trajectory(solver, problem))
        last = values_along(robot.variable_names, problem.start, trajectory)[-1]
        np.testing.assert_allclose(judge.place(last, "tool"), T, atol=2e-3)
        assert np.linalg.norm(judge.place(last, "tool")[:3, 3] - T[:3, 3]) <= 1e-4 + 1e-9
        check_limits(robot, problem, trajectory)


def test_several_tips_are_reached_with_the_base(robot: RobotModel, solver: CpuSolver) -> None:
    judge = BaseJudge("planar")
    there = np.array([1.5, -0.8, 2.2, 0.5, 0.4, -0.6, 1.1])
    values = dict(zip(robot.variable_names, there.tolist(), strict=True))
    goal = PoseGoal(tuple(PoseTarget(link, judge.place(values, link)[None]) for link in ("tool", "mast")))
    problem = trajectory_problem(
        robot, goal, joints=("drive", *ARM, "pan"), base_link="map", scene=EMPTY_SCENE
    )
    trajectory = moved(plan_trajectory(solver, problem))
    last = values_along(robot.variable_names, problem.start, trajectory)[-1]
    for link in ("tool", "mast"):
        off = judge.place(last, link)[:3, 3] - judge.place(values, link)[:3, 3]
        assert np.linalg.norm(off) <= 1e-4 + 1e-9, link
    check_limits(robot, problem, trajectory)


def test_a_base_that_moves_at_the_start_goes_on(robot: RobotModel, solver: CpuSolver) -> None:
    velocity = np.zeros(robot.nq)
    velocity[:3] = 0.05, -0.04, 0.06
    problem = trajectory_problem(
        robot,
        np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1]),
        base_link="map",
        tip_link="tool",
        start_velocity=velocity,
        scene=EMPTY_SCENE,
    )
    trajectory = moved(plan_trajectory(solver, problem))
    np.testing.assert_allclose(trajectory.velocity[0, :3], velocity[:3], atol=1e-9)
    check_limits(robot, problem, trajectory)


@pytest.mark.parametrize("names", [("drive/theta",), ("drive/x",), ("drive/y", "drive/x", "elbow")])
def test_axes_that_are_not_named_are_locked(
    robot: RobotModel, solver: CpuSolver, names: tuple[str, ...]
) -> None:
    start = robot.default_q.copy()
    start[:3] = 0.3, -0.7, 0.4
    goal = np.linspace(0.5, 0.9, len(names))
    problem = trajectory_problem(
        robot, goal, joints=names, base_link="map", start=start, scene=box_scene(WALL)
    )
    trajectory = moved(plan_trajectory(solver, problem))
    assert trajectory.joint_names == names
    np.testing.assert_allclose(trajectory.position[-1], goal, atol=1e-9)
    others = np.setdiff1d(np.arange(robot.nq), problem.variables)
    np.testing.assert_array_equal(
        problem.whole(trajectory.position)[:, others],
        start[None, others].repeat(len(trajectory.position), axis=0),
    )
    check_free(BaseJudge("planar", [WALL]), robot, problem, trajectory)


@pytest.mark.parametrize("locked", [("drive/x",), ("drive/x", "drive/y"), ("drive/theta",), BASE])
def test_inverse_kinematics_keep_locked_axes_to_the_last_bit(
    robot: RobotModel, solver: CpuSolver, locked: tuple[str, ...]
) -> None:
    state = np.array([0.3, -0.7, 0.4, 0.1, 0.2, 0.3, 0.0])
    there = np.array([0.3, -0.7, 0.4, 0.7, -0.6, 0.5, 0.0])
    free = [k for k, name in enumerate(BASE) if name not in locked]
    there[free] += 0.3
    T = BaseJudge("planar").place(dict(zip(robot.variable_names, there.tolist(), strict=True)), "tool")
    problem = ik_problem(
        robot, T, base_link="map", tip_link="tool", state=state, locked_joints=locked, num_solutions=2
    )
    assert problem.joints == (*(name for name in BASE if name not in locked), *ARM)
    result = solver.solve_ik(problem)
    assert result.success.all(), result.messages
    assert result.joint_names == problem.joints
    q = state.copy()
    q[problem.variables] = result.q[0, 0]
    found = BaseJudge("planar").place(dict(zip(robot.variable_names, q.tolist(), strict=True)), "tool")
    assert np.linalg.norm(found[:3, 3] - T[:3, 3]) <= 1e-4 + 1e-9
    held = [k for k, name in enumerate(BASE) if name in locked]
    np.testing.assert_array_equal(q[held], state[held])


def test_an_axis_whose_limits_are_equal_stays(robot: RobotModel) -> None:
    held = apply_joint_limits(robot, {"drive/y": {"min_position": 0.25, "max_position": 0.25}})
    there = np.array([1.3, 0.25, 2.0, 0.7, -0.6, 0.5, 0.0])
    judge = BaseJudge("planar", [WALL])
    T = judge.place(dict(zip(robot.variable_names, there.tolist(), strict=True)), "tool")
    problem = trajectory_problem(held, T, base_link="map", tip_link="tool", scene=EMPTY_SCENE)
    assert problem.start[1] == 0.25
    trajectory = moved(solved_by(held, problem))
    assert np.abs(commands(trajectory, 1e-3).states[0][:, 1] - 0.25).max() <= 1e-8
    last = values_along(robot.variable_names, problem.start, trajectory)[-1]
    assert np.linalg.norm(judge.place(last, "tool")[:3, 3] - T[:3, 3]) <= 1e-4 + 1e-9


def test_nothing_thin_is_passed_through_between_samples(robot: RobotModel) -> None:
    scene, judge = box_scene(SHEET), BaseJudge("planar", [SHEET])
    rng, hit = np.random.default_rng(11), 0
    for _ in range(40):
        ends = np.concatenate(
            [rng.uniform(-1.0, 2.5, (2, 2)), rng.uniform(-6.0, 6.0, (2, 1)), rng.uniform(-1.2, 1.2, (2, 3))],
            axis=1,
        )
        motion = JointTrajectory(
            (*BASE, *ARM), np.array([0.0, 1.0]), ends, np.zeros((2, 6)), np.zeros((2, 6))
        )
        contact = first_contact(robot, scene, robot.default_q, np.arange(6), motion)
        every = values_along(robot.variable_names, robot.default_q, motion, 1e-3)
        distances = np.array([judge.distance(values) for values in every])
        if contact is None:
            assert distances.min() > 0.0
        else:
            hit += 1
            times = commands(motion, 1e-3).time
            assert (distances[times < contact.time - 2e-3] > -1e-9).all()
            assert distances[np.abs(times - contact.time) <= 5e-3].min() <= 2e-3
    assert 5 <= hit <= 35


def test_a_straight_move_of_the_base_is_verified(robot: RobotModel) -> None:
    goal = robot.default_q.copy()
    goal[:4] = 2.4, 0.1, 7.0, 0.3
    names, still = [*BASE, *ARM], np.zeros(robot.nq)
    free = plan_joint_motion(robot, names, robot.default_q, still, goal, 0.5, 0.5, scene=EMPTY_SCENE)
    assert free.report.ok, free.report.violations
    assert free.trajectory.position[-1, 2] == pytest.approx(7.0 - 2 * np.pi, abs=1e-9)
    assert not plan_joint_motion(
        robot, names, robot.default_q, still, goal, 0.5, 0.5, scene=box_scene(SHEET)
    ).report.ok
    with pytest.raises(InvalidStateError, match="'drive' is planar: a trajectory names its variables"):
        commanded_variables(robot, ["drive"])


def test_lines_are_followed_with_the_base(robot: RobotModel, solver: CpuSolver) -> None:
    judge = BaseJudge("planar")
    start = np.array([0.0, 0.0, 0.5, 0.6, 0.5, 0.1, 0.0])
    T0 = judge.place(dict(zip(robot.variable_names, start.tolist(), strict=True)), "tool")
    T1 = pose(so3_exp(np.array([0.0, 0.0, 0.6])), np.array([0.8, 0.4, 0.0])) @ T0
    T1[:3, 3] = T0[:3, 3] + [0.8, 0.4, 0.0]
    result = plan_cartesian_path(
        robot, solver.solve_ik, T1, base_link="map", link="tool", start=start, scene=EMPTY_SCENE
    )
    assert result.status is Status.SUCCESS, result.message
    assert result.trajectory is not None
    assert result.trajectory.joint_names == (*BASE, *ARM)
    way = T1[:3, 3] - T0[:3, 3]
    for values in values_along(robot.variable_names, start, result.trajectory, 0.05):
        p = judge.place(values, "tool")[:3, 3] - T0[:3, 3]
        assert np.linalg.norm(p - way * (p @ way) / (way @ way)) <= 2e-3


def test_names_that_say_nothing_are_refused(robot: RobotModel) -> None:
    goal = np.zeros(3)
    assert one_variable_each(robot, ("elbow", "drive")) == ("elbow", *BASE)
    with pytest.raises(UnknownJointError, match="'drive/z'"):
        trajectory_problem(robot, goal, joints=("drive/x", "drive/z", "elbow"))
    with pytest.raises(InvalidRequestError, match="twice"):
        trajectory_problem(robot, goal, joints=("drive/x", "drive"))
    with pytest.raises(UnknownJointError, match="'drive/z'"):
        ik_problem(robot, np.eye(4), base_link="map", tip_link="tool", locked_joints=("drive/z",))
