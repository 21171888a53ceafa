"""Inverse kinematics with costs: the targets of an IK problem as link poses that have to hold, beside other costs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.objectives.result import ObjectiveResult
from kinopt_ros.problems.ik import IkProblem, PoseTarget, Tolerance
from kinopt_ros.problems.rows import rows_of
from kinopt_ros.problems.target_errors import target_words, what_is_met
from kinopt_ros.robot.chain import chain_between, with_tool
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.status import Status

PORTION = 16
"""Most targets that are solved together; between portions the clock is looked at."""


def ik_objective(robot: RobotModel, problem: IkProblem, costs: Sequence[Cost]) -> ObjectiveProblem:
    """Return the objective problem of an IK problem with costs.

    Args:
        robot: the robot.
        problem: checked; targets with tolerances have to hold, with free axes along the others; those with weights are
            as near as the costs let them.
        costs: what else counts, in every request alike.

    Raises:
        UnsupportedFeatureError: several solutions, preferences, or different tolerances for axes.
        KinoptError: a cost does not fit the robot.
    """
    if problem.num_solutions > 1 or problem.turns or problem.preference is not None:
        raise UnsupportedFeatureError(
            "with costs a target has one solution, the best by them; leave out several solutions and preferences"
        )
    if problem.nearest and any(cost.holds for cost in costs):
        raise UnsupportedFeatureError(
            "where targets are only to be come near to nothing is a success: costs beside them cannot have tolerances"
        )
    objectives = [Objective([*_poses(problem, b), *costs]) for b in range(problem.batch_size)]
    return objective_problem(
        robot,
        objectives,
        joints=problem.joints,
        state=problem.state,
        seeds=_seeds(problem),
        scene=problem.scene,
        clearance=problem.clearance,
        deadline=problem.deadline,
        random_seed=problem.random_seed,
    )


def with_targets_met(robot: RobotModel, problem: IkProblem, result: ObjectiveResult) -> ObjectiveResult:
    """Return an answer whose successes meet the targets as inverse kinematics judges them, too, and whose messages say
    what is met of targets that are only to be come near to.

    The two differ where rotations about some axes are free: there a target counts swing or twist
    (``kinematics.pose_errors``), and a link pose components of the rotation vector.
    """
    met, words = result.success, []
    for target in problem.targets:
        chain = with_tool(chain_between(robot, problem.base_link, target.link), target.T_link_tool)
        of_target = what_is_met(
            target, target.T_base_target, chain_pose(chain, result.best[:, 0, chain.variables])
        )
        met = met & of_target.position & of_target.orientation
        if problem.nearest:
            words.append(target_words(target, of_target, len(problem.targets) > 1))
    if problem.nearest:
        near = result.status == Status.NEAREST
        told = ["; ".join(parts) for parts in zip(*words, strict=True)]
        return replace(
            result,
            messages=tuple(
                new if is_near else old for is_near, new, old in zip(near, told, result.messages, strict=True)
            ),
        )
    missed = result.success & ~met
    if not missed.any():
        return result
    said = "every cost holds, but a target is missed as free axes are meant"
    return replace(
        result,
        q=np.where(missed[:, None, None], np.nan, result.q),
        status=np.where(missed, int(Status.NO_IK_SOLUTION), result.status),
        messages=tuple(said if miss else old for miss, old in zip(missed, result.messages, strict=True)),
    )


def solve_in_portions(
    robot: RobotModel,
    problem: IkProblem,
    costs: Sequence[Cost],
    solve: Callable[[ObjectiveProblem], ObjectiveResult],
) -> ObjectiveResult:
    """Solve an IK problem with costs, some targets at a time; what is left at the deadline is TIMED_OUT, with NaN for
    the values of costs.

    Args:
        robot: the robot.
        problem: checked.
        costs: what else counts, in every request alike.
        solve: solves the objective problem of a portion.

    Raises:
        KinoptError: as ``ik_objective`` and ``solve``.
    """
    B = problem.batch_size
    parts: list[ObjectiveResult] = []
    done = 0
    for rows in np.array_split(np.arange(B), -(-B // PORTION)):
        if parts and problem.late:
            parts.append(_left(parts[0], problem.state[done:]))
            break
        part = problem if len(rows) == B else rows_of(problem, rows)
        parts.append(with_targets_met(robot, part, solve(ik_objective(robot, part, costs))))
        done += len(rows)
    return parts[0] if len(parts) == 1 else _joined(parts)


def _left(known: ObjectiveResult, state: Annotated[Float64, "B nq"]) -> ObjectiveResult:
    """Return the result of requests that nobody has looked at; ``known``: that of some others."""
    B = len(state)
    terms = tuple(
        replace(
            term, value=np.nan, residual=np.empty((0, 0)), magnitude=np.full(term.magnitude.shape, np.inf)
        )
        for term in known.terms[0]
    )
    return replace(
        known,
        q=np.full((B, *known.q.shape[1:]), np.nan),
        best=state[:, None].copy(),
        status=np.full(B, int(Status.TIMED_OUT)),
        messages=("the deadline came before this target was looked at",) * B,
        terms=(terms,) * B,
        multipliers=tuple(np.zeros((B, *own.shape[1:])) for own in known.multipliers),
        iterations=np.zeros(B, dtype=np.int64),
        history=np.full((B, *known.history.shape[1:]), np.nan),
        solve_time=0.0,
    )


def _joined(parts: Sequence[ObjectiveResult]) -> ObjectiveResult:
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("q", "best", "status", "iterations", "history")
    }
    return replace(
        parts[0],
        **arrays,
        messages=tuple(message for part in parts for message in part.messages),
        terms=tuple(terms for part in parts for terms in part.terms),
        multipliers=tuple(
            np.concatenate(own) for own in zip(*(part.multipliers for part in parts), strict=True)
        ),
        solve_time=sum(part.solve_time for part in parts),
    )


def _poses(problem: IkProblem, b: int) -> list[LinkPose]:
    """Return request b's targets, without those of which every axis is free."""
    poses = [link_pose(problem.base_link, target, b) for target in problem.targets]
    return [pose for pose in poses if np.any(pose.weight)]


def link_pose(base_link: str, target: PoseTarget, b: int, share: float = 1.0) -> LinkPose:
    """Return request b of a target as a cost that has to hold, within a share of its tolerances; one with weights in
    their place is weighed.

    Raises:
        UnsupportedFeatureError: different tolerances for axes.
    """
    if target.weights is not None:
        return LinkPose(
            link=target.link,
            T_base_target=target.T_base_target[b],
            base_link=base_link,
            T_link_tool=target.T_link_tool,
            weight=target.weights.all,
            label=f"pose of {target.link}",
        )
    position, free_position = _bound(target.position_tolerance, "position")
    orientation, free_orientation = _bound(target.orientation_tolerance, "orientation")
    counts = [0.0 if free else 1.0 for free in (*free_position, *free_orientation)]
    return LinkPose(
        link=target.link,
        T_base_target=target.T_base_target[b],
        base_link=base_link,
        T_link_tool=target.T_link_tool,
        weight=1.0 if all(counts) else tuple(counts),
        tolerance=(share * position, share * orientation),
        label=f"pose of {target.link}",
    )


def _bound(tolerance: Tolerance, what: str) -> tuple[float, tuple[bool, bool, bool]]:
    """Return the bound of an error's length, and which axes are free."""
    if not isinstance(tolerance, tuple):
        free = bool(np.isinf(tolerance))
        return (0.0 if free else float(tolerance)), (free, free, free)
    finite = {value for value in tolerance if np.isfinite(value)}
    if len(finite) > 1:
        raise UnsupportedFeatureError(
            f"with costs the axes of a {what} have one tolerance, or are free; not {tolerance}"
        )
    x, y, z = (bool(np.isinf(value)) for value in tolerance)
    return (float(finite.pop()) if finite else 0.0), (x, y, z)


def _seeds(problem: IkProblem) -> Annotated[Float64, "B S 1 nq"]:
    seeds = np.repeat(problem.state[:, None], problem.seeds.shape[1], axis=1)
    seeds[:, :, problem.variables] = problem.seeds
    return seeds[:, :, None]
