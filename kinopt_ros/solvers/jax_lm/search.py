"""Spends beams on requests: one for all, then wider ones for those that are left."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

import jax
import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.errors import NotReadyError
from kinopt_ros.kinematics.pose_errors import Free
from kinopt_ros.problems.ik import IkProblem, PoseTarget, Tolerance
from kinopt_ros.solvers.held import Prepared
from kinopt_ros.solvers.jax_lm.chain import LaneChain
from kinopt_ros.solvers.jax_lm.programs import Programs
from kinopt_ros.solvers.jax_lm.runtime import Runtime
from kinopt_ros.solvers.jax_lm.seeds import start_table
from kinopt_ros.solvers.jax_lm.shapes import Effort, ProgramKey, RowShape, Width
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.turns import near_zero

AIM = 5e-7
"""Beams go on to this error (m and rad) even if much more is allowed: it costs a step or two."""
LOOSE_POSITION, LOOSE_ORIENTATION = 5e-3, 0.05
"""Tolerances above these (m, rad) are used, and not only kept."""
ACCEPT, LOOSE_AIM, SLACK = 0.999, 0.95, 0.9
"""Parts of a tolerance."""


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


def stages(target: PoseTarget, effort: Effort) -> tuple[Stage, ...]:
    """What to try, in order."""
    return _stages(
        target.position_tolerance,
        target.orientation_tolerance,
        target.free_position,
        target.free_orientation,
        effort,
    )


@lru_cache(maxsize=64)
def _stages(
    position: Tolerance,
    orientation: Tolerance,
    free_position: Free,
    free_orientation: Free,
    effort: Effort,
) -> tuple[Stage, ...]:
    tolerance, per_axis = _tolerances(position, orientation)
    loose = np.isfinite(tolerance) & (tolerance > np.repeat([LOOSE_POSITION, LOOSE_ORIENTATION], 3))
    tight_rows = RowShape(free_position, free_orientation, *per_axis, slack=False, autodiff=effort.autodiff)
    zero = np.zeros(6)
    near = np.minimum(AIM, 0.5 * tolerance)
    tight = np.array([ACCEPT * tolerance, near, zero])
    first = [Stage(tight_rows, tight, effort.beam, 0)]
    wide = [Stage(tight_rows, tight, effort.escalation, k) for k in range(effort.rounds)]
    if not loose.any():
        return (*first, *wide)
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
    return (*first, *(Stage(loose_rows, used, effort.escalation, k) for k in range(effort.rounds)), *wide)


def needed(chain: LaneChain, plan: Sequence[Stage], requests: int) -> list[ProgramKey]:
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
        chain, batch = prepared.packed, problem.batch_size
        state = problem.state[:, chain.variables]
        T_base_target = problem.targets[0].T_base_target
        self._requests = np.concatenate([T_base_target[:, :3].reshape(batch, 12), state], axis=1)
        self.seeds = state[:, None]
        if problem.seeds.shape[1]:
            self.seeds = np.concatenate([self.seeds, problem.seeds[:, :, prepared.columns]], axis=1)
        self.q = np.minimum(np.maximum(state, chain.ranges[0]), chain.ranges[1])
        self.error = np.full(batch, np.inf)
        self.steps = np.zeros(batch, dtype=np.int64)
        self.solved = np.zeros(batch, dtype=np.bool_)
        self.given_up = np.zeros(batch, dtype=np.bool_)
        self.cut = np.zeros(batch, dtype=np.bool_)

    def run(self, stage: Stage, rows: Annotated[Int64, "R"], seeds: Annotated[Float64, "B s n"]) -> None:
        """One beam for each of some requests, as far as the deadline allows."""
        chain, size, runtime = self._prepared.packed, stage.width.size, self._programs.runtime
        table = start_table(chain, stage.number * size.num_seeds, size.num_seeds, self._problem.random_seed)
        constants = _constants(chain, stage, runtime)
        lower, upper, _, period = chain.ranges
        done = 0
        for targets in stage.width.portions(len(rows)):
            if self._problem.late:
                self.cut[rows[done:]] = True
                return
            some = rows[done : done + targets]
            done += targets
            # Programs have one size: the last target fills what is left over.
            lanes = some
            if len(some) < targets:
                lanes = np.concatenate([some, np.full(targets - len(some), some[-1])])
            own = near_zero(seeds[lanes], lower, upper, period)
            start = np.empty((*table.shape, targets), dtype=np.float32)
            start[:, own.shape[1] :] = table[:, own.shape[1] :, None]
            start[:, : own.shape[1]] = own.transpose(2, 1, 0)
            program = self._programs.get(ProgramKey(chain.shape, stage.rows, size, targets))
            with jax.enable_x64(True), jax.default_device(runtime.device):
                found = program(*constants, self._requests[lanes], start)
                answers, steps = np.asarray(found[0]), int(found[1])
            self._take(some, answers[:, : len(some)], steps)

    def _take(self, rows: Annotated[Int64, "r"], answers: Annotated[Float64, "n+1 r"], steps: int) -> None:
        """Keep what is better than what is known."""
        error = answers[-1]
        better = error < self.error[rows]
        self.error[rows[better]] = error[better]
        self.q[rows[better]] = answers[:-1, better].T
        self.solved[rows] |= error <= 1.0
        self.steps[rows] += steps

    def candidates(self) -> IkCandidates:
        """In the problem's variables; those that do not move the tip stay where they are."""
        problem, columns = self._problem, self._prepared.columns
        variables = problem.variables
        attempt = problem.state[:, variables].copy()
        attempt[:, columns] = self.q
        q = np.where(self.solved[:, None], attempt, np.nan)[:, None]
        return IkCandidates(q=q, attempt=attempt, iterations=self.steps, timed_out=self.cut & ~self.solved)


@lru_cache(maxsize=64)
def _constants(chain: LaneChain, stage: Stage, runtime: Runtime) -> tuple[jax.Array, ...]:
    """Arguments of a program that stay the same from request to request, on the device."""
    arrays = (chain.numbers, chain.T_base_first, chain.ranges, stage.allowed)
    with jax.enable_x64(True):
        return tuple(jax.device_put(array, runtime.device) for array in arrays)


def _refuse_to_compile(keys: list[ProgramKey], programs: Programs) -> None:
    missing = programs.missing(keys)
    if missing:
        programs.make_in_background(missing)
        raise NotReadyError(
            f"solver jax_lm compiles what this kind of request needs ({len(missing)} programs), which no deadline "
            "waits for; ask again later, or name its group in jax_lm.groups"
        )


def _tolerances(
    position: Tolerance, orientation: Tolerance
) -> tuple[Annotated[Float64, "6"], tuple[bool, bool]]:
    """Accepted errors by row (m, and 2 sin(angle / 2) for angles), and whether they bound components."""
    values, per_axis = [], []
    for tolerance in (position, orientation):
        several = isinstance(tolerance, tuple)
        per_axis.append(several)
        values.append(tolerance if isinstance(tolerance, tuple) else (tolerance,) * 3)
    angles = np.array(values[1])
    chords = np.where(angles < np.pi, 2.0 * np.sin(0.5 * np.minimum(angles, np.pi)), np.inf)
    # Half a turn and more allows every orientation, but is not called free.
    chords = np.where(np.isfinite(angles) & np.isinf(chords), 2.1, chords)
    return np.concatenate([values[0], chords]), (per_axis[0], per_axis[1])
