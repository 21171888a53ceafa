"""Reasons of failed requests: a code and a sentence from what the core itself can see."""

import math
from dataclasses import replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.kinematics.reach import beyond_reach
from kinopt_ros.problems.ik import IkProblem, PoseTarget, Tolerance
from kinopt_ros.robot.chain import KinematicChain, chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.status import Status
from kinopt_ros.verification.configuration import ConfigurationReport

_REACH_ROUNDING = 1e-9
"""Rounding errors of the reach, m."""
_AT_LIMIT = 1e-6
"""Distance from a limit up to which a joint counts as held by it, rad or m."""
_NAMED_LATE = 1000
"""Most requests whose joints at limits are named if the deadline has come."""
_AXES = ("x", "y", "z")


def failure_reasons(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    requests: Annotated[Int64, "F"],
    tried: ConfigurationReport,
    rejected: Annotated[Bool, "F"],
    timed_out: Annotated[Bool, "F"],
) -> list[tuple[Status, str]]:
    """Return a code and a sentence for each of the failed requests.

    Args:
        robot: the robot.
        problem: what was asked.
        chains: from the base link to each target's link.
        requests: the failed ones.
        tried: the check of their best attempts.
        rejected: which of them had claims that did not pass.
        timed_out: which of them the deadline cut short.
    """
    distant = out_of_reach(robot, problem, chains, requests)
    inside = tried.finite & (tried.limit_violation <= 0.0)
    named = most_named(problem, len(requests))
    at_limit = at_limits(robot, problem.variables, tried.q[:named])
    reasons = []
    for row in range(len(requests)):
        if distant[row]:
            reasons.append((Status.NO_IK_SOLUTION, distant[row]))
            continue
        best = "no attempt inside the limits was made"
        if inside[row]:
            best = _attempt_sentence(problem, tried, requests, row) + at_limit.get(row, "")
        if rejected[row]:
            sentence = f"the solver's answer failed the float64 check; {best}"
            reasons.append((Status.VERIFICATION_FAILED, sentence))
        elif timed_out[row]:
            reasons.append((Status.TIMED_OUT, f"the deadline came before a solution; {best}"))
        else:
            reasons.append((Status.NO_IK_SOLUTION, f"no solution within {_tolerances(problem)}; {best}"))
    return reasons


def most_named(problem: IkProblem, count: int) -> int:
    """Return of how many of so many requests joints at limits are named.

    Names take microseconds each, and nobody waits for thousands after the deadline.
    """
    return min(count, _NAMED_LATE) if problem.late else count


def out_of_reach(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    requests: Annotated[Int64, "F"],
) -> list[str]:
    """Return a sentence for every request with a target that is too far away to be reached, else an empty one."""
    sentences = [""] * len(requests)
    for target, chain in zip(problem.targets, chains, strict=True):
        beyond = target_beyond_reach(robot, target, chain)[requests]
        if not (beyond > _REACH_ROUNDING).any():
            continue
        anyhow = replace(target, orientation_tolerance=math.inf)
        turned = target_beyond_reach(robot, anyhow, chain)[requests] <= _REACH_ROUNDING
        distance = np.linalg.norm(target.T_base_target[requests, :3, 3], axis=1)
        for row in np.flatnonzero(beyond > _REACH_ROUNDING).tolist():
            sentences[row] = (
                f"out of reach: the target of {target.link!r} is {distance[row]:.3f} m from {problem.base_link!r}, "
                f"and at least {beyond[row]:.3f} m farther than the links between can stretch"
                f"{' in that orientation' if turned[row] else ''}"
            )
    return sentences


def target_beyond_reach(
    robot: RobotModel, target: PoseTarget, chain: KinematicChain
) -> Annotated[Float64, "B"]:
    """Return how much nearer (m) the poses of a target would have to be, at least; 0 where they may be reached."""
    if any(target.free_position):
        return np.zeros(len(target.T_base_target))
    return beyond_reach(
        robot,
        chain,
        target.T_base_target,
        target.T_link_tool,
        _largest(target.position_tolerance),
        math.inf if any(target.free_orientation) else _largest(target.orientation_tolerance),
    )


def hopeless_requests(robot: RobotModel, problem: IkProblem) -> Annotated[Bool, "B"]:
    """Return which requests have a target beyond the reach of every configuration."""
    hopeless = np.zeros(problem.batch_size, dtype=np.bool_)
    for target in problem.targets:
        chain = chain_between(robot, problem.base_link, target.link)
        hopeless |= target_beyond_reach(robot, target, chain) > _REACH_ROUNDING
    return hopeless


def _largest(tolerance: Tolerance) -> float:
    """Return the length of the largest error within a tolerance."""
    return math.hypot(*tolerance) if isinstance(tolerance, tuple) else tolerance


def _attempt_sentence(problem: IkProblem, tried: ConfigurationReport, requests: Int64, row: int) -> str:
    position, orientation = tried.position_error[row], tried.orientation_error[row]
    sentence = f"the best attempt is off by {position:.3g} m and {orientation:.3g} rad"
    if len(problem.targets) > 1:
        sentence += f", the target of {_worst_target(problem, tried, int(requests[row]), row)!r} most"
    return sentence


def _worst_target(problem: IkProblem, tried: ConfigurationReport, request: int, row: int) -> str:
    """Return the link of the target whose position is the farthest off."""
    distances = [
        float(np.linalg.norm(T[row, :3, 3] - target.T_base_target[request, :3, 3]))
        for target, T in zip(problem.targets, tried.T_base_tool, strict=True)
    ]
    return problem.targets[int(np.argmax(distances))].link


def at_limits(robot: RobotModel, variables: Int64, q: Annotated[Float64, "F n"]) -> dict[int, str]:
    """Return which joints are at a limit: the end of a sentence for every row where some are."""
    names = [robot.variable_names[i] for i in variables]
    sides = {
        "lower": np.abs(q - robot.limits.lower[variables]) <= _AT_LIMIT,
        "upper": np.abs(q - robot.limits.upper[variables]) <= _AT_LIMIT,
    }
    found = {}
    for row in np.flatnonzero((sides["lower"] | sides["upper"]).any(axis=1)).tolist():
        parts = [
            f"{', '.join([names[i] for i in np.flatnonzero(at[row]).tolist()])} at the {side} limit"
            for side, at in sides.items()
            if at[row].any()
        ]
        found[row] = f", with {' and '.join(parts)}"
    return found


def _tolerances(problem: IkProblem) -> str:
    return "; ".join(
        f"{_shown(target.position_tolerance, 'm')} and {_shown(target.orientation_tolerance, 'rad')}"
        for target in problem.targets
    )


def _shown(tolerance: Tolerance, unit: str) -> str:
    if not isinstance(tolerance, tuple):
        return "any orientation" if math.isinf(tolerance) and unit == "rad" else f"{tolerance:.3g} {unit}"
    parts = [
        f"{axis} {'free' if math.isinf(value) else f'{value:.3g} {unit}'}"
        for axis, value in zip(_AXES, tolerance, strict=True)
    ]
    return f"{'about' if unit == 'rad' else 'along'} {', '.join(parts)}"
