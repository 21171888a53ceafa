"""Gate of what is as near as possible to targets with weights: an answer that is checked, but never a success.

Of all that a plugin claims for a request, the nearest by the float64 kinematics counts that is inside the limits, and
free of collisions if the problem has a scene. Errors are those of this check. Nothing here tells whether something else
is nearer still: ``not_checked`` says so.
"""

import time
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.target_errors import Met, target_words, weighted_cost, what_is_met
from kinopt_ros.solvers.collision_gate import EXPLAINED, collision_reason, lazily_free
from kinopt_ros.solvers.failures import at_limits, most_named
from kinopt_ros.solvers.judgement import Case
from kinopt_ros.solvers.result import IkCandidates, IkResult
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import (
    SELF_COLLISION,
    WORLD_COLLISION,
    left_out,
    not_checked,
)
from kinopt_ros.verification.configuration import (
    HELD_LIMITS,
    INSIDE,
    NOT_CHECKED,
    ConfigurationReport,
    verify_configurations,
)

ERRORS = "errors from the targets"
"""Name of the check that says how far off an answer is."""
NEARER = "whether something else is nearer"
"""Name of what nobody checks."""


def nearest_answer(case: Case, candidates: IkCandidates, start: float) -> IkResult:
    """Check what a plugin claims, and say what of the targets is met and by how much the rest is not.

    Args:
        case: the problem, all targets of which have weights.
        candidates: of the agreed form.
        start: value of time.perf_counter() when the problem was given.
    """
    problem, robot, scene = case.problem, case.robot, case.problem.scene
    B = problem.batch_size
    claims = _judged(case, candidates.q)
    K = candidates.q.shape[1]
    found = claims.free.any(axis=1) if K > 1 else claims.free[:, 0]
    if K > 1:
        chosen = np.argmin(np.where(claims.free, claims.cost, np.inf), axis=1)
        said = _Said.of(claims.report, np.arange(B) * K + chosen)
    else:
        said = _Said.of(claims.report)
    failed = np.flatnonzero(~found)
    if failed.size:  # of these the plugin's best attempts are shown
        said.put(
            failed, verify_configurations(robot, problem, case.chains, candidates.attempt[failed], failed)
        )
    status = np.where(found, int(Status.NEAREST), int(Status.FAILURE))
    messages = [""] * B
    cut_short = candidates.timed_out | claims.unchecked
    _say_what_is_met(case, said, np.flatnonzero(found), cut_short, messages)
    _say_why_not(case, candidates, claims, said, failed, status, messages)
    said.hide_what_is_outside()
    return IkResult(
        joint_names=tuple([robot.variable_names[i] for i in problem.variables.tolist()]),
        q=np.full((B, 1, len(problem.variables)), np.nan),
        status=status,
        messages=tuple(messages),
        position_error=np.full((B, 1), np.nan),
        orientation_error=np.full((B, 1), np.nan),
        distance=np.full((B, 1), np.nan),
        attempt=said.q,
        attempt_position_error=said.position_error,
        attempt_orientation_error=said.orientation_error,
        attempt_pose=said.T_base_tool,
        cut_short=cut_short,
        iterations=candidates.iterations,
        solver=case.solver,
        solve_time=time.perf_counter() - start,
        checks=(*INSIDE, ERRORS) if scene is None else (*INSIDE, ERRORS, SELF_COLLISION, WORLD_COLLISION),
        not_checked=(NEARER, *(NOT_CHECKED if scene is None else (HELD_LIMITS, *not_checked(robot)))),
        algorithm=candidates.algorithm,
        notes=(*problem.notes, *(() if scene is None else left_out(robot))),
        scene_version=None if scene is None else scene.version,
    )


@dataclass(eq=False, slots=True)
class _Claims:
    """Candidates of the whole batch, and what is known of them."""

    report: ConfigurationReport
    """Of all candidates, K rows for each request."""
    given: Annotated[Bool, "B K"]
    inside: Annotated[Bool, "B K"]
    """Which are configurations inside the limits."""
    free: Annotated[Bool, "B K"]
    """Which of these are free of collisions, if that was asked for, as far as they were looked at."""
    cost: Annotated[Float64, "B K"]
    """Sum of the squares of the weighted errors; of single candidates, which are compared with nothing, 0."""
    unchecked: Annotated[Bool, "B"]
    """Requests with candidates that there was no time to check for collisions."""


def _judged(case: Case, q: Annotated[Float64, "B K n"]) -> _Claims:
    """Check all candidates."""
    B, K, n = q.shape
    request = np.arange(B) if K == 1 else np.repeat(np.arange(B), K)
    report = verify_configurations(case.robot, case.problem, case.chains, q.reshape(B * K, n), request)
    inside: Bool = np.asarray(report.finite & (report.limit_violation <= 0.0)).reshape(B, K)
    given: Bool = np.asarray(~np.isnan(q).all(axis=2))
    cost = np.zeros((B, K))
    if K > 1:
        for target, T in zip(case.problem.targets, report.T_base_tool, strict=True):
            cost += weighted_cost(target, target.T_base_target[request], T).reshape(B, K)
    if case.problem.scene is None:
        return _Claims(report, given, inside, inside, cost, np.zeros(B, dtype=np.bool_))
    free, unchecked = lazily_free(case.robot, case.problem, q, inside, cost)
    return _Claims(report, given, inside, free, cost, unchecked)


@dataclass(eq=False, slots=True)
class _Said:
    """What is shown of each request."""

    q: Annotated[Float64, "B n"]
    inside: Annotated[Bool, "B"]
    """Whether it is a configuration inside the limits."""
    position_error: Annotated[Float64, "B"]
    orientation_error: Annotated[Float64, "B"]
    T_base_tool: Annotated[Float64, "B T 4 4"]

    @classmethod
    def of(cls, report: ConfigurationReport, rows: Annotated[Int64, "B"] | None = None) -> "_Said":
        """Take some rows of a report, or all."""
        said = cls(
            report.q,
            np.asarray(report.finite & (report.limit_violation <= 0.0)),
            report.position_error,
            report.orientation_error,
            report.T_base_tool.swapaxes(0, 1),
        )
        if rows is None:
            return said
        return cls(
            said.q[rows],
            said.inside[rows],
            said.position_error[rows],
            said.orientation_error[rows],
            said.T_base_tool[rows],
        )

    def put(self, requests: Annotated[Int64, "F"], report: ConfigurationReport) -> None:
        """Show all of a report for some requests."""
        other = _Said.of(report)
        self.q[requests], self.inside[requests] = other.q, other.inside
        self.position_error[requests] = other.position_error
        self.orientation_error[requests] = other.orientation_error
        self.T_base_tool[requests] = other.T_base_tool

    def hide_what_is_outside(self) -> None:
        """Replace what is no configuration inside the limits, and what follows from it, by NaN."""
        if not self.inside.all():
            for values in (self.q, self.position_error, self.orientation_error, self.T_base_tool):
                values[~self.inside] = np.nan


def _say_what_is_met(
    case: Case,
    said: _Said,
    found: Annotated[Int64, "F"],
    cut_short: Annotated[Bool, "B"],
    messages: list[str],
) -> None:
    """Write sentences of requests that have an answer."""
    problem = case.problem
    named = at_limits(case.robot, problem.variables, said.q[found[: most_named(problem, len(found))]])
    several = len(problem.targets) > 1
    parts = [
        target_words(target, _met(problem, said, found, number), several)
        for number, target in enumerate(problem.targets)
    ]
    for row, b in enumerate(found.tolist()):
        messages[b] = "; ".join(words[row] for words in parts) + named.get(row, "")
        if cut_short[b]:
            messages[b] += "; the deadline came before the search was done"


def _met(problem: IkProblem, said: _Said, found: Annotated[Int64, "F"], number: int) -> Met:
    """Return what is met of a target, by requests that have an answer."""
    target = problem.targets[number]
    if len(problem.targets) == 1 and target.plain is not None:  # the errors are those of this target
        distance, angle = said.position_error[found], said.orientation_error[found]
        return Met(distance, angle, distance <= target.plain[0], angle <= target.plain[1])
    return what_is_met(target, target.T_base_target[found], said.T_base_tool[found, number])


def _say_why_not(
    case: Case,
    candidates: IkCandidates,
    claims: _Claims,
    said: _Said,
    failed: Annotated[Int64, "F"],
    status: Annotated[Int64, "B"],
    messages: list[str],
) -> None:
    """Write codes and sentences of requests without an answer."""
    problem = case.problem
    explained = 0
    for b in failed.tolist():
        cut = bool(candidates.timed_out[b])
        if claims.unchecked[b]:
            code, sentence = (
                Status.TIMED_OUT,
                "the deadline came before what was found was checked for collisions",
            )
        elif claims.inside[b].any():
            order = np.argsort(-claims.cost[b], kind="stable")
            hits = candidates.q[b, order[claims.inside[b, order]]]
            explained += 1
            named = not cut and explained <= EXPLAINED and not problem.late
            code, sentence = collision_reason(case.robot, problem, b, hits, len(hits), cut, named)
        else:
            best = "no attempt inside the limits was made"
            if said.inside[b]:
                best = _attempt(problem, said, b)
            if (claims.given[b] & ~claims.inside[b]).any():
                code, sentence = (
                    Status.VERIFICATION_FAILED,
                    f"the solver's answer failed the float64 check; {best}",
                )
            elif cut:
                code, sentence = Status.TIMED_OUT, f"the deadline came before anything near was found; {best}"
            else:
                code, sentence = Status.NO_IK_SOLUTION, f"the solver found nothing; {best}"
        status[b], messages[b] = int(code), sentence


def _attempt(problem: IkProblem, said: _Said, b: int) -> str:
    return (
        f"the best attempt is off by {said.position_error[b]:.3g} m and {said.orientation_error[b]:.3g} rad"
        f"{', the worst of all targets' if len(problem.targets) > 1 else ''}"
    )
