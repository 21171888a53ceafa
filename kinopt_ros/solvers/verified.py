"""Gate that every candidate of every plugin passes on the way to an answer."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import KinoptError
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.base import sorting_cost
from kinopt_ros.problems.rows import rows_of
from kinopt_ros.robot.chain import KinematicChain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import periodic_variables
from kinopt_ros.solvers.clear import more_solutions
from kinopt_ros.solvers.collision_gate import EXPLAINED, collision_reason, lazily_free
from kinopt_ros.solvers.failures import failure_reasons
from kinopt_ros.solvers.result import IkCandidates, IkResult
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import (
    SELF_COLLISION,
    WORLD_COLLISION,
    left_out_by_guess,
    not_checked,
)
from kinopt_ros.verification.configuration import CHECKS, HELD_LIMITS, NOT_CHECKED, verify_configurations

_NONE = np.empty(0, np.int64)


class PluginError(KinoptError):
    """A plugin returned something that is not of the agreed form: a defect of the plugin."""


def verified_ik_result(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    candidates: IkCandidates,
    solver: str,
    start: float,
    solve: Callable[[IkProblem], IkCandidates] | None = None,
) -> IkResult:
    """Check every claimed solution and keep only those that pass; explain the requests left without one.

    Args:
        robot: the robot.
        problem: what was asked.
        chains: from the problem's base link to each target's link, nothing held.
        candidates: what the plugin claims.
        solver: name of the plugin.
        start: value of time.perf_counter() when the solver was called.
        solve: the plugin, to be asked for more solutions where all are in collision; None: it is not.

    Raises:
        PluginError: the candidates are not arrays of real numbers in the shapes of the problem.
    """
    B, n, T = problem.batch_size, len(problem.variables), len(problem.targets)
    candidates = _own_copy(candidates, B, n, solver)
    judged = first = _judged(robot, problem, chains, candidates.q)
    timed_out, iterations, looked_at = candidates.timed_out, candidates.iterations, None
    solved_by, unchecked = judged.reached, np.zeros(B, dtype=np.bool_)
    if problem.scene is not None:
        solved_by, unchecked = lazily_free(
            robot, problem, judged.q, judged.reached, sorting_cost(problem, chains, judged.q)
        )
        timed_out = timed_out | unchecked
        more = None
        if solve is not None:
            more = more_solutions(
                robot, problem, chains, judged.q, judged.reached, solved_by, timed_out, solve
            )
        if more is not None:
            extra = _judged(robot, problem, chains, more.q)
            # This check has already found these numbers free: a second one might take longer than there is time.
            solved_by = np.concatenate([solved_by, extra.reached & more.free], axis=1)
            judged = judged.beside(extra)
            timed_out, iterations, looked_at = (
                timed_out | more.cut,
                iterations + more.iterations,
                more.looked_at,
            )
    K = judged.q.shape[1]
    q, position, orientation = judged.q, judged.position_error, judged.orientation_error
    all_good = bool(solved_by.all())
    if K > 1 or problem.num_solutions > 1:
        q, position, orientation, distance = _best(robot, problem, chains, judged, solved_by)
    else:
        if not all_good:
            q = np.where(solved_by[..., None], q, np.nan)
            position, orientation = (
                np.where(solved_by, position, np.nan),
                np.where(solved_by, orientation, np.nan),
            )
        distance = sorting_cost(problem, chains, q)

    attempt, attempt_errors, attempt_pose = np.empty((B, n)), np.empty((2, B)), np.empty((B, T, 4, 4))
    for values in (attempt, attempt_errors, attempt_pose):
        values.fill(np.nan)
    status = np.full(B, int(Status.SUCCESS), dtype=np.int64)
    messages = [""] * B
    failed = _NONE if all_good else np.flatnonzero(~solved_by.any(axis=1))
    if failed.size:
        claimed: Bool = np.asarray(~np.isnan(candidates.q).all(axis=2))
        rejected: Bool = np.asarray((claimed & ~first.reached).any(axis=1))
        tried = verify_configurations(robot, problem, chains, candidates.attempt[failed], failed)
        usable = tried.finite & (tried.limit_violation <= 0.0)
        attempt[failed[usable]] = tried.q[usable]
        attempt_errors[0, failed[usable]] = tried.position_error[usable]
        attempt_errors[1, failed[usable]] = tried.orientation_error[usable]
        attempt_pose[failed[usable]] = tried.T_base_tool[:, usable].swapaxes(0, 1)
        reasons = failure_reasons(robot, problem, chains, failed, tried, rejected[failed], timed_out[failed])
        explained = 0
        reached: Bool = np.asarray(judged.reached.any(axis=1))
        for b, (code, message) in zip(failed.tolist(), reasons, strict=True):
            if unchecked[b]:
                code, message = (
                    Status.TIMED_OUT,
                    "the deadline came before its solution was checked for collisions",
                )
            elif reached[b]:  # and not free of collisions
                hits = judged.q[b, judged.reached[b]]
                seen = len(hits) if looked_at is None else max(len(hits), int(looked_at[b]))
                explained += 1
                code, message = collision_reason(
                    robot,
                    problem,
                    b,
                    hits,
                    seen,
                    bool(timed_out[b]),
                    not timed_out[b] and explained <= EXPLAINED and not problem.late,
                )
            status[b], messages[b] = code, message
    return IkResult(
        joint_names=tuple([robot.variable_names[i] for i in problem.variables.tolist()]),
        q=q,
        status=status,
        messages=tuple(messages),
        position_error=position,
        orientation_error=orientation,
        distance=distance,
        attempt=attempt,
        attempt_position_error=attempt_errors[0],
        attempt_orientation_error=attempt_errors[1],
        attempt_pose=attempt_pose,
        cut_short=timed_out,
        iterations=iterations,
        solver=solver,
        solve_time=time.perf_counter() - start,
        checks=CHECKS if problem.scene is None else (*CHECKS, SELF_COLLISION, WORLD_COLLISION),
        not_checked=NOT_CHECKED if problem.scene is None else (HELD_LIMITS, *not_checked(robot)),
        algorithm=candidates.algorithm,
        notes=(*problem.notes, *(() if problem.scene is None else left_out_by_guess(robot))),
        scene_version=None if problem.scene is None else problem.scene.version,
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """Candidates of the whole batch, with their errors and limits in float64."""

    q: Annotated[Float64, "B K n"]
    position_error: Annotated[Float64, "B K"]
    orientation_error: Annotated[Float64, "B K"]
    reached: Annotated[Bool, "B K"]
    """Which candidates passed; the errors of the others are not numbers."""

    def beside(self, other: "_Judged") -> "_Judged":
        """Return the candidates of both, one after the other along K."""
        return _Judged(
            *(
                np.concatenate([getattr(self, name), getattr(other, name)], axis=1)
                for name in ("q", "position_error", "orientation_error", "reached")
            )
        )


def _judged(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    q: Annotated[Float64, "B K n"],
) -> _Judged:
    B, K, n = q.shape
    claims = q.reshape(B * K, n)
    # Rows without a claim (NaN) are not verified: fewer solutions may be claimed than were asked for.
    which = np.arange(B) if K == 1 else np.flatnonzero(~np.asarray(np.isnan(claims).all(axis=1)))
    report = verify_configurations(robot, problem, chains, claims if K == 1 else claims[which], which // K)
    if len(which) == B * K and report.ok.all():  # the usual case: what was claimed is the answer
        return _Judged(
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
    return _Judged(q, position.reshape(B, K), orientation.reshape(B, K), reached.reshape(B, K))


def _best(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    judged: _Judged,
    solved_by: Annotated[Bool, "B K"],
) -> tuple[Float64, Float64, Float64, Float64]:
    """Return distinct solutions of each request, best first, with their errors and what they are sorted by.

    NaN stands where there are no more. Requests without solutions cost no time: there may be thousands that a deadline
    cut short.
    """
    shape = len(solved_by), problem.num_solutions
    found = (
        np.full((*shape, judged.q.shape[2]), np.nan),
        np.full(shape, np.nan),
        np.full(shape, np.nan),
        np.full(shape, np.nan),
    )
    some = np.flatnonzero(solved_by.any(axis=1))
    if not some.size:
        return found
    part = problem if len(some) == len(solved_by) else rows_of(problem, some)
    q = np.where(solved_by[some, :, None], judged.q[some], np.nan)
    distance = sorting_cost(part, chains, q)
    chosen = _distinct(q, distance, part, periodic_variables(robot)[problem.variables])
    row, place = np.nonzero(chosen >= 0)
    which = chosen[row, place]
    values = q, judged.position_error[some], judged.orientation_error[some], distance
    for kept, given in zip(found, values, strict=True):
        kept[some[row], place] = given[row, which]
    return found


def _distinct(
    q: Annotated[Float64, "B K n"],
    distance: Annotated[Float64, "B K"],
    problem: IkProblem,
    periodic: Annotated[Bool, "n"],
) -> Annotated[np.ndarray, "B num_solutions"]:
    """Return per request the indices of distinct solutions, best first; -1 where there are no more.

    Of two that are not distinct the better one stays.
    """
    B = len(q)
    order = np.argsort(distance, axis=1, kind="stable")  # NaN goes last
    ordered = np.take_along_axis(q, order[..., None], axis=1)
    keep: Bool = np.asarray(np.isfinite(ordered[..., 0]) if q.shape[2] else np.isfinite(distance))
    for k in range(1, q.shape[1]):
        # Most requests of a batch that a deadline cut short have few solutions.
        rows = np.flatnonzero(keep[:, k])
        if not rows.size:
            continue
        difference = ordered[rows, :k] - ordered[rows, k : k + 1]
        if not problem.turns:
            turn = 2.0 * np.pi * np.rint(difference / (2.0 * np.pi))
            difference = np.where(periodic, difference - turn, difference)
        near = (np.abs(difference) <= problem.min_separation).all(axis=2)
        keep[rows, k] = ~(near & keep[rows, :k]).any(axis=1)
    chosen = np.full((B, problem.num_solutions), -1, dtype=np.int64)
    place = np.cumsum(keep, axis=1) - 1
    kept = np.nonzero(keep & (place < problem.num_solutions))
    chosen[kept[0], place[kept]] = order[kept]
    return chosen


def _own_copy(candidates: IkCandidates, B: int, n: int, solver: str) -> IkCandidates:
    """Return the candidates, if they are of the agreed form.

    What becomes part of the answer is copied, so that nobody else can write to it.
    """
    if not isinstance(candidates, IkCandidates):
        raise PluginError(f"solver {solver!r} returned {type(candidates).__name__}; agreed is IkCandidates")
    shape = np.shape(candidates.q)
    K = shape[1] if len(shape) == 3 and shape[1] > 0 else 1
    _check_form(candidates.q, "q", "f", (B, K, n), solver)
    _check_form(candidates.attempt, "attempt", "f", (B, n), solver)
    _check_form(candidates.iterations, "iterations", "iu", (B,), solver)
    _check_form(candidates.timed_out, "timed_out", "b", (B,), solver)
    return IkCandidates(
        np.array(candidates.q, dtype=np.float64, order="C"),
        candidates.attempt,
        np.array(candidates.iterations, dtype=np.int64),
        np.array(candidates.timed_out),
        candidates.algorithm,
    )


_KINDS = {"f": "float64", "iu": "int64", "b": "bool"}


def _check_form(given: object, name: str, kinds: str, shape: tuple[int, ...], solver: str) -> None:
    if not isinstance(given, np.ndarray) or given.dtype.kind not in kinds or given.shape != shape:
        form = f"{given.dtype} {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
        raise PluginError(
            f"solver {solver!r} returned {name} as {form}; agreed is an array of {_KINDS[kinds]} {shape}"
        )
