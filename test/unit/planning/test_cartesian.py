"""Motions along straight lines, against Pinocchio."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support.clock import Clock

pin = pytest.importorskip("pinocchio")

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import so3_log
from kinopt_ros.planning.cartesian import configurations, lines
from kinopt_ros.planning.cartesian.lines import Lines
from kinopt_ros.planning.cartesian.plan import plan_cartesian_path
from kinopt_ros.planning.cartesian.result import CartesianResult
from kinopt_ros.planning.cartesian.steps import CartesianSteps
from kinopt_ros.problems import ik, trajectory
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.solvers.trajectory_gate import Gate
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate

TIP = "panda_link8"


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return load_robot("panda")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Clock that the search for paths, and its problems, look at."""
    return Clock(monkeypatch, configurations, ik, trajectory)


@pytest.fixture(scope="module")
def solver(robot: RobotModel) -> Iterator[Solver]:
    solver = create_solver("cpu", robot)
    solver.warm_up()
    yield solver
    solver.close()


@pytest.fixture(scope="module")
def oracle() -> Any:
    """Pinocchio's poses of the tip for (M, 7) joint values."""
    model = pin.buildModelFromUrdf(str(find_robot("panda")[0]))
    data, frame = model.createData(), model.getFrameId(TIP)

    def poses(q: Float64) -> Float64:
        rows = []
        for row in q:
            whole = pin.neutral(model)
            whole[: len(row)] = row
            pin.framesForwardKinematics(model, data, whole)
            rows.append(data.oMf[frame].homogeneous)
        return np.array(rows)

    return poses


@pytest.fixture(scope="module")
def T_start(robot: RobotModel) -> Float64:
    return forward_kinematics(robot, robot.default_q, links=(TIP,))[0]


def moved(T: Float64, x: float = 0.0, y: float = 0.0, z: float = 0.0, turn: float = 0.0) -> Float64:
    """A pose moved in the base and turned about its own z."""
    result = T.copy()
    result[:3, 3] += (x, y, z)
    result[:3, :3] = T[:3, :3] @ pin.exp3(np.array([0.0, 0.0, turn]))
    return result


def samples(result: CartesianResult, count: int = 400) -> Float64:
    assert result.trajectory is not None
    times = np.linspace(0.0, result.trajectory.duration, count)
    return evaluate(result.trajectory, times)[0]


def test_the_tip_is_on_the_line_and_turns_evenly(
    robot: RobotModel, solver: Solver, oracle: Any, T_start: Float64
) -> None:
    T_end = moved(T_start, y=0.2, z=-0.25, turn=0.8)
    result = plan_cartesian_path(
        robot, solver.solve_ik, T_end, velocity_scaling=0.5, acceleration_scaling=0.5
    )
    assert result.status is Status.SUCCESS, result.message
    assert (result.fraction, result.waypoints) == (1.0, 1)
    T = oracle(samples(result))
    way = T_end[:3, 3] - T_start[:3, 3]
    share = (T[:, :3, 3] - T_start[:3, 3]) @ way / (way @ way)
    off = T[:, :3, 3] - T_start[:3, 3] - share[:, None] * way
    assert np.linalg.norm(off, axis=1).max() <= 1e-3
    assert (np.diff(share) > -1e-6).all()
    for pose, s in zip(T, share, strict=True):
        wanted = T_start[:3, :3] @ pin.exp3(np.array([0.0, 0.0, 0.8 * s]))
        assert np.linalg.norm(pin.log3(wanted.T @ pose[:3, :3])) <= 0.011
    np.testing.assert_allclose(T[0], T_start, atol=1e-9)
    np.testing.assert_allclose(T[-1], T_end, atol=1e-5)
    assert any(name.startswith("straight line") for name in result.checks)


def test_a_finer_tolerance_is_kept(robot: RobotModel, solver: Solver, oracle: Any, T_start: Float64) -> None:
    steps = CartesianSteps(max_step=0.05, tolerance=1e-4)
    result = plan_cartesian_path(robot, solver.solve_ik, moved(T_start, y=0.3), steps=steps)
    assert result.status is Status.SUCCESS, result.message
    T = oracle(samples(result))
    assert np.abs(T[:, [0, 2], 3] - T_start[[0, 2], 3]).max() <= 1e-4


def test_several_waypoints(robot: RobotModel, solver: Solver, oracle: Any, T_start: Float64) -> None:
    corners = np.array([moved(T_start, z=-0.1), moved(T_start, y=0.1, z=-0.1), moved(T_start, y=0.1)])
    result = plan_cartesian_path(
        robot, solver.solve_ik, corners, velocity_scaling=1.0, acceleration_scaling=1.0
    )
    assert result.status is Status.SUCCESS, result.message
    assert result.waypoints == 3
    p = oracle(samples(result))[:, :3, 3]
    for corner in corners:
        assert np.linalg.norm(p - corner[:3, 3], axis=1).min() < 5e-3
    ends = [T_start[:3, 3], *corners[:, :3, 3]]
    distances = [distance(p, a, b) for a, b in pairwise(ends)]
    assert np.min(distances, axis=0).max() <= 1e-3


def distance(p: Float64, a: Float64, b: Float64) -> Float64:
    """Return distances of points (M, 3) from the segment between a and b."""
    share = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return np.linalg.norm(p - a - share[:, None] * (b - a), axis=1)


def test_a_tool_and_the_orientation_of_the_start(
    robot: RobotModel, solver: Solver, oracle: Any, T_start: Float64
) -> None:
    tool = np.eye(4)
    tool[:3, 3] = (0.05, 0.0, 0.1)
    goal = np.eye(4)  # turned against the start, which keep_orientation makes good
    goal[:3, 3] = (T_start @ tool)[:3, 3] + (0.0, 0.15, 0.0)
    result = plan_cartesian_path(robot, solver.solve_ik, goal, T_link_tool=tool, keep_orientation=True)
    assert result.status is Status.SUCCESS, result.message
    T = oracle(samples(result)) @ tool
    assert np.abs(T[:, [0, 2], 3] - goal[[0, 2], 3]).max() <= 1e-3
    assert np.abs(T[:, :3, :3] - T_start[:3, :3]).max() <= 0.011


def test_out_of_reach_ends_where_it_ends(
    robot: RobotModel, solver: Solver, oracle: Any, T_start: Float64
) -> None:
    result = plan_cartesian_path(robot, solver.solve_ik, moved(T_start, x=1.0))
    assert result.status is Status.NO_IK_SOLUTION
    assert "waypoint 0" in result.message
    assert 0.05 < result.fraction < 0.9
    assert result.waypoints == 0
    end = oracle(samples(result))[-1]
    assert end[0, 3] - T_start[0, 3] == pytest.approx(result.fraction, abs=1e-4)
    assert result.trajectory is not None
    assert not result.trajectory.velocity[-1].any()


def test_a_jump_ends_the_path(robot: RobotModel, solver: Solver, T_start: Float64) -> None:
    steps = CartesianSteps(max_revolute_jump=0.002)
    result = plan_cartesian_path(robot, solver.solve_ik, moved(T_start, y=0.2), steps=steps)
    assert result.status is Status.PLANNING_FAILED
    assert "jump" in result.message
    assert result.fraction < 0.1


def test_a_solver_that_jumps_to_another_branch_ends_the_path(
    robot: RobotModel, solver: Solver, T_start: Float64
) -> None:
    calls = 0

    def jumping(problem: Any) -> IkResult:
        nonlocal calls
        calls += 1
        if calls >= 10 and problem.posture is None:  # the other branch of the wrist
            from dataclasses import replace

            q = problem.state.copy()
            q[0, 4], q[0, 5], q[0, 6] = 2.5, 0.5, -2.0
            return solver.solve_ik(replace(problem, state=q))
        return solver.solve_ik(problem)

    result = plan_cartesian_path(robot, jumping, moved(T_start, y=0.2))
    assert result.status is Status.SUCCESS  # among several the neighbour is found
    assert np.abs(np.diff(samples(result), axis=0)).max() < 0.1


def test_the_jump_factor(robot: RobotModel, solver: Solver, T_start: Float64) -> None:
    # A turn on the spot, then a short way: steps of the two differ in joint space.
    corners = np.array([moved(T_start, turn=1.0), moved(T_start, turn=1.0, z=-0.02)])
    steps = CartesianSteps(max_step=0.001, jump_factor=1.5)
    result = plan_cartesian_path(robot, solver.solve_ik, corners, steps=steps)
    assert result.status is Status.PLANNING_FAILED
    assert "times as long" in result.message


def test_an_obstacle_ends_the_path_before_it(
    robot: RobotModel, solver: Solver, oracle: Any, T_start: Float64
) -> None:
    pytest.importorskip("coal")
    x, y, z = T_start[:3, 3]
    box = SceneObject("box", (PlacedShape(Box(0.3, 0.1, 0.3), np.eye(4)),), moved(np.eye(4), x, y + 0.35, z))
    scene = Scene(objects={"box": box}, version=4)
    free = plan_cartesian_path(robot, solver.solve_ik, moved(T_start, y=0.3))
    result = plan_cartesian_path(robot, solver.solve_ik, moved(T_start, y=0.3), scene=scene, clearance=0.01)
    assert free.status is Status.SUCCESS
    assert "collisions on the way" in free.not_checked
    assert result.status is Status.PLANNING_FAILED
    assert "box" in result.message
    assert 0.1 < result.fraction < 0.9
    assert result.scene_version == 4
    assert "collisions on the way" in result.checks


def test_a_start_in_an_obstacle(robot: RobotModel, solver: Solver, T_start: Float64) -> None:
    pytest.importorskip("coal")
    box = SceneObject("box", (PlacedShape(Box(0.2, 0.2, 0.2), np.eye(4)),), moved(np.eye(4), *T_start[:3, 3]))
    result = plan_cartesian_path(
        robot, solver.solve_ik, moved(T_start, y=0.3), scene=Scene(objects={"box": box}, version=2)
    )
    assert result.status is Status.START_STATE_IN_COLLISION
    assert (result.trajectory, result.fraction) == (None, 0.0)


def test_the_deadline_ends_the_path(
    robot: RobotModel, solver: Solver, T_start: Float64, clock: Clock
) -> None:
    def slow(problem: Any) -> IkResult:
        clock.now += 0.1
        return solver.solve_ik(problem)

    result = plan_cartesian_path(robot, slow, moved(T_start, y=0.3), deadline=clock.now + 1.5)
    assert result.status is Status.TIMED_OUT
    assert 0.0 < result.fraction < 1.0
    assert result.trajectory is not None


def test_the_deadline_ends_refinement_too(
    robot: RobotModel, solver: Solver, T_start: Float64, clock: Clock
) -> None:
    waypoint, calls = moved(T_start, y=0.1), 0
    deadline = clock.now + 1.0

    def late(problem: Any) -> IkResult:
        nonlocal calls
        calls += 1
        if calls > 10:  # the steps of the line; what follows is put in between
            clock.now = deadline + 0.01
        return solver.solve_ik(problem)

    steps = CartesianSteps(tolerance=1e-9)
    result = plan_cartesian_path(robot, late, waypoint, steps=steps, deadline=deadline)
    assert calls > 10
    assert result.status is Status.TIMED_OUT
    assert result.trajectory is None


def test_thousands_of_equal_waypoints_cost_nothing(
    robot: RobotModel, solver: Solver, T_start: Float64, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look at the timed motion measured every pose against every line: minutes, whatever the deadline."""
    measured = 0

    def counted(R: Float64) -> Float64:
        nonlocal measured
        measured += len(R)
        return so3_log(R)

    monkeypatch.setattr(lines, "so3_log", counted)
    waypoints = np.repeat(T_start[None], 1000, axis=0)
    waypoints[-1] = moved(T_start, y=0.1)
    result = plan_cartesian_path(robot, solver.solve_ik, waypoints)
    assert (result.status, result.waypoints) == (Status.SUCCESS, 1000)
    assert measured < 100_000


def test_the_deadline_ends_looking_at_the_lines_too(
    robot: RobotModel, solver: Solver, T_start: Float64, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waypoints = np.array([moved(T_start, y=0.001 * k) for k in range(1, 101)])
    deadline, looks = clock.now + 10.0, 0
    of_samples = Lines._nearest

    def late(*arguments: Any) -> None:
        nonlocal looks
        looks += 1
        clock.now = deadline + 1.0
        of_samples(*arguments)

    monkeypatch.setattr(Lines, "_nearest", late)
    result = plan_cartesian_path(robot, solver.solve_ik, waypoints, deadline=deadline)
    assert looks == 1
    assert (result.status, result.trajectory) == (Status.TIMED_OUT, None)


def test_a_step_longer_than_any_line_skips_no_waypoint(
    robot: RobotModel, solver: Solver, T_start: Float64, oracle: Any
) -> None:
    steps = CartesianSteps(max_step=1e9, max_angle=1e9)
    result = plan_cartesian_path(robot, solver.solve_ik, moved(T_start, y=0.05), steps=steps)
    assert result.status is Status.SUCCESS, result.message
    np.testing.assert_allclose(
        oracle(samples(result))[-1, :3, 3], T_start[:3, 3] + [0.0, 0.05, 0.0], atol=1e-5
    )


def test_a_pose_off_all_lines_is_measured(T_start: Float64) -> None:
    lines = Lines(np.array([T_start, moved(T_start, y=0.1), moved(T_start, y=0.2)]), CartesianSteps())
    poses = np.array([moved(T_start, y=0.15), moved(T_start, y=0.15, z=0.3)])
    distance, angle = lines.off(poses, lines.count, 1e-3)
    assert distance == pytest.approx(0.3)
    assert angle == pytest.approx(0.0, abs=1e-7)


def test_nowhere_to_go(robot: RobotModel, solver: Solver, T_start: Float64) -> None:
    result = plan_cartesian_path(robot, solver.solve_ik, T_start)
    assert result.status is Status.INVALID_GOAL_CONSTRAINTS
    assert result.trajectory is None


def test_the_order_of_the_joints_is_the_callers(robot: RobotModel, solver: Solver, T_start: Float64) -> None:
    order = [f"panda_joint{i}" for i in (7, 6, 5, 4, 3, 2, 1)]
    result = plan_cartesian_path(robot, solver.solve_ik, moved(T_start, y=0.1), joints=order)
    assert result.trajectory is not None
    assert result.trajectory.joint_names == tuple(order)
    usual = plan_cartesian_path(robot, solver.solve_ik, moved(T_start, y=0.1))
    np.testing.assert_allclose(samples(result)[-1][::-1], samples(usual)[-1], atol=1e-6)


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (InvalidGoalError, {"waypoints": np.zeros((0, 4, 4))}),
        (InvalidGoalError, {"waypoints": np.full((4, 4), np.nan)}),
        (InvalidRequestError, {"joints": ["panda_joint1"]}),
        (InvalidRequestError, {"steps": {"max_step": 0.0}}),
        (InvalidRequestError, {"steps": {"jump_factor": 1.0}}),
        (InvalidRequestError, {"steps": {"max_step": 1e-7}}),
        (InvalidRequestError, {"velocity_scaling": 1.5}),
        (InvalidRequestError, {"clearance": 0.1}),
    ],
)
def test_bad_input_is_refused(
    robot: RobotModel, solver: Solver, T_start: Float64, error: type[Exception], arguments: dict[str, Any]
) -> None:
    with pytest.raises(error):  # noqa: PT012
        given = {"waypoints": moved(T_start, y=0.1), **arguments}
        if "steps" in given:
            given["steps"] = CartesianSteps(**given["steps"])
        plan_cartesian_path(robot, solver.solve_ik, given.pop("waypoints"), **given)


@pytest.mark.parametrize("back", [0.0, 0.001])
def test_poses_near_both_lines_may_miss_the_corner(back: float) -> None:
    steps = CartesianSteps()
    corners = np.repeat(np.eye(4)[None], 3, axis=0)
    corners[1, 0, 3], corners[2, 1, 3] = 0.1, back
    lines = Lines(corners, steps)
    whole = lines.at(np.linspace(0.0, lines.count, 301))
    assert lines.missed(whole, lines.count, steps.tolerance) == ""
    short = whole[whole[:, 0, 3] < 0.095]
    assert lines.off(short, lines.count, steps.tolerance)[0] <= steps.tolerance
    assert "waypoint 0" in lines.missed(short, lines.count, steps.tolerance)
    first_line = int(lines.ends[0]) - 1
    assert lines.missed(short, first_line, steps.tolerance) == ""  # the path is to end before it


def test_a_quick_motion_passes_a_waypoint_between_two_looks() -> None:
    corners = np.repeat(np.eye(4)[None], 3, axis=0)
    corners[1, 0, 3], corners[2, 0, 3] = 0.1, 0.2
    lines = Lines(corners, CartesianSteps())
    poses = lines.at(np.linspace(0.0, lines.count, 8))
    assert lines.missed(poses, lines.count, 1e-4) == ""


def test_waypoints_count_only_if_the_motion_passes_them(
    robot: RobotModel, solver: Solver, T_start: Float64, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timing that rounds a corner by more than the tolerance is no success."""
    passed = Gate.passed

    def rounded(self: Gate, path: Float64, goal: int) -> Any:
        keep = np.linalg.norm(np.diff(path, axis=0), axis=1).cumsum()
        middle = np.abs(keep - keep[-1] / 2) < 0.02 * keep[-1]  # what is next to the corner
        return passed(self, path[np.concatenate([[True], ~middle[:-1], [True]])], goal)

    monkeypatch.setattr(Gate, "passed", rounded)
    there = moved(T_start, y=0.1)
    result = plan_cartesian_path(robot, solver.solve_ik, np.array([there, T_start]))
    assert result.status is Status.PLANNING_FAILED
    assert "off waypoint 0" in result.message
