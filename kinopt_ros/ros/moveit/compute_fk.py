"""compute_fk: MoveIt's forward kinematics, answered by ~/compute_fk."""

from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK
from std_msgs.msg import Header

from kinopt_msgs.srv import ComputeFK
from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.moveit.codes import fill_error_code
from kinopt_ros.ros.moveit.robot_state import joint_state_of
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.status import Status


class NoLinkError(KinoptError):
    """A request asks for poses of no links."""

    status = Status.INVALID_LINK_NAME


class ComputeFk(MoveItService):
    """moveit_msgs/GetPositionFK. Tool frames and attached objects are links, too."""

    name = "compute_fk"
    type = GetPositionFK
    answer = ComputeFK.Response

    def __init__(self, context: Context, compute_fk: Callable[[Any, Reply], Task]) -> None:
        """``compute_fk`` makes tasks of kinopt_msgs/ComputeFK requests."""
        self._context = context
        self._compute_fk = compute_fk

    def task(self, request: Any, reply: Reply) -> tuple[Task, str]:
        """Return the task of ~/compute_fk for an equivalent request, and the frame of its answer."""
        if not request.fk_link_names:
            raise NoLinkError("fk_link_names is empty; give at least one link")
        robot = self._context.loaded.model
        state = joint_state_of(request.robot_state, robot)
        given = ComputeFK.Request(
            header=request.header,
            links=request.fk_link_names,
            joint_names=state.name,
            positions=state.position,
        )
        return self._compute_fk(given, reply), request.header.frame_id or robot.root_link

    def write(self, response: Any, answer: Any, asked: str | None) -> None:
        """Write one pose for each link."""
        fill_error_code(response.error_code, answer.status)
        if asked is not None and answer.status.code == Status.SUCCESS:
            stamp = self._context.node.get_clock().now().to_msg()
            response.fk_link_names = answer.link_names
            response.pose_stamped = [
                PoseStamped(header=Header(stamp=stamp, frame_id=asked), pose=pose) for pose in answer.poses
            ]
