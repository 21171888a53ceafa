"""~/solve_ik: poses in, verified joint positions out."""

import time
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.solver_pool import PooledResult
from kinopt_ros.problems.builder import ik_problem, resolve_chain
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros import parameters
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.conversions import (
    configuration_from_joint_state,
    flat_array,
    matrices_from_poses,
    nonnegative,
    poses_from_matrices,
    status_message,
)
from kinopt_ros.status import Status


class IkService:
    """Handler of kinopt_msgs/SolveIK."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if the request as a whole cannot be answered."""
        start = time.monotonic()
        loaded = self._context.loaded
        robot = loaded.model
        problem, T_base_frame, ways = self._problem(robot, request, start)
        solver = request.solver or parameters.ik_solver(self._context.node)
        allow_fallback = self._context.parameter("allow_fallback") and not request.no_fallback
        pooled = loaded.pool.solve_ik(problem, solver, allow_fallback)
        _fill(response, problem, pooled, T_base_frame)
        if response.status.code == Status.SUCCESS:
            given = {*request.state.name, *pooled.result.joint_names}
            response.status.message = self._context.assumed(robot, ways, given)
        response.wall_time = time.monotonic() - start

    def _problem(
        self, robot: RobotModel, request: Any, start: float
    ) -> tuple[IkProblem, Annotated[Float64, "4 4"], tuple[tuple[str, str], ...]]:
        """The problem, the pose of the request's frame in the problem's base link, and the ways that matter."""
        context = self._context
        context.check_batch(len(request.poses), "poses")
        group = request.group or None
        if group is None and not request.tip_link:
            group = context.group_name(robot)
        base, tip, joints = resolve_chain(robot, group, request.base_link or None, request.tip_link or None)
        frame = request.header.frame_id
        ways = ((base, tip), (base, frame))
        q = context.configuration(robot, ways, frozenset(request.state.name))
        q = configuration_from_joint_state(request.state, robot, q)
        T_base_frame = context.frames.T_link_frame(robot, base, frame, q)
        problem = ik_problem(
            robot,
            T_base_frame @ matrices_from_poses(request.poses),
            group=group,
            base_link=base,
            tip_link=tip,
            state=q,
            seeds=_seeds(request, len(variables_of_joints(robot, joints))),
            position_tolerance=nonnegative(
                request.position_tolerance,
                "position_tolerance",
                InvalidGoalError,
                context.parameter("ik.position_tolerance"),
            ),
            orientation_tolerance=nonnegative(
                request.orientation_tolerance,
                "orientation_tolerance",
                InvalidGoalError,
                context.parameter("ik.orientation_tolerance"),
            ),
            deadline=start + self._timeout(request.timeout),
            random_seed=request.random_seed,
        )
        return problem, T_base_frame, ways

    def _timeout(self, given: float) -> float:
        most = self._context.parameter("ik.max_timeout")
        timeout = nonnegative(given, "timeout", InvalidRequestError, self._context.parameter("ik.timeout"))
        if timeout > most:
            raise InvalidRequestError(
                f"timeout is {given:g} s; allowed is up to {most:g} s (parameter ik.max_timeout)"
            )
        return timeout


def _seeds(request: Any, n: int) -> Float64 | None:
    """The request's seeds as (S, n) for all targets or (B, S, n): their number tells which. S is 1 unless given."""
    if not request.seeds:
        if request.num_seeds:
            raise InvalidStateError(f"num_seeds is {request.num_seeds}, but seeds is empty")
        return None
    seeds = np.array(request.seeds)
    B = len(request.poses)
    S = request.num_seeds or 1
    if seeds.size == S * n:
        return seeds.reshape(S, n)
    if seeds.size == B * S * n:
        return seeds.reshape(B, S, n)
    raise InvalidStateError(
        f"seeds has {seeds.size} numbers; allowed are {S} x {n} or {B} x {S} x {n} (targets x num_seeds x joints)"
    )


def _fill(response: Any, problem: IkProblem, pooled: PooledResult, T_base_frame: Float64) -> None:
    result = pooled.result
    success = result.success
    response.joint_names = list(result.joint_names)
    if success.any():
        response.positions = flat_array(result.q[:, 0])
    response.codes = result.status.tolist()
    response.position_errors = flat_array(
        np.where(success, result.position_error[:, 0], result.attempt_position_error)
    )
    response.orientation_errors = flat_array(
        np.where(success, result.orientation_error[:, 0], result.attempt_orientation_error)
    )
    if success.all():
        response.status.code = int(Status.SUCCESS)
    else:
        failed = np.flatnonzero(~success)
        first = int(failed[0])
        sentence = result.messages[first]
        if problem.batch_size > 1:
            sentence = (
                f"{len(failed)} of {problem.batch_size} targets failed; the first, poses[{first}]: {sentence}"
            )
        response.status = status_message(Status(int(result.status[first])), sentence)
        response.messages = list(result.messages)
        response.attempts = flat_array(result.attempt)
        response.attempt_poses = poses_from_matrices(
            (inverse(T_base_frame) @ result.attempt_pose).reshape(-1, 4, 4)
        )
    response.solver_used = result.solver
    response.fallback_reason = pooled.fallback_reason
    response.checks = list(result.checks)
    response.not_checked = list(result.not_checked)
    response.solve_time = result.solve_time
