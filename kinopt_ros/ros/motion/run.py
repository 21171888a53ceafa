"""One motion from the gate to its end: checked, sent, watched while it runs, and stopped if it has to be.

What controllers do with a motion takes seconds. Meanwhile obstacles come, clients cancel, a controller fails. So
somebody looks, every few milliseconds, and brakes within the limits; controllers themselves would stop at once.
Whatever sends whole motions has them watched so; ``watched.py`` does it for those who do not wait.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.planning.servo.stop import is_at_rest_sooner
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import one_variable_joints
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import error_message, said, status_message, trajectory_from_message
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.ros.messages.trajectory_answer import whole_controller
from kinopt_ros.ros.motion.arrival import TOLERANCE as ARRIVAL_TOLERANCE
from kinopt_ros.ros.motion.arrival import missed
from kinopt_ros.ros.motion.brakes import brake_of, was_heard
from kinopt_ros.ros.motion.controllers import (
    ChosenControllers,
    Part,
    SeveralExecutions,
    begun_later,
    check_unnamed,
    together,
    whole,
)
from kinopt_ros.ros.motion.in_the_way import InTheWay
from kinopt_ros.ros.motion.last_look import PlannedFor, stands
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.own_pace import check_own_pace, in_time, kept_joints, of_joints
from kinopt_ros.ros.motion.published import LOOK_SECONDS, Execution, Published, lead_to
from kinopt_ros.ros.motion.published_end import PublishedEnd
from kinopt_ros.ros.motion.returning import waits_at_its_end
from kinopt_ros.ros.motion.rights import Claim, agreed_by_all
from kinopt_ros.ros.motion.stop_watch import StopWatch
from kinopt_ros.ros.motion.stops_in_time import is_in_time, may_be_sent, stop_in_time, stop_message
from kinopt_ros.ros.motion.sure_stop import brake_unless_it_stops
from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

REST_SECONDS = 2.0
"""Longest time that a motion waits until the one before has ended and the robot stands, s."""
LONGER, SETTLE_SECONDS = 1.2, 1.0
"""A motion may take so many times as long as it says, and so many seconds more, until it is stopped."""
OWN_PACE_SECONDS = 5.0
"""How much longer one may take that is done at a controller's own pace, s: a gripper may be slower than its limits."""
BRAKE_SECONDS = 0.5
"""Longest time until a controller takes a brake, s; then it is told to stop as it likes."""


class MotionRun:
    """One motion that is sent. ``send``, ``watch`` and ``run`` work on the caller's thread, all else may be called on
    any."""

    def __init__(
        self,
        context: Context,
        output: MotionOutput,
        chosen: ChosenControllers | None,
        judged: bool = True,
    ) -> None:
        """
        Args:
            context: the node's.
            output: what it is sent through.
            chosen: who may do it; None: it is published.
            judged: whether it fails if its controller takes far longer than it says, or the robot does not arrive
                where a published one leads.
        """
        self._context = context
        self._output = output
        self._chosen = chosen
        self._judged = judged
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._stop: tuple[Status, str] | None = None
        self._failed = ""
        """Why a controller did not do all of it."""
        self._remark = ""
        """What controllers say that did."""
        self._execution: SeveralExecutions | None = None
        self._running: Published | None = None
        self._planned: PlannedFor | None = None
        self._parts: list[Part] | None = None
        """What each controller was told to do of it; None: it was published."""
        self._braking: Published | None = None
        """Its brake, if that was published."""
        self._published_end: PublishedEnd | None = None
        """Finds its end, if it was published."""

    def stop(self, status: Status, sentence: str) -> None:
        """Stop it, or let it not begin; it ends with this status, unless it was told before. Returns at once."""
        with self._lock:
            if self._stop is None:
                self._stop = status, sentence
        self._wake.set()

    def lost(self, owner: str) -> None:
        """Stop it, as somebody else has asked for a motion of its joints."""
        self.stop(Status.PREEMPTED, f"{owner} came later: a joint has one owner at a time")

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stop is not None

    def wait_for_rest(self, joints: Sequence[str], seconds: float = REST_SECONDS) -> float:
        """Wait until motions of some joints, and brakes, are over, and these stand, for so many seconds at most; so do
        joints that no motion of this node moves, as nobody knows where they go. Return what is left, s.

        Who is told to stop takes a moment, goals come one after the other, and joint states are late.
        """
        robot, end = self._context.loaded.model, time.monotonic() + seconds
        while not self.stopped and time.monotonic() < end:
            if not self._runs_any(joints) and self._stands(robot, self._not_moved(robot, joints)):
                break
            time.sleep(LOOK_SECONDS)
        return max(0.0, end - time.monotonic())

    def _not_moved(self, robot: RobotModel, joints: Sequence[str]) -> list[str]:
        """Return some joints, and all known ones that no motion of this node moves now."""
        now, known = self._now(), self._context.joint_states.of(robot).known
        moved = {name for one in self._output.published if one.runs(now) for name in one.message.joint_names}
        others = [
            name
            for name in one_variable_joints(robot)
            if name not in moved and name not in joints and known[robot.variable_index[name]]
        ]
        return [*joints, *others]

    def run(
        self,
        claim: Claim,
        message: TrajectoryMessage,
        planned: PlannedFor,
        names: Sequence[str] = (),
    ) -> StatusMsg:
        """Send a verified motion, and return how it ended; arguments as of ``send``. The right to move is kept."""
        try:
            self.send(claim, message, planned, names)
        except Exception as error:
            self._note(error)
        return self.watch()

    def send(
        self,
        claim: Claim,
        message: TrajectoryMessage,
        planned: PlannedFor,
        names: Sequence[str] = (),
        keep: bool = True,
        agreed: Callable[[], bool] = agreed_by_all,
    ) -> bool:
        """Send a verified motion; return whether that was done. Then it has to be watched.

        Args:
            claim: the right to move its joints, and all that are commanded with them (``controllers.commanded``).
            message: the motion.
            planned: what it was planned for.
            names: controllers that may do it; none: any.
            keep: the right, of a motion that is published; else it is given up when that is.
            agreed: asked right before one is published. Must return at once.

        Raises:
            KinoptError: it may not be sent, or nobody does it; nothing of it goes on.
        """
        self._planned = planned
        try:
            self._parts = parts = self._split(message, planned, names)
            if parts is None:
                q = self._context.joint_states.of(planned.loaded.model).q
                message = whole(self._context, message, planned.loaded.model, planned.q)
                sent = claim.publish(message, planned, keep, lambda: not self.stopped and agreed())
            else:
                message = together(parts)
                sent = self._hand_over(claim, message, planned, parts)
        except BaseException:
            self._cancel()  # one of several controllers may have got its part
            raise
        self._running = self._sent(message)
        if self._running is None:  # somebody has sent another motion since
            self._cancel()
        elif parts is None:
            self._published_end = PublishedEnd(self._context, self._running, self._judged, q)
        return sent

    def watch(self) -> StatusMsg:
        """Watch the motion, if it was sent, until it is over, and return how it ended."""
        running, planned = self._running, self._planned
        if running is not None and planned is not None:
            try:
                if self._watch(running, planned):
                    self._end(running)
                else:
                    # Who stops all may have looked for controllers just before it was handed over.
                    self._cancel()
                    self._insist(running)
                    if self._judged:
                        self.wait_until_still(running)
            except Exception as error:
                self._note(error)
                self._abandon(running)
        if self._stop is not None:
            return status_message(*self._stop)
        if running is None:
            return status_message(
                Status.PREEMPTED, "somebody else has asked for a motion of these joints since"
            )
        if self._failed:
            return status_message(Status.CONTROL_FAILED, self._failed)
        return status_message(Status.SUCCESS, self._remark)

    def _note(self, error: Exception) -> None:
        """End with an error; one that nobody meant is logged."""
        if isinstance(error, KinoptError):
            self.stop(error.status, error_message(error).message)
        else:
            self.stop(Status.FAILURE, log_defect(self._context.node.get_logger(), "in a motion", error))

    def _abandon(self, running: Published) -> None:
        """Stop what was sent: nothing that moves is left to itself."""
        try:
            if self._chosen is None and self._runs(running):
                self._brake(running)
        except Exception as error:  # a defect, too: say so
            log_defect(self._context.node.get_logger(), "in the brake of a motion", error)
        self._cancel()

    def _split(
        self, message: TrajectoryMessage, planned: PlannedFor, names: Sequence[str]
    ) -> list[Part] | None:
        """Return what each controller is to do of a motion; None if it is published."""
        if self._chosen is not None:
            return self._chosen.split(message, planned.loaded.model, planned.q, names)
        check_unnamed(names)
        return None

    def _hand_over(
        self, claim: Claim, message: TrajectoryMessage, planned: PlannedFor, parts: list[Part]
    ) -> bool:
        """Hand the parts of the motion ``message`` over to their controllers; False if somebody has told it to stop, or
        has the robot."""
        assert self._chosen is not None
        self._chosen.wait(parts)
        if planned.scene is not None:
            robot, left = planned.loaded.model, trajectory_from_message(message)
            check_own_pace(robot, planned.scene, planned.q, message, left, parts, planned.clearance)

        lead = self._lead(message, planned.loaded.model)
        given = [replace(part, message=begun_later(part.message, lead)) for part in parts]

        def send() -> Execution | None:
            with self._lock:  # who cancels meanwhile finds all that was sent
                if self.stopped:
                    return None
                self._execution = SeveralExecutions(self._heard)
                return self._execution.send(given)

        return claim.hand_over(message, planned, send, lead) and self._execution is not None

    def _lead(self, message: TrajectoryMessage, robot: RobotModel) -> int:
        """Return how long before it begins a motion is to be handed over, ns."""
        if not message.points or any(message.points[0].velocities):
            return 0
        begin, delay = np.array(message.points[0].positions), self._context.parameter("start_delay")
        return lead_to(robot, message.joint_names, begin, self._output.published, delay)

    def _heard(self, done: bool, sentence: str) -> None:
        """Take notice that controllers have ended the motion."""
        if done:
            self._remark = sentence
        else:
            self._failed = sentence
        self._wake.set()

    def _watch(self, running: Published, planned: PlannedFor) -> bool:
        """Look at a motion until it is over, or has to stop; False if there is nothing left of it to end."""
        way = None
        if planned.scene is not None:
            way = InTheWay(self._context, self._output, running, planned, self._parts, self.stop)
        latest = self._latest(running.end - running.start)
        if any(not part.controller.kind.keeps_time for part in self._parts or ()):
            latest += round(OWN_PACE_SECONDS * NANOSECONDS_PER_SECOND)
        while self._is_there(running) and self._runs(running) and not (self.stopped or self._failed):
            if self._judged and self._now() > latest:
                self.stop(Status.TIMED_OUT, "the controller has not ended the motion in time")
            if way is not None:
                way.look()
            if self._published_end is not None:
                self._published_end.look()
            self._wake.wait(LOOK_SECONDS)
            self._wake.clear()
        return self._is_there(running) or self._overtaken()

    def _is_there(self, running: Published) -> bool:
        """Check whether no other motion, and no stop, has taken this one's place."""
        return not self._output.refuses and self._is_last(running)

    def _is_last(self, running: Published) -> bool:
        """Check whether no other motion has taken this one's place."""
        return any(one is running for one in self._output.published)

    def _runs(self, running: Published) -> bool:
        """Check whether a motion is not over, by time, as its controller says, or as joint states do."""
        return running.runs(self._now()) or (self._published_end is not None and self._published_end.lags())

    def _sent(self, message: TrajectoryMessage) -> Published | None:
        """Return a motion that was sent, unless another one has taken its place."""
        return next((one for one in self._output.published if one.message is message), None)

    def _overtaken(self) -> bool:
        """Take notice that another motion, or a stop, has taken this one's place, whatever was found meanwhile. Return
        False: it does not have to be ended."""
        with self._lock:
            if self._stop is None or self._stop[0] is not Status.PREEMPTED:
                self._stop = Status.PREEMPTED, "another motion, or a stop, has taken its place"
        return False

    def _end(self, running: Published) -> None:
        """Brake a motion that is not over; look whether a published one has led where it should.

        Whoever hears that a motion has ended may plan the next one from what is measured. So it ends when that says
        that the robot stands, too.
        """
        if self._runs(running):
            sent = self._brake(running)
            if self._braking is not None and not self._follow(self._braking):
                return  # by another motion the robot may move
            if sent or self._judged:
                self.wait_until_still(running)
        elif self._published_end is None:
            heard = self.wait_until_still(running)
            self._check_arrived(running, heard)
        elif not self._is_over(self._published_end):
            self._brake(running)  # a controller that waits would go on with it

    def _is_over(self, end: PublishedEnd) -> bool:
        """Check whether a published motion, of which nothing seems to go on, is over; stop with a sentence if it should
        be, but is not."""
        if self.stopped:
            return not end.may_go_on()
        why = end.why_not_there(lambda: self.stopped) if self._judged else end.why_left()
        if why:
            self.stop(Status.CONTROL_FAILED, why)
            return False
        return self._stop is None or not end.may_go_on()

    def _brake(self, running: Published) -> bool:
        """Brake, and have controllers stop as they like if they do not take that; False if another motion, or a stop,
        has taken this one's place before."""
        brake: SeveralExecutions | None = None
        refused = threading.Event()

        def ended(done: bool, sentence: str) -> None:
            del sentence
            if not done:
                refused.set()
            self._wake.set()

        def send(message: TrajectoryMessage) -> Execution | None:
            nonlocal brake
            if self._execution is None:
                return None
            brake = self._execution.brake(message, ended)
            return brake

        message = self._made_brake(running)
        if not message.points:
            return True  # it comes to rest by itself
        sent = self._output.brake(running, message, send)
        if sent and brake is not None:
            latest = self._latest(nanoseconds(message.points[-1].time_from_start))
            taken = time.monotonic() + BRAKE_SECONDS
            while not brake.over and not refused.is_set():
                # One that has been taken may never end: controllers may wait for ever until they are at the goal.
                if (time.monotonic() > taken and not brake.taken) or self._now() > latest:
                    refused.set()
                self._wake.wait(LOOK_SECONDS)
                self._wake.clear()
            if refused.is_set():
                brake.cancel()
        if sent and brake is None:
            self._braking = self._sent(message)
        # Unless the brake has taken its place. Who stops all may have looked for controllers just before it was sent.
        self._cancel()
        if not sent:
            self._insist(running)
        return sent or self._chosen is not None or self._is_there(running) or self._overtaken()

    def _made_brake(self, running: Published) -> TrajectoryMessage:
        """Return the brake of a motion: of the joints whose controllers have not ended it, as others stand for a
        reason. Joints that go at their own pace stop where they are. None where fingers wait alone: it would loosen
        them."""
        stop = self._whole_stop(running)
        if stop is not None:
            return stop
        if self._published_end is not None and self._published_end.only_grips_wait:
            return TrajectoryMessage()
        if self._execution is not None:
            moving = self._execution.moving
            if not moving:
                return TrajectoryMessage()
            running = of_joints(running, moving)
        kept = in_time(running, self._parts)
        brake = brake_of(self._context, kept)
        if kept is running:
            return brake
        q = self._context.joint_states.of(running.robot).q
        names = list(running.message.joint_names)
        return whole_controller(
            brake, names, [float(q[running.robot.variable_index[name]]) for name in names]
        )

    def _whole_stop(self, running: Published) -> TrajectoryMessage | None:
        """Return the stop of a motion that is done in time, if its controller would set a brake back; without points if
        the motion is at rest no later."""
        context, robot, joints = self._context, running.robot, tuple(running.message.joint_names)
        published = running.commanded(joints) if running.stamped and context.sets_back() else None
        if published is None:
            return None
        setup = servo_setup(robot, robot.root_link, robot.root_link, joints)
        state, now = context.joint_states.of(robot), self._now()
        heard = was_heard(context, setup, state, published, now)
        if not (heard and is_in_time(context, setup, state, running, now)):
            return None
        if waits_at_its_end(running, state, now):
            return None
        if now >= published.end:
            return TrajectoryMessage()
        stop, motion, now = stop_in_time(setup, published, state, self._now)
        if is_at_rest_sooner(setup, published, stop, now):
            return TrajectoryMessage()
        return stop_message(stop, motion, setup) if may_be_sent(motion) else None

    def _follow(self, brake: Published) -> bool:
        """Have a published brake published again if the robot does not follow it: one that is lost lets it go on into
        what it was to brake for. Return whether no other motion has taken its place."""

        def say(sentence: str) -> None:
            self._context.node.get_logger().error(sentence)

        return StopWatch(self._context, self._output, say).follow_brake(brake)

    def _insist(self, running: Published) -> None:
        """Have controllers stop that were told to, and do not."""
        if self._execution is not None:
            brake_unless_it_stops(self._context, self._execution, running, lambda: self._is_last(running))

    def _cancel(self) -> None:
        """Tell controllers to stop the motion as they like. Returns at once."""
        if self._execution is not None:
            self._execution.cancel()

    def _latest(self, duration: int) -> int:
        """Return when a motion of so many ns that begins now is to be over, ns of the node's clock."""
        return self._now() + round(LONGER * duration + SETTLE_SECONDS * NANOSECONDS_PER_SECOND)

    def wait_until_still(self, running: Published) -> bool:
        """Wait until joint states of now say that the joints of a motion stand, for REST_SECONDS at most; say so if
        they move. Return whether joint states have come since."""
        begin = time.monotonic()
        joints = running.message.joint_names
        index = [running.robot.variable_index[name] for name in joints]
        while True:
            passed = time.monotonic() - begin
            age = self._context.joint_states.of(running.robot).age[index].max()
            runs, stands = self._runs_any(joints), self._stands(running.robot, joints)
            if stands and not runs and age < passed:
                return True
            if passed > REST_SECONDS:
                break
            time.sleep(LOOK_SECONDS)
        if runs or not stands:
            what = "was stopped" if self.stopped else "ended"
            # At the node's end nobody reads joint states any more.
            if age >= REST_SECONDS / 2.0:
                sentence = (
                    f"no joint states came since a motion {what}: whether the robot stands is not known"
                )
            elif stands:
                sentence = f"the robot stands, but its motion, which {what}, is said to go on after {REST_SECONDS:g} s"
            else:
                sentence = f"the robot still moves {REST_SECONDS:g} s after its motion {what}"
            self._context.node.get_logger().error(sentence)
        return bool(age < passed)

    def _runs_any(self, joints: Sequence[str]) -> bool:
        """Check whether a motion of some joints is not over."""
        return any(
            one.runs(self._now())
            for one in self._output.published
            if not set(joints).isdisjoint(one.message.joint_names)
        )

    def _check_arrived(self, running: Published, heard: bool) -> None:
        """Fail if joints are measured elsewhere than where controllers say to have brought them. ``heard``: whether
        anybody has measured them since."""
        if self.stopped or self._failed:
            return
        if not heard:
            unknown = "no joint states came since the motion ended: whether the robot is there is not known"
            self._remark = said(self._remark, unknown)
            return
        state = self._context.joint_states.of(running.robot)
        joints = kept_joints(self._parts or ())
        self._failed = missed(running, joints, state, self._context.parameter(ARRIVAL_TOLERANCE))

    def _stands(self, robot: RobotModel, joints: Sequence[str]) -> bool:
        variables = [robot.variable_index[name] for name in joints]
        return stands(robot, self._context.joint_states.of(robot), variables)

    def _now(self) -> int:
        return self._context.now()
