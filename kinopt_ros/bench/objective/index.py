"""Whether a higher weight of manipulability ever lowers the index: ``kinopt bench objective --index``.

At the least of rest and manipulability together the index cannot fall as its weight grows: what is given up of the one
sum buys more of the other. Searches from too few starts end in local minima, of which that is not true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.rest import Rest
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.planning.objectives import solve_objective
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import create_solver

ROBOT, LINK = "panda", "panda_hand"
WEIGHTS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Of manipulability, beside a rest posture of weight 1: five steps for each pose."""
SMALLEST = 1e-6
"""Fall of the index that counts; less is what is left where a search ends."""


@dataclass(frozen=True)
class IndexRow:
    """What became of one number of starts."""

    solver: str
    starts: int
    steps: int
    """Pairs of neighbouring weights at both of which the pose is met."""
    falls: int
    """How many of them lower the index by more than ``SMALLEST``."""
    largest_fall: float
    """Of all steps; at most 0 if the index never falls."""
    mean_rise: float
    """Of the index, from the least weight to the largest."""


def run_index_bench(solver: str, starts: Sequence[int], cases: int, seed: int = 0) -> list[IndexRow]:
    """Solve poses with growing weights.

    Args:
        solver: its name.
        starts: random starts of the search; a row for each.
        cases: pairs of neighbouring weights, rounded up to whole poses.
        seed: of the poses.
    """
    robot = load_robot(ROBOT)
    poses = -(-cases // (len(WEIGHTS) - 1))
    T = forward_kinematics(robot, random_configurations(robot, poses, seed), [LINK])[:, 0]
    own, ik_solver = create_solver(solver, robot), create_solver("cpu", robot)
    try:
        return [_row(own, ik_solver, T, number) for number in starts]
    finally:
        own.close()
        ik_solver.close()


def _row(solver: Solver, ik_solver: Solver, T: Annotated[Float64, "N 4 4"], starts: int) -> IndexRow:
    found = [_solved(solver, ik_solver, T, weight, starts) for weight in WEIGHTS]
    rises = np.concatenate([(b - a)[met_a & met_b] for (a, met_a), (b, met_b) in pairwise(found)])
    (first, met_first), (last, met_last) = found[0], found[-1]
    return IndexRow(
        solver.name,
        starts,
        len(rises),
        int((rises < -SMALLEST).sum()),
        float(-rises.min()) if len(rises) else 0.0,
        float((last - first)[met_first & met_last].mean()) if (met_first & met_last).any() else 0.0,
    )


def _solved(
    solver: Solver, ik_solver: Solver, T: Annotated[Float64, "N 4 4"], weight: float, starts: int
) -> tuple[Annotated[Float64, "N"], Annotated[Bool, "N"]]:
    """Return the index at each answer, and whether the pose is met."""
    robot = solver.robot
    chain = chain_between(robot, robot.root_link, LINK)
    joints = tuple(
        name for name in robot.active_joints if set(robot.variables_of(name)) & set(chain.variables.tolist())
    )
    objectives = [
        Objective(
            [
                LinkPose(link=LINK, T_base_target=pose, tolerance=(1e-4, 1e-3)),
                Rest(joints=joints),
                Manipulability(link=LINK, weight=weight),
            ]
        )
        for pose in T
    ]
    problem = objective_problem(robot, objectives, joints=joints, num_starts=starts)
    result = solve_objective(solver, problem, ik_solver)
    J = geometric_jacobian(chain, result.best[:, 0, chain.variables])[:, :3]
    index = np.sqrt(np.maximum(np.linalg.det(J @ np.swapaxes(J, -1, -2)), 0.0))
    return index, result.success
