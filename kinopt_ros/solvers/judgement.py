"""Judgement of candidates: which claims of a plugin are true, by the float64 checks."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64, all_set, frozen
from kinopt_ros.errors import KinoptError
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.base import sorting_cost
from kinopt_ros.robot.chain import KinematicChain, chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.collision_gate import lazily_free
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.verification.configuration import verified_at_once, verify_configurations


class PluginError(KinoptError):
    """A plugin returned something that is not of the agreed form: a defect of the plugin."""


@dataclass(eq=False, slots=True)
class Case:
    """A problem on its way to an answer."""

    robot: RobotModel
    problem: IkProblem
    solver: str
    """Name of the plugin."""

    @property
    def chains(self) -> tuple[KinematicChain, ...]:
        """Chains from the problem's base link to each target's link, nothing held."""
        robot, base = self.robot, self.problem.base_link
        return tuple([chain_between(robot, base, target.link) for target in self.problem.targets])


@dataclass(eq=False, slots=True)
class Judgement:
    """Candidates of the whole batch, and what is known of them."""

    q: Annotated[Float64, "B K n"]
    position_error: Annotated[Float64, "B K"]
    orientation_error: Annotated[Float64, "B K"]
    reached: Annotated[Bool, "B K"]
    """Which candidates passed all checks but for collisions; the errors of the others are not numbers."""
    solved: Annotated[Bool, "B K"]
    """Which candidates passed all checks."""
    all_solved: bool
    """Whether all candidates did."""
    cut_short: Annotated[Bool, "B"]
    """Requests whose search, or check, the deadline ended."""
    iterations: Annotated[Int64, "B"]
    unchecked: Annotated[Bool, "B"] | None = None
    """Requests with candidates that there was no time to check for collisions; None if nobody asked for that."""
    looked_at: Annotated[Int64, "B"] | None = None
    """Number of solutions of each request that were checked for collisions, if more were than stand here."""
    from_state: Annotated[Float64, "B K"] | None = None
    """Distances of the candidates from their states, if they are known already."""


_PASSED = np.ones((1, 1), dtype=np.bool_)
frozen(_PASSED)
_FEW = 7
"""Most joints whose squares numpy adds one after the other, as the compiled check does."""


def judge(case: Case, candidates: IkCandidates) -> Judgement:
    """Check every claimed solution. Of those in collision, preferred ones are looked at first."""
    problem, q = case.problem, candidates.q
    if q.shape[:2] == (1, 1) and problem.scene is None:  # most requests
        found = verified_at_once(case.robot, problem, q)
        if found is not None:
            return Judgement(
                q,
                found[0],
                found[1],
                _PASSED,
                _PASSED,
                True,
                candidates.timed_out,
                candidates.iterations,
                from_state=found[3] if q.size <= _FEW else None,
            )
    q, position, orientation, reached = checked_poses(case, q)
    if problem.scene is None:
        return Judgement(
            q,
            position,
            orientation,
            reached,
            reached,
            all_set(reached),
            candidates.timed_out,
            candidates.iterations,
        )
    cost = sorting_cost(problem, case.chains, q)
    free, unchecked = lazily_free(case.robot, problem, q, reached, cost)
    return Judgement(
        q,
        position,
        orientation,
        reached,
        free,
        all_set(free),
        candidates.timed_out | unchecked,
        candidates.iterations,
        unchecked,
    )


def checked_poses(
    case: Case, q: Annotated[Float64, "B K n"]
) -> tuple[
    Annotated[Float64, "B K n"],
    Annotated[Float64, "B K"],
    Annotated[Float64, "B K"],
    Annotated[Bool, "B K"],
]:
    """Check claims for poses and limits; return them, their errors (m, rad), and which of them passed."""
    B, K, n = q.shape
    claims = q.reshape(B * K, n)
    # Rows without a claim (NaN) are not verified: fewer solutions may be claimed than were asked for.
    if K == 1:
        which = request = np.arange(B)
    else:
        which = np.flatnonzero(~np.asarray(np.isnan(claims).all(axis=1)))
        claims, request = claims[which], which // K
    report = verify_configurations(case.robot, case.problem, case.chains, claims, request)
    if len(which) == B * K and all_set(report.ok):  # the usual case: what was claimed is the answer
        return (
            q,
            report.position_error.reshape(B, K),
            report.orientation_error.reshape(B, K),
            report.ok.reshape(B, K),
        )
    good = which[report.ok]
    reached = np.zeros(B * K, dtype=np.bool_)
    position, orientation = np.full(B * K, np.nan), np.full(B * K, np.nan)
    reached[good] = True
    position[good], orientation[good] = report.position_error[report.ok], report.orientation_error[report.ok]
    return q, position.reshape(B, K), orientation.reshape(B, K), reached.reshape(B, K)


MOST_CLAIMS = 4096
"""Most configurations that a solver may claim for a request."""


def own_copy(case: Case, candidates: IkCandidates) -> IkCandidates:
    """Return the candidates, if they are of the agreed form.

    What becomes part of the answer is copied, so that nobody else can write to it.

    Raises:
        PluginError: the candidates are not arrays of real numbers in the shapes of the problem.
    """
    problem, solver = case.problem, case.solver
    B, n = problem.batch_size, len(problem.variables)
    if not isinstance(candidates, IkCandidates):
        raise PluginError(f"solver {solver!r} returned {type(candidates).__name__}; agreed is IkCandidates")
    q, iterations, timed_out = candidates.q, candidates.iterations, candidates.timed_out
    shape = q.shape if isinstance(q, np.ndarray) else np.shape(q)
    K = shape[1] if len(shape) == 3 and shape[1] > 0 else 1
    if K > MOST_CLAIMS:  # telling so many apart would take minutes
        raise PluginError(
            f"solver {solver!r} returned {K} configurations for each request; agreed are {MOST_CLAIMS} at most"
        )
    _check_form(q, "q", "f", (B, K, n), solver)
    _check_form(candidates.attempt, "attempt", "f", (B, n), solver)
    _check_form(iterations, "iterations", "iu", (B,), solver)
    _check_form(timed_out, "timed_out", "b", (B,), solver)
    return IkCandidates(
        np.array(q, _FLOAT, order="C"),
        candidates.attempt,
        np.array(iterations, _INT),
        np.array(timed_out),
        candidates.algorithm,
    )


_FLOAT, _INT = np.dtype(np.float64), np.dtype(np.int64)
_KINDS = {"f": "float64", "iu": "int64", "b": "bool"}


def _check_form(given: object, name: str, kinds: str, shape: tuple[int, ...], solver: str) -> None:
    if not isinstance(given, np.ndarray) or given.dtype.kind not in kinds or given.shape != shape:
        form = f"{given.dtype} {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
        raise PluginError(
            f"solver {solver!r} returned {name} as {form}; agreed is an array of {_KINDS[kinds]} {shape}"
        )
