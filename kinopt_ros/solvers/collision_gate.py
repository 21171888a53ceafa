"""The gate of collisions: which candidates are free of them, and what is said of requests that have no such."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.verification.collision import check_collisions

_LOOKED_AT = 4
"""Solutions in collision, of one request, whose contacts are found out."""
_NAMED = 3
"""Contacts that a sentence names."""


def lazily_free(
    robot: RobotModel,
    problem: IkProblem,
    q: Annotated[Float64, "B K n"],
    ok: Annotated[Bool, "B K"],
    distance: Annotated[Float64, "B K"],
) -> Annotated[Bool, "B K"]:
    """Which of some candidates are free of collisions: preferred ones first, and where one solution is wanted no more
    than the first that is; the others count as not free."""
    assert problem.scene is not None
    free = np.zeros(ok.shape, dtype=np.bool_)
    order: Int64 = np.argsort(distance, axis=1, kind="stable")
    for b in range(len(ok)):
        full = problem.state[b : b + 1].copy()
        for k in order[b].tolist():
            if not ok[b, k]:
                continue
            full[0, problem.variables] = q[b, k]
            free[b, k] = check_collisions(robot, problem.scene, full, problem.clearance, contacts=False).free[
                0
            ]
            if free[b, k] and problem.num_solutions == 1:
                break
    return free


def collision_sentence(
    robot: RobotModel, problem: IkProblem, request: int, q: Annotated[Float64, "k n"], looked_at: int
) -> str:
    """Names the pairs and depths of the solution that is the least in collision.

    Args:
        robot: the robot.
        problem: what is asked, with a scene.
        request: which of its requests.
        q: solutions of it, all of them in collision, preferred ones first.
        looked_at: how many solutions were looked at.
    """
    assert problem.scene is not None
    full = np.repeat(problem.state[request][None], len(q[:_LOOKED_AT]), axis=0)
    full[:, problem.variables] = q[:_LOOKED_AT]
    report = check_collisions(robot, problem.scene, full, problem.clearance)
    least = min(report.contacts, key=lambda contacts: contacts[0].depth if contacts else 0.0)
    named = [f"{c.a!r} and {c.b!r} by {c.depth:.4f} m" for c in least[:_NAMED]]
    if len(least) > _NAMED:
        named.append(f"{len(least) - _NAMED} more pairs")
    count = "the only solution found is" if looked_at == 1 else f"all {looked_at} solutions found are"
    wanted = f" (a clearance of {problem.clearance:g} m is wanted)" if problem.clearance > 0.0 else ""
    return f"{count} in collision{wanted}; {'it' if looked_at == 1 else 'the least'}: {', '.join(named)}"
