"""Checks of a problem against a robot. Everything is refused by a sentence that names what was given."""

import math
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64, frozen
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError
from kinopt_ros.kinematics.se3 import is_pose
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel

_ROTATION_ERROR = 1e-6
"""Largest accepted deviation of R Rᵀ from the identity, and of det R from 1."""
_QUATERNION_ERROR = 1e-6
"""Largest accepted deviation of a quaternion variable from unit length."""


def check_ik_problem(problem: IkProblem, robot: RobotModel) -> None:
    """Raise unless the problem fits the robot and itself."""
    if not problem.targets:
        raise InvalidRequestError("targets is empty; give at least one PoseTarget")
    robot.link(problem.base_link)
    sizes = [len(target.T_base_target) for target in problem.targets]
    if len(set(sizes)) > 1:
        raise InvalidRequestError(f"every PoseTarget needs the same number of poses, not {sizes}")
    for target in problem.targets:
        _check_target(target, robot)
    if not np.array_equal(problem.variables, variables_of_joints(robot, tuple(problem.joints))):
        raise InvalidRequestError("variables do not belong to joints; build problems with ik_problem()")
    check_state(problem.state, robot, "state")
    n = len(problem.variables)
    if problem.seeds.ndim != 3 or problem.seeds.shape[::2] != (sizes[0], n):
        raise InvalidStateError(f"seeds has shape {problem.seeds.shape}; allowed is ({sizes[0]}, S, {n})")
    if not np.isfinite(problem.seeds).all():
        raise InvalidStateError("seeds contains a value that is not finite")
    if problem.num_solutions < 1:
        raise InvalidRequestError(f"num_solutions is {problem.num_solutions}; allowed is 1 or more")
    if problem.deadline is not None and not math.isfinite(problem.deadline):
        raise InvalidRequestError(f"deadline is {problem.deadline}; give a value of time.monotonic() or None")
    if not 0 <= problem.random_seed < 2**64:
        raise InvalidRequestError(f"random_seed is {problem.random_seed}; allowed is 0 to 2**64 - 1")


@remembered
def variables_of_joints(robot: RobotModel, joints: tuple[str, ...]) -> Annotated[Int64, "n"]:
    """Indices in q of the variables of some active joints, in their order.

    Raises:
        KinoptError: none, one twice, an unknown one, or one that is fixed or follows another.
    """
    if not joints:
        raise InvalidRequestError("joints is empty; name at least one joint to solve for")
    if len(set(joints)) != len(joints):
        raise InvalidRequestError("joints names a joint twice")
    for name in joints:
        if not robot.joint(name).is_active:
            raise InvalidRequestError(
                f"joint {name!r} is fixed or a mimic joint; only active joints can be solved for"
            )
    variables = np.array([i for name in joints for i in robot.variables_of(name)], dtype=np.int64)
    frozen(variables)
    return variables


def check_state(q: Float64, robot: RobotModel, what: str) -> None:
    """Raise unless q is one finite configuration of the whole robot."""
    if q.shape != (robot.nq,):
        raise InvalidStateError(f"{what} has shape {q.shape}; robot {robot.name!r} has {robot.nq} variables")
    if not np.isfinite(q).all():
        bad = [robot.variable_names[i] for i in np.flatnonzero(~np.isfinite(q))]
        raise InvalidStateError(f"{what} is not finite at {', '.join(bad)}")
    for joint in robot.floating_joints:
        first = joint.first_variable
        norm = float(np.linalg.norm(q[first + 3 : first + 7]))
        if abs(norm - 1.0) > _QUATERNION_ERROR:
            raise InvalidStateError(
                f"{what}: the quaternion of floating joint {joint.name!r} has length {norm:.6g}, not 1"
            )


def check_transforms(T: Float64, what: str) -> None:
    """Raise unless T, (..., 4, 4), holds rigid transforms; the message names the first that does not."""
    if T.shape[-2:] != (4, 4):
        raise InvalidGoalError(f"{what} has shape {T.shape}; allowed is (..., 4, 4)")
    good = is_pose(T, _ROTATION_ERROR)
    if not good.all():
        index = int(np.flatnonzero(~good.reshape(-1))[0])
        raise InvalidGoalError(
            f"{what}[{index}] is no rigid transform: every number must be finite, the rotation orthonormal "
            f"and right-handed, the last row 0 0 0 1"
        )


def _check_target(target: PoseTarget, robot: RobotModel) -> None:
    robot.link(target.link)
    if target.T_base_target.ndim != 3:
        raise InvalidGoalError(f"T_base_target has shape {target.T_base_target.shape}; allowed is (B, 4, 4)")
    check_transforms(target.T_base_target, "T_base_target")
    for what, tolerance in (
        ("position_tolerance", target.position_tolerance),
        ("orientation_tolerance", target.orientation_tolerance),
    ):
        if not (
            isinstance(tolerance, float | int | np.floating | np.integer)
            and math.isfinite(tolerance)
            and tolerance > 0.0
        ):
            raise InvalidGoalError(f"{what} is {tolerance}; allowed is a finite number above 0")
