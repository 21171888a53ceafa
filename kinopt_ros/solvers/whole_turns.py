"""Configurations that differ from a solution by whole turns of its joints."""

import heapq
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import periodic_variables

_MOST_TURNS = 8
"""Most whole turns of one joint that are considered, nearest first: an endless joint has no end of them."""


def with_whole_turns(
    problem: IkProblem, q: Annotated[Float64, "B K n"], robot: RobotModel
) -> Annotated[Float64, "B K n"]:
    """Return the K best of all solutions and their equivalents inside the limits, measured as solutions are sorted.

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
    answer = np.full_like(q, np.nan)
    for b in range(len(q)):
        solutions = q[b][~np.isnan(q[b]).any(axis=1)]
        choices = [_choices(solution, reference[b], weight, periodic, lower, upper) for solution in solutions]
        for k, values in enumerate(_best(choices, problem.num_solutions)):
            answer[b, k] = values
    return answer


def _choices(
    q: Float64, reference: Float64, weight: Float64, periodic: Bool, lower: Float64, upper: Float64
) -> list[list[tuple[float, float, float]]]:
    """Return every variable's equivalent values inside the limits, best first, as (cost, distance from q, value)."""
    choices = []
    for j, value in enumerate(q):
        turns = [0.0]
        if periodic[j]:
            low = max((lower[j] - value) / (2 * np.pi), -_MOST_TURNS)
            high = min((upper[j] - value) / (2 * np.pi), _MOST_TURNS)
            turns = [2 * np.pi * k for k in range(int(np.ceil(low)), int(np.floor(high)) + 1)]
        turned = [float(value + turn) for turn in turns if lower[j] <= value + turn <= upper[j]] or [
            float(value)
        ]
        choices.append(
            sorted((float(weight[j] * (v - reference[j]) ** 2), abs(v - value), v) for v in turned)
        )
    return choices


def _best(choices: list[list[list[tuple[float, float, float]]]], most: int) -> list[list[float]]:
    """Return the ``most`` combinations of least cost of all solutions, from the best on.

    Each next one changes the turn of one joint of one before.
    """
    heap = [(sum(c[0][0] for c in own), k, (0,) * len(own)) for k, own in enumerate(choices)]
    heapq.heapify(heap)
    seen = {entry[1:] for entry in heap}
    answer: list[list[float]] = []
    while heap and len(answer) < most:
        cost, k, index = heapq.heappop(heap)
        own = choices[k]
        answer.append([own[j][i][2] for j, i in enumerate(index)])
        for j, i in enumerate(index):
            following = (*index[:j], i + 1, *index[j + 1 :])
            if i + 1 < len(own[j]) and (k, following) not in seen:
                seen.add((k, following))
                heapq.heappush(heap, (cost + own[j][i + 1][0] - own[j][i][0], k, following))
    return answer
