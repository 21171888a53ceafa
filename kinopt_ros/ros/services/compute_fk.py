"""~/compute_fk: joint positions in, poses of links out."""

from typing import Annotated, Any

import numpy as np

from kinopt_msgs.srv import ComputeFK
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidStateError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.conversions import poses_from_matrices, status_message
from kinopt_ros.ros.messages.states import states_from_positions
from kinopt_ros.ros.requests.ik import base_poses
from kinopt_ros.ros.robot.frames import is_set
from kinopt_ros.ros.robot.tips import tip_of
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.service import QueuedService
from kinopt_ros.status import Status

QUICK_STATES = 64
"""Most states of a quick request; larger batches go to the slow lane."""


class ComputeFkService(QueuedService):
    """Service that computes poses of links in one or many states."""

    name = "compute_fk"
    type = ComputeFK

    def task(self, request: Any, reply: Reply) -> Task:
        """Return the task of a request, as QueuedService has it."""
        stamp = request.header.stamp
        if is_set(stamp) and not request.base_pose:
            robot = self._context.loaded.model  # looked for here, where a request can be tried again
            self._context.frames.T_root_frame(robot, request.header.frame_id, robot.default_q, stamp)
        many = len(request.positions) > QUICK_STATES * max(len(request.joint_names), 1)
        return HandlerTask(self.handle, request, reply, slow=many)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if the request cannot be answered."""
        context = self._context
        robot = context.loaded.model
        names = tuple(request.links) or robot.link_names
        tips = [tip_of(context, robot, name) for name in names]
        links = tuple(tip.link for tip in tips)
        frame = request.header.frame_id
        named = frozenset(request.joint_names)
        context.check_batch(len(links), "links")
        root = robot.root_link if request.base_pose else frame
        ways = [(root, link) for link in links]
        present = context.configuration(robot, ways, named)
        q = states_from_positions(context, robot, request.joint_names, request.positions, present)
        if request.base_pose:
            T_frame_root, q = _based(base_poses(robot, request), q)
        else:  # the frame may itself move with the joints: it is resolved in every state
            T_frame_root = inverse(context.frames.T_root_frame(robot, frame, q, request.header.stamp))
        context.check_batch(len(q) * len(links), "poses")
        T_frame_link = T_frame_root[:, None] @ forward_kinematics(robot, q, links=links)
        for number, tip in enumerate(tips):
            if tip.T_link_tip is not None:
                T_frame_link[:, number] = T_frame_link[:, number] @ tip.T_link_tip
        response.link_names = list(names)
        response.poses = poses_from_matrices(T_frame_link.reshape(-1, 4, 4))
        response.status = status_message(Status.SUCCESS, context.assumed(robot, ways, named))


def _based(
    T_frame_root: Annotated[Float64, "K 4 4"], q: Annotated[Float64, "N nq"]
) -> tuple[Annotated[Float64, "N 4 4"], Annotated[Float64, "N nq"]]:
    """Return a base pose for each state, and a state for each base pose, where one of both is for all."""
    poses, states = len(T_frame_root), len(q)
    if poses != states and 1 not in (poses, states):
        raise InvalidStateError(
            f"base_pose has {poses} poses for {states} states; allowed are one for all, or one for each (or one state "
            "for all)"
        )
    size = max(poses, states)
    return np.broadcast_to(T_frame_root, (size, 4, 4)), np.broadcast_to(q, (size, q.shape[1]))
