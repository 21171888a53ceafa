"""Explanation of failed requests: code, sentence and best attempt of each."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64, filled, frozen
from kinopt_ros.solvers.collision_gate import EXPLAINED, collision_reason
from kinopt_ros.solvers.failures import failure_reasons
from kinopt_ros.solvers.judgement import Case, Judgement
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.status import Status
from kinopt_ros.verification.configuration import ConfigurationReport, verify_configurations

_SUCCESS = int(Status.SUCCESS)
_UNCHECKED = Status.TIMED_OUT, "the deadline came before its solution was checked for collisions"


@dataclass(eq=False, slots=True)
class Explanation:
    """What is said of each request. Attempts of those that succeeded are not numbers."""

    status: Annotated[Int64, "B"]
    messages: list[str]
    attempt: Annotated[Float64, "B n"]
    errors: tuple[Annotated[Float64, "B"], Annotated[Float64, "B"]]
    """Position (m) and orientation (rad) errors of the attempts."""
    poses: Annotated[Float64, "B T 4 4"]
    """Poses of the targets' tools in the attempts."""


def explain(case: Case, candidates: IkCandidates, judgement: Judgement) -> Explanation:
    """Say why requests failed. ``candidates`` are those that the plugin gave at first."""
    problem = case.problem
    B, n, T = problem.batch_size, len(problem.variables), len(problem.targets)
    if B == 1 and judgement.all_solved:
        return _nothing_to_say(n, T)
    said = _nothing_said(B, n, T)
    if judgement.all_solved:
        return said
    failed = np.flatnonzero(~judgement.solved.any(axis=1))
    if failed.size:
        tried = verify_configurations(case.robot, problem, case.chains, candidates.attempt[failed], failed)
        _keep_attempts(said, failed, tried)
        _say_why(case, candidates, judgement, failed, tried, said)
    return said


def _nothing_said(B: int, n: int, T: int) -> Explanation:
    """Return the explanation of so many successes."""
    status = np.empty(B, dtype=np.int64)
    status.fill(_SUCCESS)
    attempt, position, orientation, poses = (
        filled(shape, np.nan) for shape in ((B, n), (B,), (B,), (B, T, 4, 4))
    )
    return Explanation(status, [""] * B, attempt, (position, orientation), poses)


@lru_cache(maxsize=64)
def _nothing_to_say(n: int, T: int) -> Explanation:
    """Return the explanation of one success, which answers share: nobody can write to it."""
    said = _nothing_said(1, n, T)
    for values in (said.status, said.attempt, *said.errors, said.poses):
        frozen(values)
    return said


def _keep_attempts(said: Explanation, failed: Annotated[Int64, "F"], tried: ConfigurationReport) -> None:
    """Keep the attempts of failed requests that are inside the limits."""
    usable = tried.finite & (tried.limit_violation <= 0.0)
    rows = failed[usable]
    said.attempt[rows] = tried.q[usable]
    said.errors[0][rows] = tried.position_error[usable]
    said.errors[1][rows] = tried.orientation_error[usable]
    said.poses[rows] = tried.T_base_tool[:, usable].swapaxes(0, 1)


def _say_why(
    case: Case,
    candidates: IkCandidates,
    judgement: Judgement,
    failed: Annotated[Int64, "F"],
    tried: ConfigurationReport,
    said: Explanation,
) -> None:
    """Fill in codes and sentences of failed requests."""
    claimed: Bool = np.asarray(~np.isnan(candidates.q).all(axis=2))
    first = judgement.reached[:, : candidates.q.shape[1]]
    rejected: Bool = np.asarray((claimed & ~first).any(axis=1))
    cut = judgement.cut_short
    reasons = failure_reasons(
        case.robot, case.problem, case.chains, failed, tried, rejected[failed], cut[failed]
    )
    reached: Bool = np.asarray(judgement.reached.any(axis=1))
    explained = 0
    for b, reason in zip(failed.tolist(), reasons, strict=True):
        if judgement.unchecked is not None and judgement.unchecked[b]:
            reason = _UNCHECKED
        elif reached[b]:  # and not free of collisions
            hits = judgement.q[b, judgement.reached[b]]
            seen = len(hits)
            if judgement.looked_at is not None:
                seen = max(seen, int(judgement.looked_at[b]))
            explained += 1
            named = not cut[b] and explained <= EXPLAINED and not case.problem.late
            reason = collision_reason(case.robot, case.problem, b, hits, seen, bool(cut[b]), named)
        said.status[b], said.messages[b] = reason
