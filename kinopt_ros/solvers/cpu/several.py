"""Requests beyond the plain kind: several links, tolerances per axis, several solutions, preferred postures."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.problems.ik import IkProblem, Tolerance
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import periodic_variables
from kinopt_ros.solvers.cpu.plain import TABLE_TRIES, signed
from kinopt_ros.solvers.cpu.search import Cores, search
from kinopt_ros.solvers.locked_joints import standing
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.whole_turns import with_whole_turns

if TYPE_CHECKING:
    from kinopt_ros.solvers.cpu.tree import PackedTree
    from kinopt_ros.solvers.locked_joints import Prepared

STEPS = 2800
"""Number of steps between two looks at the clock for one variable and one link, some milliseconds.

They grow with the number of variables and the square of that of links."""
POSTURE_ATTEMPTS = 10
"""Number of random restarts in search of a better posture, once there is a solution: all that near postures need."""
FAR = 0.5
"""Distance of a variable from the posture, rad or m, beyond which a solution may be of the wrong branch."""
FAR_ATTEMPTS = 60
"""Number of restarts for such solutions.

With 10, up to 5 % of random targets seen from random states get another branch than the closest; with 60, about 1 %."""


def solve_several(
    problem: IkProblem,
    prepared: "Prepared[PackedTree]",
    robot: RobotModel,
    max_restarts: int,
    branch_attempts: int,
    hopeless: Callable[[], Bool],
    cores: Cores,
) -> IkCandidates:
    """Return candidates for requests with the same held values."""
    work = _Work.start(problem, prepared.packed, prepared.columns, robot, branch_attempts)
    restarts = max(max_restarts, work.enough)
    cut = search(work, restarts, hopeless, problem.deadline, cores)
    if problem.posture is not None and problem.num_solutions == 1:
        apart = np.abs(work.found[:, 0] - work.posture)[:, work.weight > 0.0]
        far: Bool = np.asarray(work.done & (apart.max(axis=1, initial=0.0) > FAR))
        if far.any():
            work.done, work.enough = ~far, FAR_ATTEMPTS
            cut |= search(work, FAR_ATTEMPTS, lambda: ~far, problem.deadline, cores)
    return work.candidates(problem, prepared.columns, cut, robot)


@dataclass(eq=False)
class _Work:
    """Arrays that the kernel updates in place, one row per request; n variables of the tree."""

    packed: "PackedTree"
    targets: Annotated[Float64, "T B 4 4"]
    seeds: Annotated[Float64, "B S n"]
    reference: Annotated[Float64, "B n"]
    posture: Annotated[Float64, "B n"]
    """Wanted postures; without rows if there is none."""
    weight: Annotated[Float64, "n"]
    tolerance: Annotated[Float64, "T 6"]
    scalar: Annotated[Int64, "T 2"]
    separation: float
    periodic: Annotated[Bool, "n"]
    signed_seed: int
    enough: int
    """Number of random restarts after which a request that has a solution is done."""
    found: Annotated[Float64, "B K n"]
    costs: Annotated[Float64, "B K"]
    flips: Annotated[Int64, "B K"]
    count: Annotated[Int64, "B"]
    progress: Annotated[Int64, "B 4"]
    best: Annotated[Float64, "B n"]
    errors: Annotated[Float64, "B"]
    steps: Annotated[Int64, "B"]
    done: Annotated[Bool, "B"]

    @classmethod
    def start(
        cls,
        problem: IkProblem,
        packed: "PackedTree",
        columns: Int64,
        robot: RobotModel,
        branch_attempts: int,
    ) -> "_Work":
        """Return work of which nothing is tried yet: the state is the best attempt."""
        B, K, n = problem.batch_size, problem.num_solutions, len(packed.variables)
        state = np.ascontiguousarray(problem.state[:, packed.variables])
        wanted = problem.posture
        limits = [
            _tolerances(target.position_tolerance, target.orientation_tolerance) for target in problem.targets
        ]
        enough = branch_attempts if K > 1 else 0 if wanted is None else POSTURE_ATTEMPTS
        posture = np.empty((0, n)) if wanted is None else np.ascontiguousarray(wanted.reference[:, columns])
        return cls(
            packed=packed,
            targets=np.array([target.T_base_target for target in problem.targets]),
            seeds=np.ascontiguousarray(
                np.concatenate([state[:, None], problem.seeds[:, :, columns]], axis=1)
            ),
            reference=state if wanted is None else posture,
            posture=posture,
            weight=np.ones(n) if wanted is None else np.ascontiguousarray(wanted.weight[columns]),
            tolerance=np.array([numbers for numbers, _ in limits]),
            scalar=np.array([scalar for _, scalar in limits], dtype=np.int64),
            separation=problem.min_separation,
            periodic=np.ascontiguousarray(periodic_variables(robot)[packed.variables]),
            signed_seed=signed(problem.random_seed),
            enough=enough,
            found=np.full((B, K, n), np.nan),
            costs=np.full((B, K), np.inf),
            flips=np.zeros((B, K), np.int64),
            count=np.zeros(B, np.int64),
            progress=np.zeros((B, 4), np.int64),
            best=np.clip(state, packed.lower, packed.upper),
            errors=np.full(B, np.inf),
            steps=np.zeros(B, np.int64),
            done=np.zeros(B, np.bool_),
        )

    def run(self, rows: slice, use_seeds: bool, first: int, last: int, polish: bool, end: float) -> bool:
        """Search, see ``search.Work``. Restarts go on from where they stopped, which is ``first``."""
        from kinopt_ros.solvers.cpu.kernels.general import solve_general

        tree = self.packed
        T, _, n = len(self.targets), *self.posture.shape
        steps = max(1, STEPS // max(1, n * T * T))  # n is 0 where nothing moves a target
        plan = np.array(
            [use_seeds, TABLE_TRIES, last, self.signed_seed, polish, self.enough, steps], dtype=np.int64
        )
        asked = np.ascontiguousarray(self.targets[:, rows]), self.seeds[rows], self.reference[rows]
        posture = self.posture[rows], self.weight
        chains = tree.base, tree.tip, tree.motions, tree.kinds, tree.starts, tree.rows, tree.table, tree.poses
        accepted = self.tolerance, self.scalar, self.separation, self.periodic
        found = self.found[rows], self.costs[rows], self.flips[rows], self.count[rows], self.progress[rows]
        outcome = self.best[rows], self.errors[rows], self.steps[rows], self.done[rows]
        while not solve_general(*asked, *posture, *chains, *accepted, plan, *found, *outcome):
            if time.monotonic() >= end:
                return False
        return True

    def candidates(self, problem: IkProblem, columns: Int64, cut: Bool, robot: RobotModel) -> IkCandidates:
        """Return candidates in the problem's variables; those that do not move a tip stay where they are."""
        still = standing(problem, robot)
        attempt = still.copy()
        attempt[:, columns] = self.best
        most = problem.num_solutions
        if not problem.turns:  # thousands may be cut short by a deadline, and none have so many
            most = max(1, int(self.count.max(initial=0)))
        q = np.repeat(still[:, None], most, axis=1)
        q[:, :, columns] = self.found[:, :most]
        q[np.arange(most) >= self.count[:, None]] = np.nan
        if problem.turns:
            q = with_whole_turns(problem, q, robot)
        return IkCandidates(q=q, attempt=attempt, iterations=self.steps, timed_out=cut)


def _tolerances(position: Tolerance, orientation: Tolerance) -> tuple[list[float], list[int]]:
    """Return six tolerances as the kernel takes them, and which three of them are one.

    The kernel measures angles by 2 sin(angle / 2).
    """
    numbers: list[float] = []
    scalar = []
    for tolerance, rotates in ((position, False), (orientation, True)):
        scalar.append(int(not isinstance(tolerance, tuple)))
        for value in tolerance if isinstance(tolerance, tuple) else (tolerance,) * 3:
            if rotates and value < np.inf:
                # Half a turn or more is no bound; the largest error is 2.
                value = 2.0 * float(np.sin(0.5 * value)) if value < np.pi else 2.01
            numbers.append(value)
    return numbers, scalar
