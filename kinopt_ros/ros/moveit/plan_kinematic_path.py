"""plan_kinematic_path: MoveIt's motion planning, answered by ~/plan_trajectory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from moveit_msgs.msg import DisplayTrajectory
from moveit_msgs.srv import GetMotionPlan

from kinopt_msgs.srv import ComputeCartesianPath, PlanTrajectory
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, UnsupportedFeatureError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import said, trajectory_from_message
from kinopt_ros.ros.moveit.codes import fill_error_code, say
from kinopt_ros.ros.moveit.constraints import evaluate, frames_of, has_constraints
from kinopt_ros.ros.moveit.contact_display import ContactDisplay
from kinopt_ros.ros.moveit.goals import goal_fields, keep_limits
from kinopt_ros.ros.moveit.motion_types import (
    MotionType,
    check_line,
    line_fields,
    lines_to_joints,
    motion_type,
    tip_link,
)
from kinopt_ros.ros.moveit.other_motions import OtherMotions
from kinopt_ros.ros.moveit.pace import refuse_speed_limit, scaling
from kinopt_ros.ros.moveit.path_constraints import broken, check_start, kept_along
from kinopt_ros.ros.moveit.planner_names import check_planner, other_planner
from kinopt_ros.ros.moveit.robot_state import configuration_of, fill_robot_state, joint_state_of
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.solvers.registry import solver_names
from kinopt_ros.status import Status


class _Answer(PlanTrajectory.Response):  # type: ignore[misc]  # messages have no types
    """Answer of ~/plan_trajectory, with the additional fields of ~/compute_cartesian_path."""

    def __init__(self) -> None:
        super().__init__()
        self.fraction = 0.0
        self.waypoints_reached = 0


@dataclass(frozen=True, eq=False)
class _Asked:
    """Parts of a request that its answer needs."""

    robot: RobotModel
    start: Annotated[Float64, "nq"]
    goals: Any
    group: str
    frames: Annotated[Float64, "nq"]
    """Configuration in which frames of goals are placed."""
    note: str
    """Sentence about what was asked and is done otherwise; empty if nothing is."""
    path_constraints: Any = None
    """What holds all the way; None if nothing does."""


class PlanKinematicPath(MoveItService):
    """moveit_msgs/GetMotionPlan. A planner_id that names a kind of motion (LIN, PTP) is honoured or refused, see
    ``motion_type``; of other names of planners and pipelines see ``planner_names.py``. How many attempts are made is up
    to the planner within allowed_planning_time. The workspace bounds bases that drive, as in MoveIt: where one moves it
    is refused."""

    name = "plan_kinematic_path"
    type = GetMotionPlan
    answer = _Answer

    def __init__(
        self,
        context: Context,
        plan: Callable[[Any, Reply], Any],
        follow_lines: Callable[[Any, Reply], Any],
        display: Callable[[Any], None] = lambda message: None,
        others: OtherMotions | None = None,
        contacts: ContactDisplay | None = None,
    ) -> None:
        """``plan`` makes tasks of kinopt_msgs/PlanTrajectory requests, ``follow_lines`` of ComputeCartesianPath ones;
        they have what was ``asked``. ``display`` gets every motion that is found, as moveit_msgs/DisplayTrajectory.
        ``others`` are motions that may run meanwhile. ``contacts`` shows what collides where a motion cannot begin or
        end."""
        self._context = context
        self._display = display
        self._others = others
        self._contacts = contacts
        self._plan = plan
        self._follow_lines = follow_lines

    def task(self, request: Any, reply: Reply) -> tuple[Task, _Asked]:
        """Return the task of ~/plan_trajectory or ~/compute_cartesian_path for an equivalent request."""
        given, context = request.motion_plan_request, self._context
        robot = context.loaded.model
        refuse_unsupported(given, robot, robot.group(context.group_name(robot, given.group_name)).joints)
        check_planner(given.pipeline_id, given.planner_id)
        motion = motion_type(given.pipeline_id, given.planner_id)
        state = joint_state_of(given.start_state, robot)
        if self._others is not None:
            self._others.stand_still(state, given.group_name)
        frames = [
            frame
            for constraints in (*given.goal_constraints, given.path_constraints)
            for frame in frames_of(constraints)
        ]
        tip = ""
        if motion is MotionType.LINE:
            check_line(given.goal_constraints)
            tip = tip_link(self._context, robot, given.group_name)
        q = configuration_of(context, state, [*frames, *filter(None, (tip,))])
        moved = keep_limits(robot, given.goal_constraints, context.parameter("limit_tolerance"))
        fields = goal_fields(context, robot, given.goal_constraints, q)
        kept = kept_along(context, robot, given.path_constraints, q)
        common = {
            "group": given.group_name,
            "state": state,
            "timeout": given.allowed_planning_time,
            **scaling(given),
        }
        if motion is MotionType.LINE and "poses" in fields:
            line = line_fields(fields)
            task = self._follow_lines(ComputeCartesianPath.Request(**common, **line), reply)
            start = task.asked.arguments["start"]
        else:
            if motion is MotionType.LINE:
                fields["straight_lines"] = lines_to_joints(robot, tip, q, fields["joint_goals"][0])
            solver = given.planner_id if given.planner_id in solver_names() else ""
            asked = PlanTrajectory.Request(**common, **fields, **vars(kept), solver=solver)
            task = self._plan(asked, reply)
            start = task.asked.problem.start
        check_start(context, robot, given.path_constraints, start, q)
        note = "" if motion is MotionType.LINE else other_planner(given.pipeline_id, given.planner_id)
        kept_all_along = given.path_constraints if has_constraints(given.path_constraints) else None
        goals = given.goal_constraints
        return task, _Asked(robot, start, goals, given.group_name, q, said(note, moved), kept_all_along)

    def write(self, response: Any, answer: Any, asked: _Asked | None) -> None:
        """Write the motion."""
        response = response.motion_plan_response
        response.planning_time = answer.wall_time
        if asked is None:
            fill_error_code(response.error_code, answer.status)
            return
        response.group_name = asked.group
        answer.status.message = said(answer.status.message, asked.note, answer.fallback_reason)
        fill_error_code(response.error_code, answer.status)
        if answer.status.code != Status.SUCCESS:
            self._show_contacts(answer.status.code, asked)
            return
        code = response.error_code
        if not self._reaches(answer, asked):
            say(code, code.GOAL_CONSTRAINTS_VIOLATED, "the motion that was found ends where no goal is met")
            return
        sentence = self._breaks(answer, asked)
        if sentence:
            say(code, code.PLANNING_FAILED, f"the motion that was found breaks {sentence}")
            return
        response.trajectory.joint_trajectory = answer.trajectory
        fill_robot_state(response.trajectory_start, asked.robot, asked.start)
        self._display(
            DisplayTrajectory(
                model_id=asked.robot.name,
                trajectory=[response.trajectory],
                trajectory_start=response.trajectory_start,
            )
        )

    def _show_contacts(self, code: int, asked: _Asked) -> None:
        """Show what collides at the start, or at a goal of joint values."""
        if self._contacts is None:
            return
        robot, q = asked.robot, asked.start.copy()
        if code == Status.GOAL_IN_COLLISION and asked.goals[0].joint_constraints:
            for one in asked.goals[0].joint_constraints:
                if one.joint_name in robot.variable_index:
                    q[robot.variable_index[one.joint_name]] = one.position
        elif code != Status.START_STATE_IN_COLLISION:
            return
        self._contacts.show_state(robot, q)

    def _breaks(self, answer: Any, asked: _Asked) -> str:
        """Return which path constraint a motion breaks by MoveIt's measure; empty if none."""
        if asked.path_constraints is None:
            return ""
        trajectory = trajectory_from_message(answer.trajectory)
        return broken(
            self._context, asked.robot, asked.path_constraints, trajectory, asked.start, asked.frames
        )

    def _reaches(self, answer: Any, asked: _Asked) -> bool:
        """Check whether a motion ends at a goal as MoveIt defines it: its angles are not those that ours are checked
        by."""
        robot = asked.robot
        q = asked.start.copy()
        names = answer.trajectory.joint_names
        q[[robot.variable_index[name] for name in names]] = np.array(answer.trajectory.points[-1].positions)
        return any(
            all(met for met, _ in evaluate(self._context, robot, goal, q, asked.frames))
            for goal in asked.goals
        )


def refuse_unsupported(given: Any, robot: RobotModel, joints: Sequence[str]) -> None:
    """Raise a KinoptError for fields of a MotionPlanRequest for some joints that are not supported."""
    refuse_speed_limit(given)
    if not given.goal_constraints:
        raise InvalidGoalError("goal_constraints is empty; give at least one goal")
    if given.trajectory_constraints.constraints:
        raise InvalidGoalError("trajectory_constraints has constraints, which are not supported here")
    if given.reference_trajectories:
        raise UnsupportedFeatureError("reference_trajectories are given, which are not supported here")
    bounds = (given.workspace_parameters.min_corner, given.workspace_parameters.max_corner)
    for name, corner in zip(("min_corner", "max_corner"), bounds, strict=True):
        numbers = [corner.x, corner.y, corner.z]
        if not np.isfinite(numbers).all():
            raise InvalidRequestError(
                f"workspace_parameters.{name} is {numbers}; allowed are finite numbers, or zeros"
            )
    driving = [name for name in joints if robot.joint(name).type in (JointType.PLANAR, JointType.FLOATING)]
    if driving and any(corner.x or corner.y or corner.z for corner in bounds):
        raise UnsupportedFeatureError(
            f"workspace_parameters bounds {', '.join(driving)}, which is not supported here: bounds of such joints are "
            "those of the robot's description"
        )
    floating = [name for name in joints if robot.joint(name).type is JointType.FLOATING]
    if floating:
        raise UnsupportedFeatureError(
            f"the group has the floating joint {floating[0]!r}, whose turning no JointTrajectory can say; "
            "~/plan_trajectory moves it"
        )
