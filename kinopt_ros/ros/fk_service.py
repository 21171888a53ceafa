"""~/compute_fk: joint positions in, poses of links out."""

from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, UnknownJointError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.problems.validation import check_state
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.conversions import poses_from_matrices, status_message
from kinopt_ros.ros.serving import HandlerTask, Reply
from kinopt_ros.status import Status

QUICK_STATES = 64
"""Larger batches go to the slow lane."""


class FkService:
    """Handler of kinopt_msgs/ComputeFK."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def task(self, request: Any, reply: Reply) -> Task:
        """The task of a request."""
        many = len(request.positions) > QUICK_STATES * max(len(request.joint_names), 1)
        return HandlerTask(self.handle, request, reply, slow=many)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if the request cannot be answered."""
        context = self._context
        robot = context.loaded.model
        links = tuple(request.links) or robot.link_names
        for link in links:
            robot.link(link)
        frame = request.header.frame_id
        named = frozenset(request.joint_names)
        context.check_batch(len(links), "links")
        ways = [(frame, link) for link in links]
        q = self._states(robot, request, context.configuration(robot, ways, named))
        context.check_batch(len(q) * len(links), "poses")
        # The frame may itself move with the joints: it is resolved in every state.
        T_frame_root = inverse(context.frames.T_root_frame(robot, frame, q))
        T_frame_link = T_frame_root[:, None] @ forward_kinematics(robot, q, links=links)
        response.link_names = list(links)
        response.poses = poses_from_matrices(T_frame_link.reshape(-1, 4, 4))
        response.status = status_message(Status.SUCCESS, context.assumed(robot, ways, named))

    def _states(
        self, robot: RobotModel, request: Any, base: Annotated[Float64, "nq"]
    ) -> Annotated[Float64, "N nq"]:
        """The present configuration with what the request names; fixed and mimic joints follow from the others."""
        names = list(request.joint_names)
        if not names:
            if request.positions:
                raise InvalidRequestError(
                    f"{len(request.positions)} positions were given, but no joint_names"
                )
            return base[None]
        if len(set(names)) != len(names):
            raise InvalidRequestError("joint_names has a name twice")
        for name in names:
            if name not in robot.variable_index and name not in robot.joint_by_name:
                raise UnknownJointError(name, robot.variable_names)
        positions = np.array(request.positions)
        if positions.size == 0 or positions.size % len(names):
            raise InvalidStateError(
                f"{positions.size} positions were given for {len(names)} joint_names; allowed is a multiple of those"
            )
        rows = positions.reshape(-1, len(names))
        self._context.check_batch(len(rows), "states")
        q = np.repeat(base[None], len(rows), axis=0)
        columns = [i for i, name in enumerate(names) if name in robot.variable_index]
        q[:, [robot.variable_index[names[i]] for i in columns]] = rows[:, columns]
        for index, state in enumerate(q):
            check_state(state, robot, f"state {index}")
        return q
