"""Plain requests: one pose of one link, any solution."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64, frozen
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.search import Cores, search
from kinopt_ros.solvers.failures import hopeless_requests
from kinopt_ros.solvers.locked_joints import standing
from kinopt_ros.solvers.result import IkCandidates

if TYPE_CHECKING:
    from kinopt_ros.solvers.cpu.chain import PackedChain
    from kinopt_ros.solvers.locked_joints import Prepared

TABLE_TRIES = 10
"""Number of table seeds tried per request before random ones."""
AIM = 5e-7
"""Error (m and rad) to which attempts go on even if much more is allowed: it costs one more step, as convergence is
quadratic. Tighter tolerances are met with a margin."""
LOOSE_POSITION, LOOSE_ORIENTATION = 5e-3, 0.05
"""Above either tolerance (m, rad) a second search aims for the tolerance itself: so arms of fewer than six axes use
what the request leaves free."""


def solve_plain(
    problem: IkProblem,
    tolerances: tuple[float, float],
    prepared: "Prepared[PackedChain]",
    robot: RobotModel,
    max_restarts: int,
    cores: Cores,
) -> IkCandidates:
    """Return candidates for requests with the same held values; tolerances in m and rad."""
    passes = _passes(*tolerances, max_restarts)
    if problem.batch_size == 1 and prepared.in_order and not problem.late:
        found = _soon_found(problem, prepared.packed, passes[0][0])
        if found is not None:
            return found
    work = _PlainWork.start(problem, prepared.packed, prepared.columns)
    hopeless = partial(hopeless_requests, robot, problem)
    cut: Bool | None = None
    for effort, restarts in passes:
        work.effort = effort
        ended = search(work, restarts, hopeless, problem.deadline, cores)
        cut = ended if cut is None else cut | ended
        if work.done.all():
            break
    assert cut is not None
    return work.candidates(problem, prepared, cut & ~work.done, robot)


def _soon_found(
    problem: IkProblem, packed: "PackedChain", effort: Annotated[Float64, "6"]
) -> IkCandidates | None:
    """Return what the first step of ``search`` finds for one request, as it does for most; None if it goes on.

    A search, and all that belongs to it, takes as long again as the kernel.
    """
    q, errors = np.empty((1, len(packed.variables))), _FAR.copy()
    steps, done = np.zeros(1, np.int64), np.zeros(1, np.bool_)
    compiled_search()(
        _doubles(problem.targets[0].T_base_target),
        _doubles(problem.state),
        _doubles(problem.seeds),
        packed.numbers,
        packed.shape,
        effort,
        _first_plan(problem.random_seed),
        q,
        errors,
        steps,
        done,
    )
    return IkCandidates(q[:, None], q, steps, _IN_TIME) if done.item() else None


_FAR, _IN_TIME = np.array([np.inf]), np.zeros(1, np.bool_)
frozen(_FAR)
frozen(_IN_TIME)


def _doubles(array: Float64) -> Float64:
    """Return an array in the layout that the kernel is compiled for; a copy only if need be."""
    return np.ascontiguousarray(array, dtype=np.float64)


@lru_cache(maxsize=64)
def _first_plan(random_seed: int) -> Annotated[Int64, "6"]:
    """Return what the kernel is to try first: seeds and table."""
    return np.array([TABLE_TRIES, 0, 0, signed(random_seed), False, True], dtype=np.int64)


@cache
def compiled_search() -> Callable[..., None]:
    """Return the compiled search; an import takes longer than calling it."""
    from kinopt_ros.solvers.cpu.kernels.plain import solve_many

    return cast(Callable[..., None], solve_many)


@dataclass(eq=False)
class _PlainWork:
    """Arrays that the kernel updates in place, one row per request; n variables of the chain."""

    packed: "PackedChain"
    T_base_target: Annotated[Float64, "B 4 4"]
    state: Annotated[Float64, "B nq"]
    seeds: Annotated[Float64, "B S n"]
    q: Annotated[Float64, "B n"]
    errors: Annotated[Float64, "B"]
    steps: Annotated[Int64, "B"]
    done: Annotated[Bool, "B"]
    signed_seed: int
    effort: Annotated[Float64, "6"]

    @classmethod
    def start(cls, problem: IkProblem, packed: "PackedChain", columns: Int64) -> "_PlainWork":
        """Return work of which nothing is tried yet: the state is the best attempt."""
        batch = problem.batch_size
        state = problem.state.take(packed.variables, axis=1)
        return cls(
            packed,
            _doubles(problem.targets[0].T_base_target),
            _doubles(problem.state),
            _doubles(problem.seeds.take(columns, axis=2)),
            np.minimum(np.maximum(state, packed.lower), packed.upper),
            np.full(batch, np.inf) if batch > 1 else np.array([np.inf]),
            np.zeros(batch, np.int64),
            np.zeros(batch, np.bool_),
            signed(problem.random_seed),
            np.zeros(6),
        )

    def run(self, rows: slice, use_seeds: bool, first: int, last: int, polish: bool, end: float) -> bool:
        """Search, see ``search.Work``; never takes long."""
        tries = TABLE_TRIES if use_seeds else 0
        plan = np.array([tries, first, last, self.signed_seed, polish, use_seeds], dtype=np.int64)
        compiled_search()(
            self.T_base_target[rows],
            self.state[rows],
            self.seeds[rows],
            self.packed.numbers,
            self.packed.shape,
            self.effort,
            plan,
            self.q[rows],
            self.errors[rows],
            self.steps[rows],
            self.done[rows],
        )
        return True

    def candidates(
        self, problem: IkProblem, prepared: "Prepared[PackedChain]", timed_out: Bool, robot: RobotModel
    ) -> IkCandidates:
        """Return candidates in the problem's variables; those that do not move the tip stay where they are."""
        n, columns = len(problem.variables), prepared.columns
        if prepared.in_order:
            attempt = self.q
        else:
            attempt = standing(problem, robot) if len(columns) < n else np.empty((problem.batch_size, n))
            attempt[:, columns] = self.q
        q = (attempt if self.done.all() else np.where(self.done[:, None], attempt, np.nan))[:, None, :]
        return IkCandidates(q=q, attempt=attempt, iterations=self.steps, timed_out=timed_out)


def signed(random_seed: int) -> int:
    """Return a seed from 0 to 2**64 - 1 as the kernels take it."""
    return (random_seed + 2**63) % 2**64 - 2**63


@lru_cache(maxsize=64)
def _passes(position: float, angle: float, max_restarts: int) -> list[tuple[Float64, int]]:
    """Return efforts (see the kernel) and random restarts of the searches to make, one after the other.

    The kernel measures orientation errors by 2 sin(angle / 2).
    """
    orientation = 2.0 * float(np.sin(0.5 * angle)) if angle < np.pi else np.inf
    accept = (0.999 * position, 0.999 * orientation)
    tight = np.array([min(AIM, 0.5 * position), min(AIM, 0.5 * orientation), *accept, 0.0, 0.0])
    if position <= LOOSE_POSITION and angle <= LOOSE_ORIENTATION:
        return [(tight, max_restarts)]
    slack = (
        0.9 * position if position > LOOSE_POSITION else 0.0,
        0.9 * orientation if angle > LOOSE_ORIENTATION else 0.0,
    )
    aim = tuple(
        0.95 * t if s > 0.0 else min(AIM, 0.5 * t)
        for t, s in zip((position, orientation), slack, strict=True)
    )
    loose = np.array([*aim, *accept, *slack])
    # Where joint limits are in the way, the point that is just good enough can be harder to find than the target.
    return [(tight, 0), (loose, max_restarts), (tight, max_restarts)]
