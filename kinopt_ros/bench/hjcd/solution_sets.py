"""Sets of many solutions of every target: of HJCD-IK, of IK-Beam, and of a solver with random restarts."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.hjcd.arms import Arm
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.solvers.hjcd.chain import kernel_chain
from kinopt_ros.solvers.registry import create_solver, solver_class
from kinopt_ros.solvers.result import IkResult

SolutionSet = Annotated[Float64, "s n"]

EXACT = 1e-6
"""Errors up to which a configuration counts as a solution, m and rad."""
EQUAL = 1e-8
"""Error below which solutions count as equally good, m and rad.

The algorithms end below it: which of those solutions has the least error is a matter of the last step, and of whether a
joint is at its limit."""
CANDIDATES = 100
"""Number of candidates that ``screened_lm`` refines: as many as ``hjcd_ik`` does."""
RESTARTS = 128
"""Most random starts per solution of the reference."""


def reference_solutions(arm: Arm, solutions: int, seed: int) -> list[SolutionSet]:
    """Return solutions of the plugin cpu, each the first one that is reached from random starts of its own."""
    count = len(arm.T_base_target)
    variables = arm.chain.variables
    starts = _random(arm, count * solutions * RESTARTS, seed).reshape(-1, RESTARTS, len(variables))
    problem = _problem(arm, np.repeat(arm.T_base_target, solutions, axis=0), starts, seed)
    solver = create_solver("cpu", arm.robot)
    result = solver.solve_ik(problem)
    solver.close()
    # Where no start of its own leads to one, the plugin finds one from starts that are the same for all: counted once.
    q = _values(arm, problem, result).reshape(count, solutions, -1)
    return [np.unique(row[np.isfinite(row[:, 0])], axis=0) for row in q]


def beam_solutions(arm: Arm, seeds: int, solutions: int, device: str) -> list[SolutionSet]:
    """IK-Beam (plugin jax_lm), which ends with one solution: so many beams, which share the seeds out.

    Raises:
        KinoptError: the plugin, or its device, is not there.
    """
    width = max(2, seeds // solutions)
    options = {
        "device": device,
        "beam.num_seeds": width,
        "beam.keep": min(4, width),
        "escalation.rounds": 0,
        "batch_sizes": "1",
        "groups": "",
    }
    solver = create_solver("jax_lm", arm.robot, options)
    found = []
    for k, T in enumerate(arm.T_base_target):
        states = _random(arm, solutions, k)
        rows = []
        for number, state in enumerate(states):  # one by one: the requests of a batch have the same starts
            problem = _problem(arm, T[None], state[None, None], k * solutions + number)
            rows.append(_values(arm, problem, solver.solve_ik(problem))[0])
        q = np.array(rows)
        found.append(q[np.isfinite(q[:, 0])])
    solver.close()
    return found


def hjcd_solutions(arm: Arm, algorithm: str, seeds: int, solutions: int, device: str) -> list[SolutionSet]:
    """Return the solutions of least error among the candidates of one round, without any start of ours.

    Every target has starts of its own, as in Algorithm 2. (In a batch of the plugin all have the same ones, so that an
    answer does not depend on the others.)

    Raises:
        KinoptError: the plugin, or its device, is not there.
    """
    solver_class("hjcd")  # or why it cannot run
    from kinopt_ros.solvers.hjcd.device_chain import device_chain
    from kinopt_ros.solvers.hjcd.paper import PaperSearch, PaperSettings
    from kinopt_ros.solvers.hjcd.portion import Portion
    from kinopt_ros.solvers.hjcd.reference.pj_ik import RefineSettings
    from kinopt_ros.solvers.hjcd.reference.po_ccd import CoarseSettings
    from kinopt_ros.solvers.hjcd.runtime import start
    from kinopt_ros.solvers.hjcd.screened import ScreenedSearch, ScreenSettings
    from kinopt_ros.solvers.hjcd.search import Search

    there = start(device)
    search: Search
    if algorithm == "hjcd_ik":
        search = PaperSearch(PaperSettings(seeds, CoarseSettings(), RefineSettings()), there)
    else:
        search = ScreenedSearch(ScreenSettings(seeds, min(seeds, CANDIDATES), 16), there)
    packed = kernel_chain(arm.robot, arm.chain)
    chain = device_chain(packed, there)
    search.load(packed.shape)
    none = np.empty((1, 0, len(packed.variables)))
    state = np.zeros((1, len(packed.variables)))
    order = [packed.variables.tolist().index(variable) for variable in arm.chain.variables]
    found = []
    for k, target in enumerate(packed.packed_targets(arm.T_base_target)):
        portion = Portion(target[None], state, none, 0, k, True, (EXACT, EXACT), 3e-3)
        outcome = search.run(chain, portion)
        error = outcome.errors[0].max(axis=1)
        found.append(outcome.q[0][least(error, solutions)][:, order])
    return found


def least(error: Annotated[Float64, "L"], count: int) -> Annotated[np.ndarray, "s"]:
    """Return indices of the least errors (m, rad) that are solutions' ones, at most so many."""
    order = np.argsort(np.maximum(error, EQUAL), kind="stable")[:count]
    return order[error[order] <= EXACT]


def _random(arm: Arm, count: int, seed: int) -> Annotated[Float64, "count n"]:
    variables = arm.chain.variables
    lower, upper = arm.robot.limits.lower[variables], arm.robot.limits.upper[variables]
    return np.asarray(lower + (upper - lower) * np.random.default_rng(seed).random((count, len(variables))))


def _problem(
    arm: Arm, T_base_target: Annotated[Float64, "B 4 4"], starts: Annotated[Float64, "B s n"], seed: int
) -> IkProblem:
    """Return requests whose state is their first start."""
    variables = arm.chain.variables
    state = np.repeat(arm.robot.default_q[None], len(starts), axis=0)
    state[:, variables] = starts[:, 0]
    return ik_problem(
        arm.robot,
        T_base_target,
        base_link=arm.chain.base_link,
        tip_link=arm.chain.tip_link,
        state=state,
        seeds=starts[:, 1:][:, :, np.argsort(variables)],  # problems have them in the robot's order
        position_tolerance=EXACT,
        orientation_tolerance=EXACT,
        random_seed=seed,
    )


def _values(arm: Arm, problem: IkProblem, result: IkResult) -> Annotated[Float64, "B n"]:
    """Return first solutions, in the order of the chain; NaN where there is none."""
    place = {int(variable): k for k, variable in enumerate(problem.variables)}
    return result.q[:, 0, [place[int(variable)] for variable in arm.chain.variables]]
