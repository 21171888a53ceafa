"""Search of collision-free answers among solutions of any plugin.

A plugin knows poses and limits only. Here its solutions are checked, and where all are in collision it is asked again
from other states, and from solutions that were moved out of collision (``clear_moves.py``).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.kinematics.sampling import range_around
from kinopt_ros.pauses import OutOfTime
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.base import sorting_cost
from kinopt_ros.problems.rows import rows_of
from kinopt_ros.robot.chain import KinematicChain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import periodic_variables, turned_near
from kinopt_ros.solvers.asking import Asking
from kinopt_ros.solvers.clear_moves import MARGIN, moved_clear
from kinopt_ros.verification.collision import is_free
from kinopt_ros.verification.configuration import verify_configurations

if TYPE_CHECKING:
    from kinopt_ros.collision.field import SphereField
ROUNDS = (24, 96, 384)
"""Numbers of solutions from random states, one round after the other, as long as too few are free."""
MOVED = 8
"""Number of solutions of a round that are moved out of collision."""
_CHECKS = 12
"""Solutions of a round that the judge checks, for each one that is wanted; the most promising ones."""
_SAME = 1e-3
"""Difference up to which solutions count as one, rad or m."""
_LEAST = 4
"""Solutions in collision that are kept to say what they collide with."""


@dataclass(frozen=True, eq=False)
class More:
    """Solutions that a search adds."""

    q: Annotated[Float64, "B M n"]
    """Free solutions, or of requests that have none those that are the least in collision; NaN rows else."""
    free: Annotated[Bool, "B M"]
    """Which of them the judge found free."""
    looked_at: Annotated[Int64, "B"]
    """Number of solutions of each request that were checked."""
    iterations: Annotated[Int64, "B"]
    cut: Annotated[Bool, "B"]
    """Whether the deadline ended the search of each request."""


def more_solutions(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    q: Annotated[Float64, "B K n"],
    reached: Annotated[Bool, "B K"],
    free: Annotated[Bool, "B K"],
    late: Annotated[Bool, "B"],
) -> Asking[More | None]:
    """Search more solutions of requests that have some, but too few that are free of collisions; None if none have.

    Args:
        robot: the robot.
        problem: what is asked, with a scene.
        chains: from the base link to each target's link.
        q: solutions so far.
        reached: which of them are at their targets.
        free: which of those are free of collisions.
        late: requests that there is no time for.
    """
    from kinopt_ros.collision.field import field_of  # imports numba

    wanting = np.flatnonzero(reached.any(axis=1) & (free.sum(axis=1) < problem.num_solutions) & ~late)
    if not len(wanting):
        return None
    assert problem.scene is not None
    field = field_of(robot, problem.scene)
    B, _, n = q.shape
    found: dict[int, Float64] = {}
    clear = np.zeros(B, dtype=np.bool_)
    looked_at = np.asarray(reached.sum(axis=1), dtype=np.int64)
    iterations, cut = np.zeros(B, dtype=np.int64), np.zeros(B, dtype=np.bool_)
    for b in wanting.tolist():
        if problem.late:
            cut[b], found[b] = True, np.empty((0, n))
            continue
        search = _Search(robot, rows_of(problem, np.array([b])), chains, field)
        found[b], looked_at[b] = yield from search.run(q[b, reached[b]], q[b, free[b]])
        cut[b], iterations[b], clear[b] = search.cut, search.iterations, search.clear
    wide = np.full((B, max(map(len, found.values())), n), np.nan)
    for b, rows in found.items():
        wide[b, : len(rows)] = rows
    return More(wide, np.isfinite(wide).all(axis=2) & clear[:, None], looked_at, iterations, cut)


@dataclass(eq=False)
class _Search:
    """Searches collision-free solutions of one request."""

    robot: RobotModel
    problem: IkProblem
    chains: tuple[KinematicChain, ...]
    field: "SphereField"
    cut: bool = False
    iterations: int = 0
    clear: bool = False
    """Whether the solutions found are free of collisions."""

    def run(
        self, first: Annotated[Float64, "K n"], clear: Annotated[Float64, "k n"]
    ) -> Asking[tuple[Annotated[Float64, "m n"], int]]:
        """Return free solutions besides the first ones, else the best others, and how many solutions were checked."""
        found, known = list(clear), first
        around = np.concatenate([self.problem.state[:1], self._whole(first)])
        rng = np.random.default_rng(self.problem.random_seed)
        for count in ROUNDS:
            if len(found) >= self.problem.num_solutions or self._late():
                break
            new = yield from self._solutions(self._random_states(rng, count, around))
            new = _without(new, known)
            known = np.concatenate([known, new])
            self._check(new, found)
            if len(found) < self.problem.num_solutions and self._redundant:
                known = yield from self._with_moved(known, found)
            elif not len(new) and count > ROUNDS[0]:
                break  # an arm of few branches has shown them all; some are rare, so few starts do not tell
        self.clear = bool(found)
        if not found:
            # Nobody is told what they are in if there was no time.
            order = np.arange(len(known)) if self.cut else np.argsort(self._cost(known), kind="stable")
            return known[order[:_LEAST]], len(known)
        return np.array(found[len(clear) :]).reshape(-1, known.shape[1]), len(known)

    @cached_property
    def _redundant(self) -> bool:
        """Whether there may be a way on which the targets stay reached."""
        moving = np.intersect1d(
            np.concatenate([chain.variables for chain in self.chains]), self.problem.variables
        )
        bound = sum(
            6 - sum(target.free_position) - sum(target.free_orientation) for target in self.problem.targets
        )
        return len(moving) > bound

    def _with_moved(self, known: Float64, found: list[Float64]) -> Asking[Annotated[Float64, "m n"]]:
        """Return solutions, and those that came of moving the most promising ones."""
        if not len(known) or self._late():
            return known
        best = known[np.argsort(self._cost(known), kind="stable")[:MOVED]]
        moved = moved_clear(self.robot, self.problem, self.chains, self.field, best, 0)
        new = yield from self._solutions(moved)
        new = _without(new, known)
        self._check(new, found)
        return np.concatenate([known, new])

    def _check(self, q: Annotated[Float64, "m n"], found: list[Float64]) -> None:
        """Add to ``found`` what the judge finds free, as far as more are wanted."""
        if not len(q):
            return
        problem = self.problem
        assert problem.scene is not None
        promising = np.argsort(self._rank(q), kind="stable")[: _CHECKS * problem.num_solutions]
        for row in promising.tolist():
            if len(found) >= problem.num_solutions or self._late():
                return
            try:
                whole = self._whole(q[row : row + 1])[0]
                if is_free(self.robot, problem.scene, whole, problem.clearance, problem.pause):
                    found.append(q[row])
            except OutOfTime:
                self.cut = True
                return

    def _rank(self, q: Annotated[Float64, "m n"]) -> Annotated[Float64, "m"]:
        """Return sort keys: configurations with free spheres come first, by preference, then the others by cost."""
        distance, cost = self.field.costs(self._whole(q), self.problem.clearance + MARGIN)
        wanted = sorting_cost(self.problem, self.chains, q[None])[0]
        free = distance > self.problem.clearance
        # The scale does not matter: it only orders within both kinds.
        return np.asarray(np.where(free, np.arctan(wanted) / np.pi - 1.0, cost))

    def _cost(self, q: Annotated[Float64, "m n"]) -> Annotated[Float64, "m"]:
        return self.field.costs(self._whole(q), self.problem.clearance + MARGIN)[1]

    def _solutions(self, states: Annotated[Float64, "m n"]) -> Asking[Annotated[Float64, "k n"]]:
        """Return verified solutions of the plugin from given states, at the turns nearest to the request's state."""
        m = len(states)
        if not m or self._late():
            return np.empty((0, states.shape[1]))
        problem = self.problem
        again = rows_of(problem, np.zeros(m, dtype=np.int64))
        state = again.state.copy()
        state[:, problem.variables] = states
        again = replace(
            again,
            state=state,
            seeds=np.empty((m, 0, states.shape[1])),
            num_solutions=1,
            preference=None,
            scene=None,
        )
        candidates = yield again
        self.iterations += int(candidates.iterations.sum())
        q = candidates.q.reshape(-1, states.shape[1])
        q = self._nearest_turns(q[np.isfinite(q).all(axis=1)])
        if not len(q):
            return q
        report = verify_configurations(self.robot, problem, self.chains, q, np.zeros(len(q), dtype=np.int64))
        return q[report.ok]

    def _nearest_turns(self, q: Annotated[Float64, "m n"]) -> Annotated[Float64, "m n"]:
        variables = self.problem.variables
        limits = self.robot.limits
        turned = turned_near(q, self.problem.state[0, variables], periodic_variables(self.robot)[variables])
        inside = (limits.lower[variables] <= turned) & (turned <= limits.upper[variables])
        return np.asarray(np.where(inside, turned, q))

    def _random_states(
        self, rng: np.random.Generator, count: int, around: Annotated[Float64, "K nq"]
    ) -> Annotated[Float64, "count n"]:
        low, high = range_around(self.robot, around)
        variables = self.problem.variables
        return rng.uniform(low[variables], high[variables], (count, len(variables)))

    def _whole(self, q: Annotated[Float64, "m n"]) -> Annotated[Float64, "m nq"]:
        full = np.repeat(self.problem.state[:1], len(q), axis=0)
        full[:, self.problem.variables] = q
        return full

    def _late(self) -> bool:
        self.cut = self.cut or self.problem.late
        return self.cut


def _without(new: Annotated[Float64, "m n"], known: Annotated[Float64, "k n"]) -> Annotated[Float64, "j n"]:
    """Return the rows of ``new`` that are not in ``known``, each once.

    Rows count as equal if they round to the same numbers, so some that are close may be kept.
    """
    seen = {row.tobytes() for row in np.rint(known / _SAME) + 0.0}
    kept = []
    for k, row in enumerate(np.rint(new / _SAME) + 0.0):
        if (key := row.tobytes()) not in seen:
            seen.add(key)
            kept.append(k)
    return new[kept]
