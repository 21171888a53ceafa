"""Gate that claims of plugins for objectives pass, in float64: numbers, limits, what is held, costs, collisions."""

import time
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64, all_set
from kinopt_ros.errors import shortened
from kinopt_ros.kinematics.tangent import difference, directions
from kinopt_ros.objectives.compiled import judged_at_once
from kinopt_ros.objectives.evaluation import Term, evaluate_along
from kinopt_ros.objectives.numpy_point import numpy_paths
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveCandidates, ObjectiveResult
from kinopt_ros.problems.validation import QUATERNION_ERROR
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import quaternion_starts
from kinopt_ros.solvers.collision_gate import named_contacts
from kinopt_ros.solvers.judgement import PluginError
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import (
    SELF_COLLISION,
    WORLD_COLLISION,
    check_collisions,
    left_out,
    not_checked,
)
from kinopt_ros.verification.configuration import HELD_LIMITS, limit_violation

CHECKS = ("finite numbers", "joint limits", "held joints", "every cost with a tolerance")
BETWEEN = "between points"
"""Not checked of a trajectory: limits of derivatives that no cost names, and collisions between points."""
HELD = 1e-9
"""Largest step of what is held, rad or m."""
_SUCCESS = int(Status.SUCCESS)


def verified(
    robot: RobotModel, problem: ObjectiveProblem, claims: ObjectiveCandidates, solver: str, start: float
) -> ObjectiveResult:
    """Judge claims; ``start`` is the value of time.perf_counter() when it was asked for.

    Raises:
        CostError: a cost's own code fails at what was found.
        PluginError: what is claimed is not of the agreed form.
    """
    B, T, objective = problem.batch_size, problem.num_points, problem.objective
    _check_form(robot, problem, claims, solver)
    best = np.array(claims.q, dtype=np.float64)
    status = np.empty(B, dtype=np.int64)
    status.fill(_SUCCESS)
    messages = [""] * B
    wrong: dict[int, str] = {}
    if directions(robot).quaternions or T > 1:
        wrong = _all_wrong(robot, problem, best)
    judged = None if wrong else judged_at_once(robot, problem, best, HELD)
    terms: Sequence[tuple[Term, ...]]
    unclear: Sequence[int] = range(B)
    if judged is not None:
        terms = judged.terms
        if problem.scene is None and objective.has_to_hold:
            unclear = () if all_set(judged.met) else np.flatnonzero(~judged.met).tolist()
    else:
        wrong = wrong or _all_wrong(robot, problem, best)
        for b in wrong:
            best[b] = np.array(np.broadcast_to(problem.state[b], (T, robot.nq)))
        paths = numpy_paths(robot, best, problem.dt)
        terms = [evaluate_along(path, problem.objectives[b]) for b, path in enumerate(paths)]
    for b in unclear:
        if b in wrong:
            status[b], messages[b] = Status.VERIFICATION_FAILED, f"solver {solver} {wrong[b]}"
        else:
            status[b], messages[b] = _outcome(robot, problem, b, best[b], terms[b], bool(claims.timed_out[b]))
    q = best.copy() if not unclear else np.where((status == _SUCCESS)[:, None, None], best, np.nan)
    return ObjectiveResult(
        robot.variable_names,
        q,
        best,
        status,
        tuple(messages),
        terms,
        claims.multipliers,
        _own(claims.iterations),
        np.array(claims.history),
        problem.dt,
        solver,
        time.perf_counter() - start,
        CHECKS if problem.scene is None else (*CHECKS, SELF_COLLISION, WORLD_COLLISION),
        _not_checked(robot, problem),
        () if problem.scene is None else left_out(robot),
    )


def _check_form(
    robot: RobotModel, problem: ObjectiveProblem, claims: ObjectiveCandidates, solver: str
) -> None:
    B = problem.batch_size
    for name, given, shape in (
        ("q", claims.q, (B, problem.num_points, robot.nq)),
        ("iterations", claims.iterations, (B,)),
        ("timed_out", claims.timed_out, (B,)),
    ):
        claimed = np.asarray(given)
        if claimed.shape != shape or claimed.dtype.kind not in "fiub":
            raise PluginError(
                f"solver {solver} claims {name} of shape {claimed.shape} and type {claimed.dtype}, not numbers of "
                f"shape {shape}"
            )
    if len(claims.multipliers) != len(problem.objective):
        raise PluginError(
            f"solver {solver} claims multipliers of {len(claims.multipliers)} costs, not {len(problem.objective)}"
        )


def _own(values: Int64) -> Int64:
    return np.array(values, dtype=np.int64)


def _not_checked(robot: RobotModel, problem: ObjectiveProblem) -> tuple[str, ...]:
    between = (BETWEEN,) if problem.num_points > 1 else ()
    if problem.scene is None:
        return (HELD_LIMITS, SELF_COLLISION, WORLD_COLLISION, *between)
    return (HELD_LIMITS, *not_checked(robot), *between)


def _all_wrong(
    robot: RobotModel, problem: ObjectiveProblem, q: Annotated[Float64, "B T nq"]
) -> dict[int, str]:
    """Return which claims break what no solver may, and how, in words that follow its name."""
    if _all_right(robot, problem, q):
        return {}
    found = {b: _wrong(robot, problem, b, q[b]) for b in range(len(q))}
    return {b: what for b, what in found.items() if what}


def _all_right(robot: RobotModel, problem: ObjectiveProblem, q: Annotated[Float64, "B T nq"]) -> bool:
    """Check all claims at once, of robots without quaternions; False if any may be ``_wrong``."""
    known = directions(robot)
    if known.quaternions or not np.isfinite(q).all():
        return False
    free = problem.free[known.scalar_directions]
    held, moving = known.scalar_variables[~free], known.scalar_variables[free]
    still = not len(held) or bool((np.abs(q[:, :, held] - problem.state[:, None, held]) <= HELD).all())
    return still and not limit_violation(robot, q.reshape(-1, robot.nq), moving).any()


def _wrong(robot: RobotModel, problem: ObjectiveProblem, b: int, q: Annotated[Float64, "T nq"]) -> str:
    """Return what a claim breaks that no solver may, in words that follow its name; empty if nothing."""
    if not np.isfinite(q).all():
        return "claimed values that are not finite"
    known = directions(robot)
    for start in quaternion_starts(robot.joints):
        if (np.abs(np.linalg.norm(q[:, start : start + 4], axis=1) - 1.0) > QUATERNION_ERROR).any():
            return f"claimed a quaternion whose length is not 1 at {robot.variable_names[start]}"
    moved = np.abs(difference(known, problem.state[b], q))[:, ~problem.free]
    if (moved > HELD).any():
        names = [known.names[i] for i in np.flatnonzero(~problem.free)[(moved > HELD).any(axis=0)]]
        return f"moved what was held: {shortened(names)}"
    scalars = np.isin(known.scalar_directions, np.flatnonzero(problem.free))
    beyond = limit_violation(robot, q, known.scalar_variables[scalars])
    if (beyond > 0.0).any():
        return f"left the joint limits by {beyond.max():.3g}"
    return ""


def _outcome(
    robot: RobotModel,
    problem: ObjectiveProblem,
    b: int,
    q: Annotated[Float64, "T nq"],
    terms: tuple[Term, ...],
    timed_out: bool,
) -> tuple[int, str]:
    broken = [term for term in terms if not term.met]
    if broken:
        worst = max(broken, key=lambda term: term.ratio)
        others = f" ({len(broken)} costs do not hold)" if len(broken) > 1 else ""
        code = Status.NO_IK_SOLUTION if problem.num_points == 1 else Status.PLANNING_FAILED
        if timed_out:
            code = Status.TIMED_OUT
        return code, f"{described(worst)}{others}"
    if problem.scene is not None:
        report = check_collisions(robot, problem.scene, q, problem.clearance)
        if not report.free.all():
            at = int(np.argmin(report.free))
            where = f" at point {at}" if problem.num_points > 1 else ""
            return (
                Status.GOAL_IN_COLLISION,
                f"what was found is in collision{where}: {named_contacts(report.contacts[at])}",
            )
    if not problem.objective.has_to_hold:
        return Status.NEAREST, "no cost has a tolerance: this is the least that was found, not a success"
    return Status.SUCCESS, ""


def described(term: Term) -> str:
    """Return by how much a cost does not hold, as a sentence."""
    if term.tolerance is None:
        return f"cost {term.title!r} has no tolerance"
    over = int(np.argmax(term.magnitude / np.maximum(term.tolerance, 1e-300)))
    return f"cost {term.title!r} is off by {term.magnitude[over]:.3g}; allowed is {term.tolerance[over]:.3g}"
