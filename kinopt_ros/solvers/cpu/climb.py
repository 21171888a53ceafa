"""Search of solutions with a great index, whichever is preferred: from many solutions uphill along the self-motion.

A step goes along the null space of the task's Jacobian, where the index grows, and back onto the targets by Newton's
method; it counts if the index has grown. What is looked at does not depend on the weight, which only decides what of
it is returned: so a greater weight never lowers the index.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.index import IndexPreference
from kinopt_ros.problems.task import Task
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.result import IkCandidates

STARTS = 16
"""Least number of solutions to start from, so that there are several branches and places of the self-motion."""
STEPS = 80
FIRST_STEP, LARGEST_STEP, LEAST_STEP = 0.1, 0.2, 1e-3
"""Step lengths of the variable that moves most, rad or m."""
DIFFERENCE = 1e-5
"""Step of the finite differences of the index, rad or m."""
CORRECTIONS = 4
ON_TARGET = 1e-8
"""Errors (m and rad) at which a corrected configuration counts as on the targets."""
DAMPING = 1e-12
MOST_ROWS = 2000
"""Most configurations that are moved together; the clock is looked at between their steps."""


def climbed(
    problem: IkProblem,
    preference: IndexPreference,
    robot: RobotModel,
    solve: Callable[[IkProblem], IkCandidates],
) -> IkCandidates:
    """Return candidates for a problem with this preference; ``solve`` finds those of one with a posture at most."""
    posture = preference.posture
    without = solve(replace(problem, preference=posture))
    many = max(problem.num_solutions, STARTS)
    found = solve(replace(problem, preference=posture, num_solutions=many, turns=False))
    chains = tuple(chain_between(robot, problem.base_link, target.link) for target in problem.targets)
    hill = _Hill(preference, Task(problem, chains))
    request, number = np.nonzero(np.isfinite(found.q).all(axis=2))
    start = found.q[request, number]
    height = hill.height(start, request)
    least = _least_index(problem, hill, without)[request]
    best, score = start.copy(), np.where(height >= least, preference.score(start, request, height), np.inf)
    cut = without.timed_out | found.timed_out
    for first in range(0, len(start), MOST_ROWS):
        rows = np.arange(first, min(first + MOST_ROWS, len(start)))
        for moved, which, height in _climb(problem, robot, hill, start[rows], request[rows]):
            places = rows[which]
            new = preference.score(moved, request[places], height)
            better = (new < score[places]) & (height >= least[places])
            best[places[better]], score[places[better]] = moved[better], new[better]
        if problem.late:
            cut[request[first:]] = True
            break
    q = found.q.copy()
    q[request, number] = np.where(np.isfinite(score)[:, None], best, np.nan)
    return replace(
        found,
        q=np.concatenate([q, without.q], axis=1),
        attempt=without.attempt,
        iterations=without.iterations + found.iterations,
        timed_out=cut,
    )


@dataclass(frozen=True, eq=False)
class _Hill:
    """What is climbed, and the targets that must stay reached."""

    preference: IndexPreference
    task: Task

    def height(self, q: Annotated[Float64, "N n"], request: Annotated[Int64, "N"]) -> Annotated[Float64, "N"]:
        """Compute the index."""
        return self.preference.checked_value(self.task, q, request)


def _least_index(problem: IkProblem, hill: _Hill, without: IkCandidates) -> Annotated[Float64, "B"]:
    """Return the least index that an answer may have: that of the answer of weight 0, if there is a posture."""
    least = np.full(problem.batch_size, -np.inf)
    posture = hill.preference.posture
    if posture is None or problem.num_solutions > 1:
        return least
    distance = posture.distance(without.q)
    solved = np.flatnonzero(np.isfinite(distance).any(axis=1))
    least[solved] = hill.height(without.q[solved, np.nanargmin(distance[solved], axis=1)], solved)
    return least


def _climb(
    problem: IkProblem,
    robot: RobotModel,
    hill: _Hill,
    q: Annotated[Float64, "N n"],
    request: Annotated[Int64, "N"],
) -> Iterator[tuple[Annotated[Float64, "m n"], Annotated[Int64, "m"], Annotated[Float64, "m"]]]:
    """Climb to ever higher configurations on the targets; return them, which of the given ones each came from, and
    their index."""
    lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
    which = np.arange(len(q))
    index = hill.height(q, request)
    step = np.full(len(q), FIRST_STEP)
    for _ in range(STEPS):
        if not len(q) or problem.late:
            return
        direction = _uphill(hill, q, request, lower, upper)
        largest = np.abs(direction).max(axis=1)
        rises = largest > 0.0
        trial = q + direction * (step / np.where(rises, largest, 1.0))[:, None]
        trial, on_target = _corrected(hill.task, np.clip(trial, lower, upper), request, lower, upper)
        height = hill.height(trial, request)
        higher: Bool = np.asarray(rises & on_target & (height > index))
        yield trial[higher], which[higher], height[higher]
        q, index = np.where(higher[:, None], trial, q), np.where(higher, height, index)
        step = np.where(higher, np.minimum(1.5 * step, LARGEST_STEP), 0.3 * step)
        on: Bool = np.asarray(rises & (step >= LEAST_STEP))
        q, request, which, index, step = q[on], request[on], which[on], index[on], step[on]


def _uphill(
    hill: _Hill, q: Annotated[Float64, "N n"], request: Annotated[Int64, "N"], lower: Float64, upper: Float64
) -> Annotated[Float64, "N n"]:
    """Return the steepest way up that stays on the targets, to first order, and inside the limits; 0 where there is
    none."""
    N, n = q.shape
    J = hill.task.jacobian(q, request)
    free = n - J.shape[1]
    if free == 0:
        return np.zeros((N, n))
    null = np.swapaxes(np.linalg.svd(J)[2][:, -free:], 1, 2)
    ways = np.swapaxes(null, 1, 2).reshape(N * free, n) * DIFFERENCE
    around, owner = np.repeat(q, free, axis=0), np.repeat(request, free)
    slope = (hill.height(around + ways, owner) - hill.height(around - ways, owner)).reshape(N, free, 1)
    direction = np.asarray((null @ slope)[..., 0])
    for _ in range(free):
        blocked = ((q <= lower) & (direction < 0.0)) | ((q >= upper) & (direction > 0.0))
        if not blocked.any():
            break
        # The motion nearest to the slope that leaves blocked variables where they are.
        held = null * blocked[..., None]
        slope -= np.linalg.pinv(held) @ (held @ slope)
        direction = np.where(blocked, 0.0, (null @ slope)[..., 0])
    else:
        direction[((q <= lower) & (direction < 0.0) | (q >= upper) & (direction > 0.0)).any(axis=1)] = 0.0
    return direction


def _corrected(
    task: Task, q: Annotated[Float64, "N n"], request: Annotated[Int64, "N"], lower: Float64, upper: Float64
) -> tuple[Annotated[Float64, "N n"], Annotated[Bool, "N"]]:
    """Bring configurations back onto the targets inside the limits; return them, and which of them are there."""
    for _ in range(CORRECTIONS):
        error = task.errors(q, request)
        if np.abs(error).max(initial=0.0) <= ON_TARGET:
            break
        J = task.jacobian(q, request)
        JJ = J @ np.swapaxes(J, 1, 2) + DAMPING * np.eye(J.shape[1])
        change = np.swapaxes(J, 1, 2) @ np.linalg.solve(JJ, error[..., None])
        q = np.clip(q - change[..., 0], lower, upper)
    return q, np.asarray(np.abs(task.errors(q, request)).max(axis=1, initial=0.0) <= ON_TARGET)
