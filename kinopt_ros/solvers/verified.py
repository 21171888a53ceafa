"""Gate that every candidate of every plugin passes on the way to an answer: ``Solver.solve_ik`` calls its steps.

1. judge (``judgement.py``): which claims are true;
2. complete (``clear.py``): where too few of them are free of collisions, ask the plugin for more;
3. judge again: nothing that it adds goes by unchecked;
4. choose (``choice.py``): distinct solutions, the preferred first;
5. explain (``explanation.py``): why the others failed.
"""

import time

import numpy as np

from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.asking import Asking
from kinopt_ros.solvers.choice import Choice
from kinopt_ros.solvers.clear import more_solutions
from kinopt_ros.solvers.explanation import Explanation
from kinopt_ros.solvers.judgement import Case, Judgement, checked_poses
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.verification.collision import (
    SELF_COLLISION,
    WORLD_COLLISION,
    left_out,
    not_checked,
)
from kinopt_ros.verification.configuration import CHECKS, HELD_LIMITS, NOT_CHECKED


def complete(case: Case, judgement: Judgement) -> Asking[Judgement]:
    """Add solutions to requests that have some, but too few that are free of collisions.

    Asks the plugin, and judges what that adds.
    """
    more = yield from more_solutions(
        case.robot,
        case.problem,
        case.chains,
        judgement.q,
        judgement.reached,
        judgement.solved,
        judgement.cut_short,
    )
    if more is None:
        return judgement
    q, position, orientation, reached = checked_poses(case, more.q)
    # The search has already found these numbers free: a second look might take longer than there is time.
    solved = np.concatenate([judgement.solved, reached & more.free], axis=1)
    return Judgement(
        np.concatenate([judgement.q, q], axis=1),
        np.concatenate([judgement.position_error, position], axis=1),
        np.concatenate([judgement.orientation_error, orientation], axis=1),
        np.concatenate([judgement.reached, reached], axis=1),
        solved,
        bool(solved.all()),
        judgement.cut_short | more.cut,
        judgement.iterations + more.iterations,
        judgement.unchecked,
        more.looked_at,
    )


def answer(
    case: Case,
    judgement: Judgement,
    choice: Choice,
    explanation: Explanation,
    algorithm: str,
    start: float,
) -> IkResult:
    """Put the parts of an answer together; ``start`` is the value of time.perf_counter() when it was asked for."""
    problem, robot = case.problem, case.robot
    scene = problem.scene
    return IkResult.filled(
        {
            "joint_names": _variable_names(robot, tuple(problem.joints)),
            "q": choice.q,
            "status": explanation.status,
            "messages": tuple(explanation.messages),
            "position_error": choice.position_error,
            "orientation_error": choice.orientation_error,
            "distance": choice.cost,
            "attempt": explanation.attempt,
            "attempt_position_error": explanation.errors[0],
            "attempt_orientation_error": explanation.errors[1],
            "attempt_pose": explanation.poses,
            "cut_short": judgement.cut_short,
            "iterations": judgement.iterations,
            "solver": case.solver,
            "solve_time": time.perf_counter() - start,
            "checks": CHECKS if scene is None else (*CHECKS, SELF_COLLISION, WORLD_COLLISION),
            "not_checked": NOT_CHECKED if scene is None else (HELD_LIMITS, *not_checked(robot)),
            "algorithm": algorithm,
            "notes": problem.notes if scene is None else (*problem.notes, *left_out(robot)),
            "scene_version": None if scene is None else scene.version,
        }
    )


@remembered
def _variable_names(robot: RobotModel, joints: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([robot.variable_names[i] for i in variables_of_joints(robot, joints).tolist()])
