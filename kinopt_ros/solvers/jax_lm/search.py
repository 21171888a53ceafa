"""Distribution of beams among requests: one for all, then wider ones for those that are left."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

import jax
import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.errors import NotReadyError
from kinopt_ros.problems.ik import IkProblem, PoseTarget, Tolerance, axes_left_free
from kinopt_ros.solvers.jax_lm.beam import constants
from kinopt_ros.solvers.jax_lm.chain import LaneChain
from kinopt_ros.solvers.jax_lm.programs import Programs
from kinopt_ros.solvers.jax_lm.runtime import Runtime
from kinopt_ros.solvers.jax_lm.seeds import start_table
from kinopt_ros.solvers.jax_lm.shapes import Effort, ProgramKey, RowShape, Width, program_key
from kinopt_ros.solvers.locked_joints import Prepared
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.turns import near_zero

AIM = 5e-7
"""Error (m and rad) to which beams go on even if much more is allowed: it costs a step or two."""
LOOSE_POSITION, LOOSE_ORIENTATION = 5e-3, 0.05
"""Tolerances above these (m, rad) are used, and not only kept."""
MOST_KEPT = 1 << 18
"""Numbers (float32) in a table of starts that stays on the device; there are up to 64 of them."""
ACCEPT, LOOSE_AIM, SLACK = 0.999, 0.95, 0.9
"""Shares of a tolerance."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One beam for every request that is not solved yet."""

    rows: RowShape
    allowed: Annotated[Float64, "3 6"]
    """Accepted errors, aims, slack."""
    width: Width
    number: int
    """Number of the stage; stages of equal width start from different configurations."""


class Counts:
    """Counts of how much the first beam solves. Thread-safe."""

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
    """Return what to try, in order."""
    return _stages(target.position_tolerance, target.orientation_tolerance, effort)


@lru_cache(maxsize=64)
def _stages(position: Tolerance, orientation: Tolerance, effort: Effort) -> tuple[Stage, ...]:
    tolerance, per_axis = _tolerances(position, orientation)
    loose = np.isfinite(tolerance) & (tolerance > np.repeat([LOOSE_POSITION, LOOSE_ORIENTATION], 3))
    tight_rows = RowShape(
        axes_left_free(position),
        axes_left_free(orientation),
        *per_axis,
        slack=False,
        autodiff=effort.autodiff,
    )
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


def needed(chain: LaneChain, plan: tuple[Stage, ...], requests: int) -> tuple[ProgramKey, ...]:
    """Return programs that a number of requests may take."""
    return _needed(chain, plan, _at_most(plan, requests))


def _at_most(plan: tuple[Stage, ...], requests: int) -> int:
    """Return a number of requests that needs no fewer programs."""
    return min(requests, max(2 * stage.width.targets[-1] for stage in plan))


def _needed(chain: LaneChain, plan: tuple[Stage, ...], requests: int) -> tuple[ProgramKey, ...]:
    keys = []
    for stage in plan:
        most = min(requests, 2 * stage.width.targets[-1])
        sizes = {size for count in range(1, most + 1) for size in stage.width.portions(count)}
        keys += [program_key(chain.shape, stage.rows, stage.width.size, size) for size in sorted(sizes)]
    return tuple(dict.fromkeys(keys))


def search(
    problem: IkProblem,
    prepared: Prepared[LaneChain],
    programs: Programs[ProgramKey],
    tables: "Tables",
    effort: Effort,
    hopeless: Callable[[], Bool],
    counts: Counts,
) -> IkCandidates:
    """Return candidates for requests with one target and the same held values.

    Raises:
        NotReadyError: there is a deadline, and a program has to be compiled.
    """
    plan = stages(problem.targets[0], effort)
    if problem.deadline is not None:
        most = _at_most(plan, problem.batch_size)
        _refuse_to_compile(tables.needed(prepared.packed, plan, most), programs)
    work = _Work(problem, prepared, programs, tables)
    work.run(plan[0], None)
    counts.add(int(np.count_nonzero(work.solved)), problem.batch_size)
    if not work.solved.all() and (len(plan) > 1 or work.has_seeds):
        work.given_up = hopeless()
        for stage in plan[1:]:
            work.run(stage, work.todo())
        while work.has_seeds and len(work.todo()) and not work.cut.any():
            work.run(plan[-1], work.todo())
    return work.candidates()


class _Work:
    """State of every request; B of them, n variables of the chain."""

    def __init__(
        self,
        problem: IkProblem,
        prepared: Prepared[LaneChain],
        programs: Programs[ProgramKey],
        tables: "Tables",
    ) -> None:
        self._problem, self._prepared, self._programs, self._tables = problem, prepared, programs, tables
        chain, batch, n = prepared.packed, problem.batch_size, prepared.packed.shape.variables
        state = problem.state[:, chain.variables]
        self._requests = np.empty((batch, 12 + 2 * n))
        """Poses, states, first starts, as programs take them."""
        self._requests[:, :12] = problem.targets[0].T_base_target[:, :3].reshape(batch, 12)
        self._requests[:, 12 : 12 + n] = state
        seeds = state[:, None]
        if problem.seeds.shape[1]:
            seeds = np.concatenate([seeds, problem.seeds[:, :, prepared.columns]], axis=1)
        self._seeds = near_zero(seeds, chain.ranges[0], chain.ranges[1], chain.period)
        """The problem's own start values that were not tried yet, (B, s, n)."""
        self._best: Float64 | None = None
        """q, error, and steps made so far, as programs give them; JAX's own memory, which nobody may write to, where
        the first beam has solved all."""
        self.solved = self.given_up = self.cut = np.zeros(batch, dtype=np.bool_)

    @property
    def has_seeds(self) -> bool:
        """Whether start values of the problem are left."""
        return bool(self._seeds.shape[1])

    def todo(self) -> Annotated[Int64, "R"]:
        """Return requests that are neither solved nor given up."""
        return np.flatnonzero(~(self.solved | self.given_up))

    def run(self, stage: Stage, requests: Annotated[Int64, "R"] | None) -> None:
        """Run one beam for each of some requests, or of all, as far as the deadline allows.

        Half of its starts at most are the problem's own.
        """
        runtime, seed = self._programs.runtime, self._problem.random_seed
        arguments = self._tables.arguments(self._prepared.packed, stage, runtime)
        most = max(1, stage.width.size.num_seeds // 2)
        own, self._seeds = self._seeds[:, :most], self._seeds[:, most:]
        n = own.shape[2]
        self._requests[:, 12 + n :] = own[:, 0] if own.shape[1] else arguments.first(seed)
        count, done = len(own) if requests is None else len(requests), 0
        for targets in stage.width.portions(count):
            if self._problem.late:
                self.cut = self.cut.copy()
                self.cut[slice(done, None) if requests is None else requests[done:]] = True
                return
            known = min(targets, count - done)
            rows = slice(done, done + known) if requests is None else requests[done : done + known]
            done += known
            lines = self._requests[rows]
            if known < targets:  # programs have one size: the last target fills what is left over
                lines = np.concatenate([lines, np.repeat(lines[-1:], targets - known, axis=0)])
            starts: jax.Array | np.ndarray
            if own.shape[1] > 1:
                starts = arguments.with_own(own[rows], targets, seed)
            elif n * stage.width.size.num_seeds * targets <= MOST_KEPT:
                starts = self._tables.device_starts(arguments, targets, seed)
            else:
                starts = arguments.starts(targets, seed)
            program = self._programs.get(arguments.keys[targets])
            with jax.enable_x64(True):
                found = np.asarray(program(*arguments.constants, lines, starts))
            self._take(rows, found[:, :known])

    def _take(self, rows: slice | Annotated[Int64, "r"], found: Annotated[Float64, "n+2 r"]) -> None:
        """Keep what is better than what is known."""
        solved = found[-2] <= 1.0
        if self._best is None and found.shape[1] == len(self.solved) and solved.all():
            self._best, self.solved = found, solved
            return
        best = self._known()
        before = best[:, rows]
        better = np.where(found[-2] < before[-2], found, before)
        better[-1] = before[-1] + found[-1]
        best[:, rows] = better
        self.solved = best[-2] <= 1.0

    def _known(self) -> Annotated[Float64, "n+2 B"]:
        """Return the best that is known; before the first beam the state."""
        if self._best is None:
            lower, upper = self._prepared.packed.ranges[:2]
            n = len(lower)
            self._best = np.empty((n + 2, len(self.solved)))
            self._best[:n] = np.clip(self._requests[:, 12 : 12 + n], lower, upper).T
            self._best[n], self._best[n + 1] = np.inf, 0.0
        return self._best

    def candidates(self) -> IkCandidates:
        """Return candidates in the problem's variables; those that do not move the tip stay where they are."""
        problem, best = self._problem, self._known()
        attempt = best[:-2].T
        if not self._prepared.in_order:
            attempt = problem.state[:, problem.variables]
            attempt[:, self._prepared.columns] = best[:-2].T
        q, timed_out = attempt, self.cut
        if not self.solved.all():
            q, timed_out = np.where(self.solved[:, None], attempt, np.nan), self.cut & ~self.solved
        return IkCandidates(
            q=q[:, None], attempt=attempt, iterations=best[-1].astype(np.int64), timed_out=timed_out
        )


class _Arguments:
    """Arguments of programs for a chain and a stage that stay the same from request to request."""

    def __init__(self, chain: LaneChain, stage: Stage, runtime: Runtime) -> None:
        self._chain, self._stage, self._runtime = chain, stage, runtime
        self.keys = {
            targets: program_key(chain.shape, stage.rows, stage.width.size, targets)
            for targets in stage.width.targets
        }
        """Programs by number of targets."""
        self.constants = (self.on_device(constants(chain, stage.allowed)), self.on_device(chain.ranges32))
        """The first two arguments."""

    def first(self, seed: int) -> Annotated[np.ndarray, "n"]:
        """Return the first start of every target."""
        return self._table(seed)[:, 0]

    def starts(self, targets: int, seed: int) -> Annotated[np.ndarray, "n num_seeds*targets"]:
        """Return start values, the last argument of a program."""
        return np.repeat(self._table(seed), targets, axis=1)

    def with_own(
        self, own: Annotated[Float64, "r s n"], targets: int, seed: int
    ) -> Annotated[np.ndarray, "n num_seeds*targets"]:
        """Return start values of which the first are given in ``own``; targets beyond repeat the last request's."""
        starts = self.starts(targets, seed)
        lanes = starts.reshape(len(starts), -1, targets)
        lanes[:, : own.shape[1], : len(own)] = own.transpose(2, 1, 0)
        lanes[:, : own.shape[1], len(own) :] = own[-1].T[:, :, None]
        return starts

    def on_device(self, array: np.ndarray) -> jax.Array:
        """Put an array where programs run."""
        with jax.enable_x64(True):
            there: jax.Array = jax.device_put(array, self._runtime.device)
        return there

    def _table(self, seed: int) -> Annotated[np.ndarray, "n num_seeds"]:
        count = self._stage.width.size.num_seeds
        return start_table(self._chain, self._stage.number * count, count, seed)


class Tables:
    """Tables that requests have in common with those before, for one solver, and end with it. Thread-safe."""

    def __init__(self) -> None:
        self.needed = lru_cache(maxsize=256)(_needed)
        self.arguments = lru_cache(maxsize=64)(_Arguments)
        self.device_starts = lru_cache(maxsize=64)(_device_starts)


def _device_starts(arguments: _Arguments, targets: int, seed: int) -> jax.Array:
    return arguments.on_device(arguments.starts(targets, seed))


def _refuse_to_compile(keys: Sequence[ProgramKey], programs: Programs[ProgramKey]) -> None:
    missing = programs.missing(keys)
    if missing:
        programs.check_can_be_made(missing)
        programs.make_in_background(missing)
        raise NotReadyError(
            f"solver jax_lm compiles what this kind of request needs ({len(missing)} programs), which no deadline "
            "waits for; ask again later, or name its group in jax_lm.groups"
        )


def _tolerances(
    position: Tolerance, orientation: Tolerance
) -> tuple[Annotated[Float64, "6"], tuple[bool, bool]]:
    """Return accepted errors by row (m, and 2 sin(angle / 2) for angles), and whether they bound components."""
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
