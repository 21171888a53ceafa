"""Tests of the order of paths to begin from."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.geometry.shapes import PlacedShape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.planning.path_memory import PathMemory
from kinopt_ros.planning.search import initial_paths as module
from kinopt_ros.planning.search import validity as looks_module
from kinopt_ros.planning.search.goal_configurations import GoalConfiguration
from kinopt_ros.planning.search.initial_paths import LINES, ROUGHLY, THROUGH_RANDOM, InitialPath, InitialPaths
from kinopt_ros.planning.search.search_state import SearchState
from kinopt_ros.planning.search.validity import ValidityChecker
from kinopt_ros.problems.trajectory import NUM_POINTS, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.trajectory_gate import TIMING
from kinopt_ros.solvers.trajectory_result import PathAttempt
from kinopt_ros.verification.trajectory import Violation

FAR_AWAY = SceneObject("ball", (PlacedShape(Sphere(0.1), np.eye(4)),), np.diag([1.0, 1.0, 1.0, 1.0]))


class Guide(CpuSolver):
    """Finds the same rough path again and again, and likes paths near to 0."""

    name = "guide"
    way: Float64 | None = None

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[float, int, int]] = []

    def rough_path(
        self,
        problem: TrajectoryProblem,
        ends: Float64,
        margin: float,
        looks: int,
        seed: int,
        go_on: Callable[[], bool],
    ) -> Float64 | None:
        assert go_on()
        self.asked.append((margin, looks, seed))
        return self.way

    def path_scores(self, problem: TrajectoryProblem, paths: Float64, margin: float) -> Float64:
        return np.abs(paths[:, paths.shape[1] // 2]).sum(axis=1)


@pytest.fixture(scope="module")
def guide() -> Guide:
    guide = Guide()
    guide.configure(load_robot("panda"))
    return guide


@pytest.fixture(autouse=True)
def no_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "missing_sampler", lambda: "not here")


def q_of(value: float) -> Float64:
    return np.array([value, 0.1, 0.0, -1.8, 0.0, 1.9, 0.5])


ENDS = [GoalConfiguration(k, q_of(0.2 * (k + 1))) for k in range(LINES + 2)]
WAY = np.stack([q_of(-0.5), q_of(-0.1), q_of(0.4)])


def problem_of(guide: Guide, **more: Any) -> TrajectoryProblem:
    start = guide.robot.default_q.copy()
    start[:7] = q_of(-0.5)
    scene = more.pop("scene", Scene(objects={"ball": FAR_AWAY}, version=1))
    return trajectory_problem(
        guide.robot, ENDS[0].q, start=start, scene=scene, deadline=time.monotonic() + 60.0, **more
    )


def starts_of(
    guide: Guide,
    problem: TrajectoryProblem,
    memory: PathMemory | None = None,
    vias: Sequence[Float64] = (),
) -> tuple[InitialPaths, SearchState]:
    guide.asked.clear()
    search_state = SearchState(problem, None)
    looks = ValidityChecker(guide.robot, search_state.problem, search_state.pause)
    return InitialPaths(guide, search_state, looks, memory, ENDS, list(vias)), search_state


def lines(starts: Sequence[InitialPath]) -> list[int]:
    """Goals of the starts that are straight lines from the first point to the last."""
    return [s.goal for s in starts if np.allclose(s.path, np.linspace(s.path[0], s.path[-1], len(s.path)))]


def test_without_a_scene_there_are_lines_to_all_ends(guide: Guide) -> None:
    found = list(starts_of(guide, problem_of(guide, scene=None))[0])
    assert lines(found) == [0, 1, 2, 3, 4]
    assert len(found) == 5
    assert not guide.asked


def test_in_a_scene_rough_paths_come_after_the_first_line(guide: Guide) -> None:
    guide.way = WAY
    found = list(starts_of(guide, problem_of(guide))[0])
    kinds = ["rough" if start.corners is not None else "other" for start in found]
    first, second, third = (len(margins) for _, margins in ROUGHLY)
    assert kinds[: 3 + first] == ["other", *["rough"] * first, "other", "other"]
    assert kinds[3 + first :][: second + third] == ["rough"] * (second + third)
    assert kinds[3 + first + second + third :] == ["other"] * (THROUGH_RANDOM + 2)
    assert [looks for _, looks, _ in guide.asked] == [looks for looks, margins in ROUGHLY for _ in margins]
    assert [margin for margin, _, _ in guide.asked] == [
        margin for _, margins in ROUGHLY for margin in margins
    ]
    assert len({seed for _, _, seed in guide.asked}) == len(guide.asked)
    rough = found[1]
    assert rough.corners is WAY
    assert rough.goal == 1, "the way ends at the second end"
    np.testing.assert_array_equal(rough.path[[0, -1]], WAY[[0, -1]])
    assert not rough.is_free


def test_lines_to_the_farther_ends_come_last(guide: Guide) -> None:
    guide.way = None
    found = list(starts_of(guide, problem_of(guide))[0])
    assert lines(found) == [0, 1, 2, 3, 4]
    assert [start.goal for start in found[-2:]] == [3, 4]


def test_random_detours_are_those_with_the_best_scores(guide: Guide) -> None:
    guide.way = None
    found = list(starts_of(guide, problem_of(guide))[0])[LINES : LINES + THROUGH_RANDOM]
    again = list(starts_of(guide, problem_of(guide))[0])[LINES : LINES + THROUGH_RANDOM]
    other = list(starts_of(guide, problem_of(guide, random_seed=1))[0])[LINES : LINES + THROUGH_RANDOM]
    for a, b, c in zip(found, again, other, strict=True):
        np.testing.assert_array_equal(a.path, b.path)
        assert (a.path[1:-1] != c.path[1:-1]).any()
    assert [start.goal for start in found[:8]] == [0, 0, 1, 1, 2, 2, 0, 0]
    # Out of sixteen the best: configurations drawn from all of the range are 8 rad from 0 on average, by this measure.
    assert np.mean([np.abs(start.path[len(start.path) // 2]).sum() for start in found[1::2]]) < 7.0


def test_where_it_is_said_where_to_go_nothing_is_searched(guide: Guide) -> None:
    guide.way = WAY
    vias = [q_of(-0.3), q_of(0.05)]
    problem = problem_of(guide, waypoints=vias)
    found = list(starts_of(guide, problem, vias=vias)[0])
    assert [start.goal for start in found] == [0, 1, 2, 3, 4]
    assert not guide.asked
    for start in found:
        np.testing.assert_array_equal(start.path[start.passed], vias)


def test_paths_of_the_problem_come_first_and_fit_the_ends(guide: Guide) -> None:
    guide.way = None
    path = np.linspace(q_of(-0.45), q_of(0.61), NUM_POINTS)
    path[NUM_POINTS // 2, 1] += 0.3
    problem = problem_of(guide, paths=path[None])
    first = next(iter(starts_of(guide, problem)[0]))
    assert first.goal == 2, "the nearest to where the path ends"
    np.testing.assert_array_equal(first.path[[0, -1]], [q_of(-0.5), ENDS[2].q])
    assert first.path[:, 1].argmax() == NUM_POINTS // 2


def test_with_waypoints_paths_of_the_problem_say_which_end(guide: Guide) -> None:
    guide.way = None
    via = q_of(0.05)
    path = np.linspace(q_of(-0.5), ENDS[2].q, NUM_POINTS)
    path[NUM_POINTS // 2, 1] += 0.3
    problem = problem_of(guide, paths=path[None], waypoints=[via])
    first = next(iter(starts_of(guide, problem, vias=[via])[0]))
    assert first.goal == 2
    np.testing.assert_array_equal(first.path[first.passed], [via])
    assert first.path[:, 1].max() < 0.2


def test_earlier_answers_lead_the_way(guide: Guide) -> None:
    guide.way = None
    memory = PathMemory()
    problem = problem_of(guide)
    through = q_of(0.3)
    through[1] = 0.9
    memory.add(problem.whole(np.stack([q_of(-0.5), *[through] * 3, ENDS[0].q])))
    found = list(starts_of(guide, problem, memory)[0])
    remembered = found[LINES]
    assert remembered.goal == 0
    assert np.abs(remembered.path - through).max(axis=1).min() < 1e-12


def test_detours_are_pointless_where_even_the_line_takes_too_long(guide: Guide) -> None:
    guide.way = WAY
    problem = replace(problem_of(guide), duration=1.0)
    starts, search_state = starts_of(guide, problem)
    found = []
    for start in starts:
        found.append(start)
        search_state.remember(PathAttempt(start.path, start.goal, Violation(TIMING, "too short")))
    assert [start.goal for start in found] == list(range(LINES))
    assert not guide.asked


def test_what_time_is_left_is_for_sampling(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems of many joints that the planner needs longer for were given up with time left."""
    searches: list[tuple[float, int]] = []

    def nothing(*arguments: Any, **options: Any) -> None:
        searches.append((arguments[4] - time.monotonic(), arguments[5]))

    monkeypatch.setattr(module, "missing_sampler", lambda: "")
    monkeypatch.setattr(module, "sampled_path", nothing)
    problem = problem_of(guide)
    list(starts_of(guide, problem)[0])
    assert [seed for _, seed in searches] == [1, 2]
    (first, _), (second, _) = searches
    assert first <= 2.0 < second <= 8.0


def test_steps_of_the_sampling_planner_are_glanced_at_first(
    guide: Guide, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most steps end in collision where there is little room, and clearing all of each before it is known that it does
    took nearly all of the planner's time: two arms of seven joints had a quarter of the steps for their deadline."""
    low, high = q_of(-1.2), q_of(1.2)
    swept: list[Float64] = []

    def sweep(*line: Any, **options: Any) -> bool:
        swept.append(line[3])
        return True

    monkeypatch.setattr(looks_module, "free_segment", sweep)
    searches: list[Any] = []
    monkeypatch.setattr(module, "missing_sampler", lambda: "")
    monkeypatch.setattr(module, "sampled_path", lambda *arguments, **options: searches.append(arguments[3]))
    there = guide.robot.default_q.copy()
    there[:7] = q_of(0.0)
    hand = forward_kinematics(guide.robot, there[None], ("panda_link7",))[0, 0]
    ball = SceneObject("ball", FAR_AWAY.shapes, hand)
    list(starts_of(guide, problem_of(guide, scene=Scene(objects={"ball": ball}, version=1)))[0])
    free = searches[0]
    assert not free(low, q_of(0.0)), "its end"
    assert not free(low, high), "its middle"
    assert not free(q_of(0.0), q_of(0.0))
    assert free(low, low)
    assert not swept
    assert free(low, q_of(-0.9)), "what glances cannot tell is looked at all the way"
    assert len(swept) == 1
