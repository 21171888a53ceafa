"""Spends beams on requests: one for all, then wider ones for those that are left."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import jax
import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.errors import NotReadyError
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.solvers.held import Prepared
from kinopt_ros.solvers.jax_lm.chain import LaneChain
from kinopt_ros.solvers.jax_lm.programs import Programs
from kinopt_ros.solvers.jax_lm.seeds import starts
from kinopt_ros.solvers.jax_lm.shapes import Effort, ProgramKey, RowShape, Width
from kinopt_ros.solvers.result import IkCandidates

AIM = 5e-7
"""Beams go on to this error (m and rad) even if much more is allowed: it costs a step or two."""
LOOSE_POSITION, LOOSE_ORIENTATION = 5e-3, 0.05
"""Tolerances above these (m, rad) are used, and not only kept."""
ACCEPT, LOOSE_AIM, SLACK = 0.999, 0.95, 0.9
"""Parts of a tolerance."""
FARTHEST_TURN = 1e6
"""rad; beyond, adding turns to an angle costs more precision than requests leave."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One beam for every request that is not solved yet."""

    rows: RowShape
    allowed: Annotated[Float64, "3 6"]
    """Accepted errors, aims, slack."""
    width: Width
    number: int
    """Stages of the same width start from different configurations."""


class Counts:
    """How much the first beam solves. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first = self._all = 0

    def add(self, first: int, requests: int) -> None:
        """Requests that the first beam solved, out of so many."""
        with self._lock:
            self._first += first
            self._all += requests

    @property
    def share(self) -> float:
        """Part of all requests; NaN before the first one."""
        with self._lock:
            return self._first / self._all if self._all else float("nan")


def stages(target: PoseTarget, effort: Effort) -> list[Stage]:
    """What to try, in order."""
    tolerance, per_axis = _tolerances(target)
    loose = np.isfinite(tolerance) & (tolerance > np.repeat([LOOSE_POSITION, LOOSE_ORIENTATION], 3))
    tight_rows = RowShape(
        target.free_position, target.free_orientation, *per_axis, slack=False, autodiff=effort.autodiff
    )
    zero = np.zeros(6)
    near = np.minimum(AIM, 0.5 * tolerance)
    tight = np.array([ACCEPT * tolerance, near, zero])
    first = [Stage(tight_rows, tight, effort.beam, 0)]
    wide = [Stage(tight_rows, tight, effort.escalation, k) for k in range(effort.rounds)]
    if not loose.any():
        return first + wide
    loose_rows = replace(tight_rows, slack=True)
    used = np.array(
        [
            ACCEPT * tolerance,
            np.where(loose, LOOSE_AIM * tolerance, near),
            np.where(loose, SLACK * tolerance, zero),
        ]
    )
    first.append(Stage(loose_rows, used, effort.beam, 1))
    # Where joint limits are in the way, the point that is just good enough can be harder to find than the target.
    return first + [Stage(loose_rows, used, effort.escalation, k) for k in range(effort.rounds)] + wide


def needed(chain: LaneChain, plan: list[Stage], requests: int) -> list[ProgramKey]:
    """Programs that a number of requests may take."""
    keys = []
    for stage in plan:
        most = min(requests, 2 * stage.width.targets[-1])
        sizes = {size for count in range(1, most + 1) for size in stage.width.portions(count)}
        keys += [ProgramKey(chain.shape, stage.rows, stage.width.size, size) for size in sorted(sizes)]
    return list(dict.fromkeys(keys))


def search(
    problem: IkProblem,
    prepared: Prepared[LaneChain],
    programs: Programs,
    effort: Effort,
    hopeless: Callable[[], Bool],
    counts: Counts,
) -> IkCandidates:
    """Candidates for requests with one target and the same held values.

    Raises:
        NotReadyError: there is a deadline, and a program has to be compiled.
    """
    chain = prepared.packed
    plan = stages(problem.targets[0], effort)
    if problem.deadline is not None:
        _refuse_to_compile(needed(chain, plan, problem.batch_size), programs)
    work = _Work(problem, prepared, programs)
    seeds = _Seeds(work.seeds)
    for k, stage in enumerate(plan):
        if k == 1:
            counts.add(int(work.solved.sum()), problem.batch_size)
            work.given_up = work.solved.copy() if work.solved.all() else hopeless()
        todo = np.flatnonzero(~(work.solved | work.given_up))
        if not len(todo):
            break
        work.run(stage, todo, seeds.take(stage.width.size.num_seeds))
    while seeds.left and not (work.solved | work.given_up).all() and not work.cut.any():
        work.run(
            plan[-1],
            np.flatnonzero(~(work.solved | work.given_up)),
            seeds.take(plan[-1].width.size.num_seeds),
        )
    if len(plan) == 1:
        counts.add(int(work.solved.sum()), problem.batch_size)
    return work.candidates()


class _Seeds:
    """The problem's own start values, half a beam at a time."""

    def __init__(self, seeds: Annotated[Float64, "B S n"]) -> None:
        self._seeds = seeds

    @property
    def left(self) -> bool:
        return bool(self._seeds.shape[1])

    def take(self, most: int) -> Annotated[Float64, "B s n"]:
        count = max(1, most // 2)
        taken, self._seeds = self._seeds[:, :count], self._seeds[:, count:]
        return taken


class _Work:
    """What is known of every request; B of them, n variables of the chain."""

    def __init__(self, problem: IkProblem, prepared: Prepared[LaneChain], programs: Programs) -> None:
        self._problem, self._prepared, self._programs = problem, prepared, programs
        chain = prepared.packed
        batch = problem.batch_size
        T_target_first = _inverses(problem.targets[0].T_base_target) @ chain.T_base_first
        self._starts = np.concatenate(
            [T_target_first[:, :3, 3].T, T_target_first[:, :3, :3].transpose(2, 1, 0).reshape(9, batch)]
        )
        self._state = problem.state[:, chain.variables]
        lower, upper, _ = chain.bounds
        self.seeds = np.concatenate([self._state[:, None], problem.seeds[:, :, prepared.columns]], axis=1)
        self.q = np.clip(self._state, lower, upper)
        self.error = np.full(batch, np.inf)
        self.steps = np.zeros(batch, dtype=np.int64)
        self.solved = np.zeros(batch, dtype=np.bool_)
        self.given_up = np.zeros(batch, dtype=np.bool_)
        self.cut = np.zeros(batch, dtype=np.bool_)

    def run(self, stage: Stage, rows: Annotated[Int64, "R"], seeds: Annotated[Float64, "B s n"]) -> None:
        """One beam for each of some requests, as far as the deadline allows."""
        chain, size = self._prepared.packed, stage.width.size
        low, high = chain.sample
        lower, upper, _ = chain.bounds
        table = starts(low, high, stage.number * size.num_seeds, size.num_seeds, self._problem.random_seed)
        done = 0
        for targets in stage.width.portions(len(rows)):
            if self._problem.deadline is not None and time.monotonic() >= self._problem.deadline:
                self.cut[rows[done:]] = True
                return
            some = rows[done : done + targets]
            done += targets
            # Programs have one size: the last target fills what is left over.
            lanes = (
                np.concatenate([some, np.full(targets - len(some), some[-1])])
                if len(some) < targets
                else some
            )
            own = np.clip(_near_zero(seeds[lanes], chain), lower, upper)
            start = np.empty((*table.shape, targets), dtype=np.float32)
            start[:, own.shape[1] :] = table[:, own.shape[1] :, None]
            start[:, : own.shape[1]] = own.transpose(2, 1, 0)
            program = self._programs.get(ProgramKey(chain.shape, stage.rows, size, targets))
            with jax.enable_x64(True), jax.default_device(self._programs.runtime.device):
                found = program(
                    chain.numbers,
                    chain.bounds,
                    np.ascontiguousarray(self._starts[:, lanes]),
                    start,
                    stage.allowed,
                )
                q, error, aimed, steps = (np.asarray(array) for array in found)
            count = len(some)
            self._take(some, q[:, :, :count], error[:, :count], aimed[:, :count], int(steps))

    def _take(
        self,
        rows: Annotated[Int64, "r"],
        q: Annotated[Float64, "n keep r"],
        error: Annotated[Float64, "keep r"],
        aimed: Annotated[Bool, "keep r"],
        steps: int,
    ) -> None:
        """Of the solutions that are as exact as can be the one nearest to the state, else the best attempt."""
        turned = _nearest_turn(q.transpose(2, 1, 0), self._state[rows, None], self._prepared.packed)
        error = np.where(np.isfinite(error), error, np.inf).T
        solved = error <= 1.0
        away = ((turned - self._state[rows, None]) ** 2).sum(axis=-1)
        exact = aimed.T
        best = np.where(exact.any(axis=1), np.where(exact, away, np.inf).argmin(axis=1), error.argmin(axis=1))
        each = np.arange(len(rows))
        better = error[each, best] < self.error[rows]
        self.error[rows[better]] = error[each, best][better]
        self.q[rows[better]] = turned[each, best][better]
        self.solved[rows] = solved.any(axis=1)
        self.steps[rows] += steps

    def candidates(self) -> IkCandidates:
        """In the problem's variables; those that do not move the tip stay where they are."""
        problem, columns = self._problem, self._prepared.columns
        variables = problem.variables
        attempt = problem.state[:, variables].copy()
        attempt[:, columns] = self.q
        q = np.where(self.solved[:, None], attempt, np.nan)[:, None]
        return IkCandidates(q=q, attempt=attempt, iterations=self.steps, timed_out=self.cut & ~self.solved)


def _refuse_to_compile(keys: list[ProgramKey], programs: Programs) -> None:
    missing = programs.missing(keys)
    if missing:
        programs.make_in_background(missing)
        raise NotReadyError(
            f"solver jax_lm compiles what this kind of request needs ({len(missing)} programs), which no deadline "
            "waits for; ask again later, or name its group in jax_lm.groups"
        )


def _tolerances(target: PoseTarget) -> tuple[Annotated[Float64, "6"], tuple[bool, bool]]:
    """Accepted errors by row (m, and 2 sin(angle / 2) for angles), and whether they bound components."""
    values, per_axis = [], []
    for tolerance in (target.position_tolerance, target.orientation_tolerance):
        several = isinstance(tolerance, tuple)
        per_axis.append(several)
        values.append(tolerance if isinstance(tolerance, tuple) else (tolerance,) * 3)
    angles = np.array(values[1])
    chords = np.where(angles < np.pi, 2.0 * np.sin(0.5 * np.minimum(angles, np.pi)), np.inf)
    # Half a turn and more allows every orientation, but is not called free.
    chords = np.where(np.isfinite(angles) & np.isinf(chords), 2.1, chords)
    return np.concatenate([values[0], chords]), (per_axis[0], per_axis[1])


def _inverses(T: Annotated[Float64, "B 4 4"]) -> Annotated[Float64, "B 4 4"]:
    inverse = np.zeros_like(T)
    R = T[:, :3, :3].transpose(0, 2, 1)
    inverse[:, :3, :3] = R
    inverse[:, :3, 3] = -(R @ T[:, :3, 3:])[..., 0]
    inverse[:, 3, 3] = 1.0
    return inverse


def _near_zero(q: Annotated[Float64, "... n"], chain: LaneChain) -> Annotated[Float64, "... n"]:
    """Endless joints brought near 0 by whole turns: float32 is exact there."""
    return _nearest_turn(q, np.zeros(q.shape[-1]), chain)


def _nearest_turn(
    q: Annotated[Float64, "... n"], reference: Annotated[Float64, "... n"], chain: LaneChain
) -> Annotated[Float64, "... n"]:
    """Joints of period 2 pi at the turn nearest to a reference, if the limits allow it."""
    lower, upper, _ = chain.bounds
    turned = q + chain.period * np.rint((reference - q) / np.where(chain.period > 0.0, chain.period, 1.0))
    allowed = (lower <= turned) & (turned <= upper) & (np.abs(turned) < FARTHEST_TURN)
    return np.asarray(np.where(allowed, turned, q))
