"""From claims to an answer: the gate that every candidate of every plugin passes."""

import time
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Bool, Int64
from kinopt_ros.errors import KinoptError
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.chain import KinematicChain, reach_bound
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.result import IkCandidates, IkResult
from kinopt_ros.status import Status
from kinopt_ros.verification.configuration import (
    CHECKS,
    NOT_CHECKED,
    ConfigurationReport,
    verify_configurations,
)


class PluginError(KinoptError):
    """A plugin returned something that is not of the agreed form: a defect of the plugin."""


def verified_ik_result(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    candidates: IkCandidates,
    solver: str,
    start: float,
) -> IkResult:
    """Check every claimed solution and keep only those that pass; explain the requests left without one.

    Args:
        robot: the robot.
        problem: what was asked.
        chains: from the problem's base link to each target's link, nothing held.
        candidates: what the plugin claims.
        solver: name of the plugin.
        start: value of time.perf_counter() when the solver was called.

    Raises:
        PluginError: the candidates are not arrays of real numbers in the shapes of the problem.
    """
    B, n = problem.batch_size, len(problem.variables)
    candidates = _own_copy(candidates, B, n, solver)
    K = candidates.q.shape[1]
    claims = candidates.q.reshape(B * K, n)
    claimed: Bool = np.asarray(~np.isnan(claims).all(axis=1))
    request = np.repeat(np.arange(B), K)
    report = verify_configurations(robot, problem, chains, claims, request)
    ok = report.ok.copy()
    ok[~claimed] = False
    q = np.where(ok[:, None], claims, np.nan).reshape(B, K, n)
    position = np.where(ok, report.position_error, np.nan).reshape(B, K)
    orientation = np.where(ok, report.orientation_error, np.nan).reshape(B, K)
    if K > 1:  # verified ones first, the plugin's order kept among them
        order = np.argsort(~ok.reshape(B, K), axis=1, kind="stable")
        q = np.take_along_axis(q, order[..., None], axis=1)
        position, orientation = (np.take_along_axis(a, order, axis=1) for a in (position, orientation))

    solved: Bool = np.asarray(ok.reshape(B, K).any(axis=1))
    attempt = np.full((B, n), np.nan)
    attempt_errors = np.full((2, B), np.nan)
    status = np.full(B, int(Status.SUCCESS), dtype=np.int64)
    messages = [""] * B
    failed = np.flatnonzero(~solved)
    if failed.size:
        tried = verify_configurations(robot, problem, chains, candidates.attempt[failed], failed)
        usable = tried.finite & (tried.limit_violation <= 0.0)
        attempt[failed[usable]] = candidates.attempt[failed[usable]]
        attempt_errors[0, failed[usable]] = tried.position_error[usable]
        attempt_errors[1, failed[usable]] = tried.orientation_error[usable]
        rejected: Bool = np.asarray((claimed & ~report.ok).reshape(B, K).any(axis=1))
        distance = _beyond_reach(robot, problem, chains, failed)
        for row, b in enumerate(failed.tolist()):
            best = _attempt_sentence(tried, row) if usable[row] else "no attempt inside the limits was made"
            if distance[row]:
                status[b], messages[b] = Status.NO_IK_SOLUTION, distance[row]
            elif rejected[b]:
                status[b] = Status.VERIFICATION_FAILED
                messages[b] = f"the solver's answer failed the float64 check; {best}"
            elif candidates.timed_out[b]:
                status[b], messages[b] = Status.TIMED_OUT, f"the deadline came before a solution; {best}"
            else:
                status[b], messages[b] = (
                    Status.NO_IK_SOLUTION,
                    f"no solution within {_tolerances(problem)}; {best}",
                )
    return IkResult(
        joint_names=tuple(robot.variable_names[i] for i in problem.variables),
        q=q,
        status=status,
        messages=tuple(messages),
        position_error=position,
        orientation_error=orientation,
        attempt=attempt,
        attempt_position_error=attempt_errors[0],
        attempt_orientation_error=attempt_errors[1],
        iterations=candidates.iterations,
        solver=solver,
        solve_time=time.perf_counter() - start,
        checks=CHECKS,
        not_checked=NOT_CHECKED,
    )


def _own_copy(candidates: IkCandidates, B: int, n: int, solver: str) -> IkCandidates:
    """The candidates as float64 arrays that nobody else can write to, if they are of the agreed form."""
    shape = np.shape(candidates.q)
    K = shape[1] if len(shape) == 3 and shape[1] > 0 else 1
    agreed = {
        "q": ("f", np.float64, (B, K, n)),
        "attempt": ("f", np.float64, (B, n)),
        "iterations": ("iu", np.int64, (B,)),
        "timed_out": ("b", np.bool_, (B,)),
    }
    copies: dict[str, Any] = {}
    for name, (kinds, dtype, expected) in agreed.items():
        given = getattr(candidates, name)
        if not isinstance(given, np.ndarray) or given.dtype.kind not in kinds or given.shape != expected:
            form = f"{given.dtype} {given.shape}" if isinstance(given, np.ndarray) else type(given).__name__
            raise PluginError(
                f"solver {solver!r} returned {name} as {form}; agreed is an array of {np.dtype(dtype)} {expected}"
            )
        copies[name] = np.array(given, dtype=dtype)
    return IkCandidates(**copies)


def _beyond_reach(
    robot: RobotModel, problem: IkProblem, chains: tuple[KinematicChain, ...], requests: Annotated[Int64, "F"]
) -> list[str]:
    """For every request a sentence if a target of it cannot be reached for its distance alone, else nothing."""
    sentences = [""] * len(requests)
    for target, chain in zip(problem.targets, chains, strict=True):
        reach = reach_bound(robot, chain)
        distance = np.linalg.norm(target.T_base_target[requests, :3, 3], axis=1)
        for row in np.flatnonzero(distance > reach + target.position_tolerance):
            sentences[row] = (
                f"out of reach: the target of {target.link!r} is {distance[row]:.3f} m from {problem.base_link!r}, "
                f"which it cannot leave by more than {reach:.3f} m"
            )
    return sentences


def _attempt_sentence(tried: ConfigurationReport, row: int) -> str:
    position, orientation = tried.position_error[row], tried.orientation_error[row]
    return f"the best attempt is off by {position:.3g} m and {orientation:.3g} rad"


def _tolerances(problem: IkProblem) -> str:
    return " and ".join(
        f"{target.position_tolerance:.3g} m, {target.orientation_tolerance:.3g} rad"
        for target in problem.targets
    )
