"""compute_ik: MoveIt's inverse kinematics, answered by ~/solve_ik."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from moveit_msgs.srv import GetPositionIK

from kinopt_msgs.srv import SolveIK
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, KinoptError, quoted, shortened
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.planning.solver_pool import PooledResult
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import (
    error_message,
    matrices_from_poses,
    poses_from_matrices,
    seconds,
)
from kinopt_ros.ros.moveit.codes import fill_error_code
from kinopt_ros.ros.moveit.constraints import evaluate, evaluate_all, frames_of, has_constraints
from kinopt_ros.ros.moveit.robot_state import configuration_of, fill_robot_state, joint_state_of
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.requests.ik import IkRequest
from kinopt_ros.ros.robot.kinematics_parameters import NOTHING
from kinopt_ros.ros.services.solve_ik import status_of
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.status import Status

CONSTRAINED_SOLUTIONS = 32
"""Number of solutions that are tried for one that meets constraints."""


_EMPTY = SolveIK.Request()
_NOTHING_ASKED = {field: getattr(_EMPTY, field) for field in _EMPTY.get_fields_and_field_types()}
"""Fields of an empty request, which requests share: to make a message costs a third as much as an answer. They are
replaced, and never changed."""


class NoneMeetsThemError(KinoptError):
    """None of the solutions meets the constraints of the request."""

    status = Status.NO_IK_SOLUTION


def _fill(answer: "_Answer", asked: IkRequest, pooled: PooledResult) -> None:
    answer.status, answer.result = status_of(asked, pooled.result), pooled.result


@dataclass(frozen=True, eq=False)
class _Asked:
    """Parts of a request that its answer needs."""

    request: IkRequest
    constraints: Any
    frames: Annotated[Float64, "nq"] | None
    """Configuration in which frames of constraints are placed; None without constraints."""


class _Answer:
    """Answer of a task of ~/solve_ik, without what MoveIt's has no room for."""

    status: Any
    result: IkResult | None = None


class ComputeIk(MoveItService):
    """moveit_msgs/GetPositionIK. An empty group_name is the node's default group; the whole timeout counts, not only
    its seconds. With constraints, the solution is the first that meets them, of several that are looked at."""

    name = "compute_ik"
    type = GetPositionIK
    answer = _Answer

    def __init__(self, context: Context, solve_ik: Callable[[Any, Reply], Any]) -> None:
        """``solve_ik`` makes tasks of what has the fields of kinopt_msgs/SolveIK requests; they have what was
        ``asked``, and ``fill`` the answer."""
        self._context = context
        self._solve_ik = solve_ik

    def task(self, request: Any, reply: Reply) -> tuple[Task, _Asked]:
        """Return the task of ~/solve_ik for an equivalent request."""
        given = request.ik_request
        ours = self._read(given)
        self._complete(ours)
        frames = None
        if has_constraints(given.constraints):
            frames = configuration_of(self._context, ours.state, frames_of(given.constraints))
            evaluate(self._context, self._context.loaded.model, given.constraints, frames)  # or refuses them
            ours.num_solutions = CONSTRAINED_SOLUTIONS
        task = self._solve_ik(ours, reply)
        task.fill = _fill
        return task, _Asked(task.asked, given.constraints, frames)

    def write(self, response: Any, answer: _Answer, asked: _Asked | None) -> None:
        """Write the state of the whole robot."""
        status, result = answer.status, answer.result
        if asked is not None and result is not None and status.code == Status.SUCCESS:
            q = self._chosen(result, asked)
            if q is None:
                status = error_message(
                    NoneMeetsThemError(f"none of {result.num_found[0]} solutions meets the constraints")
                )
            else:
                fill_robot_state(response.solution, asked.request.loaded.model, q)
        fill_error_code(response.error_code, status)

    def _chosen(self, result: IkResult, asked: _Asked) -> Annotated[Float64, "nq"] | None:
        """Return the first solution that meets the constraints; None if there is none."""
        problem, robot = asked.request.problem, asked.request.loaded.model
        solutions = result.q[0]
        solutions = solutions[np.isfinite(solutions).all(axis=1)]  # fewer may be found than asked for
        q: Float64 = np.repeat(problem.state[:1], len(solutions), axis=0)
        q[:, problem.variables] = solutions
        if asked.frames is not None and len(q):
            met = evaluate_all(self._context, robot, asked.constraints, q, asked.frames)[0]
            q = q[met.all(axis=0)]
        return q[0] if len(q) else None

    def _read(self, given: Any) -> Any:
        robot = self._context.loaded.model
        request = SimpleNamespace(**_NOTHING_ASKED)
        vars(request).update(
            group=given.group_name,
            state=joint_state_of(given.robot_state, robot),
            avoid_collisions=given.avoid_collisions,
            timeout=seconds(given.timeout),
        )
        targets, names = list(given.pose_stamped_vector), list(given.ik_link_names)
        if not targets and not names:
            request.header = given.pose_stamped.header
            request.poses = [given.pose_stamped.pose]
            request.tip_link = given.ik_link_name
            return request
        if len(targets) != len(names):
            raise InvalidGoalError(
                f"ik_link_names has {len(names)} names and pose_stamped_vector {len(targets)} poses; they must be equal"
            )
        if given.ik_link_name and given.ik_link_name not in names:
            raise InvalidGoalError(
                f"ik_link_name is {quoted(given.ik_link_name)}, and ik_link_names is {shortened(names)}; give one of "
                "them"
            )
        request.tip_links = names
        request.poses = [target.pose for target in targets]
        request.header = targets[0].header
        frames = [target.header.frame_id for target in targets]
        if len(set(frames)) > 1:
            request.header.frame_id = ""
            request.poses = self._in_root(request.state, frames, request.poses)
        return request

    def _complete(self, request: Any) -> None:
        """Fill in what MoveIt's kinematics.yaml says about the group."""
        context = self._context
        group = context.group_name(context.loaded.model, request.group)
        given = context.kinematics.get(group, NOTHING)
        if request.timeout == 0.0 and given.timeout is not None:
            request.timeout = given.timeout
        if given.position_only:
            request.free_axes = ["rx", "ry", "rz"]

    def _in_root(self, state: Any, frames: list[str], poses: list[Any]) -> list[Any]:
        """Return the poses of several frames in the root link's frame."""
        context, robot = self._context, self._context.loaded.model
        q = configuration_of(context, state, frames)
        T = [
            context.frames.T_root_frame(robot, frame, q)
            @ matrices_from_poses([pose], "pose_stamped_vector")[0]
            for frame, pose in zip(frames, poses, strict=True)
        ]
        return poses_from_matrices(np.array(T))
