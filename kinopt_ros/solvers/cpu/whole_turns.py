"""Configurations that differ from a solution by whole turns of its joints."""

import heapq
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import periodic_variables

_MOST_TURNS = 8
"""Whole turns of one joint that are considered, nearest first: an endless joint has no end of them."""


def with_whole_turns(
    problem: IkProblem, q: Annotated[Float64, "B K n"], robot: RobotModel
) -> Annotated[Float64, "B K n"]:
    """The K best of all solutions and their equivalents inside the limits, measured as solutions are sorted.

    Args:
        problem: what was asked.
        q: solutions, NaN rows where there is none.
        robot: the robot.
    """
    variables = problem.variables
    periodic = periodic_variables(robot)[variables]
    lower, upper = robot.limits.lower[variables], robot.limits.upper[variables]
    if problem.posture is None:
        reference, weight = problem.state[:, variables], np.ones(len(variables))
    else:
        reference, weight = problem.posture.reference, problem.posture.weight
    K = problem.num_solutions
    answer = np.full_like(q, np.nan)
    for b in range(len(q)):
        best: list[tuple[float, tuple[float, ...]]] = []
        for solution in q[b]:
            if not np.isnan(solution).any():
                best += _equivalents(solution, reference[b], weight, periodic, lower, upper, K)
        best.sort()
        for k, (_, values) in enumerate(best[:K]):
            answer[b, k] = values
    return answer


def _equivalents(
    q: Float64,
    reference: Float64,
    weight: Float64,
    periodic: Float64,
    lower: Float64,
    upper: Float64,
    most: int,
) -> list[tuple[float, tuple[float, ...]]]:
    """The ``most`` equivalents of least cost, with their costs, from the best on: each next one changes the turn of
    one joint of one before."""
    choices = []
    for j, value in enumerate(q):
        turns = [0.0]
        if periodic[j]:
            low = max((lower[j] - value) / (2 * np.pi), -_MOST_TURNS)
            high = min((upper[j] - value) / (2 * np.pi), _MOST_TURNS)
            turns = [2 * np.pi * k for k in range(int(np.ceil(low)), int(np.floor(high)) + 1)] or [0.0]
        turned = [float(value + turn) for turn in turns if lower[j] <= value + turn <= upper[j]] or [
            float(value)
        ]
        choices.append(
            sorted((float(weight[j] * (v - reference[j]) ** 2), abs(v - value), v) for v in turned)
        )
    first = (0,) * len(q)
    heap = [(sum(choice[0][0] for choice in choices), first)]
    seen = {first}
    answer: list[tuple[float, tuple[float, ...]]] = []
    while heap and len(answer) < most:
        cost, index = heapq.heappop(heap)
        answer.append((cost, tuple(choice[i][2] for choice, i in zip(choices, index, strict=True))))
        for j, i in enumerate(index):
            if i + 1 < len(choices[j]):
                following = (*index[:j], i + 1, *index[j + 1 :])
                if following not in seen:
                    seen.add(following)
                    step = choices[j][i + 1][0] - choices[j][i][0]
                    heapq.heappush(heap, (cost + step, following))
    return answer
