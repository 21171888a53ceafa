"""Tests of when a search ends, and what is said then."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from kinopt_ros.planning.search import course as module
from kinopt_ros.planning.search.course import WITHOUT_DEADLINE, Course, Stopped
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.paths import Progress
from kinopt_ros.solvers.trajectory_gate import TIMING
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.verification.motion import ON_THE_WAY
from kinopt_ros.verification.trajectory import Violation


@pytest.fixture(scope="module")
def problem() -> TrajectoryProblem:
    return trajectory_problem(load_robot("panda"), np.array([0.3, 0.1, 0.0, -1.8, 0.0, 1.9, 0.5]))


def attempt(check: str) -> PathAttempt:
    return PathAttempt(np.zeros((2, 7)), 0, Violation(check, f"{check} is wrong"))


def test_a_problem_without_a_deadline_gets_one(problem: TrajectoryProblem) -> None:
    course = Course(problem, None)
    assert course.problem.deadline == course.deadline
    assert course.deadline == pytest.approx(time.monotonic() + WITHOUT_DEADLINE, abs=5.0)
    own = Course(replace(problem, deadline=12.5), None)
    assert own.deadline == own.problem.deadline == 12.5


def test_it_ends_when_it_is_late(problem: TrajectoryProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    course = Course(replace(problem, deadline=time.monotonic() + 60.0), None)
    course.go_on("one")
    late = Course(replace(problem, deadline=time.monotonic()), None)
    late.remember(attempt(TIMING))
    with pytest.raises(Stopped, match=f"the deadline came before .*; of the best attempt: {TIMING}") as stop:
        late.go_on("two")
    assert stop.value.status is Status.TIMED_OUT
    monkeypatch.setattr(module, "WITHOUT_DEADLINE", 0.0)
    with pytest.raises(Stopped, match=r"^0 s passed before a motion was found$"):
        Course(problem, None).go_on("three")


def test_who_listens_may_end_it(problem: TrajectoryProblem) -> None:
    heard: list[Progress] = []

    def report(progress: Progress) -> bool:
        heard.append(progress)
        return len(heard) < 2

    course = Course(problem, report)
    course.iterations = 7
    course.go_on("one")
    with pytest.raises(Stopped, match="cancelled") as stop:
        course.go_on("two")
    assert stop.value.status is Status.PREEMPTED
    assert [(progress.stage, progress.iteration) for progress in heard] == [("one", 7), ("two", 7)]


def test_the_first_attempt_that_only_touches_something_is_the_best(problem: TrajectoryProblem) -> None:
    course = Course(problem, None)
    attempts = [attempt(TIMING), attempt("other"), attempt(ON_THE_WAY), attempt(ON_THE_WAY), attempt(TIMING)]
    best = []
    for each in attempts:
        course.remember(each)
        best.append(attempts.index(course.best))  # type: ignore[arg-type]
    assert best == [0, 0, 2, 2, 2]
    course.attempts = 5
    assert course.why() == (
        f"5 paths were optimized, none is an answer; of the best attempt: {ON_THE_WAY} is wrong"
    )


def test_a_duration_that_the_best_path_does_not_keep_is_too_short(problem: TrajectoryProblem) -> None:
    given, free = Course(replace(problem, duration=3.0), None), Course(problem, None)
    assert not given.too_short
    for course in (given, free):
        course.remember(attempt(TIMING))
    assert given.too_short
    assert not free.too_short
    given.remember(attempt(ON_THE_WAY))
    assert not given.too_short


def test_what_was_spent_is_in_the_result(problem: TrajectoryProblem) -> None:
    course = Course(replace(problem, scene=Scene(version=4)), None)
    begin = time.perf_counter()
    course.spent("goals", begin - 2.0)
    course.add("goals", 1.0)
    course.iterations, course.attempts = 30, 2
    result = course.counted(TrajectoryResult(Status.PLANNING_FAILED, "why", None, "cpu"))
    assert result.stages == {"goals": pytest.approx(3.0, abs=0.5)}
    assert (result.iterations, result.attempts, result.scene_version) == (30, 2, 4)
    assert 0.0 < result.solve_time < 60.0
    assert math.isfinite(result.solve_time)


def test_in_the_middle_of_a_stage_it_ends_likewise(problem: TrajectoryProblem) -> None:
    heard: list[str] = []

    def report(progress: Progress) -> bool:
        heard.append(progress.stage)
        return len(heard) < 3

    course = Course(replace(problem, deadline=time.monotonic() + 60.0), report)
    course.go_on("goals")
    course.pause()
    with pytest.raises(Stopped) as stop:
        course.pause()
    assert stop.value.status is Status.PREEMPTED
    assert heard == ["goals"] * 3
