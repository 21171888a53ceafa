"""compute_cartesian_path: MoveIt's straight lines, answered by ~/compute_cartesian_path."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moveit_msgs.srv import GetCartesianPath

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_msgs.srv import ComputeCartesianPath as Ours
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import status_message, trajectory_from_message
from kinopt_ros.ros.moveit.codes import fill_error_code, say
from kinopt_ros.ros.moveit.constraints import frames_of, has_constraints
from kinopt_ros.ros.moveit.other_motions import OtherMotions
from kinopt_ros.ros.moveit.pace import refuse_speed_limit, scaling
from kinopt_ros.ros.moveit.path_constraints import broken, check_start, kept_along
from kinopt_ros.ros.moveit.robot_state import configuration_of, fill_robot_state, joint_state_of
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

    def __init__(
        self, context: Context, plan: Callable[[Any, Reply], Any], others: OtherMotions | None = None
    ) -> None:
        """``plan`` makes tasks of kinopt_msgs/ComputeCartesianPath requests; they have what was ``asked``. ``others``
        are motions that may run meanwhile."""
        self._context = context
        self._plan = plan
        self._others = others

    def task(self, request: Any, reply: Reply) -> tuple[Task, Any]:
        """Return the task of ~/compute_cartesian_path for an equivalent request."""
        refuse_speed_limit(request)
        if not request.max_step > 0.0:
            raise InvalidRequestError(f"max_step is {request.max_step:g} m; allowed is a number above 0")
        state = joint_state_of(request.start_state, self._context.loaded.model)
        if self._others is not None:
            self._others.stand_still(state, request.group_name)
        given = Ours.Request(
            header=request.header,
            waypoints=request.waypoints,
            group=request.group_name,
            link=request.link_name,
            state=state,
            max_step=request.max_step,
            jump_factor=request.jump_threshold,
            max_revolute_jump=request.revolute_jump_threshold,
            max_prismatic_jump=request.prismatic_jump_threshold,
            ignore_collisions=not request.avoid_collisions,
            **scaling(request),
        )
        constraints, context = request.path_constraints, self._context
        if not has_constraints(constraints):
            task = self._plan(given, reply)
            return task, _Asked(task.asked)
        robot = context.loaded.model
        frames = configuration_of(context, given.state, frames_of(constraints))
        kept_along(context, robot, constraints, frames)  # refuses what cannot be kept
        task = self._plan(given, reply)
        check_start(context, robot, constraints, task.asked.arguments["start"], frames)
        return task, _Asked(task.asked, constraints, frames)

    def write(self, response: Any, answer: Any, asked: "_Asked | None") -> None:
        """Write the motion as far as it goes, unless it breaks path_constraints."""
        fill_error_code(response.error_code, _status(answer))
        if asked is None or not answer.trajectory.points:
            response.fraction = answer.fraction
            return
        robot, start = asked.ours.loaded.model, asked.ours.arguments["start"]
        if asked.constraints is not None:
            trajectory = trajectory_from_message(answer.trajectory)
            sentence = broken(self._context, robot, asked.constraints, trajectory, start, asked.frames)
            if sentence:
                say(
                    response.error_code,
                    response.error_code.PLANNING_FAILED,
                    f"the straight way breaks {sentence}",
                )
                return
        response.fraction = answer.fraction
        response.solution.joint_trajectory = answer.trajectory
        fill_robot_state(response.start_state, robot, start)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Parts of a request that its answer needs."""

    ours: Any
    """What was asked of ~/compute_cartesian_path."""
    constraints: Any = None
    """Path constraints; None if there are none."""
    frames: Any = None
    """Configuration (nq,) in which their frames are placed."""


def _status(answer: Any) -> StatusMsg:
    if answer.status.code == Status.SUCCESS or not answer.trajectory.points:
        return answer.status
    code = Status(answer.status.code).name
    return status_message(Status.SUCCESS, f"the path ends early: {code}: {answer.status.message}")
