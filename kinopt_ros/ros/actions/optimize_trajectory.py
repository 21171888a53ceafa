"""~/optimize_trajectory: a goal in, feedback on the way, one verified motion out; it can be cancelled at any time.

rclpy runs a goal's callback on the executor's thread, or polls it. Here goals are worked on by threads of their own,
and rclpy is told only how a goal ends, by a thread of the server. So a cancelled goal ends at once, and what its thread
still finds is dropped.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import time
from collections.abc import Callable
from typing import Any

import rclpy

from kinopt_msgs.action import OptimizeTrajectory
from kinopt_msgs.msg import MotionReport
from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.errors import StaleStateError
from kinopt_ros.planning.scheduler import Scheduler
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import said, status_message
from kinopt_ros.ros.messages.sizes import check_lengths, let_go
from kinopt_ros.ros.messages.trajectory_answer import empty_answer, whole_controller
from kinopt_ros.ros.motion.controller_hand_over import ControllerHandOver
from kinopt_ros.ros.motion.controllers import ChosenControllers, Controllers, commanded
from kinopt_ros.ros.motion.last_look import MovingError, PlannedFor
from kinopt_ros.ros.motion.output import ClosedError, MotionOutput
from kinopt_ros.ros.motion.rights import Claim
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.ros.motion.watched import WatchedMotions
from kinopt_ros.ros.requests.planning_task import PlanningTask
from kinopt_ros.ros.requests.trajectory import TrajectoryRequest, read_trajectory_request
from kinopt_ros.ros.requests.trajectory_work import check_request, plan
from kinopt_ros.ros.robot.frames import NoTransformYetError
from kinopt_ros.ros.robot.joint_states import UNREAD_SECONDS
from kinopt_ros.ros.serving.defects import error_status
from kinopt_ros.ros.serving.kept_goals import KeptGoal, KeptGoals
from kinopt_ros.ros.serving.retries import Retries
from kinopt_ros.ros.serving.urgent import UrgentExecutor
from kinopt_ros.solvers.paths import Progress
from kinopt_ros.status import Status

NAME = "optimize_trajectory"
FEEDBACK_SECONDS = 0.05
"""Least time between two messages of feedback about stages that were told before, s."""
REST_SECONDS = 2.0
"""Longest time that a goal that publishes waits until the robot stands, s."""


class OptimizeTrajectoryAction:
    """Handler of kinopt_msgs/OptimizeTrajectory. Accepts every goal, and ends each with exactly one result.

    Goals wait for each other's threads, not for each other, but for those that publish: the robot has one owner, so
    the newest of them ends the one before.
    """

    def __init__(
        self,
        context: Context,
        scheduler: Scheduler,
        output: MotionOutput,
        controllers: Controllers,
        watched: WatchedMotions,
        urgent: UrgentExecutor,
        retries: Retries,
    ) -> None:
        """
        Args:
            context: the node's.
            scheduler: whose threads plan.
            output: what motions are sent through.
            controllers: who does them.
            watched: watches them.
            urgent: hears cancels.
            retries: begins goals once more that have to wait.
        """
        self.context = context
        self.scheduler = scheduler
        self.output = output
        self.controllers = controllers
        self.watched = watched
        controllers.needed_by(self._needs)
        self.retries = retries
        self._goals: KeptGoals[_Goal] = KeptGoals(
            context, urgent, OptimizeTrajectory, f"~/{NAME}", lambda goals, handle: _Goal(self, goals, handle)
        )
        output.before_stops(lambda: self._goals.server.tell_unread(_Goal.come_before_a_stop))

    def close(self) -> None:
        """End all goals, so that nobody waits for a result for ever."""
        for goal in self._goals.present:
            goal.refuse(ClosedError("the node is shutting down"))
        self._goals.close()

    def _needs(self, controller: ControllerHandOver) -> bool:
        return any(goal.chosen is not None and goal.chosen.uses(controller) for goal in self._goals.present)


class _Goal(KeptGoal):
    """One goal, from its arrival to its result."""

    def __init__(self, action: OptimizeTrajectoryAction, goals: KeptGoals[_Goal], handle: Any) -> None:
        super().__init__(goals, handle)
        self._action = action
        self._stops = action.output.stops
        self._claim: Claim | None = None
        self.chosen: ChosenControllers | None = None
        self._run: MotionRun | None = None
        self._queue_time = 0.0
        self._told = -FEEDBACK_SECONDS
        self._stages: set[str] = set()
        """Stages that the client was told of."""

    def begin(self) -> None:
        """Put the goal in line, at once or as soon as what it needs is known."""

        def begun() -> bool:
            done = self.is_over or self.read()
            if done:
                # What was asked is read, and rclpy keeps the goal for as long as its result can be asked for.
                let_go(self.handle.request)
            return done

        if not begun():
            self._action.retries.add(begun)

    def read(self) -> bool:
        """Read the goal and put it in line, or refuse it; False if it is to begin once more a little later, when the
        robot stands, joint states that may lie unread are read, or tf has what its stamp asks for. On the executor's
        thread."""
        action, request = self._action, self.handle.request
        try:
            check_lengths(request, action.context.parameter("max_batch"))
            try:
                asked = read_trajectory_request(action.context, request, self.arrived, request.publish)
                if request.publish and self._claim is None:
                    self._check(asked)
                if request.publish and self._is_moved():
                    raise MovingError("a motion of this node is not over: wait until it is, or stop it")
            except (MovingError, StaleStateError) as error:
                # By the goal before, whose end it has to be told, or one that was cancelled a moment ago.
                patience = REST_SECONDS if isinstance(error, MovingError) else UNREAD_SECONDS
                if not action.retries.allowed(self.arrived, patience):
                    raise
                if request.publish and self._claim is None:
                    if not self._can_begin():
                        return False
                    self._take_claim()  # the newest has the robot, whoever begins first
                return False
            except NoTransformYetError as error:
                patience = action.context.parameter("tf_timeout")
                if not action.retries.allowed(self.arrived, patience):
                    raise error.after(patience) from error
                return False
            if request.publish and not self._take_claim():
                return True
            action.scheduler.submit(_GoalTask(request.client, self, asked))
        except Exception as error:  # nothing leaves a callback
            self.refuse(error)
        return True

    def _is_moved(self) -> bool:
        """Whether a motion of this node is not over, as far as is seen."""
        context = self._action.context
        now = context.now()
        return any(
            one.runs_as_seen(context.joint_states.of(one.robot), now) for one in self._action.output.published
        )

    def _can_begin(self) -> bool:
        """Look whether the goal can be used once the robot stands; False if only tf lacks what its stamp asks for.

        Nobody ends a motion by a goal that can never begin.

        Raises:
            KinoptError: it cannot.
        """
        action = self._action
        try:
            asked = read_trajectory_request(
                action.context, self.handle.request, self.arrived, publish=True, unseen=True
            )
        except NoTransformYetError:
            return False
        self._check(asked)
        return True

    def _check(self, asked: TrajectoryRequest) -> None:
        """Raise KinoptError if a goal that publishes cannot be planned or done, whatever the robot does."""
        check_request(asked)
        self.chosen = self._action.controllers.chosen()
        commanded(self._action.context, self.chosen, asked.problem.joints)

    def _take_claim(self) -> bool:
        """Ask for the right to move the robot, once; False for a goal that was cancelled while it was read."""
        if self.is_over:
            return False
        if self._claim is not None:
            return True
        claim = self._action.output.claim(f"another goal of ~/{NAME}", self._preempt, self._stops)
        with self._lock:
            self._claim = claim
            over = self._ended
        if over:
            claim.give_up()
        return not over

    # On any thread.

    def cancel(self) -> None:
        """End the goal as cancelled, now."""
        self._end(_failed(Status.PREEMPTED, "the goal was cancelled"), self.handle.canceled)

    def refuse(self, error: Exception, waited: float = 0.0) -> None:
        """End the goal with the code and sentence of an error; ``waited``: for its turn, s."""
        self._queue_time = waited
        result = empty_answer(OptimizeTrajectory.Result())
        result.status = error_status(self._action.context.node.get_logger(), f"in ~/{NAME}", error)
        self._end(result, self.handle.abort)

    def work(self, asked: TrajectoryRequest, waited: float) -> None:
        """Plan, publish if that is wanted, and end the goal; ``waited``: for its turn, s."""
        self._queue_time = waited
        result = OptimizeTrajectory.Result()
        pooled = plan(asked, result, self._action.context.statistics, self._report)
        if not pooled.result.success:
            self._end(result, self.handle.abort)
        elif self._claim is None:
            self._end(result, self.handle.succeed)
        else:
            self._publish(asked, self._claim, result)

    def _publish(self, asked: TrajectoryRequest, claim: Claim, result: Any) -> None:
        """Send the motion to the controller, unless the goal has ended meanwhile."""
        message = result.trajectory
        if asked.controller_joints:
            robot, start = asked.loaded.model, asked.problem.start
            message = whole_controller(
                message,
                list(asked.controller_joints),
                [float(start[robot.variable_index[name]]) for name in asked.controller_joints],
            )
        result.published = True
        problem = asked.problem
        unchecked = "With ignore_collisions the robot moves unchecked"
        planned = PlannedFor(asked.loaded, problem.start, problem.scene, problem.clearance, unchecked)

        run = MotionRun(self._action.context, self._action.output, self.chosen, judged=False)
        watched = self._action.watched
        if self.chosen is None:
            # Cancelled before: nothing is published; after: it was. Who claimed the robot meanwhile has ended the goal.
            if run.send(claim, message, planned, keep=False, agreed=self.take_end):
                self.conclude(result, self.handle.succeed, result.status.code)
                report = MotionReport(header=message.header, solver_used=result.solver_used)
                watched.begin_reported(run, f"~/{NAME}", report, self.arrived)
            return

        def ended(status: StatusMsg) -> None:
            if status.code == Status.SUCCESS:
                result.status.message = said(result.status.message, status.message)
                self._end(result, self.handle.succeed)
                return
            result.status = status
            self._end(result, self.handle.abort)

        with self._lock:
            self._run = run
            over = self._ended
        if not over and run.send(claim, message, planned):
            watched.begin(run, ended)

    def _preempt(self, owner: str) -> None:
        result = _failed(Status.PREEMPTED, f"{owner} came later: the robot has one owner at a time")
        self._end(result, self.handle.abort)

    def _end(self, result: Any, transition: Callable[..., None]) -> None:
        """Give the goal its result, unless it has one."""
        self.end(result, transition, result.status.code)

    def conclude(
        self, result: Any, transition: Callable[..., None], code: int, queue_time: float = 0.0
    ) -> None:
        """Give the goal its result, and the robot to others."""
        if self._claim is not None:
            self._claim.give_up()
        with self._lock:
            run = self._run
        if run is not None:
            run.stop(Status.PREEMPTED, "its goal has ended")  # unless it is done
        result.queue_time = self._queue_time
        result.wall_time = time.monotonic() - self.arrived
        super().conclude(result, transition, code, self._queue_time)

    def _report(self, progress: Progress) -> bool:
        """Tell the client how far the search is; return whether to go on."""
        if self._ended:
            return False
        now = time.monotonic()
        if now - self._told >= FEEDBACK_SECONDS or progress.stage not in self._stages:
            self._told = now
            self._stages.add(progress.stage)
            feedback = OptimizeTrajectory.Feedback(
                stage=progress.stage,
                iteration=progress.iteration,
                cost_names=[name for name, _ in progress.costs],
                costs=[value for _, value in progress.costs],
                clearance=progress.clearance,
                elapsed=now - self.arrived,
            )
            try:
                self.handle.publish_feedback(feedback)
            except RuntimeError:  # InvalidHandle and RCLError are among them
                if rclpy.ok():  # otherwise the node is going away
                    raise
                return False
        return True


class _GoalTask(PlanningTask):
    """A goal in line."""

    def __init__(self, client: str, goal: _Goal, asked: TrajectoryRequest) -> None:
        super().__init__(client, asked.loaded, asked.problem.scene, asked.timeout, goal.arrived)
        self._goal = goal
        self._asked = asked

    def must_wait(self) -> bool:
        """Check whether what the goal needs is still being prepared; one that is over needs nothing."""
        return not self._goal.is_over and super().must_wait()

    def slow(self) -> None:
        """Work on the goal, unless it is over."""
        if not self._goal.is_over:
            super().slow()

    def answer(self) -> None:
        """Work on the goal."""
        self._goal.work(self._asked, self.waited)

    def refuse(self, error: Exception) -> None:
        """End the goal with an error."""
        self._goal.refuse(error, self.waited)


def _failed(status: Status, sentence: str) -> Any:
    result = empty_answer(OptimizeTrajectory.Result())
    result.status = status_message(status, sentence)
    return result
