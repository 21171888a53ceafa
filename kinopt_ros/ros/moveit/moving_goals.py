"""What MoveIt's actions that move the robot share: threads, feedback, cancel and stop, one result for each goal."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import rclpy
from builtin_interfaces.msg import Time
from moveit_msgs.msg import MoveItErrorCodes
from rclpy.serialization import deserialize_message
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.errors import quoted
from kinopt_ros.planning.scheduler import QueueFullError
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import status_message
from kinopt_ros.ros.messages.sizes import check_lengths, let_go
from kinopt_ros.ros.motion.controller_hand_over import ControllerHandOver
from kinopt_ros.ros.motion.controllers import ChosenControllers, Controllers, commanded
from kinopt_ros.ros.motion.output import ClosedError, MotionOutput
from kinopt_ros.ros.motion.rights import Claim
from kinopt_ros.ros.motion.run import REST_SECONDS, MotionRun
from kinopt_ros.ros.moveit.codes import fill_error_code
from kinopt_ros.ros.moveit.given_trajectory import check_given
from kinopt_ros.ros.serving.defects import error_status
from kinopt_ros.ros.serving.kept_goals import KeptGoal, KeptGoals
from kinopt_ros.ros.serving.urgent import UrgentExecutor
from kinopt_ros.status import Status

PLANNING, MONITOR, IDLE = "PLANNING", "MONITOR", "IDLE"
"""States that move_group reports."""
THREADS = 16
"""Goals that are worked on at the same time; of those that move the same joints there is one."""
STOP_EVENT = "stop"
"""Text on trajectory_execution_event that stops what moves."""
_LONGEST_EVENT = 1000
"""Longest message there that is read, bytes."""


class MoveItActions:
    """The actions of one node."""

    def __init__(
        self, context: Context, output: MotionOutput, controllers: Controllers, urgent: UrgentExecutor
    ) -> None:
        """
        Args:
            context: the node's.
            output: what motions are sent through.
            controllers: who does them.
            urgent: hears cancels, and stops.
        """
        self.context = context
        self.output = output
        self.controllers = controllers
        self.urgent = urgent
        self.workers = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="moveit_goal")
        self._actions: list[KeptGoals[MovingGoal]] = []
        controllers.needed_by(self._needs)
        context.node.create_subscription(
            # As bytes: to make a text of a long one keeps all threads waiting, that of the emergency stop included.
            String,
            "trajectory_execution_event",
            self._take_event,
            10,
            callback_group=urgent.group,
            raw=True,
        )

    def add(self, type_: Any, name: str, make: Callable[[KeptGoals[MovingGoal], Any], MovingGoal]) -> None:
        """Offer an action."""
        goals = KeptGoals(self.context, self.urgent, type_, name, make)
        self._actions.append(goals)
        self.output.before_stops(lambda: goals.server.tell_unread(MovingGoal.come_before_a_stop))

    @property
    def names(self) -> list[str]:
        """Names of the actions."""
        return [action.name for action in self._actions]

    def submit(self, work: Callable[[], None]) -> None:
        """Have a goal worked on.

        Raises:
            QueueFullError: too many wait.
        """
        most = self.context.parameter("queue_size")
        if sum(1 for _ in self._goals()) > most:
            raise QueueFullError(f"{most} goals of MoveIt's actions wait already (parameter queue_size)")
        self.workers.submit(work)

    def close(self) -> None:
        """End all goals, so that nobody waits for a result for ever."""
        for goal in self._goals():
            goal.refuse(ClosedError("the node is shutting down"))
        self.workers.shutdown(wait=False, cancel_futures=True)
        for action in self._actions:
            action.close()

    def _goals(self) -> Iterable[MovingGoal]:
        return [goal for action in self._actions for goal in action.present]

    def _needs(self, controller: ControllerHandOver) -> bool:
        return any(goal.chosen is not None and goal.chosen.uses(controller) for goal in self._goals())

    def _take_event(self, serialized: bytes) -> None:
        """Stop what these actions move. On the thread of urgent callbacks."""
        said = deserialize_message(serialized, String).data if len(serialized) <= _LONGEST_EVENT else None
        if said != STOP_EVENT:
            given = f"a text of {len(serialized)} bytes" if said is None else quoted(said)
            self.context.node.get_logger().warning(
                f"trajectory_execution_event: {given} is not known; allowed is {STOP_EVENT!r}",
                throttle_duration_sec=1.0,
            )
            return
        for action in self._actions:
            action.server.tell_unread(_stop_by_event)
        for goal in self._goals():
            _stop_by_event(goal)


def _stop_by_event(goal: MovingGoal) -> None:
    if goal.moves:
        goal.stop(Status.PREEMPTED, f"{STOP_EVENT!r} came on trajectory_execution_event")


class MovingGoal(KeptGoal):
    """One goal of an action whose result has an ``error_code`` and whose feedback has a ``state``."""

    moves = True
    """Whether the robot is to move; else it is planned for only."""

    def __init__(self, actions: MoveItActions, goals: KeptGoals[MovingGoal], handle: Any, type_: Any) -> None:
        super().__init__(goals, handle)
        self.actions = actions
        self.context = actions.context
        self.chosen: ChosenControllers | None = None
        self.result = type_.Result()
        self._type = type_
        self._stops = actions.output.stops
        self._run: MotionRun | None = None
        self._sends = False
        """Whether the robot may move by it already: then it ends when that stands."""
        self._stopped: tuple[Status, str] | None = None
        self._patience = REST_SECONDS
        """For how long it still waits until the robot stands, s, in all: a joint may turn for ever."""

    def begin(self) -> None:
        """Have it worked on."""
        if self.is_over:
            let_go(self.handle.request)
            return
        try:
            check_lengths(self.handle.request, self.context.parameter("max_batch"))
            self.read()
            if self.moves:
                self.chosen = self.actions.controllers.chosen()
            self.actions.submit(self._work)
        except Exception as error:  # nothing leaves a callback
            self.refuse(error)
            let_go(self.handle.request)

    @abstractmethod
    def read(self) -> None:
        """Look whether it can be worked on; KinoptError if not. On the executor's thread."""

    @abstractmethod
    def work(self) -> MoveItErrorCodes:
        """Do what it asks for, fill the result, and return how it ended; a KinoptError is an end, too."""

    def cancel(self) -> None:
        """End it as cancelled: at once, or as soon as the robot stands."""
        self.stop(Status.PREEMPTED, "the goal was cancelled")

    def stop(self, status: Status, sentence: str) -> None:
        """End it with a status: at once, or as soon as the robot stands. Returns at once. On any thread."""
        with self._lock:
            self._stopped = self._stopped or (status, sentence)
            run, sends = self._run, self._sends
        if run is not None:
            run.stop(status, sentence)
        if not sends:
            self.finish(error_code(status_message(status, sentence)))

    @property
    def stopped(self) -> bool:
        """Whether it was told to end."""
        return self._stopped is not None

    def execute(self, claim: Claim, message: TrajectoryMessage, names: Sequence[str] = ()) -> StatusMsg:
        """Check a trajectory as it is now, and have it done; return how it ended.

        Args:
            claim: the right to move its joints.
            message: the trajectory, from rest; its stamp does not count.
            names: controllers that may do it; none: any.

        Raises:
            KinoptError: it may not be done.
        """
        message.header.stamp = Time()
        run = self.wait_for_rest(message.joint_names)
        planned = check_given(self.context, message, lambda: not self.stopped)
        if not self._may_send():
            return status_message(*(self._stopped or (Status.PREEMPTED, "")))
        self.tell(MONITOR)
        status = run.run(claim, message, planned, names)
        with self._lock:
            self._sends = False
        return status

    def wait_for_rest(self, joints: Sequence[str]) -> MotionRun:
        """Wait a little until some joints stand, which a goal before may have moved, and return the motion that waits;
        see ``MotionRun``."""
        run = self._new_run()
        self._patience = run.wait_for_rest(joints, self._patience)
        return run

    def _new_run(self) -> MotionRun:
        """Return a motion that ends as this goal is told to."""
        run = MotionRun(self.context, self.actions.output, self.chosen)
        with self._lock:
            self._run = run
            told = self._stopped
        if told is not None:
            run.stop(*told)
        return run

    def claim(
        self,
        joints: Sequence[str],
        names: Sequence[str] = (),
        check: Callable[[], None] | None = None,
    ) -> Claim:
        """Return the right to move joints, by some controllers or by any; who takes it away ends the goal.

        Args:
            joints: which.
            names: controllers that may do it; none: any.
            check: as of ``MotionOutput.claim``.
        """

        def lost(owner: str) -> None:
            self.stop(Status.PREEMPTED, f"{owner} came later: a joint has one owner at a time")

        moved = commanded(self.context, self.chosen, joints, names)
        return self.actions.output.claim(
            f"a goal of {self.goals.name}", lost, self._stops, moved, check=check
        )

    def _may_send(self) -> bool:
        """Take notice that the robot may move from now on; False if the goal was told to end before."""
        with self._lock:
            self._sends = self._stopped is None
            return self._sends

    def tell(self, state: str) -> None:
        """Report what is done, unless the goal is over."""
        if self.is_over:
            return
        try:
            self.handle.publish_feedback(self._type.Feedback(state=state))
        except RuntimeError:  # InvalidHandle and RCLError are among them
            if rclpy.ok():  # otherwise the node is going away
                raise

    def refuse(self, error: Exception) -> None:
        """End the goal with the code and sentence of an error."""
        said = error_status(self.context.node.get_logger(), f"in {self.goals.name}", error)
        self.finish(error_code(said))

    def set_code(self, code: MoveItErrorCodes) -> None:
        """Put a code into the result."""
        self.result.error_code = code

    def finish(self, code: MoveItErrorCodes) -> None:
        """Give the goal its result, unless it has one: a cancel comes on another thread, and code and state of a goal
        must be of the same end."""
        handle, good = self.handle, code.val == code.SUCCESS
        with self._lock:
            if self.is_over:
                return
            self.set_code(code)
            failed = handle.canceled if handle.is_cancel_requested else handle.abort
            self.end(self.result, handle.succeed if good else failed, code.val)
        if not good:
            sentence = getattr(code, "message", "")  # not in Humble
            self.context.node.get_logger().warning(f"{self.goals.name}: code {code.val}: {sentence}")

    def _work(self) -> None:
        try:
            if self.is_over:
                return
            code = self.work()
            self.tell(IDLE)
            self.finish(code)
        except Exception as error:  # nothing ends a worker
            self.refuse(error)
        finally:
            let_go(self.handle.request)  # which rclpy keeps as long as the result


def error_code(status: StatusMsg) -> MoveItErrorCodes:
    """Return MoveIt's message of a status."""
    code = MoveItErrorCodes()
    fill_error_code(code, status)
    return code
