"""Advice for failed requests: arms of fewer than six joints reach few full poses, but many with an axis left free."""

import math
import time
from dataclasses import replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Int64
from kinopt_ros.errors import NotReadyError
from kinopt_ros.problems.ik import IkProblem, PoseTarget, Tolerance
from kinopt_ros.robot.chain import KinematicChain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.asking import Asking
from kinopt_ros.solvers.failures import target_beyond_reach
from kinopt_ros.solvers.judgement import Case
from kinopt_ros.solvers.result import IkCandidates, IkResult
from kinopt_ros.status import Status
from kinopt_ros.verification.configuration import verify_configurations

_MOST_REQUESTS = 4
"""Most failed requests of a batch that are tried; the others get no advice."""
_SECONDS = 0.1
"""Time for the search, within the request's deadline, s."""
_FREED: tuple[tuple[str, ...], ...] = (
    ("rz",),
    ("rx",),
    ("ry",),
    ("rx", "ry"),
    ("rx", "rz"),
    ("ry", "rz"),
    ("rx", "ry", "rz"),
)
"""Axes that are freed, in order of trial: a turn about the tool's own axis, usually z, matters least."""


def with_remedies(case: Case, result: IkResult) -> Asking[IkResult]:
    """Return the result, where failures that a free axis would mend say which axis.

    Only for one target and fewer than six joints that move it: others rarely fail for want of freedom. What is
    advised was verified.
    """
    robot, problem, chains = case.robot, case.problem, case.chains
    if len(problem.targets) > 1:
        return result
    failed = np.flatnonzero(result.status == Status.NO_IK_SOLUTION)
    if not failed.size:
        return result
    if len(np.intersect1d(chains[0].variables, problem.variables)) >= 6:
        return result
    anyhow = replace(problem.targets[0], orientation_tolerance=math.inf)
    failed = failed[target_beyond_reach(robot, anyhow, chains[0])[failed] == 0.0]
    end = time.monotonic() + _SECONDS
    if problem.deadline is not None:
        end = min(end, problem.deadline)
    asked = failed[:_MOST_REQUESTS]
    remedy = [""] * problem.batch_size
    for freed in _FREED:
        if not asked.size or time.monotonic() >= end:
            break
        target = _freed(problem.targets[0], freed)
        if target is None:
            continue
        relaxed = _rows(problem, target, asked, end)
        try:
            candidates = yield relaxed
        except NotReadyError:  # advice is worth no waiting
            break
        found = _solvable(robot, relaxed, chains, candidates)
        for b in asked[found]:
            remedy[b] = f"; it is reached with free_axes: [{', '.join(freed)}]"
        asked = asked[~found]
    messages = tuple(message + advice for message, advice in zip(result.messages, remedy, strict=True))
    return replace(result, messages=messages)


def _freed(target: PoseTarget, axes: tuple[str, ...]) -> PoseTarget | None:
    """Return the target with some rotation axes free; None if one of them is already."""
    tolerance: Tolerance = target.orientation_tolerance
    x, y, z = tolerance if isinstance(tolerance, tuple) else (tolerance,) * 3
    values = dict(zip(("rx", "ry", "rz"), (x, y, z), strict=True))
    if any(math.isinf(values[axis]) for axis in axes):
        return None
    rx, ry, rz = (math.inf if name in axes else value for name, value in values.items())
    return replace(target, orientation_tolerance=(rx, ry, rz))


def _rows(problem: IkProblem, target: PoseTarget, rows: Annotated[Int64, "F"], deadline: float) -> IkProblem:
    """Return some requests of a problem with another target, one solution each."""
    return replace(
        problem,
        targets=(replace(target, T_base_target=target.T_base_target[rows]),),
        state=problem.state[rows],
        seeds=problem.seeds[rows],
        num_solutions=1,
        turns=False,
        preference=None,
        deadline=deadline,
    )


def _solvable(
    robot: RobotModel, problem: IkProblem, chains: tuple[KinematicChain, ...], candidates: IkCandidates
) -> Annotated[Bool, "F"]:
    report = verify_configurations(robot, problem, chains, candidates.q[:, 0], np.arange(problem.batch_size))
    return report.ok
