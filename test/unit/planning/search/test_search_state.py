"""Tests of when a search ends, and what is said then."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from kinopt_ros.planning.search import search_state as module
from kinopt_ros.planning.search.search_state import WITHOUT_DEADLINE, SearchState, Stopped
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.paths import Progress
from kinopt_ros.solvers.trajectory_gate import TIMING
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.verification.trajectory import Violation
from kinopt_ros.verification.verify import ON_THE_WAY


@pytest.fixture(scope="module")
def problem() -> TrajectoryProblem:
    return trajectory_problem(load_robot("panda"), np.array([0.3, 0.1, 0.0, -1.8, 0.0, 1.9, 0.5]))


def attempt(check: str) -> PathAttempt:
    return PathAttempt(np.zeros((2, 7)), 0, Violation(check, f"{check} is wrong"))


def test_a_problem_without_a_deadline_gets_one(problem: TrajectoryProblem) -> None:
    search_state = SearchState(problem, None)
    assert search_state.problem.deadline == search_state.deadline
    assert search_state.deadline == pytest.approx(time.monotonic() + WITHOUT_DEADLINE, abs=5.0)
    own = SearchState(replace(problem, deadline=12.5), None)
    assert own.deadline == own.problem.deadline == 12.5


def test_it_ends_when_it_is_late(problem: TrajectoryProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    search_state = SearchState(replace(problem, deadline=time.monotonic() + 60.0), None)
    search_state.go_on("one")
    late = SearchState(replace(problem, deadline=time.monotonic()), None)
    late.remember(attempt(TIMING))
    with pytest.raises(Stopped, match=f"the deadline came before .*; of the best attempt: {TIMING}") as stop:
        late.go_on("two")
    assert stop.value.status is Status.TIMED_OUT
    monkeypatch.setattr(module, "WITHOUT_DEADLINE", 0.0)
    with pytest.raises(Stopped, match=r"^0 s passed before a motion was found$"):
        SearchState(problem, None).go_on("three")


def test_who_listens_may_end_it(problem: TrajectoryProblem) -> None:
    heard: list[Progress] = []

    def report(progress: Progress) -> bool:
        heard.append(progress)
        return len(heard) < 2

    search_state = SearchState(problem, report)
    search_state.iterations = 7
    search_state.go_on("one")
    with pytest.raises(Stopped, match="cancelled") as stop:
        search_state.go_on("two")
    assert stop.value.status is Status.PREEMPTED
    assert [(progress.stage, progress.iteration) for progress in heard] == [("one", 7), ("two", 7)]


def test_the_first_attempt_that_only_touches_something_is_the_best(problem: TrajectoryProblem) -> None:
    search_state = SearchState(problem, None)
    attempts = [attempt(TIMING), attempt("other"), attempt(ON_THE_WAY), attempt(ON_THE_WAY), attempt(TIMING)]
    best = []
    for each in attempts:
        search_state.remember(each)
        best.append(attempts.index(search_state.best))  # type: ignore[arg-type]
    assert best == [0, 0, 2, 2, 2]
    search_state.attempts = 5
    assert search_state.why() == (
        f"5 paths were optimized, none is an answer; of the best attempt: {ON_THE_WAY} is wrong"
    )


def test_a_duration_that_the_best_path_does_not_keep_is_too_short(problem: TrajectoryProblem) -> None:
    given, free = SearchState(replace(problem, duration=3.0), None), SearchState(problem, None)
    assert not given.too_short
    for search_state in (given, free):
        search_state.remember(attempt(TIMING))
    assert given.too_short
    assert not free.too_short
    given.remember(attempt(ON_THE_WAY))
    assert not given.too_short


def test_what_was_spent_is_in_the_result(problem: TrajectoryProblem) -> None:
    search_state = SearchState(replace(problem, scene=Scene(version=4)), None)
    begin = time.perf_counter()
    search_state.spent("goals", begin - 2.0)
    search_state.add("goals", 1.0)
    search_state.iterations, search_state.attempts = 30, 2
    result = search_state.counted(TrajectoryResult(Status.PLANNING_FAILED, "why", None, "cpu"))
    assert result.stages == {"goals": pytest.approx(3.0, abs=0.5)}
    assert (result.iterations, result.attempts, result.scene_version) == (30, 2, 4)
    assert 0.0 < result.solve_time < 60.0
    assert math.isfinite(result.solve_time)


def test_in_the_middle_of_a_stage_it_ends_likewise(problem: TrajectoryProblem) -> None:
    heard: list[str] = []

    def report(progress: Progress) -> bool:
        heard.append(progress.stage)
        return len(heard) < 3

    search_state = SearchState(replace(problem, deadline=time.monotonic() + 60.0), report)
    search_state.go_on("goals")
    search_state.pause()
    with pytest.raises(Stopped) as stop:
        search_state.pause()
    assert stop.value.status is Status.PREEMPTED
    assert heard == ["goals"] * 3
