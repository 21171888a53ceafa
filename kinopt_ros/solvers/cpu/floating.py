"""Closed-form solution of requests with a floating joint to solve for.

Whatever the other joints are, one pose F of the floating joint brings the tip to its target: it follows from
``T_base_target = T_base_parent F T_child_tip``, and likewise where the way leads upwards through the joint. So the
other joints stay at the state; further solutions, if several are wanted, take them from the seeds and at random.
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import inverse, matrix_to_quaternion, normalized
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.validation import QUATERNION_ERROR
from kinopt_ros.robot.chain import chain_between, joints_between
from kinopt_ros.robot.model import Joint, JointType, RobotModel
from kinopt_ros.robot.variables import quaternion_columns, quaternion_starts
from kinopt_ros.solvers.locked_joints import standing
from kinopt_ros.solvers.result import IkCandidates


def floating_joints(problem: IkProblem, robot: RobotModel) -> list[Joint]:
    """Return the floating joints whose turning, if it is solved for, decides where tips are, in the order of the ways
    to these."""
    turning = set(problem.variables.tolist()) & set(quaternion_starts(robot.joints))
    found: list[Joint] = []
    for target in problem.targets if turning else ():
        up, down = joints_between(robot, problem.base_link, target.link)
        for joint in (*up, *down):
            floats = joint.type is JointType.FLOATING and joint.first_variable + 3 in turning
            if floats and joint not in found:
                found.append(joint)
    return found


def closed_form_joint(problem: IkProblem, joints: list[Joint]) -> Joint | None:
    """Return the floating joint whose closed form answers; None if there is none for what is asked."""
    if len(problem.targets) > 1 or (problem.posture is not None and len(problem.variables) > 7):
        return None
    free = set(problem.variables.tolist())
    whole = (j for j in joints if free.issuperset(range(j.first_variable, j.first_variable + 7)))
    return next(whole, None)


def solve_floating(problem: IkProblem, robot: RobotModel, joint: Joint) -> IkCandidates:
    """Return candidates whose floating joint follows from the target and the other joints."""
    B, K = problem.batch_size, problem.num_solutions
    others = _others(problem, robot, joint)[:, :K]
    S = others.shape[1]
    request = np.repeat(np.arange(B), S)
    full = problem.state[request]
    full[:, problem.variables] = others.reshape(B * S, -1)
    own = slice(joint.first_variable, joint.first_variable + 7)
    exact = _values(problem, robot, joint, full, request)
    inside = np.clip(exact, robot.limits.lower[own], robot.limits.upper[own])
    full[:, own] = inside
    q = full[:, problem.variables].reshape(B, S, -1)
    attempt = q[:, 0].copy()
    # Rounding takes unit quaternions out of [-1, 1]; positions beyond their limits are no solutions.
    q[~(inside[:, :3] == exact[:, :3]).all(axis=1).reshape(B, S)] = np.nan
    return IkCandidates(
        q=q, attempt=attempt, iterations=np.zeros(B, np.int64), timed_out=np.zeros(B, np.bool_)
    )


def _others(problem: IkProblem, robot: RobotModel, joint: Joint) -> Annotated[Float64, "B S n"]:
    """Return values of the variables to solve for, of which those of the floating joint do not count."""
    still = standing(problem, robot)[:, None]
    if len(problem.variables) == 7:
        return still
    lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
    seeds = np.clip(problem.seeds, lower, upper)
    missing = max(problem.num_solutions - 1 - seeds.shape[1], 0)
    rng = random_configurations(robot, missing, problem.random_seed % 2**32)[:, problem.variables]
    others = np.concatenate([still, seeds, np.repeat(rng[None], len(still), axis=0)], axis=1)
    for first in quaternion_columns(robot, problem.variables):
        _make_unit(others[..., first : first + 4], still[..., first : first + 4])
    return others


def _make_unit(q: Annotated[Float64, "B S 4"], instead: Annotated[Float64, "B 1 4"]) -> None:
    """Give quaternions of seeds, which are any numbers, length 1; others take the place of those without length."""
    length = np.linalg.norm(q, axis=-1, keepdims=True)
    unit = np.where(length > QUATERNION_ERROR, normalized(q), instead)
    q[:] = np.where(np.abs(length - 1.0) <= QUATERNION_ERROR, q, unit)


def _values(
    problem: IkProblem,
    robot: RobotModel,
    joint: Joint,
    full: Annotated[Float64, "N nq"],
    request: Annotated[np.ndarray, "N"],
) -> Annotated[Float64, "N 7"]:
    """Return the seven variables of the joint that bring the tip to its target."""
    (target,) = problem.targets
    base, tip = problem.base_link, target.link
    upwards = joint in joints_between(robot, base, tip)[0]
    near, far = (joint.child_link, joint.parent_link) if upwards else (joint.parent_link, joint.child_link)
    first, second = chain_between(robot, base, near), chain_between(robot, far, tip)
    T_base_near = chain_pose(first, full[:, first.variables])
    T_far_tip = chain_pose(second, full[:, second.variables])
    if target.T_link_tool is not None:
        T_far_tip = T_far_tip @ target.T_link_tool
    T_near_far = inverse(T_base_near) @ target.T_base_target[request] @ inverse(T_far_tip)
    T = inverse(joint.T_parent_joint) @ (inverse(T_near_far) if upwards else T_near_far)
    # A rotation has two quaternions: matrix_to_quaternion always gives the same one, as the other is no new solution.
    return np.concatenate([T[:, :3, 3], matrix_to_quaternion(T[:, :3, :3])], axis=1)
