"""Hand-over of verified motions to a controller's action, if control_msgs is installed.

What kinds there are is said by ``controller_kinds.py``. Without parameters ``controller_action`` and ``controllers``
motions are published on ~/joint_trajectory, and what becomes of them is not known.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from rclpy.action.client import ActionClient, ClientGoalHandle
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.errors import StartStateError
from kinopt_ros.ros.motion.controller_kinds import FOLLOWS, ControllerKind, NoControllerError, action_type
from kinopt_ros.ros.serving.urgent import UrgentExecutor

SERVER_SECONDS = 2.0
"""Time after which a controller that has not appeared counts as missing, s."""
LOOKS, LOOK_SECONDS = 5, 1.0
"""Checks in a row that a controller has to miss to count as gone, or until which it has to have said that it takes a
motion, and the time between two of them, s."""

_LOOK_AGAIN = 2e-3
"""Time between two looks whether a controller has ended a motion, s."""

_ENDED = (GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_ABORTED, GoalStatus.STATUS_CANCELED)
Ended = Callable[[bool, str], None]
"""Function that is called once with whether the controller did all of a motion, and if not, why; or with a remark."""


class _Client(ActionClient):  # type: ignore[type-arg]  # generic in later versions only
    """rclpy's enters a goal once more after it has sent it. An answer that the executor read in between would be lost,
    and with it the only way to stop the motion: so no answer is looked at while a goal is being sent."""

    def __init__(self, node: Node, type_: Any, name: str, urgent: UrgentExecutor) -> None:
        self._sending = threading.Lock()
        # rclpy makes it last, when the urgent thread may already ask what there is to wait for.
        self._lock = threading.Lock()
        super().__init__(node, type_, name, callback_group=urgent.group)
        urgent.wake()  # there is something new to listen to

    def send_goal_async(self, *goal: Any, **options: Any) -> Any:
        """Send a goal as rclpy does."""
        with self._sending:
            return super().send_goal_async(*goal, **options)

    async def execute(self, taken_data: Any) -> None:
        """As rclpy's."""
        with self._sending:
            pass  # it only waits: what callbacks do may send, too
        await super().execute(taken_data)

    def add_future(self, future: Any) -> None:
        """Have what waits for it called at once: rclpy would keep the one that it replaces, and look at it for ever."""

    def remove_future(self, future: Any) -> None:
        """Do nothing, for the same reason as in ``add_future``."""


class ControllerHandOver:
    """The client of one controller. Its callbacks run on the urgent thread: a motion that a controller has not taken
    yet can only be cancelled when its answer is read, and the executor may be busy for long."""

    def __init__(self, node: Node, name: str, urgent: UrgentExecutor, kind: ControllerKind = FOLLOWS) -> None:
        """
        Args:
            node: of which it is a client.
            urgent: delivers what the controller says.
            name: of the action, for instance /arm_controller/follow_joint_trajectory.
            kind: how the controller does motions.

        Raises:
            MissingPackageError: control_msgs is not installed.
        """
        self.name = name
        self.kind = kind
        self._node = node
        self._type = action_type(kind.type)
        self._client: Any = _Client(node, self._type, name, urgent)
        self._running: set[Execution] = set()
        self._closed = False
        self._timer = node.create_timer(
            LOOK_SECONDS,
            self.look,
            callback_group=urgent.group,
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def wait(self) -> None:
        """Wait until the controller is there, and a little until it has ended what it was told to stop; not on the
        executor's thread.

        Raises:
            NoControllerError: it is not.
            StartStateError: it still moves the robot, and would stop as it likes, if it was sent another motion.
        """
        if not self._is_there():
            raise NoControllerError(
                f"the controller's action {self.name} of type {self.kind.type} is not there"
            )
        end = time.monotonic() + SERVER_SECONDS
        while self.moves:
            if time.monotonic() > end:
                raise StartStateError(
                    f"the controller {self.name} has not ended the motion that it was sent before. Wait until that one "
                    "is over, or stop it"
                )
            time.sleep(_LOOK_AGAIN)

    def send(self, motion: JointTrajectory, ended: Ended) -> "Execution":
        """Let the controller do a motion. Returns at once."""
        self._running = {one for one in self._running if not one.done}
        unanswered = self._unanswered()
        execution = Execution(ended, self._refuses_to_stop, self._servers(), unanswered, self.kind)
        self._running.add(execution)
        goal = self.kind.goal(self._type, motion)
        future = self._client.send_goal_async(goal, goal_uuid=unanswered.goal_id)
        future.add_done_callback(execution.taken)
        return execution

    def brake(self, running: "Execution", brake: JointTrajectory, ended: Ended) -> "Execution":
        """Let the controller end a motion by a brake, which takes its place; one that goes to the end of motions by
        itself is told to stop. Returns at once."""
        if self.kind.keeps_time:
            return self.send(brake, ended)
        running.cancel()
        return running

    @property
    def moves(self) -> bool:
        """Whether the controller has a motion whose end it has not told yet. On any thread."""
        return any(not one.over for one in tuple(self._running))

    def cancel(self) -> None:
        """Tell the controller to stop whatever it was asked to do. Returns at once."""
        for execution in tuple(self._running):
            execution.cancel()

    def look(self) -> None:
        """End motions whose controller has gone, or was started anew: nobody would ever tell their end. One that was
        out of reach only, and comes back, is told to stop."""
        left = [one for one in tuple(self._running) if not one.done]
        if not left:
            return
        servers = self._servers()
        for execution in left:
            execution.look(
                servers, f"the controller {self.name} has gone: what became of the motion is not known"
            )

    def _is_there(self) -> bool:
        """Wait for the controller's action; return whether it is there."""
        try:
            return bool(self._client.wait_for_server(timeout_sec=SERVER_SECONDS))
        except InvalidHandle:  # whoever ends the node may destroy it before close() is called
            return False
        except RuntimeError:  # RCLError is among them
            if not self._closed:
                raise
            return False  # the node ends meanwhile, and nobody waits for the motion any more

    def close(self) -> None:
        """Send nothing any more."""
        self._closed = True
        self._node.destroy_timer(self._timer)
        self._client.destroy()

    def _unanswered(self) -> Any:
        """Return the handle of a new goal, which the controller may take unheard."""
        service = self._type.Impl.SendGoalService
        number = service.Request().goal_id
        number.uuid = list(os.urandom(16))
        return ClientGoalHandle(self._client, number, service.Response(accepted=True))

    def _servers(self) -> frozenset[bytes]:
        """Numbers of those who offer the action: one that is started anew has another one."""
        found = self._node.get_publishers_info_by_topic(f"{self.name}/_action/status")
        return frozenset(bytes(info.endpoint_gid) for info in found)

    def _refuses_to_stop(self, sentence: str) -> None:
        self._node.get_logger().error(f"the controller {self.name} was told to stop: {sentence}")


class Execution:
    """One motion that a controller was asked to do."""

    def __init__(
        self,
        ended: Ended,
        refused: Callable[[str], None],
        servers: frozenset[bytes],
        unanswered: Any,
        kind: ControllerKind = FOLLOWS,
    ) -> None:
        """
        Args:
            ended: told once how the motion ended.
            refused: told why the controller does not stop.
            servers: who may be the controller; it is one of them.
            unanswered: handle of the goal until the controller has said that it takes it. It may do so unheard: ROS
                loses answers to those whom the other side has not discovered yet.
            kind: of the controller.
        """
        self._kind = kind
        self._ended = ended
        self._refused = refused
        self._servers = servers
        self._unanswered = unanswered
        self._unknown = self._waited = self._stopping = 0
        self._missed = 0
        self._lock = threading.Lock()
        self._handle: Any = None
        self._cancelled = False
        self._stops = False
        """Whether the controller has said that it stops."""
        self._asked = False
        """Whether the controller has been told to stop since the last look, and has not answered."""
        self._told: Any = None
        """The answer to that, when it comes."""
        self._asks_again = False
        """Whether the result was asked for twice."""
        self._over = False
        self._done = False
        self._lost = False

    @property
    def done(self) -> bool:
        """Whether the controller does nothing of it any more, as far as it says. One that was out of reach for a while
        may go on with a motion that is over for everybody else."""
        return self._done

    @property
    def over(self) -> bool:
        """Whether the motion has ended."""
        return self._over

    @property
    def stops(self) -> bool:
        """Whether the controller has said that it stops, or the motion has ended."""
        return self._stops or self._over or self._done

    @property
    def is_taken(self) -> bool:
        """Whether the controller has said that it takes the motion."""
        return self._handle is not None

    def cancel(self) -> None:
        """Tell the controller to stop, now and as soon as it has taken the motion, until it says that it does. Returns
        at once."""
        with self._lock:
            # An emergency stop may be repeated for hours, and rclpy keeps each request that is never answered.
            tell = not (self._done or self._stops or self._asked)
            self._cancelled, self._asked = True, self._asked or tell
        if tell:
            self._tell_to_stop()

    def look(self, servers: frozenset[bytes], sentence: str) -> None:
        """End it, with a sentence, if the controller has been missing for LOOKS looks; tell one to stop that has not
        said that it does, or that it takes the motion: its robot would begin when nobody reckons with it.

        Args:
            servers: who is there.
            sentence: why it ends.
        """
        if self._servers & servers:
            self._missed = 0
            self._asked = False
            self._waited += self._handle is None
            self._ask_again()
            if self._lost:  # what it was told meanwhile, or has said, is lost
                self._lost = self._stops = False
                self.cancel()
            elif self._stops:
                self._stopping += 1
                if self._stopping == LOOKS:
                    sentence = (
                        f"it has said that it does, but not within {LOOKS * LOOK_SECONDS:g} s that it has"
                    )
                    self._refused(sentence)
                    self._end(False, f"the controller was told to stop: {sentence}")
            elif self._cancelled:
                self.cancel()
            elif self._waited == LOOKS:
                self._refused(f"it has not said within {LOOKS * LOOK_SECONDS:g} s that it takes the motion")
                self.cancel()
            return
        self._missed += 1
        if self._missed == LOOKS:
            self._lost = True
            self._end(False, sentence)

    def taken(self, future: Any) -> None:
        """Read the controller's answer whether it takes the motion."""
        try:
            handle = future.result()
            if not handle.accepted:
                self._done = True
                self._end(False, "the controller refuses the motion")
                return
            with self._lock:
                first, self._handle = self._handle is None, handle
                stop = (self._cancelled or self._over) and not self._stops
            if stop:
                self._tell_to_stop()
            if first:
                handle.get_result_async().add_done_callback(self._finished)
        except Exception as error:  # nothing leaves a callback
            self._end(False, f"the controller cannot be asked: {type(error).__name__}: {error}")

    def _ask_again(self) -> None:
        """Ask for the result once more, of a motion whose end the controller has told all who listen: ROS may lose what
        it answers, and a motion that was done would end as one that takes too long."""
        handle = self._handle
        if handle is None or self._asks_again or handle.status not in _ENDED:
            return
        self._asks_again = True
        handle.get_result_async().add_done_callback(self._finished)

    def _tell_to_stop(self) -> None:
        """Tell the controller to stop, and wait no more for the answer to the time before."""
        with self._lock:
            handle, answered = self._handle, self._answered_to_stop
            if handle is None:
                handle, answered = self._unanswered, self._answered_unheard
            before, self._told = self._told, None
        if before is not None:
            before.cancel()
        told = handle.cancel_goal_async()
        self._told = told
        told.add_done_callback(answered)

    def _answered_to_stop(self, future: Any) -> None:
        try:
            answer = future.result()
            if answer is None:  # it was told again
                return
            self._asked = False
            over = answer.return_code == CancelGoal.Response.ERROR_GOAL_TERMINATED
            if over or self._is_named(answer):
                self._stops = True
                return
            if answer.return_code == CancelGoal.Response.ERROR_UNKNOWN_GOAL_ID:
                self._done = True
                self._end(
                    False,
                    "the controller does not know the motion any more: it may have been started anew, and what "
                    "became of the motion is not known",
                )
                return
            sentence = f"it refuses, with return code {answer.return_code}"
            if answer.goals_canceling:
                sentence = "it says that it stops, but names another goal"
        except Exception as error:  # nothing leaves a callback
            sentence = f"it gave no answer: {type(error).__name__}: {error}"
        if not self._done:
            self._refused(sentence)

    def _is_named(self, answer: Any) -> bool:
        """Check whether the answer to a cancel names this motion as one that is being stopped."""
        own = bytes(self._unanswered.goal_id.uuid)
        return any(bytes(goal.goal_id.uuid) == own for goal in answer.goals_canceling)

    def _answered_unheard(self, future: Any) -> None:
        """Read the answer to a cancel of a motion of which the controller has not said that it takes it."""
        try:
            answer = future.result()
            with self._lock:
                if answer is None or self._handle is not None or self._done:
                    return  # it was told again since
                self._asked = False
                self._stops = stops = self._is_named(answer)
                self._unknown = 0 if stops else self._unknown + 1
                if stops:
                    self._handle = self._unanswered
                gone = self._unknown == LOOKS
                self._done = gone
            if stops:
                self._unanswered.get_result_async().add_done_callback(self._finished)
            elif gone:
                self._end(
                    False, "the controller has never said that it takes the motion, and does not know it"
                )
        except Exception as error:  # nothing leaves a callback
            self._refused(f"it gave no answer: {type(error).__name__}: {error}")

    def _finished(self, future: Any) -> None:
        try:
            answer = future.result()
            self._done = True
            why = self._kind.failure(answer.status, answer.result)
            self._end(not why, why or self._kind.remark(answer.status, answer.result))
        except Exception as error:  # as above
            self._end(False, f"the controller gave no result: {type(error).__name__}: {error}")

    def _end(self, done: bool, sentence: str) -> None:
        with self._lock:
            if self._over:
                return
            self._over = True
        self._ended(done, sentence)
