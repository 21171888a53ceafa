"""Objectives of one configuration, from all their starts."""

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from kinopt_ros.array import Bool, Float64, filled
from kinopt_ros.objectives import compiled as verdicts
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveCandidates
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.objectives.starts import PoseStarts
from kinopt_ros.solvers.cpu.objectives.structure import Structure, pack_structure
from kinopt_ros.solvers.cpu.search import Cores, search
from kinopt_ros.solvers.lru import LruCache
from kinopt_ros.solvers.objective_starts import allowed_violations, first_starts, further_starts

if TYPE_CHECKING:
    from kinopt_ros.solvers.cpu.objectives.kernels.search import Asked, Outcome

_WORK = 200_000
"""Steps between two looks at the clock, for one direction and one row, some milliseconds."""
_STRUCTURES = 32
"""Structures that are kept packed."""


class ObjectiveSearch:
    """Solves objectives of one configuration for one robot. Thread-safe."""

    def __init__(self, robot: RobotModel, cores: Cores) -> None:
        self._robot = robot
        self._cores = cores
        self._structures: LruCache[Hashable, Structure] = LruCache(_STRUCTURES)
        self._starts = PoseStarts(robot)
        self._lock = threading.Lock()

    def solve(self, problem: ObjectiveProblem) -> ObjectiveCandidates:
        """Search for a checked problem of one configuration, of costs that are compiled."""
        structure = self._packed(problem)
        work = _Work.start(problem, structure, self._first(problem, structure))
        cut = search(work, 0, lambda: ~work.done, problem.deadline, self._cores)
        outcome = work.outcome
        multipliers = outcome.multipliers[:, None]
        return ObjectiveCandidates(
            outcome.q[:, None],
            tuple([multipliers[:, :, part.rows] for part in structure.parts]),
            outcome.steps,
            outcome.history,
            cut,
        )

    def _first(self, problem: ObjectiveProblem, structure: Structure) -> Annotated[Float64, "B S nq"]:
        """Return the starts of all requests."""
        starts = first_starts(problem)
        if problem.num_starts or problem.seeds.shape[1] > 1:
            more = further_starts(self._robot, problem, np.arange(problem.batch_size))[:, :, 0]
            starts = np.concatenate([starts, more], axis=1)
        if structure.anchors:
            self._starts.lead(problem, structure.anchors, starts)
        return starts

    def _packed(self, problem: ObjectiveProblem) -> Structure:
        key = (problem.free.tobytes(), problem.objective.structure)
        with self._lock:
            known = self._structures.get(key)
        if known is None:
            known = pack_structure(self._robot, problem.objective, problem.free)
            with self._lock:
                self._structures.put(key, known)
        return known


@dataclass(eq=False)
class _Work:
    """Requests in progress, see ``search.Work``: there is one pass over their starts."""

    structure: Structure
    asked: "Asked"
    outcome: "Outcome"
    budget: int
    """Steps between two looks at the clock."""
    done: Annotated[Bool, "B"]
    """That of the outcome."""

    @classmethod
    def start(
        cls, problem: ObjectiveProblem, structure: Structure, starts: Annotated[Float64, "B S nq"]
    ) -> "_Work":
        """Return work of which nothing is tried yet."""
        compiled = _compiled()
        B = problem.batch_size
        numbers, weights = structure.pack(problem.objectives)
        value, violation = filled((2, B), np.inf)
        steps, tried = np.zeros((2, B), np.int64)
        done = np.zeros(B, np.bool_)
        return cls(
            structure,
            compiled.Asked(numbers, weights, allowed_violations(problem), starts),
            compiled.Outcome(
                np.array(starts[:, 0]),
                np.zeros(weights.shape),
                value,
                violation,
                filled((B, compiled.STEPS), np.nan),
                steps,
                tried,
                done,
            ),
            max(1, _WORK // (structure.num_rows * structure.num_directions)),
            done,
        )

    def run(self, rows: slice, use_seeds: bool, first: int, last: int, polish: bool, end: float) -> bool:
        """Search, see ``search.Work``."""
        compiled = _compiled()
        asked, outcome = self.asked, self.outcome
        if rows.stop - rows.start < len(self.done):
            asked = compiled.Asked._make(part[rows] for part in asked)
            outcome = compiled.Outcome._make(part[rows] for part in outcome)
        while not compiled.search(*self.structure.arrays, *asked, self.budget, *outcome):
            if time.monotonic() >= end:
                return False
        return True


@cache
def _compiled() -> ModuleType:
    """Return the kernel's file: an import takes longer than most of what a request needs from it."""
    from kinopt_ros.solvers.cpu.objectives.kernels import search as kernel

    return kernel


_compiling = threading.Lock()
_ready = False


def load_or_compile(may_compile: bool) -> bool:
    """Make the kernel ready; return whether it is. The verdict on what it finds becomes ready with it, if it can.

    It is loaded if it was compiled before, else compiled if that may be. While another thread compiles, one that may
    not does not wait for it.
    """
    global _ready
    if _ready or not _compiling.acquire(blocking=may_compile):
        return _ready
    try:
        import numba

        from kinopt_ros.numba_cache import loaded_or_compiled
        from kinopt_ros.solvers.cpu.objectives.kernels.search import search as compiled

        signature = tuple(numba.typeof(argument) for argument in _no_arguments())
        _ready = loaded_or_compiled(compiled, signature, may_compile)
        verdicts.load_or_compile(may_compile)
    finally:
        _compiling.release()
    return _ready


def _no_arguments() -> tuple[Any, ...]:
    """Return empty arguments of the types that the kernel is called with."""
    from kinopt_ros.solvers.cpu.objectives.kernels.model import Costs, Moving, Tree
    from kinopt_ros.solvers.cpu.objectives.kernels.search import Asked, Outcome

    f1, f2, f3 = np.empty(0), np.empty((0, 0)), np.empty((0, 0, 0))
    i1, i2, flags = np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int64), np.empty(0, dtype=np.bool_)
    return (
        *Tree(i1, i1, i1, i1, f2, f2, f2, i1, i1, f2, i1, i1, f2),
        *Moving(i1, i1, f1, f1, i2),
        *Costs(i2, i1, flags, flags),
        *Asked(f2, f2, f1, f3),
        1,
        *Outcome(f2, f2, f1, f1, f2, i1, i1, flags),
    )
