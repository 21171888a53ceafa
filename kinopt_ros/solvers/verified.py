"""From claims to an answer: the gate that every candidate of every plugin passes."""

import time

import numpy as np

from kinopt_ros.array import Bool
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
        PluginError: the candidates' arrays do not have the shapes of the problem.
    """
    B, n = problem.batch_size, len(problem.variables)
    K = _check_form(candidates, B, n, solver)
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
        for row, b in enumerate(failed):
            status[b], messages[b] = _explain(
                robot,
                problem,
                chains,
                int(b),
                tried,
                row,
                bool(usable[row]),
                bool(candidates.timed_out[b]),
                bool(rejected[b]),
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


def _check_form(candidates: IkCandidates, B: int, n: int, solver: str) -> int:
    """K, if every array has the shape agreed in IkCandidates."""
    K = candidates.q.shape[1] if candidates.q.ndim == 3 else 0
    expected = {
        "q": (B, K, n),
        "attempt": (B, n),
        "iterations": (B,),
        "timed_out": (B,),
    }
    for name, shape in expected.items():
        given = np.shape(getattr(candidates, name))
        if given != shape or K == 0:
            raise PluginError(
                f"solver {solver!r} returned {name} of shape {given}; agreed is {shape} with K >= 1"
            )
    return K


def _explain(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    b: int,
    tried: ConfigurationReport,
    row: int,
    usable: bool,
    timed_out: bool,
    rejected: bool,
) -> tuple[Status, str]:
    """Status and sentence for a request without a verified solution."""
    for target, chain in zip(problem.targets, chains, strict=True):
        distance = float(np.linalg.norm(target.T_base_target[b, :3, 3]))
        reach = reach_bound(robot, chain)
        if distance > reach + target.position_tolerance:
            return Status.NO_IK_SOLUTION, (
                f"out of reach: the target of {target.link!r} is {distance:.3f} m from {problem.base_link!r}, "
                f"which it cannot leave by more than {reach:.3f} m"
            )
    best = "no attempt inside the limits was made"
    if usable:
        best = (
            f"the best attempt is off by {tried.position_error[row]:.3g} m and "
            f"{tried.orientation_error[row]:.3g} rad"
        )
    if rejected:
        return Status.VERIFICATION_FAILED, f"the solver's answer failed the float64 check; {best}"
    if timed_out:
        return Status.TIMED_OUT, f"the deadline came before a solution; {best}"
    target = problem.targets[0]
    return Status.NO_IK_SOLUTION, (
        f"no solution within {target.position_tolerance:.3g} m and {target.orientation_tolerance:.3g} rad; {best}"
    )
