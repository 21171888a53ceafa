"""Selection of some requests of a problem."""

from dataclasses import replace
from typing import Annotated

from kinopt_ros.array import Int64
from kinopt_ros.problems.ik import IkProblem


def rows_of(problem: IkProblem, rows: Annotated[Int64, "R"]) -> IkProblem:
    """Return the problem of the given requests, in their order."""
    preference = problem.preference
    return replace(
        problem,
        targets=tuple(replace(t, T_base_target=t.T_base_target[rows]) for t in problem.targets),
        state=problem.state[rows],
        seeds=problem.seeds[rows],
        preference=None if preference is None else preference.rows(rows),
    )
