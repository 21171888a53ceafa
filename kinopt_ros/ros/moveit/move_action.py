"""move_action: a goal in, planned as by plan_kinematic_path, and then done by the controllers."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import queue
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

from moveit_msgs.action import MoveGroup
from moveit_msgs.msg import MoveItErrorCodes, PlanningScene, RobotState
from moveit_msgs.srv import GetMotionPlan
from trajectory_msgs.msg import JointTrajectory

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.errors import (
    EnvironmentChangedError,
    InvalidRequestError,
    StaleStateError,
    UnsupportedFeatureError,
)
from kinopt_ros.robot.variables import one_variable_each, one_variable_joints
from kinopt_ros.ros.messages.conversions import error_message, said
from kinopt_ros.ros.motion.last_look import at_rest, check_is_at
from kinopt_ros.ros.motion.rights import Claim
from kinopt_ros.ros.moveit.moving_goals import PLANNING, MoveItActions, MovingGoal, error_code
from kinopt_ros.ros.moveit.path_constraints import StartBreaksError
from kinopt_ros.ros.moveit.plan_kinematic_path import PlanKinematicPath
from kinopt_ros.ros.moveit.robot_state import joint_state_of
from kinopt_ros.ros.moveit.scene_messages import check_robot_name
from kinopt_ros.ros.moveit.serving import ask, check
from kinopt_ros.ros.robot.frames import NoTransformYetError
from kinopt_ros.ros.serving.kept_goals import KeptGoals
from kinopt_ros.ros.serving.serving import Serving
from kinopt_ros.status import Status

NAME = "move_action"
ATTEMPTS, MOST_ATTEMPTS = 5, 100
"""Plans of a goal that is to be planned again and does not say how often, as of move_group; and the most."""
MOST_DELAY = 60.0
"""Longest time between two plans, s."""
_LOOK_SECONDS = 0.02
"""Time between two looks whether a goal that waits was told to end, s."""


def offer_move_action(actions: MoveItActions, serving: Serving, planner: PlanKinematicPath) -> None:
    """Offer the action; motions are planned by a service's ``planner``, and its queue."""

    def make(goals: KeptGoals[MovingGoal], handle: Any) -> MoveGroupGoal:
        return MoveGroupGoal(actions, goals, handle, serving, planner, MoveGroup)

    actions.add(MoveGroup, NAME, make)


class MoveGroupGoal(MovingGoal):
    """A goal of moveit_msgs/MoveGroup. It ends when the motion does; one that is cancelled brakes."""

    def __init__(
        self,
        actions: MoveItActions,
        goals: KeptGoals[MovingGoal],
        handle: Any,
        serving: Serving,
        planner: PlanKinematicPath,
        type_: Any,
    ) -> None:
        super().__init__(actions, goals, handle, type_)
        self.serving = serving
        self.planner = planner
        self.moves = not handle.request.planning_options.plan_only

    def read(self) -> None:
        """Refuse by name what is not done here."""
        options = self.handle.request.planning_options
        if options.look_around:
            raise UnsupportedFeatureError("look_around is set, which is not supported here: leave it out")
        check_robot_name(options.planning_scene_diff, self.context.loaded.model)
        if not _is_empty(options.planning_scene_diff):
            raise UnsupportedFeatureError(
                "planning_scene_diff changes the scene for this goal alone, which is not supported here: change it for "
                "all by apply_planning_scene before"
            )
        if not 0.0 <= options.replan_delay <= MOST_DELAY:
            raise InvalidRequestError(
                f"replan_delay is {options.replan_delay:g} s; allowed is 0 to {MOST_DELAY:g}"
            )
        if not 0 <= options.replan_attempts <= MOST_ATTEMPTS:
            raise InvalidRequestError(
                f"replan_attempts is {options.replan_attempts}; allowed is 0 to {MOST_ATTEMPTS}"
            )

    def work(self) -> MoveItErrorCodes:
        """Plan, have the motion done, and plan again if that is wanted and the scene has changed."""
        request = self.handle.request.request
        if not self.moves:
            return self._plan(request)
        options = self.handle.request.planning_options
        attempts = (options.replan_attempts or ATTEMPTS) if options.replan else 1
        joints = self.joints_of([request])
        claim = self.claim(joints, check=lambda: self.check_readable([request], joints))
        try:
            for number in range(attempts):
                if number:
                    self._wait(options.replan_delay)
                    request.start_state = RobotState(is_diff=True)  # it has moved since
                self.wait_for_rest(joints)
                self.begin_at_rest(request.start_state, joints)
                planned = self._plan(request)
                if planned.val != planned.SUCCESS:
                    return planned
                status = self.done(claim, self.result.planned_trajectory.joint_trajectory)
                code = with_notes(error_code(status), planned)
                if status.code != Status.ENVIRONMENT_CHANGED or self.stopped:
                    break
            return code
        finally:
            claim.give_up()

    def joints_of(self, requests: Sequence[Any]) -> tuple[str, ...]:
        """Return the joints that requests move, each once."""
        robot = self.context.loaded.model
        groups = [robot.group(self.context.group_name(robot, request.group_name)) for request in requests]
        names = dict.fromkeys(name for group in groups for name in group.joints)
        return one_variable_each(robot, [name for name in names if robot.joint(name).is_active])

    def check_readable(self, requests: Sequence[Any], joints: Sequence[str]) -> None:
        """Read requests for motions of some joints as if the robot stood, before a motion that runs is ended for them.

        Raises:
            KinoptError: one cannot be answered, whatever the robot does; or the first says that it begins where the
                robot is not.
        """
        for request in requests:
            standing = deepcopy(request)
            self.begin_at_rest(standing.start_state, [*joints, *self._ended_with(joints)])
            # These may be otherwise a moment later, when the robot stands.
            with suppress(StaleStateError, NoTransformYetError, StartBreaksError):
                check(self.serving, self.planner, GetMotionPlan.Request(motion_plan_request=standing))
        self._check_begin(requests[0].start_state, joints)

    def _ended_with(self, joints: Sequence[str]) -> list[str]:
        """Return the joints of motions that end where somebody takes some joints: they stand then, too."""
        robot, now = self.context.loaded.model, self.context.now()
        return [
            name
            for one in self.actions.output.published
            if one.robot is robot and one.runs(now) and not set(joints).isdisjoint(one.message.joint_names)
            for name in one.message.joint_names
        ]

    def _check_begin(self, start: RobotState, joints: Sequence[str]) -> None:
        """Raise StartStateError unless the robot is where a readable start state has the joints that move, as of
        ``check_begin`` of given trajectories."""
        robot = self.context.loaded.model
        state, given = self.context.joint_states.of(robot), joint_state_of(start, robot)
        begin = state.q.copy()
        moved = [(name, at) for name, at in zip(given.name, given.position, strict=True) if name in joints]
        for name, at in moved:
            begin[robot.variable_index[name]] = at
        check_is_at(robot, state, begin, [robot.variable_index[name] for name, _ in moved])

    def begin_at_rest(self, start: RobotState, joints: Sequence[str]) -> None:
        """Complete the state that a motion begins with: at rest, where the joints are, and where others are that stand.
        What is measured of joints that stand is never quite 0, and a motion that begins otherwise is not sent."""
        robot = self.context.loaded.model
        state, given = self.context.joint_states.of(robot), start.joint_state
        still = at_rest(robot, state)
        others = [name for name in one_variable_joints(robot) if still[robot.variable_index[name]]]
        missing = [
            name
            for name in dict.fromkeys([*joints, *others])
            if name not in given.name and state.known[robot.variable_index[name]]
        ]
        given.name = [*given.name, *missing]
        given.position = [*given.position, *(float(state.q[robot.variable_index[name]]) for name in missing)]
        given.velocity = [0.0] * len(given.name)

    def done(self, claim: Claim, motion: JointTrajectory) -> StatusMsg:
        """Have a motion done; a scene in which it may not be is an end as any other."""
        try:
            return self.execute(claim, motion)
        except EnvironmentChangedError as error:
            return error_message(error)

    def _plan(self, request: Any) -> MoveItErrorCodes:
        """Plan as plan_kinematic_path does; put the motion into the result."""
        self.tell(PLANNING)
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        ask(self.serving, self.planner, GetMotionPlan.Request(motion_plan_request=request), answers.put)
        answer = answers.get().motion_plan_response
        self.result.trajectory_start = answer.trajectory_start
        self.result.planned_trajectory = answer.trajectory
        self.result.planning_time = answer.planning_time
        return answer.error_code

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self.stopped and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)


def with_notes(code: MoveItErrorCodes, planned: MoveItErrorCodes) -> MoveItErrorCodes:
    """Return how a motion ended with what was said when it was planned, as of a planner that is none of ours."""
    if hasattr(code, "message"):  # not in Humble
        code.message = said(*dict.fromkeys(f"{code.message}; {planned.message}".split("; ")))
    return code


def _is_empty(scene: PlanningScene) -> bool:
    """Check whether a scene changes nothing, as clients send it that want no change."""
    state, world, matrix = scene.robot_state, scene.world, scene.allowed_collision_matrix
    return not (
        scene.name
        or scene.fixed_frame_transforms
        or matrix.entry_names
        or matrix.default_entry_names
        or scene.link_padding
        or scene.link_scale
        or scene.object_colors
        or world.collision_objects
        or world.octomap.octomap.data
        or state.attached_collision_objects
        or state.joint_state.name
        or state.multi_dof_joint_state.joint_names
    )
