"""Requests with floating joints that have no closed form: several links at once, a posture of further joints, single
axes of a base locked, or a base whose limits leave the arm something to do.

They are solved for the robot whose floating joints turn by angles (``kinematics/angled_robot.py``), each request from
its own state, where all angles are 0.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.angled_robot import AngledRobot
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.posture import Posture
from kinopt_ros.solvers.result import IkCandidates

PER_ANGLE = 0.25
"""Squared distance of two unit quaternions by the squared angle between them, for small ones."""


def solve_by_angles(
    problem: IkProblem, angled: AngledRobot, columns: list[int], solve: Callable[[IkProblem], IkCandidates]
) -> IkCandidates:
    """Return candidates for a problem whose variables have quaternions.

    Args:
        problem: the problem.
        angled: the robot whose floating joints turn by angles.
        columns: where among the problem's variables each qw is.
        solve: solves problems of that robot.
    """
    state = angled.with_frames(problem.state)
    variables = angled.variables_from_own(problem.variables)

    def there(q: Annotated[Float64, "B S n"]) -> Annotated[Float64, "B S m"]:
        own = np.repeat(problem.state[:, None], q.shape[1], axis=1)
        own[..., problem.variables] = q
        return angled.from_own(own, state[:, None])[..., variables]

    def back(q: Annotated[Float64, "B S m"]) -> Annotated[Float64, "B S n"]:
        full = np.repeat(state[:, None], q.shape[1], axis=1)
        full[..., variables] = q
        own = angled.to_own(full)[..., problem.variables]
        own[~np.isfinite(q).all(axis=-1)] = np.nan
        return np.asarray(own)

    posture = problem.posture
    found = solve(
        replace(
            problem,
            joints=tuple(angled.robot.variable_names[i] for i in variables),
            variables=variables,
            state=state,
            seeds=there(problem.seeds),
            preference=None if posture is None else _by_angles(posture, columns, there),
        )
    )
    return replace(found, q=back(found.q), attempt=back(found.attempt[:, None])[:, 0])


def _by_angles(
    posture: Posture,
    columns: list[int],
    there: Callable[[Annotated[Float64, "B S n"]], Annotated[Float64, "B S m"]],
) -> Posture:
    """Return a posture that leads the search; what is found is sorted by the one that was asked for."""
    weight = posture.weight.copy()
    for first in columns:
        # A quaternion is as far from 0 as any other: such a reference says nothing.
        says = posture.reference[:, first : first + 4].any()
        weight[first : first + 3] = PER_ANGLE * weight[first : first + 4].mean() if says else 0.0
    left = np.delete(weight, [first + 3 for first in columns])
    return Posture(there(posture.reference[:, None])[:, 0], left)


def filled_in(whole: IkCandidates, rows: Annotated[Int64, "R"], part: IkCandidates) -> IkCandidates:
    """Return candidates in which those of some requests are replaced."""
    most = max(whole.q.shape[1], part.q.shape[1])
    q = np.full((len(whole.q), most, whole.q.shape[2]), np.nan)
    q[:, : whole.q.shape[1]] = whole.q
    q[rows] = np.nan
    q[rows, : part.q.shape[1]] = part.q
    attempt, iterations, timed_out = whole.attempt.copy(), whole.iterations.copy(), whole.timed_out.copy()
    attempt[rows], iterations[rows], timed_out[rows] = part.attempt, part.iterations, part.timed_out
    return replace(whole, q=q, attempt=attempt, iterations=iterations, timed_out=timed_out)
