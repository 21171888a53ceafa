"""Optimization of the paths of a request, one after the other, in pieces short enough to stop in between."""

import time
from functools import lru_cache
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.costs.stencils import derivative_matrix
from kinopt_ros.pauses import give_way
from kinopt_ros.problems.trajectory import CostWeights, TrajectoryProblem
from kinopt_ros.problems.trajectory_bounds import position_bounds
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths.compiling import store, workspace
from kinopt_ros.solvers.cpu.paths.kernels import levenberg_marquardt, lm_step, tasks
from kinopt_ros.solvers.cpu.paths.model import PathModel, need_compiled, path_model
from kinopt_ros.solvers.cpu.paths.pack_tasks import given_points, pack_tasks
from kinopt_ros.solvers.cpu.paths.quadratic import quadratic_cost
from kinopt_ros.solvers.cpu.paths.sphere_slack import no_slack, sphere_slack
from kinopt_ros.solvers.paths import PathCandidates, PathRequest, Progress, Report

MOST_STEPS = 120
"""Most steps of the optimization of one path."""
PIECE = 0.01
"""Time between two looks at the clock, s."""
BUFFER = 0.005
"""Distance beyond the margin that is aimed at, m."""
ACCEPTED = 0.5
"""Share of the margin that is enough to accept a path."""
OFF_LIMITS, OFF_LIMITS_SHARE = 0.01, 0.05
"""Distance (rad or m, and as a share of its range) that a variable keeps from its limits."""
OFF_LIMITS_AFTER = 6
"""Points over which that distance grows to its full value, counted from a given point that is nearer to the limits."""
ENOUGH, ENOUGH_TO_GOALS = 0.01, 0.03
"""Relative decrease of the cost below which a path on which all holds is good enough: in general, and where nothing but
goals is asked for. To these the last steps gain one percent of the time that the motion takes."""
LOOKS = 4
"""Most times that distances of the shapes themselves are computed for one path."""
TOO_DEEP = 0.045
"""Missing distance beyond which a path is taken to be in collision, m: spheres do not stick out by so much."""
PROGRESS = 0.6
"""Share of the missing distance that may be left at each further look."""
AGAIN_WEIGHT = 3e5
"""Least weight of constraints with which a path goes on after a look."""
DIRECTION_WEIGHT = 1e4
"""Weight of the squared part of the path's first derivative that is not along the velocity at the start."""


def optimize_paths(
    robot: RobotModel, problem: TrajectoryProblem, request: PathRequest, report: Report | None = None
) -> PathCandidates:
    """Improve every path of a request, until it is free and smooth or nothing more is gained.

    Distances are those of spheres that contain the robot's shapes. Where these are nearer at the start, the goal or a
    waypoint than is demanded, they need not be farther there, and ``clearance`` counts from what they have. Where they
    leave no room, and of rough paths from the beginning, what they stick out by is added (``sphere_slack.py``).

    Args:
        robot: the robot.
        problem: what is asked; its deadline counts.
        request: paths to begin from.
        report: told every 10 ms or after each step, whatever is longer.

    Raises:
        NotReadyError: the kernel was not compiled yet, which a deadline does not wait for.
    """
    need_compiled(problem)
    model = path_model(robot, problem)
    S = len(request.paths)
    paths = np.array(request.paths, order="C")
    cost, clearance, violation = np.zeros(S), np.full(S, np.inf), np.zeros(S)
    iterations, stopped = np.zeros(S, dtype=np.int64), np.zeros(S, dtype=np.bool_)
    going = True
    for s in range(S):
        one = _Path(robot, problem, model, paths[s], int(request.goal[s]), request.passed[s], request.margin)
        if going:
            one.prepare(request.rough)
        while going and one.running():
            one.improve()
            give_way()
            late = problem.deadline is not None and time.monotonic() >= problem.deadline
            going = not late and (report is None or report(one.progress(f"path {s + 1} of {S}")))
            if going and not one.running():
                one.look_again()
        stopped[s] = one.running()
        one.finish()
        cost[s], clearance[s], violation[s] = one.cost, one.clearance, one.violation
        iterations[s] = one.iterations
    return PathCandidates(paths, cost, clearance, violation, iterations, stopped)


def path_scores(
    robot: RobotModel, problem: TrajectoryProblem, paths: Annotated[Float64, "S T n"], margin: float
) -> Annotated[Float64, "S"]:
    """Score how hopeful it is to begin from paths, all with the same ends: the less the better.

    Mean squared depth by the optimizer's spheres at every fourth point, against the length: tens of microseconds a
    path. The scene's presence is assumed; errors as ``optimize_paths``.
    """
    need_compiled(problem)
    model = path_model(robot, problem)
    n, M, S = paths.shape[2], len(model.tree.parent), len(model.around.radii)
    wanted, enough = problem.clearance + margin + BUFFER, accepted(problem, margin)
    arrays = model.tree.arrays, model.around.arrays
    anchors = np.full((2, S), np.inf), np.zeros((2, S, 3)), model.floor.copy()
    levenberg_marquardt.anchor_path(*arrays, anchors, np.ascontiguousarray(paths[0][[0, -1]]), wanted)
    scores = np.zeros(len(paths))
    work = workspace(1, n, M, S, len(model.around.body_node))
    some = np.ascontiguousarray(paths[:, 2::4])
    levenberg_marquardt.score_paths(*arrays, anchors, some, wanted, enough, work, np.zeros(2), scores)
    length: Float64 = np.linalg.norm(np.diff(paths, axis=1), axis=2).sum(axis=1)
    return levenberg_marquardt.FIRST_WEIGHT * scores + length


def accepted(problem: TrajectoryProblem, margin: float) -> float:
    """Return the distance of spheres (m) that is enough."""
    return problem.clearance + min(ACCEPTED * margin, margin)


class _Path:
    """One path under optimization."""

    def __init__(
        self,
        robot: RobotModel,
        problem: TrajectoryProblem,
        model: PathModel,
        path: Annotated[Float64, "T n"],
        goal: int,
        passed: Annotated[Int64, "W"],
        margin: float,
    ) -> None:
        """``path`` is changed in place."""
        T, n = path.shape
        self._path = path
        self._wanted = problem.clearance + margin + BUFFER
        self._accepted = accepted(problem, margin)
        self._spheres = len(model.around.radii) > 0
        given = np.zeros(T, dtype=np.bool_)
        given[[0, *given_points(problem, goal, passed)]] = True
        anchors = [0, T - 1, *passed.tolist()]
        limits = position_bounds(robot, problem)
        self._given, self._limits = given, limits
        self._low, self._high = _inner_limits(*limits, path, anchors)
        path[~given] = np.clip(path, self._low, self._high)[~given]
        self._tasks = pack_tasks(robot, model.tree, problem, path, goal, passed)
        self._cost, self._last = _costs(robot, problem, self._wanted, self._accepted, T)
        S, M = len(model.around.radii), len(model.tree.parent)
        self._model = model.tree.arrays, model.around.arrays
        self._anchors = np.full((len(anchors), S), np.inf), np.zeros((len(anchors), S, 3)), model.floor.copy()
        levenberg_marquardt.anchor_path(
            *self._model, self._anchors, np.ascontiguousarray(path[anchors]), self._wanted
        )
        self._robot, self._problem, self._path_model, self._at = robot, problem, model, anchors
        self._gaps = self._anchors[0].copy()
        self._sticking = no_slack(T, model)
        self._slack, self._looks, self._rough = -np.inf, 0, False
        parts = np.ones(T, dtype=np.int64)
        self._kept = np.full((T, S), -np.inf), np.zeros((T, S, 3)), parts, parts.copy()
        self._store = store(T, n, M, S, len(model.around.body_node), self._last)
        self._state = np.zeros(levenberg_marquardt.STATE)
        self._state[levenberg_marquardt.WEIGHT_NOW] = levenberg_marquardt.FIRST_WEIGHT
        self._state[levenberg_marquardt.DAMPING] = levenberg_marquardt.FIRST_DAMPING
        if self._spheres:
            self._state[levenberg_marquardt.PAUSE_AT] = AGAIN_WEIGHT
        self._steps = 1

    def _call(self, steps: int) -> None:
        levenberg_marquardt.improve(
            *self._model,
            self._anchors,
            self._sticking,
            self._tasks,
            self._cost,
            self._last,
            self._given,
            self._low,
            self._high,
            self._path,
            self._kept,
            self._store,
            self._state,
            steps,
        )

    def running(self) -> bool:
        """Whether there is more to do."""
        ended = self._state[levenberg_marquardt.STATUS] in (
            levenberg_marquardt.DONE,
            levenberg_marquardt.STUCK,
        )
        return not ended and self.iterations < MOST_STEPS

    def improve(self) -> None:
        """Make steps for about ``PIECE``, at least one."""
        if self._state[levenberg_marquardt.STATUS] == levenberg_marquardt.PAUSED:
            # Little is missing: to go around what spheres stick out by would make the path longer.
            self._look_at_shapes()
            self._looks, self._slack = 0, -np.inf  # it was none of those at the end
            self._go_on()
        begin = time.perf_counter()
        self._call(self._steps)
        taken = time.perf_counter() - begin
        self._steps = int(
            min(max(PIECE / max(taken / self._steps, 1e-6), 1.0), 20.0, 2.0 * self._steps + 1.0)
        )

    def prepare(self, rough: bool) -> None:
        """Give a path that nearly leads around everything heavy constraints, with distances of the shapes, so that it
        is kept to."""
        self._rough = rough
        if rough and self._spheres:
            self._state[levenberg_marquardt.WEIGHT_NOW] = AGAIN_WEIGHT
            self._look_at_shapes()

    def look_again(self) -> None:
        """At the end, let the path go on with corrections of the spheres (``sphere_slack.py``) if these may have been
        misleading."""
        missing = self._accepted - self.clearance
        may = self._spheres and self._looks < LOOKS and self.iterations < MOST_STEPS
        if not may or missing > TOO_DEEP or not (self._rough or missing > 0.0):
            return
        before = self._slack
        self._look_at_shapes()
        if self._slack < 0.0 and self._slack >= PROGRESS * before:
            self._go_on()

    def _go_on(self) -> None:
        """Begin anew from the path as it is."""
        state = self._state
        state[levenberg_marquardt.STATUS] = levenberg_marquardt.NEW
        state[levenberg_marquardt.WEIGHT_NOW] = max(state[levenberg_marquardt.WEIGHT_NOW], AGAIN_WEIGHT)
        state[levenberg_marquardt.DAMPING] = levenberg_marquardt.FIRST_DAMPING
        state[levenberg_marquardt.SINCE] = state[levenberg_marquardt.GOOD] = 0.0

    def _look_at_shapes(self) -> None:
        found = sphere_slack(
            self._robot, self._problem, self._path_model, self._path, self._at, self._wanted, self._accepted
        )
        self._looks += 1
        self._state[levenberg_marquardt.PAUSE_AT] = 0.0
        self._slack = max(found.slack, -TOO_DEEP)
        self._sticking = found.arrays
        gaps = self._gaps + found.world[self._at]
        self._anchors[0][:] = np.where(gaps < self._wanted, gaps, np.inf)

    def finish(self) -> None:
        """Evaluate once more, now against the whole of the tolerances."""
        numbers, integers = self._tasks
        numbers = numbers.copy()
        numbers[:, tasks.SHARE] = 1.0
        self._tasks = numbers, integers
        self._call(0)

    @property
    def iterations(self) -> int:
        """Number of steps so far."""
        return int(self._state[levenberg_marquardt.ITERATIONS])

    @property
    def cost(self) -> float:
        """Cost without constraints."""
        return float(self._state[levenberg_marquardt.COSTS])

    @property
    def clearance(self) -> float:
        """Clearance as defined in ``optimize_paths``, m, at most what is wanted."""
        if not self._spheres:
            return np.inf
        return float(min(self._state[levenberg_marquardt.SLACK_NOW] + self._accepted, self._wanted))

    @property
    def violation(self) -> float:
        """Largest violation of tasks and limits, as ``finish`` found it."""
        low, high = self._limits
        # Given points may be outside: a robot where its sensors say it is.
        outside = np.maximum(low - self._path, self._path - high)[~self._given]
        return max(float(self._state[levenberg_marquardt.EXCESS]), float(np.max(outside, initial=0.0)))

    def progress(self, stage: str) -> Progress:
        """Return the progress of this path."""
        state = self._state
        terms = (
            ("smoothness", float(state[levenberg_marquardt.COSTS])),
            (
                "constraints",
                float(state[levenberg_marquardt.WEIGHT_NOW] * state[levenberg_marquardt.CONSTRAINTS]),
            ),
        )
        return Progress(stage, self.iterations, terms, self.clearance if self._spheres else np.nan)


def _inner_limits(
    low: Annotated[Float64, "n"],
    high: Annotated[Float64, "n"],
    path: Annotated[Float64, "T n"],
    ends: list[int],
) -> tuple[Annotated[Float64, "T n"], Annotated[Float64, "T n"]]:
    """Return limits of all points, inside the robot's, as interpolation between points goes beyond them a little.

    They are not farther inside than the start, goal or waypoint nearby.
    """
    away = np.abs(np.arange(len(path))[:, None] - np.array(ends)) / OFF_LIMITS_AFTER
    off = np.minimum(OFF_LIMITS, OFF_LIMITS_SHARE * (high - low))

    def inside(gaps: Annotated[Float64, "k n"]) -> Annotated[Float64, "T n"]:
        near = np.maximum(gaps, 0.0)[None] + away[..., None] * off
        nearest: Float64 = np.minimum(near.min(axis=1), off)
        return nearest

    lower, upper = low + inside(path[ends] - low), high - inside(high - path[ends])
    return np.ascontiguousarray(lower), np.ascontiguousarray(upper)


def _costs(
    robot: RobotModel, problem: TrajectoryProblem, wanted: float, accepted: float, T: int
) -> tuple[tuple[Float64 | Int64, ...], Int64]:
    """Return the arguments ``cost`` and ``last`` of the kernel."""
    n, weights = len(problem.variables), problem.weights
    exact, step, blocks = quadratic_cost(T, weights.smoothness, weights.acceleration, weights.jerk)
    enough = ENOUGH_TO_GOALS if problem.only_goals and weights == CostWeights() else ENOUGH
    numbers = np.array([wanted, accepted, weights.rest, 0.0, 0.0, enough])
    rest = np.zeros(n) if problem.rest is None else np.array(problem.rest)
    reach = 1  # neighbours share what is found between them
    most = np.zeros(n)
    if problem.duration is not None and weights.velocity > 0.0:
        numbers[lm_step.VELOCITY] = weights.velocity / problem.duration**2
        limit = robot.limits.velocity[problem.variables] * problem.velocity_scaling
        most = np.minimum(limit * problem.duration, 1e300)
        reach = 4
    velocity = problem.start_velocity[problem.variables]
    speed = float(np.linalg.norm(velocity))
    block = np.zeros((n, n))
    rates, first = _rates(T)
    if speed > 0.0:
        numbers[lm_step.START] = DIRECTION_WEIGHT
        block = np.eye(n) - np.outer(velocity, velocity) / speed**2
        blocks = blocks.copy()
        blocks[:5] = np.maximum(blocks[:5], 4 - np.arange(5))
    last = np.minimum(np.arange(T) + np.maximum(blocks, reach), T - 1)
    last = np.maximum.accumulate(last).astype(np.int64)
    return (numbers, exact, step, rest, rates, first, most, rates[0], block), last


@lru_cache(maxsize=64)
def _rates(T: int) -> tuple[Annotated[Float64, "T 5"], Annotated[Int64, "T"]]:
    """Return stencils of first derivatives, and the first point of each."""
    matrix = derivative_matrix(1, T)
    width = min(5, T)
    first = np.clip(np.arange(T) - 2, 0, T - width).astype(np.int64)
    return np.take_along_axis(matrix, first[:, None] + np.arange(width), axis=1), first
