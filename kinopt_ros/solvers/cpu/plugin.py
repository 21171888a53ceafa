"""The ``cpu`` plugin: one thread, float64, microseconds per solve. Importing this module does not import numba."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers.base import Capabilities, Feature, Option, Solver
from kinopt_ros.solvers.result import IkCandidates

if TYPE_CHECKING:
    from kinopt_ros.solvers.cpu.chain import PackedChain
    from kinopt_ros.solvers.cpu.prepared import PreparedChain
    from kinopt_ros.solvers.cpu.quick import ChainIk

TABLE_TRIES = 10
"""Table seeds tried per request before random ones."""
AIM = 5e-7
"""Attempts go on to this error (m and rad) even if much more is allowed: it costs one more step, as convergence is
quadratic. Tighter tolerances are met with a margin."""
LOOSE_POSITION, LOOSE_ORIENTATION = 5e-3, 0.05
"""Above either tolerance (m, rad) a second search aims for the tolerance itself: so arms of fewer than six axes use
what the request leaves free."""
ATTEMPTS_PER_LOOK = 2000
"""Attempts times motions of the chain between two looks at the clock when there is a deadline: about 1 ms."""


def _package_version() -> str:
    try:
        return version("kinopt_ros")
    except PackageNotFoundError:
        return "unknown"


class CpuSolver(Solver):
    """Damped least squares from many seeds, compiled with numba.

    Attempts of a request in order: the problem's state, its seeds, the nearest of a table of configurations with
    known tip poses, random configurations. The first that succeeds is the answer; joints that could make full
    turns take the turn nearest to the state.
    """

    name: ClassVar[str] = "cpu"
    version: ClassVar[str] = _package_version()
    capabilities: ClassVar[Capabilities] = Capabilities(
        joint_types=frozenset(
            {JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC, JointType.PLANAR}
        ),
        max_variables=64,
    )
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "max_restarts",
            1500,
            "Random restarts per request after its seeds and the table of seeds; bounds the time spent on "
            "targets that cannot be reached",
            0,
            1_000_000,
        ),
    )

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Why the plugin cannot run here; None if it can."""
        if find_spec("numba") is None:
            return "the package numba is not installed (pip install numba)"
        return None

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        from kinopt_ros.solvers.cpu import kernel  # noqa: F401  (compiles, or loads what was compiled before)
        from kinopt_ros.solvers.cpu.prepared import PreparedChains

        self._max_restarts: int = options["max_restarts"]
        self._chains: PreparedChains = PreparedChains(robot, self._max_restarts)

    def chain_ik(self, base_link: str, tip_link: str, held: Mapping[int, float] | None = None) -> "ChainIk":
        """The quick path to one unverified answer per call; ``held`` as in ``build_chain``."""
        from kinopt_ros.solvers.cpu.quick import ChainIk

        return ChainIk(self._chains.whole(base_link, tip_link, held))

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        B, n = problem.batch_size, len(problem.variables)
        q, attempt = np.full((B, 1, n), np.nan), np.empty((B, n))
        steps, timed_out = np.zeros(B, np.int64), np.zeros(B, np.bool_)
        for rows, prepared in self._chains.of(problem):
            part = problem if len(rows) == B else _rows(problem, rows)
            found = self._solve_chain(part, prepared)
            q[rows], attempt[rows] = found.q, found.attempt
            steps[rows], timed_out[rows] = found.iterations, found.timed_out
        return IkCandidates(q, attempt, steps, timed_out)

    def _solve_chain(self, problem: IkProblem, prepared: "PreparedChain") -> IkCandidates:
        plain = problem.targets[0].plain
        if plain is None:
            raise UnsupportedFeatureError(f"solver cpu does not support {Feature.AXIS_TOLERANCES.value}")
        work = _Work.start(problem, prepared.packed, prepared.columns)
        timed_out = np.zeros(problem.batch_size, dtype=np.bool_)
        for effort, restarts in _passes(*plain, self._max_restarts):
            if not work.solved.all():
                timed_out |= work.search(effort, restarts, problem.random_seed, problem.deadline)
        return work.candidates(problem, prepared.columns, timed_out & ~work.solved, self.robot)


def _rows(problem: IkProblem, rows: Annotated[Int64, "R"]) -> IkProblem:
    """Some requests of a problem."""
    targets = tuple(replace(t, T_base_target=t.T_base_target[rows]) for t in problem.targets)
    return replace(problem, targets=targets, state=problem.state[rows], seeds=problem.seeds[rows])


@dataclass(eq=False)
class _Work:
    """Arrays that the kernel updates in place, one row per request; n variables of the chain."""

    packed: "PackedChain"
    T_base_target: Annotated[Float64, "B 4 4"]
    seeds: Annotated[Float64, "B S n"]
    state: Annotated[Float64, "B n"]
    q: Annotated[Float64, "B n"]
    errors: Annotated[Float64, "B"]
    steps: Annotated[Int64, "B"]
    solved: Annotated[Bool, "B"]

    @classmethod
    def start(cls, problem: IkProblem, packed: "PackedChain", columns: Int64) -> "_Work":
        """Nothing tried yet: the state is the best attempt."""
        batch = problem.batch_size
        state = np.ascontiguousarray(problem.state[:, packed.variables])
        seeds = np.empty((batch, 1 + problem.seeds.shape[1], state.shape[1]))
        seeds[:, 0] = state
        seeds[:, 1:] = problem.seeds[:, :, columns]
        q = np.clip(state, packed.lower, packed.upper)
        T = np.array(problem.targets[0].T_base_target, dtype=np.float64, order="C")
        errors = np.full(batch, np.inf)
        return cls(packed, T, seeds, state, q, errors, np.zeros(batch, np.int64), np.zeros(batch, np.bool_))

    def search(self, effort: Float64, restarts: int, random_seed: int, deadline: float | None) -> Bool:
        """Seeds, table, then ``restarts`` random starts for every unsolved request. Which ones were cut short."""
        cut = np.zeros(len(self.q), dtype=np.bool_)
        if deadline is None:
            self._run(slice(None), True, effort, TABLE_TRIES, (0, restarts), random_seed, polish=True)
            return cut
        attempts = max(1, ATTEMPTS_PER_LOOK // max(1, self.packed.motions))
        size = max(1, attempts // (self.seeds.shape[1] + TABLE_TRIES))
        for first in range(0, len(self.q), size):
            block = slice(first, first + size)
            if time.monotonic() >= deadline:
                return np.asarray(~self.solved)  # also those before, as they had no random restarts
            self._run(block, True, effort, TABLE_TRIES, (0, 0), random_seed, polish=False)
        for b in np.flatnonzero(~self.solved):
            one = slice(int(b), int(b) + 1)
            for first in range(0, max(restarts, 1), attempts):
                last = min(first + attempts, restarts)
                if time.monotonic() >= deadline:
                    cut[b] = True
                    break
                self._run(one, False, effort, 0, (first, last), random_seed, polish=last == restarts)
                if self.solved[b]:
                    break
        return cut

    def _run(
        self,
        rows: slice,
        use_seeds: bool,
        effort: Float64,
        table_tries: int,
        random_numbers: tuple[int, int],
        random_seed: int,
        polish: bool,
    ) -> None:
        from kinopt_ros.solvers.cpu.kernel import solve_many

        signed_seed = (random_seed + 2**63) % 2**64 - 2**63
        search = np.array([table_tries, *random_numbers, signed_seed, polish], dtype=np.int64)
        seeds = self.seeds[rows] if use_seeds else np.ascontiguousarray(self.seeds[rows, :0])
        solve_many(
            self.T_base_target[rows],
            seeds,
            self.state[rows],
            self.packed.numbers,
            self.packed.shape,
            effort,
            search,
            self.q[rows],
            self.errors[rows],
            self.steps[rows],
            self.solved[rows],
        )

    def candidates(
        self, problem: IkProblem, columns: Int64, timed_out: Bool, robot: RobotModel
    ) -> IkCandidates:
        """In the problem's variables; those that do not move the tip stay where they are."""
        attempt = np.clip(
            problem.state[:, problem.variables],
            robot.limits.lower[problem.variables],
            robot.limits.upper[problem.variables],
        )
        attempt[:, columns] = self.q
        q = np.where(self.solved[:, None], attempt, np.nan)[:, None, :]
        return IkCandidates(q=q, attempt=attempt, iterations=self.steps, timed_out=timed_out)


def _passes(position: float, angle: float, max_restarts: int) -> list[tuple[Float64, int]]:
    """Efforts (see the kernel) and random restarts of the searches to make, one after the other.

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
