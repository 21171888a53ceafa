"""Other joints that let a floating joint stay inside its position limits while the tip is at its target.

The limits are a box for the origin of the joint's child link, in the frame that the joint moves it in. While the tip is
at its target, that frame is at a known place seen from the tip, and joints between the tip and the child link bring the
child's origin into the box: a request for its position alone, with a tolerance along each axis of the box.
"""

import math
from collections.abc import Callable
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.se3 import inverse, pose
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.chain import chain_between, joints_between
from kinopt_ros.robot.model import Joint, RobotModel
from kinopt_ros.solvers.result import IkCandidates

CLIPPED = 1e-6
"""Distance beyond a limit, m, up to which a position is moved to the limit; the tip moves with it, and is judged so."""
_HALF_AT_LEAST = 5e-7
"""Least half width of a box that is asked for, m: a joint that is not to move along an axis has none."""
_HALF_AT_MOST = 1.0
"""Largest half width, m. Of wider limits a part is taken, next to where the joint would be."""


def beyond_bounds(robot: RobotModel, joint: Joint, values: Annotated[Float64, "N 7"]) -> Annotated[Bool, "N"]:
    """Return which values of a floating joint's variables are beyond its position limits by more than ``CLIPPED``."""
    lower, upper = _bounds(robot, joint)
    return np.asarray(((values[:, :3] < lower - CLIPPED) | (values[:, :3] > upper + CLIPPED)).any(axis=1))


def within_bounds(
    problem: IkProblem,
    robot: RobotModel,
    joint: Joint,
    full: Annotated[Float64, "N nq"],
    request: Annotated[Int64, "N"],
    rows: Annotated[Int64, "R"],
    solve: Callable[[IkProblem], IkCandidates],
) -> IkCandidates | None:
    """Move other joints, in some rows of ``full``, so that the floating joint can stay inside its limits.

    Args:
        problem: the problem.
        robot: its robot.
        joint: the floating joint.
        full: configurations; changed in place, to the nearest that was found where nothing was.
        request: request of the problem that every row is for.
        rows: rows to change.
        solve: solves for a position.

    Returns:
        What ``solve`` returned; None if no other joint could help.
    """
    (target,) = problem.targets
    upwards = joint in joints_between(robot, problem.base_link, target.link)[0]
    seen_from = problem.base_link if upwards else target.link
    chain = chain_between(robot, seen_from, joint.child_link)
    moving = set(chain.variables.tolist())
    others = tuple(
        name for name in problem.joints if name != joint.name and moving & set(robot.variables_of(name))
    )
    if not others:
        return None
    T_frame_seen = _frame(problem, robot, joint, upwards, full[rows], request[rows])
    at = (T_frame_seen @ chain_pose(chain, full[rows][:, chain.variables]))[:, :3, 3]
    lower, upper = _bounds(robot, joint)
    half = np.clip(0.5 * (upper - lower), _HALF_AT_LEAST, _HALF_AT_MOST)
    # As near to where it is as a box of this size fits; the smallest box may stick out, evenly.
    out = np.maximum(half - 0.5 * (upper - lower), 0.0)
    middle = np.clip(at, lower - out + half, upper + out - half)
    T = inverse(T_frame_seen) @ pose(np.eye(3), middle)
    unbounded = np.isinf(lower) & np.isinf(upper)
    x, y, z = np.where(unbounded, math.inf, half).tolist()
    variables = variables_of_joints(robot, others)
    part = IkProblem(
        targets=(PoseTarget(joint.child_link, T, (x, y, z), (math.inf, math.inf, math.inf)),),
        base_link=seen_from,
        joints=others,
        variables=variables,
        state=full[rows],
        seeds=np.empty((len(rows), 0, len(variables))),
        deadline=problem.deadline,
        random_seed=problem.random_seed,
    )
    found = solve(part)
    solved = np.asarray(np.isfinite(found.q[:, 0]).all(axis=1))
    full[np.ix_(rows, part.variables)] = np.where(solved[:, None], found.q[:, 0], found.attempt)
    return found


def _bounds(robot: RobotModel, joint: Joint) -> tuple[Annotated[Float64, "3"], Annotated[Float64, "3"]]:
    own = slice(joint.first_variable, joint.first_variable + 3)
    return robot.limits.lower[own], robot.limits.upper[own]


def _frame(
    problem: IkProblem, robot: RobotModel, joint: Joint, upwards: bool, full: Float64, request: Int64
) -> Annotated[Float64, "R 4 4"]:
    """Return the pose of the tip, or of the base link if the way leads upwards, in the frame that the joint moves its
    child in, with the tip at its target."""
    (target,) = problem.targets
    G = target.T_base_target[request]
    tool = np.eye(4) if target.T_link_tool is None else target.T_link_tool
    if upwards:
        above = chain_between(robot, joint.parent_link, target.link)
        T_parent_base = chain_pose(above, full[:, above.variables]) @ tool @ inverse(G)
        return inverse(joint.T_parent_joint) @ T_parent_base
    above = chain_between(robot, problem.base_link, joint.parent_link)
    T_base_frame = chain_pose(above, full[:, above.variables]) @ joint.T_parent_joint
    return inverse(T_base_frame) @ G @ inverse(tool)
