"""Requests for what is as near as possible to targets with weights."""

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.plain import signed
from kinopt_ros.solvers.cpu.search import Cores, search
from kinopt_ros.solvers.cpu.seeds import neighbours
from kinopt_ros.solvers.locked_joints import standing
from kinopt_ros.solvers.result import IkCandidates

if TYPE_CHECKING:
    from kinopt_ros.solvers.cpu.kernels.nearest import Asked, Effort, Model
    from kinopt_ros.solvers.cpu.tree import PackedTree
    from kinopt_ros.solvers.locked_joints import Prepared

STEPS = 50_000
"""Number of steps between two looks at the clock for one variable and one link, some milliseconds.

They fall with the number of links, and with the square of that of variables."""
POOL = 4
"""So many times more starts are made where the nearest may be in collision."""
_SAME = 1e-3
"""Largest difference, rad or m, of configurations that count as one."""


def solve_nearest(
    problem: IkProblem,
    prepared: "Prepared[PackedTree]",
    robot: RobotModel,
    starts: int,
    several: bool,
    cores: Cores,
) -> IkCandidates:
    """Return candidates for requests with the same held values: the nearest found, or if ``several`` all that attempts
    ended with, the nearest first."""
    work = _Work.start(problem, prepared.packed, prepared.columns, starts, several)
    cut = search(work, 0, lambda: ~work.done, problem.deadline, cores)
    return work.candidates(problem, prepared.columns, cut, robot)


@dataclass(eq=False)
class _Work:
    """Arrays that the kernel updates in place, one row per request; n variables of the tree."""

    model: "Model"
    asked: "Asked"
    effort: "Effort"
    q: Annotated[Float64, "B E n"]
    cost: Annotated[Float64, "B E"]
    steps: Annotated[Int64, "B"]
    tried: Annotated[Int64, "B"]
    done: Annotated[Bool, "B"]

    @classmethod
    def start(
        cls, problem: IkProblem, packed: "PackedTree", columns: Int64, starts: int, several: bool
    ) -> "_Work":
        """Return work of which nothing is tried yet."""
        from kinopt_ros.solvers.cpu.kernels.nearest import Asked, Effort

        B, n, T = problem.batch_size, len(packed.variables), len(problem.targets)
        state = np.ascontiguousarray(problem.state[:, packed.variables])
        seeds = state[:, None]
        if problem.seeds.shape[1]:
            seeds = np.ascontiguousarray(np.concatenate([seeds, problem.seeds[:, :, columns]], axis=1))
        starts *= POOL if several else 1
        E = seeds.shape[1] + starts if several else 1
        return cls(
            model=_model(packed),
            asked=Asked(
                np.array([target.T_base_target for target in problem.targets]),
                squared_weights(problem),
                seeds,
                state,
            ),
            effort=Effort(starts, signed(problem.random_seed), max(1, STEPS // max(1, n * n * T))),
            q=np.full((B, E, n), np.nan),
            cost=np.full((B, E), np.inf),
            steps=np.zeros(B, np.int64),
            tried=np.zeros(B, np.int64),
            done=np.zeros(B, np.bool_),
        )

    def run(self, rows: slice, use_seeds: bool, first: int, last: int, polish: bool, end: float) -> bool:
        """Search, see ``search.Work``; there is one pass over the attempts, the first."""
        from kinopt_ros.solvers.cpu.kernels.nearest import Asked, Outcome, come_near

        asked = self.asked
        part = Asked(
            np.ascontiguousarray(asked.targets[:, rows]),
            asked.squares,
            asked.seeds[rows],
            asked.reference[rows],
        )
        outcome = Outcome(self.q[rows], self.cost[rows], self.steps[rows], self.tried[rows], self.done[rows])
        while not come_near(self.model, part, self.effort, outcome):
            if time.monotonic() >= end:
                return False
        return True

    def candidates(self, problem: IkProblem, columns: Int64, cut: Bool, robot: RobotModel) -> IkCandidates:
        """Return candidates in the problem's variables; those that do not move a tip stay where they are."""
        still = standing(problem, robot)
        found = self.q
        if found.shape[1] > 1:
            found = _distinct(found, self.cost)
        q = np.repeat(still[:, None], found.shape[1], axis=1)
        q[:, :, columns] = found
        q[np.isnan(found).any(axis=2)] = np.nan
        return IkCandidates(q=q, attempt=still, iterations=self.steps, timed_out=cut)


def squared_weights(problem: IkProblem) -> Annotated[Float64, "T 6"]:
    """Return squared weights of all targets, the largest 1; 0 on free axes."""
    weights = np.array([target.weights.all for target in problem.targets if target.weights is not None])
    free = np.array([(*target.free_position, *target.free_orientation) for target in problem.targets])
    if free.any():
        weights[free] = 0.0
    return np.asarray((weights / weights.max()) ** 2)


def _distinct(q: Annotated[Float64, "B E n"], cost: Annotated[Float64, "B E"]) -> Annotated[Float64, "B E n"]:
    """Return configurations from the nearest on, those that are there already left out; NaN rows come last."""
    kept = np.full_like(q, np.nan)
    for b in range(len(q)):
        order = np.argsort(cost[b], kind="stable")
        count = 0
        for k in order[np.isfinite(cost[b, order])].tolist():
            if not (np.abs(kept[b, :count] - q[b, k]) <= _SAME).all(axis=1).any():
                kept[b, count] = q[b, k]
                count += 1
    return kept


def _model(packed: "PackedTree") -> "Model":
    from kinopt_ros.solvers.cpu.kernels.nearest import Model
    from kinopt_ros.solvers.cpu.kernels.nearest_cost import Tree

    tree = Tree(packed.base, packed.tip, packed.motions, packed.kinds, packed.starts)
    return Model(tree, packed.rows, packed.table, packed.poses, neighbours(*packed.table.shape))


_lock = threading.Lock()
_ready = False


def load_or_compile(may_compile: bool) -> bool:
    """Make the kernel ready; return whether it is.

    It is loaded if it was compiled before, else compiled if that may be.

    While another thread compiles, one that may not does not wait for it.
    """
    global _ready
    if _ready or not _lock.acquire(blocking=may_compile):
        return _ready
    try:
        import numba

        from kinopt_ros.numba_cache import loaded_or_compiled
        from kinopt_ros.solvers.cpu.kernels.nearest import come_near

        signature = tuple(numba.typeof(argument) for argument in _no_arguments())
        _ready = loaded_or_compiled(come_near, signature, may_compile)
    finally:
        _lock.release()
    return _ready


def _no_arguments() -> tuple[Any, ...]:
    """Return empty arguments of the types that the kernel is called with."""
    from kinopt_ros.solvers.cpu.kernels.nearest import Asked, Effort, Model, Outcome
    from kinopt_ros.solvers.cpu.kernels.nearest_cost import Tree

    f2, f3, f4 = np.empty((0, 0)), np.empty((0, 0, 0)), np.empty((0, 0, 0, 0))
    i1, i2 = np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int64)
    return (
        Model(Tree(f2, f2, f2, i2, i1), f2, f2, f3, neighbours(1, 1)),
        Asked(f4, f2, f3, f2),
        Effort(0, 0, 0),
        Outcome(f3, f2, i1, i1, np.empty(0, dtype=np.bool_)),
    )
