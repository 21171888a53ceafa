"""Merging of several IK problems of the same structure into one, and splitting of its answer.

A request's answer does not depend on the others in its batch: together they cost less, as most of the time of a single
request goes into checks that cost the same for many.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.solvers.result import IkResult


def structure_key(problem: IkProblem) -> Hashable:
    """Return a key: problems of the same robot and equal keys can be merged."""
    return (
        problem.base_link,
        problem.joints,
        tuple(
            (
                target.link,
                target.position_tolerance,
                target.orientation_tolerance,
                None if target.T_link_tool is None else target.T_link_tool.tobytes(),
                target.weights,
            )
            for target in problem.targets
        ),
        problem.seeds.shape[1],
        problem.num_solutions,
        problem.min_separation,
        problem.turns,
        None if problem.preference is None else problem.preference.key(),
        problem.random_seed,
        None if problem.scene is None else id(problem.scene),
        problem.clearance,
        problem.notes,
    )


def merged(problems: Sequence[IkProblem], deadline: float) -> IkProblem:
    """Merge problems into one with the requests of all, in order, due at the earliest of all deadlines."""
    first = problems[0]
    deadlines = [math.inf if problem.deadline is None else problem.deadline for problem in problems]
    due = min(deadline, *deadlines)
    if len(problems) == 1:
        return replace(first, deadline=due)
    targets = tuple(
        replace(target, T_base_target=np.concatenate([p.targets[i].T_base_target for p in problems]))
        for i, target in enumerate(first.targets)
    )
    preferences = [problem.preference for problem in problems if problem.preference is not None]
    return replace(
        first,
        targets=targets,
        state=np.concatenate([problem.state for problem in problems]),
        seeds=np.concatenate([problem.seeds for problem in problems]),
        preference=preferences[0].joined(preferences) if preferences else None,
        deadline=due,
    )


def taken_apart(result: IkResult, sizes: Sequence[int]) -> list[IkResult]:
    """Split the answer of merged problems, which had ``sizes`` requests each."""
    if len(sizes) == 1:
        return [result]
    parts = []
    first = 0
    for size in sizes:
        rows = slice(first, first + size)
        first += size
        parts.append(
            replace(
                result,
                q=result.q[rows],
                status=result.status[rows],
                messages=result.messages[rows],
                position_error=result.position_error[rows],
                orientation_error=result.orientation_error[rows],
                distance=result.distance[rows],
                attempt=result.attempt[rows],
                attempt_position_error=result.attempt_position_error[rows],
                attempt_orientation_error=result.attempt_orientation_error[rows],
                attempt_pose=result.attempt_pose[rows],
                cut_short=result.cut_short[rows],
                iterations=result.iterations[rows],
            )
        )
    return parts
