"""compute_cartesian_path: MoveIt's straight lines, answered by ~/compute_cartesian_path."""

from collections.abc import Callable
from typing import Any

from moveit_msgs.srv import GetCartesianPath

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_msgs.srv import ComputeCartesianPath as Ours
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import status_message
from kinopt_ros.ros.moveit.codes import fill_error_code
from kinopt_ros.ros.moveit.constraints import refuse_constraints
from kinopt_ros.ros.moveit.pace import refuse_speed_limit, scaling
from kinopt_ros.ros.moveit.robot_state import fill_robot_state, joint_state_of
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.status import Status


class ComputeCartesianPath(MoveItService):
    """moveit_msgs/GetCartesianPath. As in MoveIt, a path that ends early is a SUCCESS with a fraction below 1 (its
    message says why it ends); one that does not even begin is not. The motion is timed and verified; jumps of joints
    are always bounded, by the defaults of ~/compute_cartesian_path where the request gives no threshold."""

    name = "compute_cartesian_path"
    type = GetCartesianPath
    answer = Ours.Response

    def __init__(self, context: Context, plan: Callable[[Any, Reply], Any]) -> None:
        """``plan`` makes tasks of kinopt_msgs/ComputeCartesianPath requests; they have what was ``asked``."""
        self._context = context
        self._plan = plan

    def task(self, request: Any, reply: Reply) -> tuple[Task, Any]:
        """Return the task of ~/compute_cartesian_path for an equivalent request."""
        refuse_constraints(request.path_constraints, "path_constraints")
        refuse_speed_limit(request)
        if not request.max_step > 0.0:
            raise InvalidRequestError(f"max_step is {request.max_step:g} m; allowed is a number above 0")
        given = Ours.Request(
            header=request.header,
            waypoints=request.waypoints,
            group=request.group_name,
            link=request.link_name,
            state=joint_state_of(request.start_state, self._context.loaded.model),
            max_step=request.max_step,
            jump_factor=request.jump_threshold,
            max_revolute_jump=request.revolute_jump_threshold,
            max_prismatic_jump=request.prismatic_jump_threshold,
            ignore_collisions=not request.avoid_collisions,
            **scaling(request),
        )
        task = self._plan(given, reply)
        return task, task.asked

    def write(self, response: Any, answer: Any, asked: Any) -> None:
        """Write the motion as far as it goes."""
        fill_error_code(response.error_code, _status(answer))
        response.fraction = answer.fraction
        if asked is not None and answer.trajectory.points:
            response.solution.joint_trajectory = answer.trajectory
            fill_robot_state(response.start_state, asked.loaded.model, asked.arguments["start"])


def _status(answer: Any) -> StatusMsg:
    if answer.status.code == Status.SUCCESS or not answer.trajectory.points:
        return answer.status
    code = Status(answer.status.code).name
    return status_message(Status.SUCCESS, f"the path ends early: {code}: {answer.status.message}")
