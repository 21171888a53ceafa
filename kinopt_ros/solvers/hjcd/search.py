"""Distribution of rounds among requests: one for all, then others for those that are left."""

import threading
from collections.abc import Callable
from typing import Annotated, Protocol

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.solvers.hjcd.chain import LOWER, PERIOD, UPPER, ChainShape
from kinopt_ros.solvers.hjcd.device_chain import DeviceChain
from kinopt_ros.solvers.hjcd.portion import Outcome, Portion
from kinopt_ros.solvers.locked_joints import Prepared
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.turns import FARTHEST_TURN, less_turns, near_zero

ACCEPT = 0.999
"""Share of the tolerances that is used: rounding elsewhere shall not spoil the verdict."""
SMALLEST_TOLERANCE = 1e-300
"""What tolerances of 0 count as, m and rad."""
GATE = 3e-3
"""Errors (m, rad) above which lanes are not polished, unless the tolerances are larger still."""
LANES_PER_SOLUTION = 8
"""Number of lanes spent on a solution, if several are wanted: some fail, some end where others did."""


class Search(Protocol):
    """One of the algorithms."""

    @property
    def name(self) -> str:
        """Name of the algorithm."""

    @property
    def lanes(self) -> int:
        """Number of configurations per request that it ends with."""

    @property
    def most_targets(self) -> int:
        """Most targets at once; on a CPU what takes some 10 ms, as the clock is looked at in between."""

    def load(self, shape: ChainShape) -> None:
        """Compile, or load what was compiled before."""

    def forget(self) -> None:
        """Free memory of the device."""

    def run(self, chain: DeviceChain, portion: Portion) -> Outcome:
        """Make one round for every target of the portion.

        Raises:
            RuntimeError: the device is full, or lost; what it found is not used.
        """


def search(
    problem: IkProblem,
    prepared: Prepared[DeviceChain],
    algorithm: Search,
    device_lock: threading.Lock,
    rounds: int,
    every_lane: bool,
    hopeless: Callable[[], Bool],
) -> IkCandidates:
    """Return candidates for requests with one target and the same held values.

    Args:
        problem: the requests.
        prepared: their chain.
        algorithm: spends one round.
        device_lock: held while it does.
        rounds: most of them per request.
        every_lane: whether to give all distinct solutions of a request's last round, also if one is wanted.
        hopeless: which requests are beyond reach; asked after the first round.
    """
    every_lane = every_lane or problem.num_solutions > 1
    work = _Work(problem, prepared, algorithm, every_lane)
    wanted = (
        1 if problem.num_solutions == 1 else -(-LANES_PER_SOLUTION * problem.num_solutions // algorithm.lanes)
    )
    most = algorithm.most_targets
    own = _OwnStarts(work.own, max(1, algorithm.lanes // 2))
    number = 0
    while number < max(rounds, wanted) or own.left:
        if number == 1 and not work.solved.all():
            work.given_up = hopeless()
        todo = np.flatnonzero(~(work.done | work.given_up))
        if not len(todo):
            break
        starts = own.take()
        for first in range(0, len(todo), most):
            if problem.late:
                work.cut[todo[first:]] = True
                return work.candidates()
            some = todo[first : first + most]
            portion = Portion(
                targets=work.targets[some],
                state=work.state[some],
                own=starts[some],
                round=number,
                seed=problem.random_seed,
                every_lane=every_lane,
                tolerance=work.accepted,
                gate=max(GATE, *work.tolerance),
            )
            with device_lock:
                outcome = algorithm.run(prepared.packed, portion)
            work.take(some, outcome)
        number += 1
    return work.candidates()


class _OwnStarts:
    """Starts from the problem's state and seeds, some at a time."""

    def __init__(self, starts: Annotated[Float64, "B s n"], most: int) -> None:
        self._starts, self._most = starts, most

    @property
    def left(self) -> bool:
        return bool(self._starts.shape[1])

    def take(self) -> Annotated[Float64, "B s n"]:
        taken, self._starts = self._starts[:, : self._most], self._starts[:, self._most :]
        return taken


class _Work:
    """State of every request; B of them, n variables of the chain."""

    def __init__(
        self, problem: IkProblem, prepared: Prepared[DeviceChain], algorithm: Search, every_lane: bool
    ) -> None:
        self._problem, self._columns, self._every_lane = problem, prepared.columns, every_lane
        self._algorithm = algorithm.name
        self._chain = prepared.packed.chain
        ranges = self._chain.ranges
        target = problem.targets[0]
        if target.plain is None:
            raise AssertionError("refused before: tolerances per axis")
        self.tolerance = target.plain
        position, orientation = (ACCEPT * max(t, SMALLEST_TOLERANCE) for t in target.plain)
        self.accepted = position, orientation
        self.targets = self._chain.packed_targets(target.T_base_target)
        self.state = problem.state[:, self._chain.variables]
        own = self.state[:, None]
        if problem.seeds.shape[1]:
            own = np.concatenate([own, problem.seeds[:, :, self._columns]], axis=1)
        self.own = self._inside(near_zero(own, ranges[LOWER], ranges[UPPER], ranges[PERIOD]))
        batch = problem.batch_size
        self._best = self._inside(self.state)
        self._error = np.full(batch, np.inf)
        self._found: list[Float64] = [np.empty((0, self.state.shape[1]))] * batch
        self.solved = np.zeros(batch, dtype=np.bool_)
        self.done = np.zeros(batch, dtype=np.bool_)
        self.given_up = np.zeros(batch, dtype=np.bool_)
        self.cut = np.zeros(batch, dtype=np.bool_)
        self._steps = np.zeros(batch, dtype=np.int64)

    def take(self, rows: Annotated[Int64, "r"], outcome: Outcome) -> None:
        """Keep what is a solution, and what is better than what is known."""
        relative = np.nan_to_num(outcome.errors / self.accepted, nan=np.inf).max(axis=2)
        q = self._turned(outcome.q, self.state[rows][:, None]) if self._every_lane else outcome.q
        reached: Bool = np.asarray(relative <= 1.0)
        each = np.arange(len(rows))
        best = relative.argmin(axis=1)
        solved = reached.any(axis=1)
        better = relative[each, best] < self._error[rows]
        if not self._every_lane:
            better |= solved
        self._error[rows[better]] = relative[each, best][better]
        self._best[rows[better]] = q[each, best][better]
        self.solved[rows] |= solved
        if self._every_lane:
            for row, lanes, ends in zip(rows.tolist(), q, reached, strict=True):
                self._add(row, lanes[ends])
        else:
            self.done[rows] |= solved
        self._steps[rows] += outcome.steps

    def _add(self, row: int, solutions: Annotated[Float64, "s n"]) -> None:
        """Keep those that are distinct from the ones before; a request that has as many as it wants is done."""
        period = self._chain.ranges[PERIOD]
        found = self._found[row]
        for q in solutions:
            apart = np.abs(less_turns(found - q, period)).max(axis=1, initial=0.0)
            if (apart > self._problem.min_separation).all():
                found = np.concatenate([found, q[None]])
        self._found[row] = found
        self.done[row] = len(found) >= self._problem.num_solutions

    def candidates(self) -> IkCandidates:
        """Return candidates in the problem's variables; those that do not move the tip stay where they are."""
        problem, columns = self._problem, self._columns
        attempt = problem.state[:, problem.variables].copy()
        attempt[:, columns] = self._best
        if not self._every_lane:
            q = np.where(self.solved[:, None], attempt, np.nan)[:, None]
        else:
            K = max(map(len, self._found), default=0)
            q = np.full((problem.batch_size, max(1, K), attempt.shape[1]), np.nan)
            for b, found in enumerate(self._found):
                q[b, : len(found)] = problem.state[b, problem.variables]
                q[b, : len(found), columns] = found.T
        return IkCandidates(q, attempt, self._steps, timed_out=self.cut, algorithm=self._algorithm)

    def _inside(self, q: Annotated[Float64, "... n"]) -> Annotated[Float64, "... n"]:
        return np.asarray(np.minimum(np.maximum(q, self._chain.ranges[LOWER]), self._chain.ranges[UPPER]))

    def _turned(
        self, q: Annotated[Float64, "... n"], near: Annotated[Float64, "... n"]
    ) -> Annotated[Float64, "... n"]:
        """Turn joints that could make whole turns to the turn nearest to given values, as far as limits allow."""
        ranges = self._chain.ranges
        period = ranges[PERIOD]
        if not period.any():
            return q
        other = near + less_turns(q - near, period)
        allowed = (ranges[LOWER] <= other) & (other <= ranges[UPPER]) & (np.abs(other) < FARTHEST_TURN)
        return np.asarray(np.where(allowed & (period > 0.0), other, q))
