"""How starts are spent on requests: the first one is polished; where that does not hold, many are searched from."""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import jax
import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import NotReadyError
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveCandidates
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.jax_lm.objectives.layout import Layout, layout_of, pack
from kinopt_ros.solvers.jax_lm.objectives.polish import STEPS
from kinopt_ros.solvers.jax_lm.objectives.program import POLISH, SEARCH, ObjectiveKey, sources_of
from kinopt_ros.solvers.jax_lm.programs import IN_MEMORY, Program, Programs
from kinopt_ros.solvers.lru import LruCache
from kinopt_ros.solvers.objective_starts import allowed_violations, first_starts, further_starts
from kinopt_ros.wanted import check_wanted

LANES: dict[str, tuple[tuple[float, int], ...]] = {
    POLISH: ((1, 1), (16, 16), (math.inf, 128)),
    SEARCH: ((4, 16), (math.inf, 256)),
}
"""For batches of up to so many requests, the number of starts of the program that is run again and again."""
LANES_ON_CPU = {**LANES, SEARCH: ((math.inf, 16),)}
"""Likewise on CPUs, where 256 starts take 16 times as long as 16, and nobody can look at the clock meanwhile."""
_AT_A_TIME = 16
"""Requests that are searched for together; between them the clock is looked at."""
_PAUSE = 0.04
"""Time of a part of the polish, s; between parts the clock is looked at."""
_BEST = 2
"""Best starts of a search that are polished."""


@dataclass
class _Best:
    """The best that is known of each request."""

    q: Annotated[Float64, "B T nq"]
    multipliers: list[Annotated[Float64, "B P m"]]
    value: Annotated[Float64, "B"]
    violation: Annotated[Float64, "B"]
    history: Annotated[Float64, "B H"]
    iterations: Annotated[np.ndarray, "B"]


class ObjectiveSearch:
    """Solves objectives for one robot. Thread-safe."""

    def __init__(self, robot: RobotModel, programs: Programs[ObjectiveKey]) -> None:
        self._robot = robot
        self._programs = programs
        self._pace: LruCache[ObjectiveKey, float] = LruCache(IN_MEMORY)
        """Time of a step of the polish lately, s; guarded by the lock."""
        self._pace_lock = threading.Lock()

    def needed(self, problem: ObjectiveProblem) -> tuple[ObjectiveKey, ...]:
        """Return the programs that a problem may need."""
        layout = layout_of(self._robot, problem)
        lanes = self._lanes(POLISH, problem.batch_size)
        keys = [_key(POLISH, lanes, layout)]
        if problem.num_starts:
            keys.append(_key(SEARCH, self._lanes(SEARCH, problem.batch_size), layout))
        return tuple(keys)

    def prepare(self, problem: ObjectiveProblem) -> None:
        """Compile or load all that a problem may need."""
        for key in self.needed(problem):
            self._programs.get(key)

    def solve(self, problem: ObjectiveProblem) -> ObjectiveCandidates:
        """Search for a checked problem.

        Raises:
            NotReadyError: it has a deadline, and a program is not compiled yet; a thread compiles it.
            CostError: a cost cannot be traced, as was found then.
        """
        layout = layout_of(self._robot, problem)
        if problem.deadline is not None:
            self._refuse_to_compile(self.needed(problem))
        numbers = np.stack([pack(objective, problem.dt) for objective in problem.objectives])
        B = problem.batch_size
        everyone = np.arange(B)
        best = self._polished(layout, problem, numbers, first_starts(problem))
        holds = best.violation <= allowed_violations(problem)
        goes_on = everyone if not problem.objective.has_to_hold else np.flatnonzero(~holds)
        timed_out = np.zeros(B, dtype=np.bool_)
        timed_out[~holds] = problem.late
        if problem.num_starts:
            for begin in range(0, len(goes_on), _AT_A_TIME):
                chosen = goes_on[begin : begin + _AT_A_TIME]
                if problem.late:
                    timed_out[goes_on[begin:]] = True
                    break
                self._search(layout, problem, numbers, chosen, best)
        return ObjectiveCandidates(
            best.q,
            tuple(best.multipliers),
            best.iterations.astype(np.int64),
            best.history,
            timed_out,
        )

    def _lanes(self, kind: str, batch_size: int) -> int:
        """Return the number of starts of the program for batches of a size."""
        known = LANES_ON_CPU if self._programs.runtime.on_cpu else LANES
        return next(lanes for most, lanes in known[kind] if batch_size <= most)

    def _search(
        self,
        layout: Layout,
        problem: ObjectiveProblem,
        numbers: Annotated[Float64, "B N"],
        requests: Annotated[np.ndarray, "R"],
        best: _Best,
    ) -> None:
        """Search from many starts for some requests, and put what is better into ``best``."""
        starts = further_starts(self._robot, problem, requests)
        R, S = starts.shape[:2]
        found = self._run(
            SEARCH,
            problem,
            layout,
            np.repeat(numbers[requests], S, axis=0),
            starts.reshape(R * S, *starts.shape[2:]),
        )
        merit = np.where(np.isfinite(found.merit), found.merit, np.inf).reshape(R, S)
        order = np.argsort(merit, axis=1, kind="stable")[:, :_BEST]
        chosen = np.take_along_axis(
            np.asarray(found.q).reshape(R, S, *starts.shape[2:]), order[:, :, None, None], axis=1
        )
        count = order.shape[1]
        polished = self._polished(
            layout,
            problem,
            np.repeat(numbers[requests], count, axis=0),
            chosen.reshape(R * count, *starts.shape[2:]),
        )
        allowed = np.repeat(allowed_violations(problem, requests), count)
        rank = _rank(polished, allowed).reshape(R, count, 2)
        own = _rank(best, allowed_violations(problem))[requests]
        searched = np.asarray(found.iterations).reshape(R, S).max(axis=1)
        for row, b in enumerate(requests.tolist()):
            k = min(range(count), key=[tuple(pair) for pair in rank[row].tolist()].__getitem__)
            n = row * count + k
            best.iterations[b] += searched[row] + polished.iterations[n]
            if tuple(rank[row, k]) < tuple(own[row]):
                best.q[b], best.value[b], best.violation[b] = (
                    polished.q[n],
                    polished.value[n],
                    polished.violation[n],
                )
                best.history[b] = polished.history[n]
                for mine, other in zip(best.multipliers, polished.multipliers, strict=True):
                    mine[b] = other[n]

    def _polished(
        self,
        layout: Layout,
        problem: ObjectiveProblem,
        numbers: Annotated[Float64, "L N"],
        q: Annotated[Float64, "L T nq"],
    ) -> _Best:
        found = self._run(POLISH, problem, layout, numbers, q)
        finite = (
            np.isfinite(found.violation) & np.isfinite(found.value) & np.isfinite(found.q).all(axis=(1, 2))
        )
        return _Best(
            np.where(finite[:, None, None], found.q, q),
            [np.array(part) for part in found.multipliers],
            np.where(finite, found.value, np.inf),
            np.where(finite, found.violation, np.inf),
            np.array(found.history),
            np.array(found.iterations),
        )

    def _run(
        self,
        kind: str,
        problem: ObjectiveProblem,
        layout: Layout,
        numbers: Annotated[Float64, "L N"],
        q: Annotated[Float64, "L T nq"],
    ) -> Any:
        """Run a program portion by portion; the last one is filled up with repetitions.

        After the deadline the rest stays where it starts, as far from holding as can be.

        Raises:
            AbandonedError: nobody wants it any more.
        """
        size = self._lanes(kind, problem.batch_size)
        if kind == POLISH:
            key = _key(POLISH, size, layout)
            polish_program = self._programs.get(key)

            def program(numbers: Float64, q: Float64) -> Any:
                return self._polish(problem, key, polish_program, numbers, q)

        else:
            program = self._programs.get(_key(kind, size, layout))
        parts: list[Any] = []
        with jax.enable_x64(True):
            for begin in range(0, len(q), size):
                at = np.minimum(np.arange(begin, begin + size), len(q) - 1)
                if parts and problem.late:
                    parts.append(_left(parts[0], q[at]))
                else:
                    parts.append(program(numbers[at], q[at]))
        return _joined(parts, len(q))

    def _polish(
        self,
        problem: ObjectiveProblem,
        key: ObjectiveKey,
        program: Program,
        numbers: Annotated[Float64, "L N"],
        q: Annotated[Float64, "L T nq"],
    ) -> Any:
        """Polish from trajectories, in parts of the same steps whatever their number, until it is done or the deadline
        passes."""
        state, _ = program(numbers, _unknown(program, q), np.int64(0))
        done = 0
        while True:
            with self._pace_lock:
                pace = self._pace.get(key)
            steps = 1 if pace is None else max(1, min(STEPS - done, int(_PAUSE / pace)))
            begin = time.perf_counter()
            state, found = program(numbers, state, np.int64(done + steps))
            ran = int(np.asarray(state.iteration).max()) - done
            if ran:
                with self._pace_lock:
                    self._pace.put(key, (time.perf_counter() - begin) / ran)
            done += steps
            check_wanted()
            if done >= STEPS or np.asarray(state.done).all() or problem.late:
                return found

    def _refuse_to_compile(self, keys: Sequence[ObjectiveKey]) -> None:
        missing = self._programs.missing(keys)
        if missing:
            self._programs.check_can_be_made(missing)
            self._programs.make_in_background(missing)
            raise NotReadyError(
                f"solver jax_lm compiles what this structure of an objective needs ({len(missing)} programs), which no "
                "deadline waits for; ask again later"
            )


def _unknown(program: Any, q: Annotated[Float64, "L T nq"]) -> Any:
    """Return the states of trajectories of which nothing is known yet, in the form that a program of the polish takes:
    the trace, which would say that, too, takes seconds."""
    form = program.args_info[0][1]
    states = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), form)
    return states._replace(q=q, iteration=np.full(len(q), -1))


def _left(part: Any, q: Annotated[Float64, "L T nq"]) -> Any:
    """Return the result of starts that nothing was done with, in the form of another portion's."""
    worst = np.full(len(q), np.inf)
    if hasattr(part, "merit"):
        return part._replace(q=q, merit=worst)
    return part._replace(q=q, violation=worst, value=worst)


def _joined(parts: Sequence[Any], count: int) -> Any:
    """Return the results of portions one after the other, the first ``count`` of them."""

    def together(*leaves: Any) -> Any:
        return np.concatenate([np.asarray(leaf) for leaf in leaves])[:count]

    kind, first = type(parts[0]), parts[0]
    joined = []
    for number, value in enumerate(first):
        if isinstance(value, tuple):
            joined.append(tuple(together(*(part[number][k] for part in parts)) for k in range(len(value))))
        else:
            joined.append(together(*(part[number] for part in parts)))
    return kind(*joined)


def _key(kind: str, lanes: int, layout: Layout) -> ObjectiveKey:
    return ObjectiveKey(kind, lanes, layout.text, sources_of(layout), layout)


def _rank(best: _Best, allowed: Annotated[Float64, "L"]) -> Annotated[Float64, "L 2"]:
    """Return by what results are compared: violation beyond what is allowed, then the value."""
    return np.stack([np.where(best.violation <= allowed, 0.0, best.violation), best.value], axis=1)
