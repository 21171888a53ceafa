"""~/compute_fk: joint positions in, poses of links out."""

from typing import Any

from kinopt_msgs.srv import ComputeFK
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.messages.conversions import poses_from_matrices, status_message
from kinopt_ros.ros.messages.states import states_from_positions
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
        ways = [(frame, link) for link in links]
        present = context.configuration(robot, ways, named)
        q = states_from_positions(context, robot, request.joint_names, request.positions, present)
        context.check_batch(len(q) * len(links), "poses")
        # The frame may itself move with the joints: it is resolved in every state.
        T_frame_root = inverse(context.frames.T_root_frame(robot, frame, q))
        T_frame_link = T_frame_root[:, None] @ forward_kinematics(robot, q, links=links)
        for number, tip in enumerate(tips):
            if tip.T_link_tip is not None:
                T_frame_link[:, number] = T_frame_link[:, number] @ tip.T_link_tip
        response.link_names = list(names)
        response.poses = poses_from_matrices(T_frame_link.reshape(-1, 4, 4))
        response.status = status_message(Status.SUCCESS, context.assumed(robot, ways, named))
