"""compute_ik: MoveIt's inverse kinematics, answered by ~/solve_ik."""

from collections.abc import Callable
from typing import Any

import numpy as np
from moveit_msgs.srv import GetPositionIK

from kinopt_msgs.srv import SolveIK
from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.conversions import (
    configuration_from_joint_state,
    matrices_from_poses,
    poses_from_matrices,
    seconds,
)
from kinopt_ros.ros.ik_request import IkRequest
from kinopt_ros.ros.moveit.codes import fill_error_code
from kinopt_ros.ros.moveit.constraints import refuse_constraints
from kinopt_ros.ros.moveit.robot_state import fill_robot_state, joint_state_of
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.serving import Reply
from kinopt_ros.status import Status


class ComputeIk(MoveItService):
    """moveit_msgs/GetPositionIK. An empty group_name is the node's default group; the whole timeout counts, not only
    its seconds."""

    name = "compute_ik"
    type = GetPositionIK
    answer = SolveIK.Response

    def __init__(self, context: Context, solve_ik: Callable[[Any, Reply], Any]) -> None:
        """``solve_ik`` makes tasks of kinopt_msgs/SolveIK requests; they have what was ``asked``."""
        self._context = context
        self._solve_ik = solve_ik

    def task(self, request: Any, reply: Reply) -> tuple[Task, IkRequest]:
        """The task of ~/solve_ik for the same."""
        task = self._solve_ik(self._read(request.ik_request), reply)
        return task, task.asked

    def write(self, response: Any, answer: Any, asked: IkRequest | None) -> None:
        """The state of the whole robot."""
        fill_error_code(response.error_code, answer.status)
        if asked is not None and answer.status.code == Status.SUCCESS:
            q = asked.problem.state[0].copy()
            q[asked.problem.variables] = np.array(answer.positions)
            fill_robot_state(response.solution, asked.loaded.model, q)

    def _read(self, given: Any) -> Any:
        refuse_constraints(given.constraints, "constraints")
        robot = self._context.loaded.model
        request = SolveIK.Request(
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
                f"ik_link_name is {given.ik_link_name!r}, and ik_link_names is {names}; give one of them"
            )
        request.tip_links = names
        request.poses = [target.pose for target in targets]
        request.header = targets[0].header
        frames = [target.header.frame_id for target in targets]
        if len(set(frames)) > 1:
            request.header.frame_id = ""
            request.poses = self._in_root(request.state, frames, request.poses)
        return request

    def _in_root(self, state: Any, frames: list[str], poses: list[Any]) -> list[Any]:
        """Poses of several frames in the root link's frame."""
        context, robot = self._context, self._context.loaded.model
        ways = [(robot.root_link, frame) for frame in frames]
        present = context.configuration(robot, ways, frozenset(state.name))
        q = configuration_from_joint_state(state, robot, present)
        T = [
            context.frames.T_root_frame(robot, frame, q)
            @ matrices_from_poses([pose], "pose_stamped_vector")[0]
            for frame, pose in zip(frames, poses, strict=True)
        ]
        return poses_from_matrices(np.array(T))
