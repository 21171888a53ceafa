"""Objectives with starts from inverse kinematics: a solver of microseconds finds configurations at the poses that have
to hold, from which the solver of the objective goes on."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, cast

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.errors import KinoptError, UnsupportedFeatureError
from kinopt_ros.kinematics.tangent import difference, directions, moved
from kinopt_ros.objectives.problem import ObjectiveProblem, rows_of_objectives
from kinopt_ros.objectives.result import ObjectiveResult, with_rows
from kinopt_ros.problems.ik import IkProblem, PoseTarget, Tolerance
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import quaternion_starts
from kinopt_ros.solvers.base import Feature, Solver
from kinopt_ros.solvers.registry import solver_class, solver_names
from kinopt_ros.status import Status

_NO_IK_SOLUTION = int(Status.NO_IK_SOLUTION)
STARTS = 4
"""Solutions of inverse kinematics that become starts, where random ones are allowed, too; else it is one."""


def solve_objective(
    solver: Solver, problem: ObjectiveProblem, ik_solver: Solver | None = None
) -> ObjectiveResult:
    """Solve objectives; where their link poses have to hold, from configurations that ``ik_solver`` finds at them.

    A solver that finds poses itself gets these only where it failed, together with further random starts
    (``ObjectiveProblem.more_starts``).

    Args:
        solver: solves objectives, such as ``jax_lm``.
        problem: B objectives; seeds in it come before those that are found here.
        ik_solver: solves inverse kinematics for the same robot, such as ``cpu``; None: starts are the problem's alone.

    Raises:
        KinoptError: see ``Solver.solve_objective``.
    """
    if ik_solver is None:
        return solver.solve_objective(problem)
    if not solver.finds_poses:
        return solver.solve_objective(with_starts(problem, ik_solver))
    result = solver.solve_objective(problem)
    if _NO_IK_SOLUTION not in result.status.tolist():
        return result
    failed = np.flatnonzero(result.status == _NO_IK_SOLUTION)
    again = rows_of_objectives(problem, failed)
    started = with_starts(again, ik_solver)
    if started is again and not problem.more_starts:
        return result
    other = replace(started, num_starts=problem.more_starts)
    if problem.more_starts:  # others than before
        other = replace(other, random_seed=problem.random_seed + 1)
    return with_rows(result, failed, solver.solve_objective(other))


def solver_for(costs: Iterable[Cost], num_points: int, names: Iterable[str] = ()) -> str:
    """Return the name of the first solver that can run here and solves objectives of some costs.

    Args:
        costs: the costs.
        num_points: points of the trajectory, 1 for a configuration.
        names: solvers to choose from, in order; all if there are none.

    Raises:
        UnsupportedFeatureError: none does; the message is the last one's that solves objectives at all, and names those
            that cannot run here.
    """
    given = tuple(costs)
    refusal = "no solver solves objectives"
    absent: list[str] = []
    for name in tuple(names) or solver_names():
        try:
            found = solver_class(name)
        except KinoptError as error:  # not installed, or broken: it is no choice
            absent.append(f"{name}: {error}")
            continue
        try:
            found.check_supported_costs(given, num_points)
        except UnsupportedFeatureError as error:
            if Feature.OBJECTIVES in found.capabilities.features:  # others have nothing to say of these costs
                refusal = str(error)
        else:
            return name
    raise UnsupportedFeatureError("; ".join([refusal, *absent]))


def with_starts(problem: ObjectiveProblem, ik_solver: Solver) -> ObjectiveProblem:
    """Return the problem with seeds at the link poses that have to hold; unchanged where there are none, or where they
    are nothing that ``ik_solver`` takes."""
    robot = ik_solver.robot
    known = _anchors(problem, robot, ik_solver)
    if not known:
        return problem
    found = np.stack(
        [_paths(problem, robot, {t: q[:, k] for t, q in known.items()}) for k in range(_starts(problem))],
        axis=1,
    )
    return replace(problem, seeds=np.concatenate([problem.seeds, found], axis=1))


def _starts(problem: ObjectiveProblem) -> int:
    return STARTS if problem.num_starts else 1


def _anchors(
    problem: ObjectiveProblem, robot: RobotModel, ik_solver: Solver
) -> dict[int, Annotated[Float64, "B K nq"]]:
    """Return configurations at the points where poses have to hold."""
    T, objective = problem.num_points, problem.objective
    at: dict[int, list[int]] = {}
    for number, cost in enumerate(objective):
        if isinstance(cost, LinkPose) and cost.holds and cost.frame == "target":
            for t in objective.points_of(cost, T):
                at.setdefault(t, []).append(number)
    found: dict[tuple[int, ...], Float64] = {}
    anchors = {}
    for t, numbers in sorted(at.items()):
        key = tuple(numbers)
        if key not in found:
            # From the configuration before, so that the path between them is short.
            state = problem.state if not found else next(reversed(found.values()))[:, 0]
            found[key] = _solutions(problem, robot, ik_solver, key, state)
        anchors[t] = found[key]
    return anchors


def _solutions(
    problem: ObjectiveProblem,
    robot: RobotModel,
    ik_solver: Solver,
    numbers: tuple[int, ...],
    state: Annotated[Float64, "B nq"],
) -> Annotated[Float64, "B K nq"]:
    """Return ``_starts`` configurations per request at some link poses; the state where there are fewer."""
    B = problem.batch_size
    count = _starts(problem)
    q = np.repeat(state[:, None], count, axis=1)
    asked = _ik_problem(problem, robot, numbers, state)
    if asked is None:
        return q
    try:
        result = ik_solver.solve_ik(asked)
    except KinoptError:  # not what this solver takes: the search goes without
        return q
    for b in range(B):
        rows = result.q[b][np.isfinite(result.q[b]).all(axis=1)]
        if not len(rows):
            rows = result.attempt[b][None]
        for k in range(count):
            q[b, k, asked.variables] = rows[k % len(rows)]
    return np.where(np.isfinite(q).all(axis=2, keepdims=True), q, state[:, None])


def _ik_problem(
    problem: ObjectiveProblem, robot: RobotModel, numbers: tuple[int, ...], state: Annotated[Float64, "B nq"]
) -> IkProblem | None:
    """Return the problem of some link poses alone; None if they have different base links, or nothing moves them."""
    costs = [
        [cast(LinkPose, objective.costs[number]) for number in numbers] for objective in problem.objectives
    ]
    first = costs[0]
    bases = {cost.base_link or robot.root_link for cost in first}
    tools = [[cost.T_link_tool for cost in of_request] for of_request in costs]
    if len(bases) > 1 or any(
        tool is not None and other is not None and not np.array_equal(tool, other)
        for of_request in tools
        for tool, other in zip(of_request, tools[0], strict=True)
    ):
        return None
    base = bases.pop()
    variables = {
        int(variable) for cost in first for variable in chain_between(robot, base, cost.link).variables
    }
    joints = tuple(
        name
        for name in problem.joints
        if variables & set(robot.variables_of(name)) and _whole(problem, robot, name)
    )
    if not joints or len({cost.link for cost in first}) < len(first):
        return None
    targets = tuple(
        PoseTarget(
            cost.link,
            np.stack([of_request[k].T_base_target for of_request in costs]),
            *_tolerances(cost),
            T_link_tool=None if cost.T_link_tool is None else np.array(cost.T_link_tool),
        )
        for k, cost in enumerate(first)
    )
    own = np.array([i for name in joints for i in robot.variables_of(name)])
    return IkProblem(
        targets,
        base,
        joints,
        own,
        _unit(robot, state),
        np.empty((problem.batch_size, 0, len(own))),
        num_solutions=_starts(problem) if problem.num_points == 1 and len(targets) == 1 else 1,
        deadline=problem.deadline,
        random_seed=problem.random_seed,
    )


def _unit(robot: RobotModel, state: Annotated[Float64, "B nq"]) -> Annotated[Float64, "B nq"]:
    """Return states with quaternions of length 1, and a copy in any case."""
    q = np.array(state)
    for start in quaternion_starts(robot.joints):
        q[:, start : start + 4] /= np.linalg.norm(q[:, start : start + 4], axis=1, keepdims=True)
    return q


def _whole(problem: ObjectiveProblem, robot: RobotModel, joint: str) -> bool:
    """Return whether all directions of a joint move."""
    return bool(problem.free[directions(robot).of_variables(robot.variables_of(joint))].all())


def _tolerances(cost: LinkPose) -> tuple[Tolerance, Tolerance]:
    """Return tolerances that a solution, if not the verdict, shall keep: axes without a weight are free."""
    given = np.broadcast_to(np.asarray(cost.tolerance, dtype=np.float64), 2)
    position, orientation = max(float(given[0]), 1e-6), min(max(float(given[1]), 1e-6), np.pi)
    counts = np.broadcast_to(np.asarray(cost.weight, dtype=np.float64), 6) != 0.0
    if counts.all():
        return position, orientation
    per_axis = np.where(counts, np.repeat([position, orientation], 3) / np.sqrt(3.0), np.inf)
    if np.isinf(per_axis).all():
        return np.inf, np.inf
    x, y, z, rx, ry, rz = per_axis.tolist()
    return (x, y, z), (rx, ry, rz)


def _paths(
    problem: ObjectiveProblem, robot: RobotModel, anchors: dict[int, Annotated[Float64, "B nq"]]
) -> Annotated[Float64, "B T nq"]:
    """Return paths through configurations at some points: straight between them, resting before and after."""
    known, T = directions(robot), problem.num_points
    times = sorted(anchors)
    path = np.empty((problem.batch_size, T, robot.nq))
    path[:, : times[0] + 1] = anchors[times[0]][:, None]
    path[:, times[-1] :] = anchors[times[-1]][:, None]
    for before, after in pairwise(times):
        step = difference(known, anchors[before], anchors[after])
        for t in range(before, after + 1):
            path[:, t] = moved(known, anchors[before], step * ((t - before) / (after - before)))
    return path
