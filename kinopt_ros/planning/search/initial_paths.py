"""Paths to begin from, one after the other: those of the problem, lines to the nearest goal configurations, rough paths
that the solver finds by trees in its own model, which may overlap a little, as it is larger than the robot, paths
through configurations of earlier answers, more rough paths, a path of a sampling planner that looks at the shapes
themselves, if its library is installed, more rough paths, paths through random configurations, and a longer search by
the sampling planner."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.sampling import range_around
from kinopt_ros.planning.path_memory import PathMemory
from kinopt_ros.planning.sampling import missing_sampler, sampled_path
from kinopt_ros.planning.search.along_lines import along_lines
from kinopt_ros.planning.search.goal_configurations import GoalConfiguration
from kinopt_ros.planning.search.search_state import SearchState
from kinopt_ros.planning.search.validity import ValidityChecker
from kinopt_ros.solvers.base import Solver

ROUGH, SAMPLING, RANDOM = "rough paths", "sampling", "random starts"
"""Names of stages."""
LINES = 3
"""Most goal configurations, the nearest first, to which straight lines are tried."""
MARGIN = 0.01
"""Distance that paths keep from shapes where they can, m."""
ROUGHLY = ((6_000, (-0.01, -0.02)), (15_000, (-0.02, -0.01, -0.02)), (60_000, (-0.01, -0.02)))
"""Rounds of rough paths: number of collision checks of each, and margins, m."""
THROUGH_RANDOM = 24
"""Paths through random configurations."""
REMEMBERED = 3
"""Paths through configurations of earlier answers."""
_DRAWN, _LOT = 16, 2
"""Paths through a random configuration, drawn near to the line and anywhere; the best of both are tried."""
_SPREADS = np.array([0.4, 0.8, 1.2, 1.6])
"""Distances of configurations near to the line from its middle, rad or m."""
SAMPLING_TIMES, SAMPLING_AROUND = (2.0, 8.0), (8.0, 30.0)
"""Longest times of the sampling planner, s, and how far (m) around start and goals it searches for the way of a base.

The first of each pair holds before much else is tried, the second when nothing else is left."""


@dataclass(frozen=True, eq=False)
class InitialPath:
    """A path to begin from."""

    path: Annotated[Float64, "T n"]
    goal: int
    """Which of the problem's goals it ends at."""
    passed: Annotated[Int64, "W"]
    """Indices of its points that are the waypoints."""
    corners: Annotated[Float64, "K n"] | None = None
    """Corners of a path that will do as it is, if it is free but cannot be improved."""
    is_free: bool = False
    """Whether the lines between these corners were checked already."""


class InitialPaths:
    """Yields paths from which the optimization of one problem begins.

    ``ends`` are configurations that reach its goals, and ``vias`` those that reach its waypoints.
    """

    def __init__(
        self,
        solver: Solver,
        search_state: SearchState,
        looks: ValidityChecker,
        memory: PathMemory | None,
        ends: list[GoalConfiguration],
        vias: list[Annotated[Float64, "n"]],
    ) -> None:
        self._solver, self._search_state, self._validity, self._memory = solver, search_state, looks, memory
        self._ends, self._vias = ends, vias
        self._problem = search_state.problem
        self._q0 = self._problem.start[self._problem.variables]

    def __iter__(self) -> Iterator[InitialPath]:
        problem, ends, search_state = self._problem, self._ends, self._search_state
        yield from self._given()
        searched = not (problem.scene is None or self._vias or problem.along)
        for k, end in enumerate(ends[:LINES]):
            yield self._line_to(end)
            if k == 0 and searched and not search_state.too_short:
                yield from self._rough(0)
        if search_state.too_short:
            return
        if not searched:
            # Nothing is in the way, or it is said where to go: other ends are what is left to try first.
            yield from map(self._line_to, ends[LINES:])
        if problem.scene is None or self._vias:
            return
        yield from self._through_remembered()
        if searched:
            yield from self._rough(1)
            yield from self._sampled(0)
            yield from self._rough(2)
        yield from self._through_random(THROUGH_RANDOM)
        if searched:
            yield from map(self._line_to, ends[LINES:])
            yield from self._sampled(1)

    def _given(self) -> Iterator[InitialPath]:
        """Yield the problem's own paths, bent so that they begin at the start and end at the nearest end."""
        for path in self._problem.paths:
            nearest = min(self._ends, key=lambda end: float(np.linalg.norm(end.q - path[-1])))
            if self._vias:
                yield self._line_to(nearest)
                continue
            bent = path + np.linspace(1.0, 0.0, len(path))[:, None] * (self._q0 - path[0])
            bent += np.linspace(0.0, 1.0, len(path))[:, None] * (nearest.q - bent[-1])
            bent[0], bent[-1] = self._q0, nearest.q
            yield InitialPath(bent, nearest.goal, np.zeros(0, dtype=np.int64))

    def _rough(self, number: int) -> Iterator[InitialPath]:
        """Yield paths that are free in the solver's model."""
        configurations = np.array([end.q for end in self._ends])
        looks, margins = ROUGHLY[number]
        for k, margin in enumerate(margins):
            begin = time.perf_counter()
            seed = self._problem.random_seed + 8 * number + k
            corners = self._solver.rough_path(
                self._problem,
                configurations,
                margin,
                looks,
                seed,
                lambda: not self._problem.late and self._search_state.told(ROUGH),
            )
            self._search_state.spent(ROUGH, begin)
            self._search_state.go_on(ROUGH)
            if corners is not None:
                yield replace(self._along(corners), corners=corners)

    def _sampled(self, number: int) -> Iterator[InitialPath]:
        """Yield a path of the sampling planner, if it is installed and finds one."""
        if missing_sampler():
            return
        begin = time.perf_counter()
        self._search_state.go_on(SAMPLING)
        corners = sampled_path(
            self._solver.robot,
            self._problem,
            np.array([end.q for end in self._ends]),
            self._validity.step_is_free,
            min(self._search_state.deadline, time.monotonic() + SAMPLING_TIMES[number]),
            1 + (self._problem.random_seed + number) % (2**31 - 1),
            lambda: not self._search_state.told(SAMPLING),
            around=SAMPLING_AROUND[number],
        )
        self._search_state.spent(SAMPLING, begin)
        self._search_state.go_on(SAMPLING)
        if corners is not None:
            yield replace(self._along(corners), corners=corners, is_free=True)

    def _through_remembered(self) -> Iterator[InitialPath]:
        """Yield paths through configurations of earlier answers, to the nearest end."""
        if self._memory is None:
            return
        problem, end = self._problem, self._ends[0]
        whole = problem.whole(end.q)
        for q in self._memory.near(problem.start, whole, problem.variables, REMEMBERED):
            yield self._through([self._q0, q, end.q], end.goal)

    def _through_random(self, count: int) -> Iterator[InitialPath]:
        """Yield paths through random configurations, the most hopeful of each lot by the solver's score."""
        problem, ends = self._problem, self._ends
        rng = np.random.default_rng(problem.random_seed)
        known = problem.whole(np.array([self._q0, *(end.q for end in ends)]))
        low, high = (limit[problem.variables] for limit in range_around(self._solver.robot, known))
        for lot in range(count // _LOT):
            self._search_state.go_on(RANDOM)
            end = ends[lot % min(len(ends), LINES)]
            middle = 0.5 * (self._q0 + end.q)
            spread = np.repeat(_SPREADS, _DRAWN // len(_SPREADS))[:, None]
            around = middle + spread * rng.normal(size=(len(spread), len(low)))
            around = np.clip(around, np.minimum(low, middle), np.maximum(high, middle))
            anywhere = rng.uniform(low, high, (_DRAWN, len(low)))
            for drawn in (around, anywhere):
                starts = [self._through([self._q0, q, end.q], end.goal) for q in drawn]
                scores: list[float] = []
                for start in starts:  # one by one: with many points each takes milliseconds
                    self._search_state.go_on(RANDOM)
                    scores += self._solver.path_scores(problem, start.path[None], MARGIN).tolist()
                yield starts[int(np.argmin(scores))]

    def _line_to(self, end: GoalConfiguration) -> InitialPath:
        """Return the path through the waypoints to an end."""
        return self._through([self._q0, *self._vias, end.q], end.goal, len(self._vias))

    def _along(self, corners: Annotated[Float64, "K n"]) -> InitialPath:
        """Make a path from corners that end at one of the ends; some corners are left out if there are too many."""
        reached = min(self._ends, key=lambda end: float(np.abs(end.q - corners[-1]).max()))
        count = min(len(corners), self._problem.num_points)
        some = np.linspace(0, len(corners) - 1, count).round().astype(np.int64)
        return self._through(list(corners[some]), reached.goal)

    def _through(self, corners: list[Annotated[Float64, "n"]], goal: int, waypoints: int = 0) -> InitialPath:
        """Return points along straight lines between corners; the first corners after the start are the waypoints."""
        path, at = along_lines(np.array(corners), self._problem.num_points)
        return InitialPath(path, goal, at[1 : 1 + waypoints])
