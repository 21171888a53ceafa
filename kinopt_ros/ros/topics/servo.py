"""~/servo/twist and ~/servo/target_pose: commands in, a motion on ~/joint_trajectory each period, ~/servo/status out.

Every motion is complete, was checked as a whole, and ends at rest. Its stamp is the time at which its first point
counts, on the node's clock, and it begins with what the motion before does in the next period: a
joint_trajectory_controller that replaces one by the other while that lasts finds the same position, velocity and
acceleration in both. With a stamp of 0, which is taken as the time of arrival, each motion would begin later by the
time that it was on its way, and the robot would jump back by that every period. And when no motion comes any more,
whatever the reason, the last one brings the robot to rest.
"""

import math
import threading
import time
from functools import partial
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from kinopt_msgs.msg import ServoStatus
from kinopt_ros.errors import EnvironmentChangedError, KinoptError, StartStateError
from kinopt_ros.planning.motion import check_begins_inside
from kinopt_ros.planning.servo.commanded import begun
from kinopt_ros.planning.servo.session import Session
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.planning.servo.step import Step, Wish
from kinopt_ros.planning.servo.stop import LEAD
from kinopt_ros.planning.servo.velocity import Wanted
from kinopt_ros.problems.builder import resolve_chain
from kinopt_ros.robot.variables import one_variable_each
from kinopt_ros.ros.context import Context, assumed_default, moving
from kinopt_ros.ros.messages.conversions import said, sentence_of, status_message, trajectory_message
from kinopt_ros.ros.messages.stamps import seconds_unread
from kinopt_ros.ros.motion.last_look import (
    PlannedFor,
    check_can_be_left,
    check_has_not_jumped,
    check_is_at_rest,
)
from kinopt_ros.ros.motion.output import EmergencyStopError, MotionOutput
from kinopt_ros.ros.motion.published import (
    EARLIEST_AT_ONCE,
    Published,
    check_clock,
    check_keeps_stamps,
    followed_motion,
    lead_to,
    not_begun_since,
    told_lately,
)
from kinopt_ros.ros.motion.rights import Claim
from kinopt_ros.ros.requests.command_pauses import CommandPauses
from kinopt_ros.ros.requests.servo_commands import (
    TARGET,
    TWIST,
    Command,
    target_command,
    twist_command,
)
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.ros.robot.parameters import MOST_DELAY
from kinopt_ros.ros.robot.tips import tip_of
from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.solvers.readiness import check_ready
from kinopt_ros.status import Status
from kinopt_ros.trajectory.braking import MotionState
from kinopt_ros.verification.sweep import least_clearance

STATUS_SECONDS = 0.1
"""Least time between two messages of ~/servo/status that say the same."""
_MOST_LATE = 2**32 - 1
"""Largest number of late steps that fits in the message; setting the clock forward may make more."""
_END_SECONDS = 1.0
"""Longest time that closing waits for a period that is being worked on, s."""
_SAY_MISSED = 3
"""Motions in a row that may come too late before that is reported."""
_FORGET = 0.98
"""Factor per period by which the expected time of a step decays."""
_MARGIN = 1.2
"""Factor from the time that a step has taken to the time that the next one is expected to take."""
_SENDING = 3_000_000
"""Time from when a brake is made until it is sent, ns."""
_MOST_BRAKES = 4
"""Most times that a brake is made in one period."""
CLEARANCE_RANGE = 0.1
"""Largest clearance that is reported, m."""
_SETUP = (
    "servo.tip_link",
    "controller_joints",
    "velocity_scaling",
    "acceleration_scaling",
    "servo.limit_margin",
    "start_state_tolerance",
    "servo.period",
    "servo.avoid_collisions",
    "ik.clearance",
    "tool_frames",
    "default_group",
)
"""Parameters that a ServoSetup depends on."""


class ServoTopic:
    """Handler of servo's commands.

    Commands are taken on the executor's thread; motions are made on a thread of its own, so that neither waits for what
    else the node does.
    """

    def __init__(self, context: Context, output: MotionOutput, statuses: Any) -> None:
        self._context = context
        self._output = output
        self._statuses = statuses
        self._logger = context.node.get_logger()
        self._wake = threading.Condition()
        self._incoming: tuple[str, Any, int, int] | None = None
        """Newest message, when it came (ns of the node's clock), and how many emergency stops there were then."""
        self._lost_to: str | None = None
        self._closed = False
        self._claim: Claim | None = None
        self._setup: tuple[tuple[Any, ...], ServoSetup] | None = None
        self._loaded: LoadedRobot | None = None
        self._session: Session | None = None
        self._command: Command | None = None
        self._pauses = CommandPauses()
        """Commands have to pause before they count again where the robot did not follow, or after an emergency stop."""
        self._followed: int | None = None
        """When the motion began that the next one leaves, ns of the node's clock, if it is not servo's own."""
        self._before: tuple[Published, ...] = ()
        """The motions that were published when it began."""
        self._stops = 0
        """Number of emergency stops before the last command."""
        self._late = 0
        self._missed = 0
        """Number of motions in a row that came too late."""
        self._takes = 0
        """Longest time that a step has taken lately, ns: motions leave each other that much later."""
        self._owed = 0
        """Time, ns, in which the next brake begins as the last one was not sent; 0: it was."""
        self._status = ServoStatus(
            state=ServoStatus.IDLE, status=status_message(Status.SUCCESS), clearance=math.nan, scale=1.0
        )
        self._said: tuple[Any, ...] = ()
        self._said_at = -STATUS_SECONDS
        self._thread = threading.Thread(target=self._run, name="servo", daemon=True)
        self._thread.start()

    def take_twist(self, message: Any, info: Any) -> None:
        """Take geometry_msgs/TwistStamped."""
        self._take(TWIST, message, info)

    def take_target(self, message: Any, info: Any) -> None:
        """Take geometry_msgs/PoseStamped."""
        self._take(TARGET, message, info)

    def announce_emergency(self, stopped: bool, sentence: str) -> None:
        """Publish on ~/servo/status that there is an emergency stop, or no longer.

        Its end moves nothing: a stream of commands that has not paused since does not count, whenever it began.
        """
        with self._wake:
            self._pauses.wait()
            self._say(status_message(Status.EMERGENCY_STOP if stopped else Status.SUCCESS, sentence), True)

    def wait_for_pause(self) -> None:
        """Let commands not count until they have paused: somebody stops the robot."""
        self._pauses.wait()

    def close(self) -> None:
        """Publish nothing any more."""
        with self._wake:
            self._closed = True
            claim = self._claim
            self._wake.notify_all()
        if claim is not None:
            claim.give_up()
        self._thread.join(_END_SECONDS)

    # On the executor's thread, and on others.

    def _take(self, name: str, message: Any, info: Any) -> None:
        unread = seconds_unread(info)
        arrived, stops = self._now() - round(1e9 * unread), self._output.stops_before(unread)
        self._pauses.take(info, unread, self._context.parameter("servo.timeout"))
        with self._wake:
            self._incoming = name, message, arrived, stops
            self._wake.notify_all()

    def _lose(self, owner: str) -> None:
        """Drop what was commanded, because somebody else has asked for a motion."""
        with self._wake:
            self._incoming, self._lost_to = None, owner

    # On servo's own thread.

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closed or self._incoming is not None)
            if self._closed:
                return
            try:
                self._serve()
            except Exception as error:  # nothing ends the thread; the last motion ends at rest
                self._end(Status.FAILURE, log_defect(self._logger, "in servo", error))
                self._session = None

    def _serve(self) -> None:
        """Work on one period after the other until the robot is at rest and nothing is commanded."""
        self._late = self._missed = 0
        due = self._now()
        while not self._closed:
            now = self._now()
            try:
                self._period(now)
            except KinoptError as error:
                self._refuse(error)
            if self._command is None and not self._moves():
                with self._wake:
                    if self._incoming is None:
                        self._rest()
                        return
            period = round(self._context.parameter("servo.period") * 1e9)
            left_out = max(0, (self._now() - due) // period - 1)
            self._late += left_out
            due += (1 + left_out) * period
            due = self._sleep_until(due, period)

    def _sleep_until(self, due: int, period: int) -> int:
        """Sleep until a time of the node's clock, at most a period (ns) away; return it.

        Returns the present time if the clock was set back: it may be simulated, and stand still.
        """
        while not self._closed and (left := due - self._now()) > 0:
            if left > period:
                return self._now()
            time.sleep(min(left / 1e9, 0.02))
        return due

    def _period(self, now: int) -> None:
        """Take what has come, and send the next motion."""
        context = self._context
        with self._wake:
            incoming, self._incoming = self._incoming, None
            lost_to, self._lost_to = self._lost_to, None
        if lost_to is not None:
            self._session, self._claim = None, None
            if self._command is not None:
                self._end(
                    Status.PREEMPTED, f"{lost_to} has the robot now; the next command of servo ends that"
                )
        loaded = context.loaded
        session = self._session
        if loaded is not self._loaded or (session is not None and now < not_begun_since(session.commanded)):
            # Another robot, or time that was set back: what was commanded means nothing any more.
            self._loaded, self._session, self._command = loaded, None, None
        if incoming is None and self._command is None and self._session is None:
            return
        setup = self._present_setup(loaded)
        state = context.joint_states.of(loaded.model)
        if incoming is not None:
            self._read(setup, state, *incoming)
        if self._command is not None:
            self._require_state(setup, state)
            if self._session is None or self._is_overtaken():
                self._begin(setup, state, now)
        if self._session is None:
            return
        if self._command is not None:
            self._check_follows(setup, state, now)
        self._step(setup, state, now)

    def _read(
        self, setup: ServoSetup, state: RobotState, name: str, message: Any, arrived: int, stops: int
    ) -> None:
        """Make the newest message the command; one that cannot be used ends the one before."""
        arrived = min(
            arrived, self._now()
        )  # if time was set back since, it would hold until it is as late again
        self._stops = stops
        if self._pauses.waits:
            return
        before, self._command = self._command, None
        if name == TWIST:
            self._command = twist_command(self._context, setup, message, arrived, state.q)
        else:
            self._command = target_command(self._context, setup, message, arrived, state.q, before)

    def _present_setup(self, loaded: LoadedRobot) -> ServoSetup:
        """Return the robot as servo has to know it, with parameters and scene as they are now."""
        context, robot = self._context, loaded.model
        values = {name: context.parameter(name) for name in _SETUP}
        scene = None
        if values["servo.avoid_collisions"]:
            check_ready(robot)
            scene = context.scene.of(robot)
        key = (robot, scene, *(str(value) for value in values.values()))
        if self._setup is None or self._setup[0] != key:
            named = values["servo.tip_link"]
            frame = tip_of(context, robot, named) if named else None
            group = context.group_name(robot)
            base, tip, joints = resolve_chain(robot, group, None, frame.link if frame else None)
            setup = servo_setup(
                robot,
                base,
                tip,
                tuple(values["controller_joints"] or one_variable_each(robot, joints)),
                T_tip_tool=frame.T_link_tip if frame else None,
                velocity_scaling=values["velocity_scaling"],
                acceleration_scaling=values["acceleration_scaling"],
                limit_margin=values["servo.limit_margin"],
                start_tolerance=values["start_state_tolerance"],
                period=values["servo.period"],
                scene=scene,
                clearance=values["ik.clearance"],
            )
            if self._setup is not None and self._setup[1].joints != setup.joints:
                self._session = None
            self._setup = key, setup
        return self._setup[1]

    def _require_state(self, setup: ServoSetup, state: RobotState) -> None:
        """Raise KinoptError unless it is known where the robot is."""
        robot = setup.robot
        needed = sorted({*setup.variables.tolist(), *moving(robot, ((setup.base, setup.tip),))})
        state.require_known(needed, robot)
        parameter = "servo.state_timeout"
        state.require_fresh(needed, robot, self._context.parameter(parameter), f"parameter {parameter}")

    def _begin(self, setup: ServoSetup, state: RobotState, now: int) -> None:
        """Begin from where the robot is, or go on from the motion that it is in."""
        index = setup.variables
        check_has_not_jumped(setup.robot, state, index)
        # Here alone: the node's simulated time may be a step behind for a moment, and does not end what runs.
        check_clock(state, setup, EARLIEST_AT_ONCE)
        check_begins_inside(setup.robot, setup.joints, index, state.q[index], setup.start_tolerance)
        if self._claim is None or not self._claim.holds:
            self._output.check_heard()
            # Only with the first motion: a command that is refused ends nobody's.
            self._claim = self._output.claim("servo", self._lose, self._stops, at_once=False)
        check_can_be_left(setup.robot, setup.joints, self._output.published, now)
        tolerance = self._context.parameter("servo.tracking_tolerance")
        begin = followed_motion(self._output.published, setup, state, now, tolerance)
        self._followed = None if begin is None else begin.start
        self._before = self._output.published
        if begin is not None:
            check_keeps_stamps(begin, setup, state, now, told_lately(self._before, setup.joints))
            if not all(one.stamped for one in self._before if one.start == begin.start):
                raise StartStateError(
                    "the robot is in a motion that began when its controller got it, as it has no stamp: nobody knows "
                    "to some ms where it is, and servo would set it on. Wait until that one is over, or stop it"
                )
            self._session = Session(setup, begin, goes_on=True)
            return
        check_is_at_rest(setup.robot, state, index.tolist())
        still = np.zeros(len(index))
        standing = MotionState(state.q[index], still, still)
        begin = begun(setup.joints, standing, now, setup.period, setup.planning)
        self._session = Session(setup, begin, goes_on=False, lead=self._lead(setup, state))

    def _lead(self, setup: ServoSetup, state: RobotState) -> int:
        """Return how long before servo's first motion it is sent, ns."""
        delay = self._context.parameter("start_delay")
        begin = state.q[setup.variables]
        lead = lead_to(setup.robot, setup.joints, begin, self._output.published, delay)
        # One that began later than that would count as of a clock that was set back.
        most = round(MOST_DELAY * 1e9)
        return min(self._takes + state.way(setup.variables) + lead, most) if lead else 0

    def _check_follows(self, setup: ServoSetup, state: RobotState, now: int) -> None:
        """Raise NotFollowingError if the robot does not follow; then commands count again only after a pause."""
        assert self._session is not None
        index = setup.variables
        try:
            tolerance = self._context.parameter("servo.tracking_tolerance")
            age = float(state.age[index].max())
            self._session.check_follows(setup, now, state.q[index], age, tolerance)
        except KinoptError:
            self._pauses.wait()
            raise

    def _step(self, setup: ServoSetup, state: RobotState, now: int) -> None:
        """Make the next motion and send it."""
        session, command = self._session, self._command
        assert session is not None
        if now < session.begins:
            return
        if command is not None and now >= command.ends:
            what = "twist" if command.name == TWIST else "target pose"
            if self._claim is not None and self._claim.waits:
                self._session = None  # nothing was sent: who moves the robot goes on
                self._end(Status.TIMED_OUT, f"no new {what} has come in time: nothing was sent")
                return
            self._end(Status.TIMED_OUT, f"no new {what} has come in time: the robot comes to rest")
            command = None
        wish = None if command is None else partial(command.wanted, setup)
        way = state.way(setup.variables)
        step, took = self._advance(session, setup, state, wish, way)
        if step.motion is not None:
            message = trajectory_message(step.motion.trajectory, setup.robot.root_link)
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(step.commanded.start, 10**9)
            # What waits in the network with joint states that do not come is late when it is there, as what took too
            # long to make: a controller would jump to it.
            silent = not step.brakes and session.goes_on and state.is_silent(setup.variables)
            if silent or self._now() + way >= step.commanded.leave:
                self._late += 1
                self._missed += 1
                if self._missed >= _SAY_MISSED:
                    why = (
                        f"nothing was sent in the last {self._missed} periods, as no joint states have come for "
                        f"{float(state.age[setup.variables].max()):.3f} s: motions may wait in the network, too"
                        if silent
                        else f"the last {self._missed} motions came too late to be sent; this one took {took:.3f} s, "
                        f"and joint states take {way / 1e9:.3f} s to come: give servo a longer period (parameter "
                        "servo.period)"
                    )
                    self._say_now(self._state(), Status.TIMED_OUT, why)
                return
            if not self._send(
                setup, state, message, session.goes_on, step.commanded.leave - way, step.brakes
            ):
                if self._is_replaced():
                    self._session = None  # begin anew, from where the robot is
                return
            self._followed = None
            self._status.step_time = took
        self._missed = self._owed = 0
        session.accept(setup, step)
        self._report(setup, state, step, command)

    def _advance(
        self, session: Session, setup: ServoSetup, state: RobotState, wish: Wish | None, way: int
    ) -> tuple[Step, float]:
        """Return what there is to send, and how long that took, s. A brake that comes too late is made again at once,
        to begin later: without it the robot goes on into what it is for."""
        lead, longest = max(LEAD, self._owed), 0.0
        for _ in range(_MOST_BRAKES):
            begin, now = time.monotonic(), self._now()
            step = session.advance(setup, now, state.q, wish, self._takes, way, lead)
            took = time.monotonic() - begin
            longest = max(longest, took)
            if not step.brakes or self._now() + _SENDING + way < step.commanded.leave:
                break
            lead = 2 * max(lead, int(_MARGIN * 1e9 * took))
        self._owed = 2 * lead if step.brakes else 0
        self._takes = min(max(int(_MARGIN * 1e9 * longest), int(_FORGET * self._takes)), 3 * setup.period)
        return step, took

    def _send(
        self,
        setup: ServoSetup,
        state: RobotState,
        message: JointTrajectory,
        goes_on: bool,
        leave: int,
        stops: bool = False,
    ) -> bool:
        """Send a motion, or a stop, in time (ns of the node's clock) to come before it leaves the one before; return
        whether it was sent.

        If not, somebody else has the robot, or the scene has changed since the period began, or looking at the motion
        again took too long: the next period hears of it.
        """
        claim, loaded = self._claim, self._loaded
        if claim is None or loaded is None:
            return False
        unchecked = "With parameter servo.avoid_collisions: false the robot moves unchecked"
        planned = PlannedFor(
            loaded, state.q, setup.scene, setup.clearance, unchecked, goes_on=goes_on, stops=stops
        )
        try:
            return claim.publish(
                message,
                planned,
                keep=True,
                agreed=lambda: not (self._closed or self._is_replaced()) and self._now() < leave,
            )
        except EnvironmentChangedError:
            return False

    def _is_overtaken(self) -> bool:
        """Check whether somebody else has sent a motion before servo has sent its first one: nobody has told servo, as
        its right waits."""
        waits = self._claim is not None and self._claim.waits
        return waits and self._output.published is not self._before

    def _is_replaced(self) -> bool:
        """Check whether the motion that the first one was to leave was replaced: who lost the joints may have sent a
        brake."""
        begun = self._followed
        return begun is not None and all(one.start != begun for one in self._output.published)

    def _report(self, setup: ServoSetup, state: RobotState, step: Step, command: Command | None) -> None:
        """Report what was done."""
        status = self._status
        if step.motion is not None:
            status.checks = list(step.motion.report.checks)
            status.not_checked = list(step.motion.report.not_checked)
        if step.status is Status.ENVIRONMENT_CHANGED:
            self._end(step.status, step.sentence)
            return
        wanted = step.wanted
        if command is None or wanted is None:
            # Of a stop that nothing may leave, too, what has led to it is said.
            self._say_now(state=self._state())
            return
        if wanted.reached:
            self._note(wanted, step.part)
            self._end(Status.SUCCESS, "the target pose is reached")
            return
        self._note(wanted, step.part)
        status.command = command.name
        if setup.scene is None:
            status.clearance = math.nan
        elif self._due() or math.isnan(status.clearance):  # it costs as much as the check of a motion
            status.clearance = self._clearance(setup, state)
        self._say_now(self._state(), step.status, said(step.sentence, _assumed(setup, state)))

    def _note(self, wanted: Wanted, part: float) -> None:
        status = self._status
        status.scale = wanted.scale * part
        status.near_singular = wanted.near_singular
        status.blocked_joints = list(wanted.blocked)
        status.position_error = wanted.position_error
        status.orientation_error = wanted.orientation_error

    def _clearance(self, setup: ServoSetup, state: RobotState) -> float:
        assert self._session is not None
        assert setup.scene is not None
        rest = self._session.commanded.rest(max(self._now(), self._session.commanded.start))
        least = least_clearance(setup.robot, setup.scene, state.q, setup.variables, rest, CLEARANCE_RANGE)
        return math.inf if least >= CLEARANCE_RANGE else least

    def _refuse(self, error: KinoptError) -> None:
        """End a command that cannot be done; the robot comes to rest."""
        if isinstance(error, EmergencyStopError):
            self._pauses.wait()
        if self._claim is not None and self._claim.waits:
            self._session = None  # nothing was sent: who moves the robot goes on
        self._end(error.status, sentence_of(error))

    def _end(self, status: Status, sentence: str) -> None:
        """Clear the command."""
        self._command = None
        self._say_now(self._state(), status, sentence)

    def _rest(self) -> None:
        """Take notice that the robot is at rest."""
        self._session = None
        if self._claim is not None:
            self._claim.give_up()
            self._claim = None
        self._status.command = ""
        self._status.scale, self._status.clearance = 1.0, math.nan
        self._status.blocked_joints, self._status.near_singular = [], False
        self._say(self._status.status, True, ServoStatus.IDLE)

    def _state(self) -> str:
        if self._command is not None:
            return str(ServoStatus.MOVING)
        return str(ServoStatus.STOPPING if self._moves() else ServoStatus.IDLE)

    def _moves(self) -> bool:
        """Check whether a motion was sent, or is to be ended, that is not over."""
        session = self._session
        return session is not None and session.goes_on and self._now() < session.commanded.end

    def _say_now(self, state: str, code: Status | None = None, sentence: str = "") -> None:
        with self._wake:
            status = self._status.status if code is None else status_message(code, sentence)
            self._say(status, False, state)

    def _say(self, said: Any, anyway: bool, state: str | None = None) -> None:
        """Publish the status if it has changed, or was not for some time."""
        status = self._status
        status.status = said
        if self._output.halted:
            status.state = ServoStatus.EMERGENCY
            if said.code != Status.EMERGENCY_STOP:
                return  # what else ends now ends because of it
        elif state is not None:
            status.state = state
        elif status.state == ServoStatus.EMERGENCY:
            status.state = ServoStatus.IDLE
        key = (status.state, said.code, status.command, status.near_singular, tuple(status.blocked_joints))
        if self._closed or (key == self._said and not anyway and not self._due()):
            return
        if key != self._said and said.code not in (
            Status.SUCCESS,
            Status.EMERGENCY_STOP,
        ):  # who stops says so
            self._logger.warning(f"servo: {said.message}", throttle_duration_sec=1.0)
        self._said, self._said_at = key, time.monotonic()
        status.header.stamp = self._context.node.get_clock().now().to_msg()
        status.header.frame_id = "" if self._setup is None else self._setup[1].base
        status.late_steps = min(self._late, _MOST_LATE)
        self._statuses.publish(status)

    def _due(self) -> bool:
        return time.monotonic() - self._said_at >= STATUS_SECONDS

    def _now(self) -> int:
        return self._context.now()


def _assumed(setup: ServoSetup, state: RobotState) -> str:
    """Return a sentence about joints that collisions were checked with and that nobody published; else nothing."""
    if setup.scene is None or state.known.all():
        return ""
    return assumed_default([setup.robot.variable_names[i] for i in np.flatnonzero(~state.known)])
