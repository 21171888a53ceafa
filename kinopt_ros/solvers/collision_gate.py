"""Collision gate: which candidates are free of collisions, and what is said of requests without any."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.pauses import OutOfTime, Pause
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import check_collisions, is_free, self_collision_remedy

if TYPE_CHECKING:
    from kinopt_ros.collision.contacts import Contact

_LOOKED_AT = 4
"""Most solutions in collision, of one request, whose contacts are found."""
EXPLAINED = 16
"""Most requests of a batch whose contacts are named, which takes milliseconds each."""
_NAMED = 3
"""Most contacts that a sentence names."""


def lazily_free(
    robot: RobotModel,
    problem: IkProblem,
    q: Annotated[Float64, "B K n"],
    ok: Annotated[Bool, "B K"],
    distance: Annotated[Float64, "B K"],
) -> tuple[Annotated[Bool, "B K"], Annotated[Bool, "B"]]:
    """Check which candidates are free of collisions, preferred ones first.

    Where one solution is wanted, no more are checked than up to the first that is free; the others count as not free.

    Args:
        robot: the robot.
        problem: what is asked, with a scene.
        q: candidates.
        ok: which of them passed all other checks.
        distance: what they are preferred by.

    Returns:
        Also which requests there was no time for.
    """
    assert problem.scene is not None
    free = np.zeros(ok.shape, dtype=np.bool_)
    late = np.zeros(len(ok), dtype=np.bool_)
    order: Int64 = np.argsort(distance, axis=1, kind="stable")
    first = True
    for b in range(len(ok)):
        full = problem.state[b : b + 1].copy()
        for k in order[b].tolist():
            if not ok[b, k]:
                continue
            full[0, problem.variables] = q[b, k]
            # What was found in time is worth a look, if that does not take long.
            pause, first = problem.hurry if first else problem.pause, False
            try:
                free[b, k] = is_free(robot, problem.scene, full[0], problem.clearance, pause)
            except OutOfTime:
                late[b] = True
                break
            if free[b, k] and problem.num_solutions == 1:
                break
    return free, late


def collision_reason(
    robot: RobotModel,
    problem: IkProblem,
    request: int,
    q: Annotated[Float64, "k n"],
    looked_at: int,
    timed_out: bool,
    named: bool,
) -> tuple[Status, str]:
    """Return code and sentence for a request whose solutions are all in collision.

    Args:
        robot: the robot.
        problem: what is asked, with a scene.
        request: which of its requests.
        q: solutions of it, all of them in collision.
        looked_at: how many solutions were looked at.
        timed_out: whether the deadline cut the search short.
        named: whether to say which bodies touch, and how deep, in the solution that is the least in collision.
    """
    count = "the only solution found is" if looked_at == 1 else f"all {looked_at} solutions found are"
    wanted = f" (a clearance of {problem.clearance:g} m is wanted)" if problem.clearance > 0.0 else ""
    sentence = f"{count} in collision{wanted}"
    if named:
        sentence += f"; {'it' if looked_at == 1 else 'the least'}: {_contacts(robot, problem, request, q)}"
    if timed_out:
        return (
            Status.TIMED_OUT,
            f"the deadline came before a solution that is free of collisions; {sentence}",
        )
    return Status.GOAL_IN_COLLISION, sentence


def _contacts(robot: RobotModel, problem: IkProblem, request: int, q: Annotated[Float64, "k n"]) -> str:
    assert problem.scene is not None
    full = np.repeat(problem.state[request][None], len(q[-_LOOKED_AT:]), axis=0)
    full[:, problem.variables] = q[-_LOOKED_AT:]  # those that the search ended with come last
    return least_contacts(robot, problem.scene, full, problem.clearance, problem.hurry)


def least_contacts(
    robot: RobotModel,
    scene: Scene,
    q: Annotated[Float64, "N nq"],
    clearance: float,
    pause: Pause,
    remedy: bool = True,
) -> str:
    """Describe the contacts of that one of some configurations, all in collision, that is the least so.

    Adds what to do if links touch by design; or says that there was no time to find out.

    Arguments as ``check_collisions``; what ``remedy`` leaves out are the last words.
    """
    try:
        report = check_collisions(robot, scene, q, clearance, pause=pause)
    except OutOfTime:
        return "there was no time to find out with what"
    least = min((c for c in report.contacts if c), key=lambda contacts: contacts[0].depth, default=())
    return named_contacts(least) + (self_collision_remedy(robot, least) if remedy else "")


def named_contacts(contacts: "Sequence[Contact]") -> str:
    """Return the deepest contacts of a configuration as a sentence names them."""
    named = [f"{c.a!r} and {c.b!r} by {c.depth:.4f} m" for c in contacts[:_NAMED]]
    if len(contacts) > _NAMED:
        named.append(f"{len(contacts) - _NAMED} more pairs")
    return ", ".join(named)
