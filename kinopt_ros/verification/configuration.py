"""Float64 check of configurations: the only way to a success.

Independent of every solver: it sees nothing but the robot, the targets and the numbers that will be sent.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.target_errors import target_errors
from kinopt_ros.problems.validation import QUATERNION_ERROR
from kinopt_ros.robot.chain import KinematicChain, chain_between
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import quaternion_columns, variables_named

INSIDE = ("finite numbers", "joint limits", "mimic joint limits")
"""Checks of the solved joints, and of the mimic joints that they drive, wherever the targets are."""
CHECKS = (*INSIDE, "target pose")
"""All checks of what reaches its targets."""
HELD_LIMITS = "limits of held joints"
NOT_CHECKED = (HELD_LIMITS, "self collision", "world collision")
"""What is not checked for problems without a scene."""


@dataclass(eq=False, slots=True)
class ConfigurationReport:
    """Outcome of the check of N configurations, each against its own targets."""

    ok: Annotated[Bool, "N"]
    """Whether every check passed."""
    finite: Annotated[Bool, "N"]
    limit_violation: Annotated[Float64, "N"]
    """How far the worst joint is outside its limits (rad or m), or the length of a quaternion from 1; 0 inside."""
    position_error: Annotated[Float64, "N"]
    """Distance of the worst target, m, along the axes that are not free."""
    orientation_error: Annotated[Float64, "N"]
    """Angle of the worst target, rad, about the axes that are not free (see kinematics.pose_errors)."""
    T_base_tool: Annotated[Float64, "T N 4 4"]
    """Pose that each target's tool really has."""
    q: Annotated[Float64, "N n"]
    """The checked configurations."""


def verify_configurations(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    q: Annotated[Float64, "N n"],
    request: Annotated[np.ndarray, "N"],
) -> ConfigurationReport:
    """Check configurations of the solved joints.

    Args:
        robot: the robot.
        problem: what was asked.
        chains: from the problem's base link to each target's link, nothing held.
        q: one row per configuration, in the order of problem.variables (rad or m).
        request: for every row, which of the B requests it answers.
    """
    compiled = prepared()
    if compiled is not None:
        report = _compiled_report(compiled, robot, problem, q, request)
        return _of_unit_quaternions(report, robot, problem)
    return reference_report(robot, problem, chains, q, request)


def reference_report(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    q: Annotated[Float64, "N n"],
    request: Annotated[np.ndarray, "N"],
) -> ConfigurationReport:
    """Check configurations with numpy alone."""
    full = problem.state[request]
    full[:, problem.variables] = q
    finite: Bool = np.asarray(np.logical_and.reduce(np.isfinite(q), axis=1))
    if not finite.all():  # keep NaN out of the kinematics; such rows fail anyway
        full[~finite] = problem.state[request[~finite]]
    violation = limit_violation(robot, full, problem.variables)
    ok = finite & (violation <= 0.0)
    position = np.zeros(len(q))
    orientation = np.zeros(len(q))
    tools = np.empty((len(chains), len(q), 4, 4))
    for number, (target, chain) in enumerate(zip(problem.targets, chains, strict=True)):
        T_base_tool = chain_pose(chain, full[:, chain.variables])
        if target.T_link_tool is not None:
            T_base_tool = T_base_tool @ target.T_link_tool
        distance, angle, within = target_errors(target, target.T_base_target[request], T_base_tool)
        ok &= within
        position = np.maximum(position, distance)
        orientation = np.maximum(orientation, angle)
        tools[number] = T_base_tool
    report = ConfigurationReport(ok, finite, violation, position, orientation, tools, q)
    return _of_unit_quaternions(report, robot, problem)


def _of_unit_quaternions(
    report: ConfigurationReport, robot: RobotModel, problem: IkProblem
) -> ConfigurationReport:
    """Refuse quaternions of other lengths: kinematics here takes any, but other programs read another pose in them."""
    if not robot.floating_joints:
        return report
    for first in quaternion_columns(robot, problem.variables):
        off = np.abs(np.linalg.norm(report.q[:, first : first + 4], axis=1) - 1.0)
        bad = report.finite & ~(off <= QUATERNION_ERROR)
        worst = np.where(bad, np.maximum(report.limit_violation, off), report.limit_violation)
        report = replace(report, ok=report.ok & ~bad, limit_violation=worst)
    return report


@cache
def prepared() -> ModuleType | None:
    """Return the compiled check; None where numba is not installed. Imports numba, and compiles if need be."""
    try:
        from kinopt_ros.verification.kernels import answers as compiled
    except ImportError:
        return None
    return compiled


def verified_at_once(
    robot: RobotModel, problem: IkProblem, q: Annotated[Float64, "1 1 n"]
) -> Annotated[Float64, "4 1 1"] | None:
    """Check the configuration of one request for one pose, as most are, in a fraction of the time.

    Returns:
        Distance (m) and angle (rad) from the target, 0, and the distance of the solved joints from their state. None if
        a check fails, or if it takes more than this to tell: ``verify_configurations`` tells.
    """
    compiled, target = prepared(), problem.targets[0]
    if compiled is None or target.plain is None or len(problem.targets) > 1 or robot.floating_joints:
        return None
    flags, numbers, tools = np.empty((2, 1), dtype=np.bool_), np.empty((4, 1)), np.empty((1, 4, 4))
    compiled.check_target(
        q[0],
        _ONLY,
        _doubles(problem.state),
        *_packed(robot, tuple(problem.joints), problem.base_link, target.link),
        _doubles(target.T_base_target),
        _IDENTITY if target.T_link_tool is None else _doubles(target.T_link_tool),
        *target.plain,
        flags,
        numbers,
        tools,
    )
    return numbers[:, None] if flags.item(0) else None


def _compiled_report(
    compiled: ModuleType,
    robot: RobotModel,
    problem: IkProblem,
    q: Annotated[Float64, "N n"],
    request: Annotated[np.ndarray, "N"],
) -> ConfigurationReport:
    T, N = len(problem.targets), len(q)
    q, request = _doubles(q), np.ascontiguousarray(request, dtype=np.int64)
    state, joints = _doubles(problem.state), tuple(problem.joints)
    flags, numbers, tools = np.empty((T, 2, N), dtype=np.bool_), np.empty((T, 4, N)), np.empty((T, N, 4, 4))
    for k, target in enumerate(problem.targets):
        T_base_target = _doubles(target.T_base_target)
        T_tip_tool = _IDENTITY if target.T_link_tool is None else _doubles(target.T_link_tool)
        plain = target.plain
        asked = T_base_target, T_tip_tool, *(plain or _ANYWHERE)
        known = _packed(robot, joints, problem.base_link, target.link)
        compiled.check_target(q, request, state, *known, *asked, flags[k], numbers[k], tools[k])
        if plain is None:
            *numbers[k, :2], within = target_errors(target, T_base_target[request], tools[k])
            flags[k, 0] &= within
    if T > 1:
        flags = np.logical_and.reduce(flags, axis=0, keepdims=True)
        numbers = np.maximum.reduce(numbers, axis=0, keepdims=True)
    return ConfigurationReport(
        flags[0, 0], flags[0, 1], numbers[0, 2], numbers[0, 0], numbers[0, 1], tools, q
    )


def _doubles(array: Float64) -> Float64:
    """Return an array in the one layout that the check is compiled for; a copy only if need be."""
    return np.ascontiguousarray(array, dtype=np.float64)


_IDENTITY = np.eye(4)
_ONLY = np.zeros(1, dtype=np.int64)
"""The request that a single configuration answers."""
_ANYWHERE = (math.inf, math.inf)
"""Infinite tolerances, where the caller decides what is near enough."""


@remembered
def _packed(
    robot: RobotModel, joints: tuple[str, ...], base_link: str, tip_link: str
) -> tuple[Int64, Float64]:
    """Return solved joints and the chain to a link, as ``compiled.check_target`` takes them.

    First: numbers of mimic joints that the solved ones drive, and of the chain's motions; the solved variables, the
    drivers, and per motion its kind and the variable that drives it. Second: lower and upper limit of each solved
    variable; multiplier, offset and limits of those mimic joints; the chain's fixed transforms; axis, multiplier and
    offset of each motion.
    """
    variables = [i for name in joints for i in variables_named(robot, name)]
    driven = [joint for joint in robot.mimic_joints if joint.first_variable in variables]
    chain = chain_between(robot, base_link, tip_link)
    kinds = np.column_stack([chain.motion, chain.variables[chain.column]])
    indices = [len(driven), len(kinds), *variables, *[joint.first_variable for joint in driven], *kinds.flat]
    limits = np.column_stack([robot.limits.lower[variables], robot.limits.upper[variables]])
    mimics = [(joint.multiplier, joint.offset, joint.lower, joint.upper) for joint in driven]
    motions = np.column_stack([chain.axis, chain.multiplier, chain.offset])
    parts = limits, np.array(mimics, dtype=np.float64), chain.T_fixed, motions
    return np.array(indices, dtype=np.int64), np.concatenate([part.reshape(-1) for part in parts])


def limit_violation(
    robot: RobotModel, q: Annotated[Float64, "N nq"], variables: Annotated[np.ndarray, "n"]
) -> Annotated[Float64, "N"]:
    """Return how far the worst of some variables, or of the mimic joints that they drive, is outside its limits.

    Mimic joints are judged by their own limits, not by the narrowed ones of their driver, so that the check
    does not rest on the arithmetic that it is there to check. That arithmetic rounds: a mimic joint may
    overshoot by a few units in the last place.
    """
    lower, upper = robot.limits.lower[variables], robot.limits.upper[variables]
    values = q[:, variables]
    worst = np.maximum(lower - values, values - upper).max(axis=1, initial=0.0)
    driven = set(variables.tolist())
    for joint in robot.mimic_joints:
        if joint.first_variable in driven:
            value = joint.multiplier * q[:, joint.first_variable] + joint.offset
            rounding = 4.0 * np.finfo(np.float64).eps * (1.0 + np.abs(value))
            over = np.maximum(joint.lower - value, value - joint.upper) - rounding
            worst = np.maximum(worst, over)
    return np.asarray(worst)
