"""Requests of ~/solve_ik that have costs: poses that have to hold, the best solution by everything else."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kinopt_ros.errors import KinoptError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveResult
from kinopt_ros.planning.ik_objective import solve_in_portions
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.planning.solver_pool import Pooled
from kinopt_ros.problems.target_errors import target_errors
from kinopt_ros.robot.chain import chain_between, with_tool
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import flat_array, poses_from_matrices, said, status_message
from kinopt_ros.ros.requests.costs import cost_values, read_costs
from kinopt_ros.ros.requests.ik import IkRequest
from kinopt_ros.ros.requests.timeouts import check_in_time
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.status import Status


class ObjectiveTask(Task):
    """One request on its way through the slow lane."""

    def __init__(self, context: Context, client: str, asked: IkRequest, reply: Reply) -> None:
        super().__init__(client, slow=True)
        self._context = context
        self._asked = asked
        self._reply = reply

    def must_wait(self) -> bool:
        """Check whether collision checks are still being prepared, and there is time to wait for them."""
        asked = self._asked
        return asked.problem.scene is not None and asked.loaded.pool.must_wait(
            True, False, self.arrived + asked.timeout
        )

    def quick(self, others: Sequence[Task], hurried: bool = False) -> Sequence[Task]:
        """Leave it to the slow lane."""
        return [self, *others]

    def slow(self) -> None:
        """Solve it, and answer."""
        asked = self._asked
        begin = time.monotonic()
        self._reply.queue_time = begin - self.arrived
        try:
            asked.loaded.pool.check_prepared(asked.problem.scene is not None, False)
            check_in_time(self._reply.queue_time, asked.timeout)
            robot = asked.loaded.model
            costs = read_costs(robot, asked.costs, "costs")
            answers: list[Pooled[ObjectiveResult]] = []

            def solve(problem: ObjectiveProblem) -> ObjectiveResult:
                pool = asked.loaded.pool
                answers.append(pool.solve_objective(problem, asked.solver, asked.allow_fallback))
                return answers[-1].result

            result = solve_in_portions(robot, asked.problem, costs, solve)
            pooled = replace(answers[0], result=result)
            response = self._reply.response()
            _fill(response, asked, pooled)
        except Exception as error:  # nothing ends a worker
            self._reply.refuse(error)
            return
        response.queue_time = self._reply.queue_time
        response.wall_time = time.monotonic() - self._reply.arrived
        self._context.statistics.record(
            f"solver {pooled.result.solver}",
            response.status.code,
            time.monotonic() - begin,
            reason=pooled.fallback_reason,
        )
        self._reply.send(response)

    def refuse(self, error: KinoptError) -> None:
        """Answer with an error."""
        self._reply.refuse(error)


def _fill(response: Any, asked: IkRequest, pooled: Pooled[ObjectiveResult]) -> None:
    problem, result, robot = asked.problem, pooled.result, asked.loaded.model
    success, B = result.success, problem.batch_size
    response.joint_names = [robot.variable_names[i] for i in problem.variables]
    if success.any():
        response.positions = flat_array(result.q[:, 0, problem.variables])
    response.cut_short = (result.status == Status.TIMED_OUT).tolist()
    response.num_found = success.astype(np.int64).tolist()
    response.codes = result.status.tolist()
    best = result.best[:, 0]
    position, orientation, T = np.zeros(B), np.zeros(B), np.empty((B, len(problem.targets), 4, 4))
    for k, target in enumerate(problem.targets):
        chain = with_tool(chain_between(robot, problem.base_link, target.link), target.T_link_tool)
        T[:, k] = chain_pose(chain, best[:, chain.variables])
        distance, angle, _ = target_errors(target, target.T_base_target, T[:, k])
        position, orientation = np.maximum(position, distance), np.maximum(orientation, angle)
    response.position_errors, response.orientation_errors = flat_array(position), flat_array(orientation)
    if success.all():
        response.status = status_message(Status.SUCCESS, said(asked.assumed, *problem.notes, *result.notes))
    else:
        failed = np.flatnonzero(~success)
        first = int(failed[0])
        sentence = result.messages[first]
        if B > 1:
            sentence = f"{len(failed)} of {B} targets failed; the first, poses[{first}]: {sentence}"
        response.status = status_message(Status(int(result.status[first])), sentence)
        response.messages = list(result.messages)
        attempts = np.where(success[:, None], np.nan, best[:, problem.variables])
        response.attempts = flat_array(attempts)
        response.attempt_poses = poses_from_matrices((inverse(asked.T_base_frame) @ T).reshape(-1, 4, 4))
    response.cost_values = [
        value
        for b in range(B)
        for value in cost_values(result.terms[b], [own[b] for own in result.multipliers])
    ]
    response.scene_version = 0 if problem.scene is None else problem.scene.version
    response.solver_used = result.solver
    response.fallback_reason = pooled.fallback_reason
    response.checks = list(result.checks)
    response.not_checked = list(result.not_checked)
    response.solve_time = result.solve_time
