"""Checks of an IK problem against a robot. Every refusal is a sentence that names what was given."""

import math
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64, frozen
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError, shortened, shown
from kinopt_ros.kinematics.se3 import is_one_pose, is_pose, pose_defect
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.problems.pose_weights import LARGEST_RATIO, PoseWeights
from kinopt_ros.problems.preferences.every import check_preference
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import joint_named, variables_named
from kinopt_ros.scene.checks import check_fits

MOST_SOLUTIONS = 1000
"""Most solutions that one request may ask for."""
MOST_CLEARANCE = 10.0
"""Largest clearance that may be asked for, m."""
LARGEST_VALUE = 1e9
"""Largest value of a variable, rad or m: beyond, float64 tells angles no finer than 1e-7 rad apart, and small motions
are lost in rounding."""
_ROTATION_ERROR = 1e-6
"""Largest accepted deviation of R Rᵀ from the identity, and of det R from 1."""
_FEW = 64
"""Numbers that are looked at sooner one by one than as an array."""
_FLOATS, _INTEGERS = np.dtype(np.float64), np.dtype(np.int64)
_NUMBERS = ("num_solutions", "min_separation", "clearance", "deadline", "random_seed")
QUATERNION_ERROR = 1e-6
"""Largest accepted deviation of a quaternion variable from unit length."""


def check_ik_problem(problem: IkProblem, robot: RobotModel) -> None:
    """Raise unless the problem fits the robot and itself."""
    targets, state, seeds = problem.targets, problem.state, problem.seeds
    if not targets:
        raise InvalidRequestError("targets is empty; give at least one PoseTarget")
    robot.link(problem.base_link)
    B = len(targets[0].T_base_target)
    if len(targets) > 1:
        sizes = [len(target.T_base_target) for target in targets]
        if len(set(sizes)) > 1:
            raise InvalidRequestError(f"every PoseTarget needs the same number of poses, not {sizes}")
    _check_type(problem.variables, _INTEGERS, "variables")
    _check_type(state, _FLOATS, "state")
    _check_type(seeds, _FLOATS, "seeds")
    weighted = False
    for target in targets:
        _check_type(target.T_base_target, _FLOATS, "T_base_target")
        if target.T_link_tool is not None:
            _check_type(target.T_link_tool, _FLOATS, "T_link_tool")
        check_target(target, robot)
        weighted = weighted or target.weights is not None
    if weighted:
        _check_nearest(problem)
    variables, expected = problem.variables, variables_of_joints(robot, tuple(problem.joints))
    if variables is not expected and not np.array_equal(variables, expected):
        raise InvalidRequestError("variables do not belong to joints; build problems with ik_problem()")
    if state.shape != (B, robot.nq):
        raise InvalidStateError(
            f"state has shape {state.shape}; allowed is ({B}, {robot.nq}): targets x variables "
            f"of robot {robot.name!r}"
        )
    check_states(state, robot, "state")
    n = len(variables)
    if seeds.ndim != 3 or seeds.shape[::2] != (B, n):
        raise InvalidStateError(f"seeds has shape {seeds.shape}; allowed is ({B}, S, {n})")
    if seeds.size and not (np.abs(seeds) <= LARGEST_VALUE).all():
        raise InvalidStateError(
            f"seeds contains a value that is not finite, or beyond {LARGEST_VALUE:g} rad or m"
        )
    try:
        _check_numbers(problem)
    except (TypeError, ValueError, OverflowError) as error:
        given = ", ".join(f"{name} {shown(getattr(problem, name))}" for name in _NUMBERS)
        raise InvalidRequestError(
            f"{given}: allowed are numbers; build problems with ik_problem()"
        ) from error
    if problem.preference is not None:
        check_preference(problem.preference).check(problem, robot)
    if problem.scene is not None:
        check_fits(problem.scene, robot)


def _check_type(numbers: np.ndarray, allowed: np.dtype[Any], what: str) -> None:
    """Raise unless an array is of the type that compiled code takes."""
    if numbers.dtype != allowed:
        raise InvalidRequestError(
            f"{what} has numbers of type {numbers.dtype}; allowed is {allowed}: ik_problem() takes any real numbers"
        )


def _check_numbers(problem: IkProblem) -> None:
    """Raise unless single numbers of a problem are in range."""
    if not 1 <= problem.num_solutions <= MOST_SOLUTIONS:
        raise InvalidRequestError(
            f"num_solutions is {problem.num_solutions}; allowed is 1 to {MOST_SOLUTIONS}"
        )
    if not 0.0 < problem.min_separation < math.inf:
        raise InvalidRequestError(
            f"min_separation is {problem.min_separation}; allowed is a finite number above 0"
        )
    if not 0.0 <= problem.clearance <= MOST_CLEARANCE:
        raise InvalidRequestError(f"clearance is {problem.clearance}; allowed is 0 to {MOST_CLEARANCE:g} m")
    if problem.clearance > 0.0 and problem.scene is None:
        raise InvalidRequestError(
            f"clearance is {problem.clearance:g}, but without a scene (EMPTY_SCENE will do) nobody looks at collisions"
        )
    if problem.deadline is not None and not math.isfinite(problem.deadline):
        raise InvalidRequestError(f"deadline is {problem.deadline}; give a value of time.monotonic() or None")
    if not 0 <= problem.random_seed < 2**64:
        raise InvalidRequestError(f"random_seed is {problem.random_seed}; allowed is 0 to 2**64 - 1")


def _check_nearest(problem: IkProblem) -> None:
    """Raise if a problem with weights asks for what goes with tolerances only."""
    given = [target.weights for target in problem.targets]
    if None in given:
        raise InvalidGoalError(
            f"the target of {problem.targets[given.index(None)].link!r} has no weights and another one has; give "
            "weights to all targets, or to none"
        )
    heavy = [value for weights in given if weights is not None for value in weights.all if value > 0.0]
    if max(heavy) > LARGEST_RATIO * min(heavy):
        raise InvalidGoalError(
            f"weights are {min(heavy):g} to {max(heavy):g}; allowed is a ratio of {LARGEST_RATIO:g} at most, besides 0"
        )
    for wanted, what in (
        (problem.num_solutions > 1, f"num_solutions is {problem.num_solutions}"),
        (problem.turns, "turns is set"),
        (problem.preference is not None, "a preference is given"),
    ):
        if wanted:
            raise InvalidRequestError(
                f"{what}, but the targets have weights: what is as near as possible is one configuration, whichever "
                "is found"
            )


@remembered
def variables_of_joints(robot: RobotModel, joints: tuple[str, ...]) -> Annotated[Int64, "n"]:
    """Return the indices in q of the variables of some active joints, in their order.

    Of a planar or floating joint single variables may be named (``base/theta``); the others of it are held then. Of a
    quaternion all four are needed, one after the other.

    Raises:
        KinoptError: none, one twice, an unknown one, or one that is fixed or follows another.
    """
    if not joints:
        raise InvalidRequestError("joints is empty; name at least one joint to solve for")
    if len(set(joints)) != len(joints):
        raise InvalidRequestError("joints names a joint twice")
    for name in joints:
        if not joint_named(robot, name).is_active:
            raise InvalidRequestError(
                f"joint {name!r} is fixed or a mimic joint; only active joints can be solved for"
            )
    variables = np.array([i for name in joints for i in variables_named(robot, name)], dtype=np.int64)
    if len(set(variables.tolist())) != len(variables):
        raise InvalidRequestError(
            f"joints names a variable twice, by itself and by its joint: {shortened(joints)}"
        )
    for joint in robot.floating_joints:
        first = joint.first_variable + 3
        named = [k for k, i in enumerate(variables.tolist()) if first <= i < first + 4]
        if named and variables[named[0] : named[0] + 4].tolist() != list(range(first, first + 4)):
            raise InvalidRequestError(
                f"joints names some of the quaternion of joint {joint.name!r}; name all of "
                f"{', '.join(robot.variable_names[first : first + 4])} in this order, or none"
            )
    frozen(variables)
    return variables


def check_state(q: Float64, robot: RobotModel, what: str) -> None:
    """Raise unless q is one finite configuration of the whole robot."""
    if q.shape != (robot.nq,):
        raise InvalidStateError(f"{what} has shape {q.shape}; robot {robot.name!r} has {robot.nq} variables")
    check_states(q[None], robot, what)


def check_states(q: Annotated[Float64, "N nq"], robot: RobotModel, what: str) -> None:
    """Raise unless every row is a configuration of the whole robot, of finite numbers up to LARGEST_VALUE; the message
    names the first bad one."""
    if q.size <= _FEW:
        # The sum is at least the largest, and comparisons with NaN are false.
        all_usable = sum(map(abs, q.ravel().tolist())) <= LARGEST_VALUE
    else:
        all_usable = bool((np.abs(q) <= LARGEST_VALUE).all())
    usable = None if all_usable else np.abs(q) <= LARGEST_VALUE
    if usable is not None and not usable.all():
        row = int(np.flatnonzero(~usable.all(axis=1))[0])
        bad = [robot.variable_names[i] for i in np.flatnonzero(~usable[row])]
        beyond = f" or beyond {LARGEST_VALUE:g} rad or m" if np.isfinite(q).all() else ""
        raise InvalidStateError(f"{what}{_row(row, q)} is not finite{beyond} at {', '.join(bad)}")
    for joint in robot.floating_joints:
        first = joint.first_variable
        norm = np.linalg.norm(q[:, first + 3 : first + 7], axis=1)
        wrong = np.flatnonzero(~(np.abs(norm - 1.0) <= QUATERNION_ERROR))
        if wrong.size:
            row = int(wrong[0])
            raise InvalidStateError(
                f"{what}{_row(row, q)}: the quaternion of floating joint {joint.name!r} has length "
                f"{norm[row]:.6g}, not 1"
            )


def _row(row: int, q: Float64) -> str:
    return f"[{row}]" if len(q) > 1 else ""


def check_transforms(T: Float64, what: str) -> None:
    """Raise unless T, (..., 4, 4), holds rigid transforms; the message names the first that does not."""
    if T.shape[-2:] != (4, 4):
        raise InvalidGoalError(f"{what} has shape {T.shape}; allowed is (..., 4, 4)")
    if T.size == 16 and is_one_pose(T.ravel().tolist(), _ROTATION_ERROR):
        return
    good = is_pose(T, _ROTATION_ERROR)
    if not good.all():
        index = int(np.flatnonzero(~good.reshape(-1))[0])
        defect = pose_defect(T.reshape(-1, 4, 4)[index], _ROTATION_ERROR)
        raise InvalidGoalError(f"{what}[{index}] is no rigid transform: {defect}")


def check_target(target: PoseTarget, robot: RobotModel) -> None:
    """Raise unless a target names a link, holds poses, and asks for something."""
    robot.link(target.link)
    if target.T_base_target.ndim != 3:
        raise InvalidGoalError(f"T_base_target has shape {target.T_base_target.shape}; allowed is (B, 4, 4)")
    check_transforms(target.T_base_target, "T_base_target")
    if target.T_link_tool is not None:
        if target.T_link_tool.shape != (4, 4):
            raise InvalidGoalError(f"T_link_tool has shape {target.T_link_tool.shape}; allowed is (4, 4)")
        check_transforms(target.T_link_tool[None], "T_link_tool")
    position, orientation = target.position_tolerance, target.orientation_tolerance
    usual = type(position) is float and type(orientation) is float and position > 0.0 and orientation > 0.0
    for what, tolerance in (
        () if usual else (("position_tolerance", position), ("orientation_tolerance", orientation))
    ):
        given = tolerance if isinstance(tolerance, tuple) else (tolerance,)
        if len(given) not in (1, 3) or not all(map(_is_tolerance, given)):
            raise InvalidGoalError(
                f"{what} is {tolerance}; allowed is a number above 0, or three of them in a tuple for the axes of "
                "the target's frame, where inf frees an axis"
            )
    if target.weights is not None and not isinstance(target.weights, PoseWeights):
        raise InvalidGoalError(f"weights is {shown(target.weights)}; allowed is PoseWeights")
    if target.plain is None and all(target.free_position) and all(target.free_orientation):
        raise InvalidGoalError(f"the target of {target.link!r} leaves every axis free: nothing is asked")


def check_single_target(target: PoseTarget, what: str, robot: RobotModel) -> None:
    """Raise unless a target is usable and has one pose; ``what`` is what refusals call it."""
    check_target(target, robot)
    if target.weights is not None:
        raise InvalidGoalError(
            f"{what} has weights; those go with inverse kinematics only, motions take tolerances"
        )
    if len(target.T_base_target) != 1:
        raise InvalidGoalError(
            f"{what} has {len(target.T_base_target)} poses of {target.link!r}; allowed is one"
        )


def _is_tolerance(value: object) -> bool:
    numbers = (float, int, np.floating, np.integer)
    try:
        return isinstance(value, numbers) and not isinstance(value, bool) and float(value) > 0.0
    except OverflowError:  # Python's own are of any size
        return False
