"""~/solve_ik: poses in, verified joint positions out."""

import time
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from kinopt_msgs.srv import SolveIK
from kinopt_ros.array import all_set
from kinopt_ros.errors import KinoptError
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.batching import merged, structure_key, taken_apart
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.planning.solver_pool import Pooled, PooledResult
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import flat_array, poses_from_matrices, said, status_message
from kinopt_ros.ros.requests.ik import IkRequest, read_ik_request
from kinopt_ros.ros.requests.timeouts import DeadlinePassedError, check_in_time
from kinopt_ros.ros.services.solve_ik_with_costs import ObjectiveTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.service import QueuedService
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.status import Status

HURRIED_SECONDS = 0.005
"""Time of a first try on the thread that takes requests in, s."""
QUICK_SECONDS = 0.05
"""Time of a try in the quick lane, s; what is not done by then goes on in the slow lane.

It is longer than any usual request takes, also where threads wait for the interpreter."""
QUICK_TARGETS = 64
"""Most targets of a request in the quick lane; larger batches go to the slow lane at once."""
QUICK_SOLUTIONS = 64
"""Most solutions, over all targets, of a request in the quick lane; requests for more go to the slow lane at once."""


class SolveIkService(QueuedService):
    """Service that solves inverse kinematics of one or many targets."""

    name = "solve_ik"
    type = SolveIK

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._scenes: WeakSet[Scene] = WeakSet()
        """Scenes that requests were solved in: their shapes are prepared, so the next request is quick."""

    def task(self, request: Any, reply: Reply) -> Task:
        """Return the task of a request; KinoptError if it cannot be answered."""
        asked = read_ik_request(self._context, request, reply.arrived)
        if asked.costs:
            return ObjectiveTask(self._context, request.client, asked, reply)
        return _IkTask(self._context, request.client, asked, reply, self._scenes)


class _IkTask(Task):
    """One request on its way through the lanes.

    ``fill(response, asked, pooled)`` writes the answer; who wants it in other terms puts another function there.
    """

    def __init__(
        self, context: Context, client: str, asked: IkRequest, reply: Reply, scenes: WeakSet[Scene]
    ) -> None:
        problem = asked.problem
        size = problem.batch_size
        slow = size > QUICK_TARGETS or size * problem.num_solutions > QUICK_SOLUTIONS
        slow |= problem.scene is not None and problem.scene not in scenes
        key = (id(asked.loaded), asked.solver, asked.allow_fallback, structure_key(problem))
        super().__init__(client, None if slow else key, slow)
        self.asked = asked
        self.reply = reply
        self.fill = _fill
        self._context = context
        self._scenes = scenes
        self._solve_time = 0.0
        """Seconds spent on it, by all tries together."""

    def must_wait(self) -> bool:
        """Check whether collision checks are still being prepared, and there is time to wait for them."""
        asked = self.asked
        return asked.problem.scene is not None and asked.loaded.pool.must_wait(
            True, False, self.arrived + asked.timeout
        )

    def quick(self, others: Sequence[Task], hurried: bool = False) -> Sequence[Task]:
        """Solve all together for some milliseconds; return those that were cut short by this time and not by their
        own."""
        asked = self.asked
        if hurried and (asked.problem.scene is not None or not asked.loaded.pool.is_prompt(asked.solver)):
            # Checks of collisions, and other people's solvers, may take too long for the thread that takes requests in.
            return [self]
        seconds = HURRIED_SECONDS if hurried else QUICK_SECONDS
        tasks = [task for task in (self, *others) if isinstance(task, _IkTask) and task._in_time()]
        if not tasks:
            return ()
        try:
            problems = [task.asked.problem for task in tasks]
            pooled = self._solve(merged(problems, time.monotonic() + seconds), tasks)
            parts = taken_apart(pooled.result, [problem.batch_size for problem in problems])
        except Exception as error:  # nothing ends a worker
            if len(tasks) == 1:
                self.reply.refuse(error)
                return ()
            # One bad request must not spoil the others.
            return [left for task in tasks for left in task.quick(())]
        left: list[Task] = []
        for task, part in zip(tasks, parts, strict=True):
            if part.cut_short.any() and time.monotonic() - task.arrived < task.asked.timeout:
                left.append(task)
            else:
                task._send(Pooled(part, pooled.fallback_reason), len(tasks) - 1)
        return left

    def slow(self) -> None:
        """Solve with the request's own deadline."""
        if not self._in_time():
            return
        try:
            pooled = self._solve(self.asked.problem, [self])
        except Exception as error:  # nothing ends a worker
            self.reply.refuse(error)
            return
        self._send(pooled, 0)

    def refuse(self, error: KinoptError) -> None:
        """Answer with an error."""
        self.reply.refuse(error)

    def _solve(self, problem: IkProblem, tasks: "Sequence[_IkTask]") -> PooledResult:
        begin = time.monotonic()
        for task in tasks:
            task.reply.queue_time = begin - task.arrived
        pooled = self.asked.loaded.pool.solve_ik(problem, self.asked.solver, self.asked.allow_fallback)
        seconds = time.monotonic() - begin
        if problem.scene is not None:
            self._scenes.add(problem.scene)
        for task in tasks:
            task._solve_time += seconds
        return pooled

    def _in_time(self) -> bool:
        """Check whether there is time left; if not, that is the answer."""
        waited = time.monotonic() - self.arrived
        try:
            check_in_time(waited, self.asked.timeout)
        except DeadlinePassedError as late:
            self.reply.queue_time = waited
            self._refuse_late(late)
            return False
        return True

    def _refuse_late(self, late: DeadlinePassedError) -> None:
        """Answer that the time is up, or what was not prepared in that time."""
        try:
            self.asked.loaded.pool.check_prepared(self.asked.problem.scene is not None, False)
        except KinoptError as error:
            self.reply.refuse(error)
            return
        self.reply.refuse(late)

    def _send(self, pooled: PooledResult, batched_with: int) -> None:
        response = self.reply.response()
        try:
            self.fill(response, self.asked, pooled)
        except Exception as error:  # nothing ends a worker
            self.reply.refuse(error)
            return
        response.batched_with = batched_with
        response.queue_time = self.reply.queue_time
        response.wall_time = time.monotonic() - self.reply.arrived
        solver = f"solver {pooled.result.solver}"
        self._context.statistics.record(
            solver, response.status.code, self._solve_time, reason=pooled.fallback_reason
        )
        self.reply.send(response)
        self._context.note_failures(self.asked, pooled.result)


def status_of(asked: IkRequest, result: IkResult) -> Any:
    """Return the status of an answer: without a success for every target that of the first that failed, if some did."""
    if all_set(result.success):
        return status_message(Status.SUCCESS, said(asked.assumed, *result.notes))
    failed = np.flatnonzero(result.failed)
    several = asked.problem.batch_size > 1
    if not failed.size:
        sentence = result.messages[0]
        if several:
            sentence = f"as near as was found to {len(result.messages)} targets; poses[0]: {sentence}"
        return status_message(Status.NEAREST, said(sentence, asked.assumed, *result.notes))
    first = int(failed[0])
    sentence = result.messages[first]
    if several:
        sentence = (
            f"{len(failed)} of {len(result.messages)} targets failed; the first, poses[{first}]: {sentence}"
        )
    return status_message(Status(int(result.status[first])), sentence)


def _fill(response: Any, asked: IkRequest, pooled: PooledResult) -> None:
    problem, result = asked.problem, pooled.result
    success = result.success
    response.joint_names = list(result.joint_names)
    if success.any():
        response.positions = flat_array(result.q)
    response.cut_short = result.cut_short.tolist()
    response.num_found = result.num_found.tolist()
    response.codes = result.status.tolist()
    position, orientation = result.position_error, result.orientation_error
    if not all_set(success):
        position, orientation = position.copy(), orientation.copy()
        position[~success, 0] = result.attempt_position_error[~success]
        orientation[~success, 0] = result.attempt_orientation_error[~success]
    response.position_errors = flat_array(position)
    response.orientation_errors = flat_array(orientation)
    if problem.num_solutions > 1 or problem.preference is not None:
        response.distances = flat_array(result.distance)
    response.status = status_of(asked, result)
    if not all_set(success):
        response.messages = list(result.messages)
        response.attempts = flat_array(result.attempt)
        response.attempt_poses = poses_from_matrices(
            (inverse(asked.T_base_frame) @ result.attempt_pose).reshape(-1, 4, 4)
        )
    response.scene_version = result.scene_version or 0
    response.solver_used = result.solver
    response.fallback_reason = pooled.fallback_reason
    response.checks = list(result.checks)
    response.not_checked = list(result.not_checked)
    response.solve_time = result.solve_time
