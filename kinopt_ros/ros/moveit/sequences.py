"""MoveIt's sequences: several motions, each from where the one before ends; by service and by action.

Each is planned as by plan_kinematic_path, and the robot stands between two of them: a ``blend_radius`` above 0 is
refused. Motions of the same joints, one after the other, become one trajectory.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import queue
from collections.abc import Callable, Sequence
from typing import Any

from moveit_msgs.action import MoveGroupSequence
from moveit_msgs.msg import MotionSequenceResponse, MoveItErrorCodes, RobotState, RobotTrajectory
from moveit_msgs.srv import GetMotionPlan, GetMotionSequence
from rclpy.node import Node

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, UnsupportedFeatureError
from kinopt_ros.ros.messages.conversions import longer
from kinopt_ros.ros.messages.qos import QUEUED
from kinopt_ros.ros.messages.sizes import check_lengths
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.ros.moveit.move_action import MoveGroupGoal, with_notes
from kinopt_ros.ros.moveit.moving_goals import PLANNING, MoveItActions, MovingGoal, error_code
from kinopt_ros.ros.moveit.plan_kinematic_path import PlanKinematicPath
from kinopt_ros.ros.moveit.serving import ask
from kinopt_ros.ros.serving.defects import error_status
from kinopt_ros.ros.serving.deferred import Pending, create_deferred_service
from kinopt_ros.ros.serving.kept_goals import KeptGoals
from kinopt_ros.ros.serving.serving import Serving
from kinopt_ros.status import Status

SERVICE, ACTION = "plan_sequence_path", "sequence_move_group"
MOST_ITEMS = 100
"""Most motions of a sequence."""


class PlannedSequence:
    """Plans the motions of a sequence, each when the one before is there."""

    def __init__(
        self,
        serving: Serving,
        planner: PlanKinematicPath,
        items: Sequence[Any],
        done: Callable[[MotionSequenceResponse], None],
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """
        Args:
            serving: by which motions are planned.
            planner: plans them.
            items: moveit_msgs/MotionSequenceItem; they are changed.
            done: called once with the answer, on any thread.
            wanted: asked between two motions; with False the sequence ends as PREEMPTED.
        """
        self._serving = serving
        self._planner = planner
        self._items = list(items)
        self._done = done
        self._wanted = wanted
        self._at: dict[str, float] = {}
        """Where joints are at the end of the motions so far, rad or m."""
        self._response = MotionSequenceResponse()

    def begin(self) -> None:
        """Plan the first motion. Returns at once."""
        self._next()

    def _next(self) -> None:
        request = self._items.pop(0).req
        if self._at:
            request.start_state = _standing_at(self._at)
        ask(self._serving, self._planner, GetMotionPlan.Request(motion_plan_request=request), self._take)

    def _take(self, answer: Any) -> None:
        """Take the answer of one motion."""
        given, response = answer.motion_plan_response, self._response
        response.planning_time += given.planning_time
        response.error_code = with_notes(given.error_code, response.error_code)
        if given.error_code.val != MoveItErrorCodes.SUCCESS:
            response.planned_trajectories = []  # half of a sequence is none
            self._done(response)
            return
        if not self._at:
            response.sequence_start = given.trajectory_start
            start = given.trajectory_start.joint_state
            self._at = dict(zip(start.name, start.position, strict=True))
        trajectory = given.trajectory.joint_trajectory
        self._at.update(zip(trajectory.joint_names, trajectory.points[-1].positions, strict=True))
        _append(response.planned_trajectories, given.trajectory)
        if not self._items:
            self._done(response)
        elif not self._wanted():
            status = StatusMsg(code=int(Status.PREEMPTED), message="the sequence is not wanted any more")
            response.error_code, response.planned_trajectories = error_code(status), []
            self._done(response)
        else:
            self._next()


def check_items(items: Sequence[Any]) -> None:
    """Raise a KinoptError unless items are a sequence that can be planned here."""
    if not 1 <= len(items) <= MOST_ITEMS:
        raise InvalidRequestError(f"the sequence has {len(items)} items; allowed is 1 to {MOST_ITEMS}")
    for k, item in enumerate(items):
        if not item.blend_radius >= 0.0:
            raise InvalidRequestError(
                f"items[{k}] has a blend_radius of {item.blend_radius:g} m; allowed is 0 or more"
            )
        if item.blend_radius > 0.0:
            raise UnsupportedFeatureError(
                f"items[{k}] has a blend_radius of {item.blend_radius:g} m, which is not supported here: the "
                "robot stands between two motions. Give 0"
            )
        state = item.req.start_state
        if k and (
            state.joint_state.name
            or state.multi_dof_joint_state.joint_names
            or state.attached_collision_objects
        ):
            raise InvalidStateError(
                f"items[{k}] has a start_state; allowed is one of the first item alone: the others begin where the "
                "motion before ends"
            )


def offer_plan_sequence_path(node: Node, serving: Serving, planner: PlanKinematicPath) -> str:
    """Offer the service; return its name."""

    def begin(request: Any, pending: Pending, alone: bool) -> None:
        del alone

        def send(planned: MotionSequenceResponse) -> None:
            pending.send(GetMotionSequence.Response(response=planned))

        try:
            check_lengths(request, serving.context.parameter("max_batch"))
            check_items(request.request.items)
            PlannedSequence(serving, planner, request.request.items, send).begin()
        except Exception as error:  # nothing leaves a callback
            said = error_status(node.get_logger(), f"in {SERVICE}", error)
            node.get_logger().warning(f"{SERVICE}: {said.message}", throttle_duration_sec=1.0)
            send(MotionSequenceResponse(error_code=error_code(said)))

    create_deferred_service(node, GetMotionSequence, SERVICE, begin, qos_profile=QUEUED)
    return SERVICE


def offer_sequence_move_group(actions: MoveItActions, serving: Serving, planner: PlanKinematicPath) -> None:
    """Offer the action; motions are planned by a service's ``planner``, and its queue."""

    def make(goals: KeptGoals[MovingGoal], handle: Any) -> SequenceGoal:
        return SequenceGoal(actions, goals, handle, serving, planner, MoveGroupSequence)

    actions.add(MoveGroupSequence, ACTION, make)


class SequenceGoal(MoveGroupGoal):
    """A goal of moveit_msgs/MoveGroupSequence: all is planned before the robot moves."""

    def read(self) -> None:
        """Refuse by name what is not done here."""
        super().read()
        if self.handle.request.planning_options.replan:
            raise UnsupportedFeatureError(
                "replan is set, which is not supported here for sequences: send the goal again"
            )
        check_items(self.handle.request.request.items)

    def set_code(self, code: MoveItErrorCodes) -> None:
        """Put a code into the result."""
        self.result.response.error_code = code

    def work(self) -> MoveItErrorCodes:
        """Plan all motions, and have them done."""
        items = self.handle.request.request.items
        if not self.moves:
            return self._plan_all(items)
        requests = [item.req for item in items]
        joints = self.joints_of(requests)
        claim = self.claim(joints, check=lambda: self.check_readable(requests, joints))
        try:
            self.wait_for_rest(joints)
            self.begin_at_rest(items[0].req.start_state, joints)
            code = planned = self._plan_all(items)
            for trajectory in self.result.response.planned_trajectories if code.val == code.SUCCESS else ():
                status = self.done(claim, trajectory.joint_trajectory)
                code = with_notes(error_code(status), planned)
                if code.val != code.SUCCESS:
                    break
            return code
        finally:
            claim.give_up()

    def _plan_all(self, items: Sequence[Any]) -> MoveItErrorCodes:
        self.tell(PLANNING)
        answers: queue.SimpleQueue[MotionSequenceResponse] = queue.SimpleQueue()
        wanted = lambda: not self.stopped  # noqa: E731
        PlannedSequence(self.serving, self.planner, items, answers.put, wanted).begin()
        self.result.response = answers.get()
        return self.result.response.error_code


def _standing_at(at: dict[str, float]) -> RobotState:
    """Return a state in which some joints stand."""
    state = RobotState(is_diff=True)
    state.joint_state.name, state.joint_state.position = list(at), list(at.values())
    state.joint_state.velocity = [0.0] * len(at)
    return state


def _append(trajectories: list[RobotTrajectory], new: RobotTrajectory) -> None:
    """Add a motion to those before: to the last one, if it is of the same joints."""
    given = new.joint_trajectory
    last = trajectories[-1].joint_trajectory if trajectories else None
    if last is None or list(last.joint_names) != list(given.joint_names):
        trajectories.append(new)
        return
    begin = nanoseconds(last.points[-1].time_from_start)
    for point in given.points[1:]:  # the first one is the last of the motion before
        point.time_from_start = longer(point.time_from_start, begin)
        last.points.append(point)
