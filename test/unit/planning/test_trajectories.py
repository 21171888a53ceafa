"""Motions around obstacles, by the cpu plugin; and that no path of a plugin gets past the gate."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from threading import Thread
from typing import Any

import numpy as np
import pytest

from kinopt_ros import pauses
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, StartStateError, UnsupportedFeatureError
from kinopt_ros.geometry.shapes import Box, PlacedShape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.planning.path_memory import PathMemory
from kinopt_ros.planning.search import initial_paths
from kinopt_ros.planning.search.along_lines import along_lines
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.constraints.pose_along import upright
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.trajectory import CostWeights, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.solvers.base import Capabilities, Feature, Solver
from kinopt_ros.solvers.judgement import PluginError
from kinopt_ros.solvers.paths import PathCandidates, PathRequest, Progress, Report
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.collision import check_collisions

START = np.array([-0.8, 0.3, 0.0, -2.0, 0.0, 2.3, 0.8])
GOAL = np.array([0.8, 0.3, 0.0, -2.0, 0.0, 2.3, 0.8])


def placed(name: str, shape: Any, *xyz: float) -> SceneObject:
    T = np.eye(4)
    T[:3, 3] = xyz
    return SceneObject(name, (PlacedShape(shape, np.eye(4)),), T)


def scene_of(*things: SceneObject) -> Scene:
    return Scene(objects={thing.id: thing for thing in things}, version=7)


WALL = scene_of(placed("wall", Box(0.5, 0.04, 0.5), 0.55, 0.0, 0.25))

# The elbow is 0.316 m from the shoulder, which is 0.333 m high: at y = 0 there is no place for it.
CAGE = scene_of(
    placed("front", Box(3.0, 0.02, 6.0), 1.7, 0.0, 0.0),
    placed("back", Box(3.0, 0.02, 6.0), -1.7, 0.0, 0.0),
    placed("top", Box(6.0, 0.02, 3.0), 0.0, 0.0, 2.0),
)
SIDE = np.array([-1.5, 1.2, 0.0, -1.2, 0.0, 1.8, 0.8])
OTHER_SIDE = np.array([1.5, 1.2, 0.0, -1.2, 0.0, 1.8, 0.8])


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    robot = load_robot("panda")
    prepare_collisions(robot)
    return robot


@pytest.fixture(scope="module")
def solver(robot: RobotModel) -> Iterator[Solver]:
    solver = create_solver("cpu", robot)
    solver.warm_up()
    yield solver
    solver.close()


def whole(robot: RobotModel, q: Float64) -> Float64:
    full = robot.default_q.copy()
    full[:7] = q
    return full


def asked(robot: RobotModel, goals: Any = GOAL, **options: Any) -> TrajectoryProblem:
    options = {"start": whole(robot, START), "scene": WALL} | options
    return trajectory_problem(robot, goals, **options)


def looked_at(robot: RobotModel, scene: Scene, trajectory: JointTrajectory) -> bool:
    """Check whether 500 samples of a motion are free."""
    times = np.linspace(0.0, trajectory.duration, 500)
    full = np.repeat(robot.default_q[None], 500, axis=0)
    full[:, :7] = evaluate(trajectory, times)[0]
    return bool(check_collisions(robot, scene, full, contacts=False).free.all())


def test_a_motion_that_keeps_what_was_wanted_says_no_less(
    robot: RobotModel, solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds by shapes that are too large said 5 mm where 1 cm had been asked for, and was kept."""
    monkeypatch.setattr("kinopt_ros.verification.verify.least_clearance", lambda *_: -0.01)
    result = plan_trajectory(solver, asked(robot, clearance=0.005))
    assert result.success, result.message
    assert result.clearance == 0.005


def test_plans_give_way_to_stops(robot: RobotModel, solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "GIVES_WAY", 60.0)
    found: list[TrajectoryResult] = []
    solver.warm_up_motions()
    planning = Thread(target=lambda: found.append(plan_trajectory(solver, asked(robot))))
    with pauses.urgent():
        planning.start()
        planning.join(0.3)  # it takes a tenth of that
        assert not found
    planning.join(60.0)
    assert found[0].success


def test_over_the_wall(robot: RobotModel, solver: Solver) -> None:
    problem = asked(robot)
    result = plan_trajectory(solver, problem)
    assert result.success, result.message
    assert result.trajectory is not None
    assert looked_at(robot, WALL, result.trajectory)
    np.testing.assert_array_equal(result.trajectory.position[0], START)
    np.testing.assert_array_equal(result.trajectory.position[-1], GOAL)
    assert result.scene_version == 7
    assert result.length > np.linalg.norm(GOAL - START)
    assert result.clearance >= 0.0
    assert {"collisions on the way", "goal", "jerk limits"} <= set(result.checks)
    assert result.attempt is None
    assert sum(result.stages.values()) <= result.solve_time


def test_same_request_same_answer(robot: RobotModel, solver: Solver) -> None:
    first, second = (plan_trajectory(solver, asked(robot, random_seed=3)) for _ in range(2))
    assert first.trajectory is not None
    assert second.trajectory is not None
    np.testing.assert_array_equal(first.trajectory.position, second.trajectory.position)


def test_a_free_line_is_taken_as_it_is(robot: RobotModel, solver: Solver) -> None:
    result = plan_trajectory(solver, asked(robot, scene=EMPTY_SCENE))
    assert result.success, result.message
    assert result.attempts == 0
    assert result.length == pytest.approx(np.linalg.norm(GOAL - START))


def test_without_a_scene_nobody_looks(robot: RobotModel, solver: Solver) -> None:
    result = plan_trajectory(solver, asked(robot, scene=None))
    assert result.success
    assert result.scene_version is None
    assert "collisions on the way" in result.not_checked


def test_a_pose_is_a_goal(robot: RobotModel, solver: Solver) -> None:
    T = forward_kinematics(robot, whole(robot, GOAL), ["panda_link8"])[0]
    result = plan_trajectory(solver, asked(robot, T))
    assert result.success, result.message
    assert result.trajectory is not None
    end = forward_kinematics(robot, whole(robot, result.trajectory.position[-1]), ["panda_link8"])[0]
    assert np.linalg.norm(end[:3, 3] - T[:3, 3]) < 1e-4


def test_of_several_goals_one_that_can_be_reached(robot: RobotModel, solver: Solver) -> None:
    far = np.eye(4)
    far[0, 3] = 3.0
    result = plan_trajectory(solver, asked(robot, [far, GOAL]))
    assert result.success, result.message
    assert result.goal == 1


def test_waypoints_are_passed(robot: RobotModel, solver: Solver) -> None:
    above = 0.5 * (START + GOAL) + np.array([0.0, -0.9, 0.0, 0.2, 0.0, 0.0, 0.0])
    result = plan_trajectory(solver, asked(robot, waypoints=[above]))
    assert result.success, result.message
    assert result.trajectory is not None
    times = np.linspace(0.0, result.trajectory.duration, 5000)
    off = np.abs(evaluate(result.trajectory, times)[0] - above).max(axis=1)
    assert off.min() < 2e-3


def test_nothing_asked_is_left_out_because_the_line_is_free(robot: RobotModel, solver: Solver) -> None:
    line = plan_trajectory(solver, asked(robot, scene=EMPTY_SCENE))
    rest = whole(robot, 0.5 * (START + GOAL) + 0.3)
    weights = CostWeights(rest=1e3)
    rested = plan_trajectory(solver, asked(robot, scene=EMPTY_SCENE, rest=rest, weights=weights))
    around = np.stack([START, 0.5 * (START + GOAL) + 0.4, GOAL])
    path, _ = along_lines(around, 64)
    given = plan_trajectory(solver, asked(robot, scene=EMPTY_SCENE, paths=path))
    assert line.trajectory is not None
    assert given.success
    assert given.attempts == 1
    assert rested.trajectory is not None
    off = [np.linalg.norm(t.position - rest[:7], axis=1).mean() for t in (line.trajectory, rested.trajectory)]
    assert off[1] < 0.9 * off[0]


def test_goals_that_cannot_keep_what_holds_all_the_way_do_not_hide_others(
    robot: RobotModel, solver: Solver
) -> None:
    held = upright(robot, "panda_hand", 0.1, whole(robot, START))
    tilted = [START + np.array([0.2 + 0.1 * k, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0]) for k in range(3)]
    far = START + np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    result = plan_trajectory(solver, asked(robot, [*tilted, far], along=[held], scene=EMPTY_SCENE))
    assert result.success, result.message
    assert result.goal == 3
    refused = plan_trajectory(solver, asked(robot, tilted[:1], along=[held], scene=EMPTY_SCENE))
    assert refused.status is Status.GOAL_VIOLATES_PATH_CONSTRAINTS
    elsewhere = upright(robot, "panda_hand", 0.1, whole(robot, tilted[2]))
    refused = plan_trajectory(solver, asked(robot, far, along=[elsewhere], scene=EMPTY_SCENE))
    assert refused.status is Status.START_STATE_VIOLATES_PATH_CONSTRAINTS


def test_start_in_collision(robot: RobotModel, solver: Solver) -> None:
    hand = forward_kinematics(robot, whole(robot, START), ["panda_hand"])[0]
    scene = scene_of(placed("ball", Sphere(0.05), *hand[:3, 3]))
    result = plan_trajectory(solver, asked(robot, scene=scene))
    assert result.status is Status.START_STATE_IN_COLLISION
    assert "'ball'" in result.message
    assert result.trajectory is None


@pytest.mark.parametrize("as_pose", [False, True])
def test_goal_in_an_obstacle(robot: RobotModel, solver: Solver, as_pose: bool) -> None:
    T = forward_kinematics(robot, whole(robot, GOAL), ["panda_hand", "panda_link8"])
    scene = scene_of(placed("ball", Sphere(0.05), *T[0, :3, 3]))
    result = plan_trajectory(solver, asked(robot, T[1] if as_pose else GOAL, scene=scene))
    assert result.status is Status.GOAL_IN_COLLISION
    assert "'ball'" in result.message


def test_a_pose_out_of_reach(robot: RobotModel, solver: Solver) -> None:
    far = np.eye(4)
    far[0, 3] = 3.0
    result = plan_trajectory(solver, asked(robot, far))
    assert result.status is Status.NO_IK_SOLUTION
    assert result.message


def test_too_short_a_duration(robot: RobotModel, solver: Solver) -> None:
    free = plan_trajectory(solver, asked(robot, scene=EMPTY_SCENE))
    assert free.trajectory is not None
    # The velocity limits alone forbid it; all limits together do.
    for duration in (0.05, 0.98 * free.trajectory.duration):
        result = plan_trajectory(solver, asked(robot, duration=duration, scene=EMPTY_SCENE))
        assert result.status is Status.PLANNING_FAILED
        assert f"{duration:.6f}"[:4] in result.message
        assert result.attempts <= 2
    longer = plan_trajectory(solver, asked(robot, duration=1.5 * free.trajectory.duration, scene=EMPTY_SCENE))
    assert longer.trajectory is not None
    assert longer.trajectory.duration == pytest.approx(1.5 * free.trajectory.duration)


def caged(robot: RobotModel, **options: Any) -> TrajectoryProblem:
    return asked(robot, OTHER_SIDE, start=whole(robot, SIDE), scene=CAGE, **options)


def test_a_cage_is_given_up_with_the_place_of_the_worst(robot: RobotModel, solver: Solver) -> None:
    begin = time.monotonic()
    result = plan_trajectory(solver, caged(robot, deadline=begin + 1.0))
    assert result.status is Status.TIMED_OUT
    assert "is in collision" in result.message
    assert result.attempt is not None
    assert result.attempt.state is not None
    assert time.monotonic() - begin < 10.0


def test_cancelling_ends_the_search(robot: RobotModel, solver: Solver) -> None:
    told: list[Progress] = []

    def report(progress: Progress) -> bool:
        told.append(progress)
        return len(told) < 20

    result = plan_trajectory(solver, caged(robot), report)
    assert result.status is Status.PREEMPTED
    assert 20 <= len(told) <= 22


def test_earlier_answers_are_places_to_begin_from(robot: RobotModel, solver: Solver) -> None:
    memory = PathMemory()
    assert plan_trajectory(solver, asked(robot), memory=memory).success
    problem = asked(robot)
    assert len(memory.near(problem.start, whole(robot, GOAL), problem.variables, 9))


class Liar(Solver):
    """Claims that the paths it gets are free."""

    name = "liar"
    version = "0"
    capabilities = Capabilities(frozenset(JointType), frozenset({Feature.TRAJECTORIES}))
    shift = 0.0

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        pass

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        raise NotImplementedError

    def _optimize_trajectory(
        self, problem: TrajectoryProblem, request: PathRequest, report: Report | None
    ) -> PathCandidates:
        S = len(request.paths)
        return PathCandidates(
            request.paths + self.shift,
            np.zeros(S),
            np.full(S, 0.1),
            np.zeros(S),
            np.zeros(S, dtype=np.int64),
            np.zeros(S, dtype=np.bool_),
        )


def test_a_path_that_is_claimed_to_be_free_is_checked(robot: RobotModel) -> None:
    liar = Liar()
    liar.configure(robot)
    problem = asked(robot)
    path, _ = along_lines(np.stack([START, GOAL]), problem.num_points)
    request = PathRequest(path[None], np.zeros(1, dtype=np.int64), np.zeros((1, 0), dtype=np.int64), 0.01)
    result = liar.optimize_trajectory(problem, request)
    assert result.status is Status.PLANNING_FAILED
    assert "'wall'" in result.message
    assert liar.optimize_trajectory(replace(problem, scene=EMPTY_SCENE), request).success
    liar.shift = 0.1
    with pytest.raises(PluginError, match="begin where the robot is"):
        liar.optimize_trajectory(problem, request)


class Guide(Liar):
    """Knows a way, but cannot improve any."""

    way: Float64 | None = None

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[float, int]] = []

    def rough_path(
        self,
        problem: TrajectoryProblem,
        ends: Float64,
        margin: float,
        looks: int,
        seed: int,
        go_on: Callable[[], bool],
    ) -> Float64 | None:
        self.asked.append((margin, looks))
        return self.way

    def _optimize_trajectory(
        self, problem: TrajectoryProblem, request: PathRequest, report: Report | None
    ) -> PathCandidates:
        line, _ = along_lines(request.paths[0][[0, -1]], problem.num_points)
        found = super()._optimize_trajectory(problem, request, report)
        return replace(found, paths=np.repeat(line[None], len(request.paths), axis=0))


OVER = np.array([0.0, -0.5, 0.0, -1.6, 0.0, 1.6, 0.8])


def test_a_rough_path_that_is_free_will_do(robot: RobotModel) -> None:
    guide = Guide()
    guide.configure(robot)
    guide.way = np.stack(
        [START, OVER + START * [1, 0, 0, 0, 0, 0, 0], OVER + GOAL * [1, 0, 0, 0, 0, 0, 0], GOAL]
    )
    result = plan_trajectory(guide, asked(robot, deadline=time.monotonic() + 20.0))
    assert result.success, result.message
    assert result.trajectory is not None
    assert looked_at(robot, WALL, result.trajectory)
    (margin, _), *others = guide.asked
    assert margin == initial_paths.ROUGHLY[0][1][0]
    assert not others
    assert result.stages["rough paths"] > 0.0


def test_a_rough_path_that_is_not_free_is_no_answer(
    robot: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(initial_paths, "missing_sampler", lambda: "not here")
    guide = Guide()
    guide.configure(robot)
    guide.way = np.stack([START, 0.5 * (START + GOAL), GOAL])
    result = plan_trajectory(guide, asked(robot, deadline=time.monotonic() + 5.0))
    assert result.status in (Status.PLANNING_FAILED, Status.TIMED_OUT)
    assert result.trajectory is None
    # Different margins, more and more looks.
    assert len(guide.asked) > 4
    assert min(margin for margin, _ in guide.asked) < 0.0
    assert guide.asked[-1][1] > guide.asked[0][1]


def test_solvers_that_do_not_optimize_say_so(robot: RobotModel) -> None:
    class Modest(Liar):
        capabilities = Capabilities(frozenset(JointType))

    solver = Modest()
    solver.configure(robot)
    with pytest.raises(UnsupportedFeatureError, match="does not optimize"):
        plan_trajectory(solver, asked(robot))


@pytest.mark.parametrize("scene", [None, EMPTY_SCENE, WALL])
def test_a_robot_that_is_beyond_its_limits_comes_back_as_far_as_is_allowed(
    robot: RobotModel, solver: Solver, scene: Scene | None
) -> None:
    """Problems and their check had a constant, whatever parameter start_state_tolerance said."""
    start, upper = robot.default_q.copy(), robot.limits.upper[0]
    start[:7] = START
    start[0] = upper + 0.05
    with pytest.raises(StartStateError, match=r"by more than 0.001"):
        trajectory_problem(robot, GOAL, start=start, scene=scene)
    problem = trajectory_problem(robot, GOAL, start=start, scene=scene, start_tolerance=0.06)
    with pytest.raises(StartStateError, match=r"by more than 0.04"):
        plan_trajectory(solver, replace(problem, start_tolerance=0.04))
    with pytest.raises(InvalidRequestError, match=r"start_tolerance is 0.2; allowed is 0 to 0.1"):
        trajectory_problem(robot, GOAL, start=start, start_tolerance=0.2)
    result = plan_trajectory(solver, problem)
    assert result.status is Status.SUCCESS, result.message
    assert result.trajectory is not None
    first = evaluate(result.trajectory, np.linspace(0.0, result.trajectory.duration, 2000))[0][:, 0]
    assert first[0] == start[0]
    outside = first > upper
    assert (np.diff(first[outside]) <= 1e-9).all()
    assert not outside[int(outside.sum()) :].any()  # it does not come back once it is inside
