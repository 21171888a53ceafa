"""Each joint has one owner at a time: whoever asked last for a motion of it. Motions go to ~/joint_trajectory, or to
controllers' actions, through here and no other way, and each is looked at once more right before (``last_look.py``)."""

import math
import threading
import time
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Protocol

from rclpy.duration import Duration
from rclpy.logging import get_logger
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.errors import EnvironmentChangedError, KinoptError, shortened
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.ros.motion.last_look import PlannedFor
from kinopt_ros.ros.motion.published import Execution, Published, last_of
from kinopt_ros.ros.motion.rights import Claim, Stop, agreed_by_all
from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.status import Status

HOLD_SECONDS = 2
"""Time that a stop stays at its end, s. Controllers drop a motion that is over when it arrives, and go on with the one
before: a brake takes 20 ms, the way to a busy controller, or the difference of two clocks, may be more."""


class EmergencyStopError(KinoptError):
    """A motion was asked for during an emergency stop."""

    status = Status.EMERGENCY_STOP


class Look(Protocol):
    """Last check of a motion: LastLook."""

    def send(
        self,
        planned: PlannedFor,
        message: JointTrajectory,
        published: Callable[[], tuple[Published, ...]],
        send: Callable[[], bool],
    ) -> bool:
        """Call ``send`` if the motion is still valid; else raise KinoptError."""


def _share(some: frozenset[str] | None, others: frozenset[str] | None) -> bool:
    """Check whether two have a joint in common; None has all."""
    return some is None or others is None or not some.isdisjoint(others)


def _tell(before: Iterable[Claim | Stop], owner: str) -> None:
    """Tell those who have lost their rights to whom; a defect of one keeps nothing from the others."""
    for one in before:
        try:
            one.lost(owner)
        except Exception as error:  # a controller that cannot be told, too: stop what can be stopped
            log_defect(get_logger("kinopt"), "where somebody else moves the robot, or stops it", error)


def _check_covers(claim: Claim, message: JointTrajectory) -> None:
    """Raise EnvironmentChangedError if a motion moves joints of which somebody else may have the right."""
    others = [] if claim.joints is None else [n for n in message.joint_names if n not in claim.joints]
    if others:
        raise EnvironmentChangedError(
            f"the motion moves {shortened(others)}, which was not among the joints when it was asked for: the robot's "
            "description, or the parameters of its controllers, have changed since"
        )


class ClosedError(KinoptError):
    """A motion was asked for while nothing may move: the node ends."""

    status = Status.PREEMPTED


class InactiveError(ClosedError):
    """A motion was asked for while the node is not active."""

    status = Status.NOT_READY


class UnheardError(KinoptError):
    """A motion was to be published, and nobody would do it."""

    status = Status.CONTROL_FAILED


def _heard() -> str:
    return ""


def _as_it_is(message: JointTrajectory, running: Published) -> JointTrajectory:
    del running
    return message


def _when_it_comes(message: JointTrajectory, robot: RobotModel) -> int | None:
    del message, robot
    return None


def from_anywhere(brake: JointTrajectory) -> JointTrajectory:
    """Return a brake without its first point: a controller goes to the second one from wherever the joints are."""
    return JointTrajectory(header=brake.header, joint_names=brake.joint_names, points=brake.points[1:])


def held(stop: JointTrajectory, from_here: bool = False) -> JointTrajectory:
    """Return a motion that stays at its end for HOLD_SECONDS.

    Args:
        stop: the motion.
        from_here: whether it begins with its second point: a controller goes there from wherever the joints are when
            it comes.
    """
    longer = deepcopy(stop)
    if longer.points:
        last = deepcopy(longer.points[-1])
        last.time_from_start.sec += HOLD_SECONDS
        longer.points.append(last)
    if from_here:
        longer.points = longer.points[1:]
    return longer


class MotionOutput:
    """Gives the right to publish motions. Thread-safe.

    Two requests that move a joint at the same time would each take it from where the other one does not expect it.
    So the newest has it, and the one before is told that it lost it.
    """

    def __init__(
        self,
        publisher: Any,
        look: Look,
        clock: Callable[[], int] = time.monotonic_ns,
        unheard: Callable[[], str] = _heard,
        begin: Callable[[JointTrajectory, RobotModel], int | None] = _when_it_comes,
        join: Callable[[JointTrajectory, Published], JointTrajectory] = _as_it_is,
    ) -> None:
        """
        Args:
            publisher: of ~/joint_trajectory.
            look: what every motion goes through.
            clock: ns of the node's clock.
            unheard: returns why nobody would do what is published; empty if somebody may.
            begin: returns when a motion without a stamp is to begin, ns of the node's clock; None: when it comes.
            join: returns what a controller gets of a motion that leaves another one (``joining.joined``).
        """
        self._unheard = unheard
        self._begin = begin
        self._join = join
        self._publisher = publisher
        self._look = look
        self._clock = clock
        # A controller may refuse a motion while it is being sent to it, on the same thread. Taken after the scene's
        # lock, and before those of the ones who ask.
        self._lock = threading.RLock()
        self._rights: tuple[Claim | Stop, ...] = ()
        """Those that nobody has taken away, no two of the same joint."""
        self._halted = False
        self._stops = 0
        self._stopped = -math.inf
        """When the last of them came, s of the steady clock."""
        self._closed: ClosedError | None = None
        """Why nothing may move; None: it may."""
        self._published: tuple[Published, ...] = ()
        self._unread: list[Callable[[], None]] = []

    @property
    def published(self) -> tuple[Published, ...]:
        """The motions that were published or handed over last of joints that no later one moves; they may be over."""
        return self._published

    @property
    def runs(self) -> bool:
        """Whether a motion is not over."""
        now = self._clock()
        return any(motion.runs(now) for motion in self._published)

    def is_executed(self, joints: Iterable[str] | None = None) -> bool:
        """Whether a controller has not ended a motion yet, of some joints or of any."""
        some = None if joints is None else frozenset(joints)
        return any(
            one.execution is not None and not one.execution.over
            for one in self._published
            if some is None or not some.isdisjoint(one.message.joint_names)
        )

    @property
    def brakes(self) -> bool:
        """Whether a motion is ended by a brake that is not over, or a stop that nothing may leave."""
        now = self._clock()
        return any(one.ends_at_rest and one.runs(now) for one in self._published)

    @property
    def halted(self) -> bool:
        """Whether there is an emergency stop."""
        return self._halted

    @property
    def closed(self) -> ClosedError | None:
        """Why nothing may move, besides emergency stops; None: it may."""
        return self._closed

    @property
    def refuses(self) -> bool:
        """Whether nothing may move: there is an emergency stop, or the output is closed."""
        return self._halted or self._closed is not None

    @property
    def stops(self) -> int:
        """Number of emergency stops so far. Who asks for a motion some time after it was wanted notes it then: a
        stop that came and went meanwhile ends it, too (see ``claim``)."""
        return self._stops

    def stops_before(self, unread: float) -> int:
        """Return ``stops`` as of when a message came that has lain unread for so long (s): at least another number
        than now, if a stop came since."""
        with self._lock:
            return self._stops - (time.monotonic() - unread < self._stopped)

    def before_stops(self, call: Callable[[], None]) -> None:
        """Have something called right before each stop, which returns at once: by whom requests are taken that may lie
        unread, and come before it."""
        self._unread.append(call)

    def stops_now(self) -> None:
        """Call what is to be called before a stop. On the thread of who stops."""
        for call in self._unread:
            call()

    def halt(self, owner: str, lasting: bool = True) -> Stop:
        """End every motion. Return the right to publish stops.

        Args:
            owner: who stops, for the one who loses the right to publish.
            lasting: refuse new motions until ``release``.
        """
        stop = Stop(self)
        with self._lock:
            self._halted |= lasting
            self._stops += 1
            self._stopped = time.monotonic()
            before, self._rights = self._rights, (stop,)
        _tell(before, owner)
        return stop

    def close(self, why: ClosedError) -> None:
        """Refuse new motions, until ``open``. The one who has the right keeps it."""
        with self._lock:
            self._closed = why

    def open(self) -> None:
        """Allow motions again after ``close``; those asked for before a stop stay refused."""
        with self._lock:
            self._closed = None

    def wait_until_heard(self, seconds: float) -> bool:
        """Wait until all listeners have got what was published; return whether they have within so many seconds."""
        return bool(self._publisher.wait_for_all_acked(Duration(seconds=seconds)))

    def release(self) -> None:
        """Allow motions again."""
        with self._lock:
            self._halted = False

    def check_heard(self) -> None:
        """Raise UnheardError if nobody would do what is published."""
        why = self._unheard()
        if why:
            raise UnheardError(why)

    def claim(
        self,
        owner: str,
        lost: Callable[[str], None],
        stops: int | None = None,
        joints: Iterable[str] | None = None,
        at_once: bool = True,
        check: Callable[[], None] | None = None,
    ) -> Claim:
        """Return the right to publish one motion, which somebody else may have had until now.

        Args:
            owner: who asks, for the one who loses the right.
            lost: called with the next owner's name when the right is lost before it was used or given up; from any
                thread, and must return at once.
            stops: how many there were when the motion was wanted; None: it is wanted now.
            joints: which are to move; None: any.
            at_once: take the right now; else with the first motion that is published, so that one that is refused ends
                nobody's.
            check: called before the right is taken from somebody; raises if that would be for nothing. With ``at_once``
                only.

        Raises:
            EmergencyStopError: there is one, or was one since.
            ClosedError: nothing may move.
            KinoptError: as ``check`` raises it.
        """
        claim = Claim(self, owner, lost, stops, None if joints is None else frozenset(joints))
        if not at_once:
            self._check_open(stops)
        elif check is None or not self._take(claim, from_others=False):
            if check is not None:
                check()
            self._take(claim)
        return claim

    def _check_open(self, stops: int | None) -> None:
        """Raise KinoptError if nothing may move; arguments and errors as of ``claim``."""
        if self._closed is not None:
            raise type(self._closed)(str(self._closed))
        if self._halted:
            raise EmergencyStopError(
                "there is an emergency stop: nothing moves until false comes on ~/emergency_stop"
            )
        if stops is not None and stops != self._stops:
            raise EmergencyStopError(
                "there was an emergency stop since this motion was asked for: what was asked for before it moves "
                "nothing"
            )

    def _take(self, claim: Claim, from_others: bool = True) -> bool:
        """Take a right from all that have one of its joints; with ``from_others`` off, only if nobody has. Return
        whether it was taken."""
        with self._lock:
            before = self._swap(claim, from_others)
        if before is None:
            return False
        _tell(before, claim.owner)
        return True

    def _swap(self, claim: Claim, from_others: bool = True) -> list[Claim | Stop] | None:
        """Take a right, as ``_take``, with the lock held; return those who have lost theirs and have to be told; None
        if it was not taken."""
        self._check_open(claim.stops)
        before = [one for one in self._rights if _share(one.joints, claim.joints)]
        if before and not from_others:
            return None
        claim.waits = False
        self._rights = (*(one for one in self._rights if one not in before), claim)
        return before

    def publish(
        self,
        claim: Claim,
        message: JointTrajectory,
        planned: PlannedFor,
        keep: bool = False,
        agreed: Callable[[], bool] = agreed_by_all,
    ) -> bool:
        """Publish a motion of a claim; see ``Claim.publish``."""
        self.check_heard()
        _check_covers(claim, message)

        before: list[Claim | Stop] = []

        def send() -> bool:
            with self._lock:
                if not (claim.waits or claim in self._rights) or not agreed():
                    return False
                if claim.waits:
                    before.extend(self._swap(claim) or ())
                if not keep:
                    self.give_up(claim)
                self._stamp(message, planned.loaded.model)
                left = self._last_of(message) if planned.goes_on else None
                given = message if left is None else self._join(message, left)
                model, stops = planned.loaded.model, planned.stops
                self._send(message, model, given, goes_on=planned.goes_on, stops=stops)
                return True

        try:
            return self._look.send(planned, message, lambda: self._published, send)
        finally:  # last: to tell somebody may take longer than there is until the motion has to be there
            _tell(before, claim.owner)

    def hand_over(
        self,
        claim: Claim,
        message: JointTrajectory,
        planned: PlannedFor,
        send: Callable[[], Execution | None],
        lead: int,
    ) -> bool:
        """Hand a motion of a claim over; see ``Claim.hand_over``."""
        _check_covers(claim, message)

        def send_if_held() -> bool:
            with self._lock:
                if claim not in self._rights:
                    return False
                begin = self._clock() + lead
                execution = send()
                if execution is not None:
                    self._keep(Published(message, planned.loaded.model, begin, execution))
                return True

        return self._look.send(planned, message, lambda: self._published, send_if_held)

    def publish_stop(self, stop: Stop, message: JointTrajectory, robot: RobotModel, from_here: bool) -> bool:
        """Publish a stop; see ``Stop.publish``."""
        with self._lock:
            if stop not in self._rights:
                return False
            given = held(message, from_here)
            before = self._before(message)
            self._send(message, robot, given, brakes=from_here, stops=not from_here, before=before)
            return True

    def stop_again(self, stops: int, message: JointTrajectory, robot: RobotModel) -> bool:
        """Publish a stop once more, for joints that still move, if nothing was allowed to move since; return whether
        it was published.

        Args:
            stops: how many there were, with that one.
            message: a brake from where the joints are.
            robot: the robot.
        """
        with self._lock:
            if not self.refuses or self._stops != stops:
                return False
            given = held(message, from_here=True)
            self._send(message, robot, given, brakes=True, before=self._before(message))
            return True

    def brake(
        self,
        running: Published,
        message: JointTrajectory,
        send: Callable[[JointTrajectory], Execution | None],
    ) -> bool:
        """End a motion by a brake, which is not looked at, as stops are not; return whether it was sent.

        Args:
            running: a motion that no later one has replaced.
            message: the brake, of its joints or some of them, from where they are measured; or a stop with a stamp.
            send: hands a brake, without its first point, to those that do the motion; with None it is published.
        """
        with self._lock:
            if self.refuses or not any(one is running for one in self._published):
                return False  # who stops all has told controllers, or publishes a brake of its own
            before = running.before or running  # a brake that was lost has changed nothing
            stamp = message.header.stamp
            if stamp.sec or stamp.nanosec:
                self._send(message, running.robot, held(message), stops=True, before=before)
                return True
            begun = from_anywhere(message)
            now = self._clock()
            execution = send(begun)
            if execution is None:
                self._publisher.publish(begun)
            self._keep(Published(message, running.robot, now, execution, brakes=True, before=before))
            return True

    def _stamp(self, message: JointTrajectory, robot: RobotModel) -> None:
        """Write into a motion when it begins, unless it says so."""
        stamp = message.header.stamp
        begin = None if stamp.sec or stamp.nanosec else self._begin(message, robot)
        if begin is not None:
            stamp.sec, stamp.nanosec = divmod(begin, 10**9)

    def _send(
        self,
        message: JointTrajectory,
        robot: RobotModel,
        given: JointTrajectory,
        goes_on: bool = False,
        brakes: bool = False,
        stops: bool = False,
        before: Published | None = None,
    ) -> None:
        """Publish a motion as ``given`` to its controller."""
        stamp = message.header.stamp
        # Before: who publishes may wait long for Python's lock after it, and the controller has begun by then.
        start = nanoseconds(stamp) or self._clock()
        self._publisher.publish(given)
        self._keep(
            Published(message, robot, start, goes_on=goes_on, brakes=brakes, stops=stops, before=before)
        )

    def _last_of(self, message: JointTrajectory) -> Published | None:
        """Return the motion of the joints of another one that was sent last."""
        return last_of(self._published, message.joint_names)

    def _before(self, stop: JointTrajectory) -> Published | None:
        """Return the motion that a stop is to end, which goes on if that is lost."""
        last = self._last_of(stop)
        return last and (last.before or last)

    def _keep(self, new: Published) -> None:
        """Remember a motion, and forget those of its joints, and of other robots, that are over."""
        joints, now = set(new.message.joint_names), self._clock()
        others = [
            motion
            for motion in self._published
            if joints.isdisjoint(motion.message.joint_names)
            and (motion.robot is new.robot or motion.runs(now))
        ]
        self._published = (*others, new.with_past(self._last_of(new.message)))

    def holds(self, right: Claim | Stop) -> bool:
        """Whether nobody else has asked for a motion since."""
        with self._lock:
            return right in self._rights

    def give_up(self, right: Claim | Stop) -> None:
        """Give the right back, also one that was not taken yet."""
        with self._lock:
            if isinstance(right, Claim):
                right.waits = False
            self._rights = tuple(one for one in self._rights if one is not right)
