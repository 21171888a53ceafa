"""Motions to goals around what is in the way: goals become configurations (``search/ends.py``), paths to begin from are
tried one after the other (``search/starts.py``), each is optimized, timed and verified, and mended where it still
touches something.

Before all others the straight line is tried as it is. A rough path that cannot be improved, but is free itself, will
do.
"""

import time
from dataclasses import replace
from itertools import pairwise
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.path_memory import PathMemory
from kinopt_ros.planning.search.goal_configurations import (
    BREAKS,
    GOALS,
    GoalConfiguration,
    GoalConfigurations,
)
from kinopt_ros.planning.search.initial_paths import LINES, MARGIN, ROUGH, InitialPath, InitialPaths
from kinopt_ros.planning.search.search_state import SearchState, Stopped
from kinopt_ros.planning.search.validity import ValidityChecker
from kinopt_ros.planning.turning import plan_turning, turns
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.problems.trajectory_validation import check_trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.paths import PathRequest, Report
from kinopt_ros.solvers.readiness import check_ready, make_ready
from kinopt_ros.solvers.scene_ready import wait_for_scene
from kinopt_ros.solvers.trajectory_gate import OPTIMIZE, Gate
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.path_timing import check_compiled
from kinopt_ros.verification.verify import ON_THE_WAY

MORE = 0.02
"""m; so much more margin have paths that were found to touch something, if the solver's model says that they do not."""


def plan_trajectory(
    solver: Solver,
    problem: TrajectoryProblem,
    report: Report | None = None,
    memory: PathMemory | None = None,
    ik_solver: Solver | None = None,
) -> TrajectoryResult:
    """A verified motion from the start to one of the goals, or why there is none.

    Args:
        solver: a plugin that optimizes trajectories, configured for the robot.
        problem: what is asked.
        report: told where the search is, at least every 50 ms; when it returns False, the search ends.
        memory: of earlier answers, to begin from; this one is added. With None the answer depends on nothing else.
            Motions in which floating joints turn leave it alone.
        ik_solver: a plugin that finds configurations at poses, for the same robot; None: ``solver`` does.

    Raises:
        KinoptError: the problem is malformed, or the solver cannot honour it.
    """
    robot = solver.robot
    solver.check_optimizes()
    check_trajectory_problem(problem, robot)
    solver.check_supported_trajectory(problem)
    if turns(robot, problem):

        def plan(other: RobotModel, by_angles: TrajectoryProblem) -> TrajectoryResult:
            other_ik = None if ik_solver is None else ik_solver.for_robot(other)
            return plan_trajectory(solver.for_robot(other), by_angles, report, None, other_ik)

        return plan_turning(robot, problem, ik_solver or solver, plan)
    if problem.deadline is None:
        solver.warm_up_motions()
        if ik_solver is not None:
            ik_solver.warm_up()
        if problem.scene is not None:
            make_ready(robot)  # the search has a deadline of its own, and would not wait
    else:
        check_compiled()
        if problem.scene is not None:
            check_ready(robot)
            wait_for_scene(robot, problem.scene, problem.deadline)
    return _Search(solver, problem, report, memory, ik_solver or solver).run()


class _Search:
    """Searches a motion for one problem."""

    def __init__(
        self,
        solver: Solver,
        problem: TrajectoryProblem,
        report: Report | None,
        memory: PathMemory | None,
        ik_solver: Solver,
    ) -> None:
        self._ik_solver = ik_solver
        self._solver, self._report, self._memory = solver, report, memory
        self._search_state = SearchState(problem, report)
        self._problem = self._search_state.problem
        self._validity = ValidityChecker(solver.robot, self._problem, self._search_state.pause)
        self._gate = Gate(solver.robot, self._problem, solver.name, self._search_state.stages)
        self._q0 = problem.start[problem.variables]

    def run(self) -> TrajectoryResult:
        """The answer."""
        try:
            self._check_start()
            found = self._find()
        except Stopped as stop:
            return self._failed(stop.status, stop.sentence)
        if found is None:
            return self._failed(Status.PLANNING_FAILED, self._search_state.why())
        if self._memory is not None and self._search_state.attempts and found.trajectory is not None:
            self._memory.add(self._problem.whole(found.trajectory.position))
        return self._search_state.counted(replace(found, attempt=None))

    def _check_start(self) -> None:
        if not self._validity.keeps_constraints(self._q0):
            why = self._validity.breaches(self._q0)
            raise Stopped(Status.START_STATE_VIOLATES_PATH_CONSTRAINTS, f"the start {BREAKS}{why}")
        if self._problem.scene is None:
            return
        begin = time.perf_counter()
        if not self._validity.is_free(self._q0):
            why = self._validity.collisions(self._q0)
            if np.array_equal(self._problem.start, self._solver.robot.default_q):
                why += "; it is the robot's default configuration, which counts where no start is given"
            raise Stopped(Status.START_STATE_IN_COLLISION, f"the start is in collision{why}")
        self._search_state.spent(GOALS, begin)

    def _find(self) -> TrajectoryResult | None:
        goals = GoalConfigurations(self._ik_solver, self._search_state, self._validity)
        ends = goals.of_goals()
        vias = goals.of_waypoints()
        found = self._straight(ends)
        if found is not None:
            return found
        for start in InitialPaths(self._solver, self._search_state, self._validity, self._memory, ends, vias):
            found = self._improve(start)
            corners = start.corners
            if found is None and corners is not None and (start.is_free or self._lines_are_free(corners)):
                found = self._pass(corners, start.goal)
            if found is not None:
                return found
        self._search_state.pause()  # the last attempt may have been cut short
        return None

    def _straight(self, ends: list[GoalConfiguration]) -> TrajectoryResult | None:
        """A line is the best there is, unless something else is wanted, too."""
        problem = self._problem
        if len(problem.paths) or not problem.least_on_lines:
            return None
        for end in ends[:LINES]:
            self._search_state.go_on("straight line")
            if self._validity.line_may_be_free(self._q0, end.q) and self._validity.line_is_free(
                self._q0, end.q
            ):
                found = self._pass(np.stack([self._q0, end.q]), end.goal)
                if found is not None:
                    return found
        return None

    def _improve(self, start: InitialPath) -> TrajectoryResult | None:
        """Optimize, time and verify, with more margin where the motion still touches something."""
        search_state, path = self._search_state, start.path
        for margin in (MARGIN, MARGIN + MORE):
            search_state.go_on(OPTIMIZE)
            rough = start.corners is not None or margin > MARGIN
            request = PathRequest(path[None], np.array([start.goal]), start.passed[None], margin, rough)
            result = self._solver.optimize_trajectory(self._problem, request, self._report)
            search_state.iterations += result.iterations
            search_state.attempts += result.attempts
            for stage, seconds in result.stages.items():
                search_state.add(stage, seconds)
            if result.success:
                return result
            attempt = result.attempt
            assert attempt is not None
            search_state.remember(attempt)
            search_state.go_on(OPTIMIZE)
            deep = attempt.clearance < self._problem.clearance
            if attempt.violation.check != ON_THE_WAY or self._problem.scene is None or deep:
                return None
            path = attempt.path
        return None

    def _lines_are_free(self, corners: Annotated[Float64, "K n"]) -> bool:
        begin = time.perf_counter()
        free = True
        for a, b in pairwise(corners):
            self._search_state.go_on(ROUGH)
            free = self._validity.line_is_free(a, b)
            if not free:
                break
        self._search_state.spent(ROUGH, begin)
        return free

    def _pass(self, path: Annotated[Float64, "T n"], goal: int) -> TrajectoryResult | None:
        """Time and verify a path as it is."""
        found = self._gate.passed(path, goal, corners=len(path) > 2)
        if isinstance(found, TrajectoryResult):
            return found
        self._search_state.remember(found)
        return None

    def _failed(self, status: Status, sentence: str) -> TrajectoryResult:
        return self._search_state.counted(
            TrajectoryResult(status, sentence, None, self._solver.name, attempt=self._search_state.best)
        )
