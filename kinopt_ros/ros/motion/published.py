"""A motion that this node has published or handed to a controller, and whether the robot is in it."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Protocol

import numpy as np
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.session import LAG
from kinopt_ros.planning.servo.setup import ServoSetup, stops_hard
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.ros.motion.drives import (
    ALIKE,
    THERE,
    Told,
    least_lag_error,
    led_aside,
    share_of,
    time_in,
)
from kinopt_ros.ros.motion.slider import pace_of
from kinopt_ros.ros.motion.visits import Visits
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.ros.robot.parameters import MOST_DELAY, START_DELAY
from kinopt_ros.ros.robot.publisher_clock import EARLIEST, LATEST
from kinopt_ros.trajectory.braking import MotionState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory

EARLIEST_AT_ONCE = -0.02
"""As EARLIEST, for what is sent a few ms before it leaves another motion: servo's motions and brakes."""
LATEST_BEGIN, LOOK_EVERY = 500_000_000, 2_500_000
"""How far a controller may be behind a motion, ns, and the time between two places of it that are compared."""
LOOK_SECONDS = 5e-3
"""Time between two looks of whoever watches a motion that runs, s."""
_DRIVE = 15_000_000
"""How far behind its motion a robot is by its drives in any case, ns."""
_SLOWER = 0.93
"""Share of a motion's velocity below which it is slowed down."""
_FAR, _EXPLAINED = 5e-3, 3e-3
"""How far behind a motion that is too slow to tell joints have to be explained, and how far they may be from where they
would be then, rad or m."""
_BEGINS, _USUAL_LAG = 250_000_000, 0.041
"""Time from its begin on in which a motion has just begun, ns, and the longest lag of drives that is believed
then, s."""
_TELLS_FROM, _TELLS, _TELLS_LESS, _MOVES = 100_000_000, 100_000_000, 20_000_000, 0.1
"""Time from a motion's begin on from which it tells drives that lag from a speed slider, ns; how long it has to; how
much less will do, as joint states come when they come; and the share of a limit of velocity from which it does."""
_ASIDE, _LEAST_PAST = 3e-3, 2
"""How much farther beside a motion joints may be than lately, rad or m, and the least number of places that say so."""
QUINTIC = 10.0 / np.sqrt(3.0)
"""Largest acceleration of a quintic from rest to rest over 1 rad in 1 s, rad/s^2."""
PAST = 1_000_000_000
"""How long ago drives may have been told what still counts, ns."""
_HELD, _AT_ONCE = 0.02, 1e-3
"""How far joints may be measured from where a motion has led them for a controller to hold them there, rad or m: else
somebody else has moved them since. And the time to where they are that is none, s."""
_MOST_PAST = 60
_AHEAD = 10**9
"""Longest time by which a motion is published before it begins, ns."""


class Execution(Protocol):
    """What a controller makes of a motion."""

    @property
    def over(self) -> bool:
        """Whether the motion has ended."""


@dataclass
class Progress:
    """What was seen of a motion that was published."""

    left: bool = False
    """Whether its joints were seen elsewhere than where it ends."""
    visits: Visits = field(default_factory=Visits)
    """How often they were seen to come from elsewhere to where it ends, if it comes there more than once."""
    seen: Annotated[Float64, "n"] | None = None
    """Where they were seen last, then."""
    times_at_end: int | None = None
    """How often it comes there, once somebody has counted."""
    arrived: Annotated[Float64, "n"] | None = None
    """Where they were seen to be when it was over: at its end, fingers wherever they have moved to."""


@dataclass(frozen=True)
class Published:
    """A motion that was published, or handed to a controller."""

    message: TrajectoryMessage
    robot: RobotModel
    """Robot that the motion was planned for; another one may be in service by now."""
    start: int
    """Time of the motion's first point, ns of the node's clock."""
    execution: Execution | None = None
    """How far the controller is that it was handed to; None: it was published."""
    goes_on: bool = False
    """Whether it goes on from another motion, as ``PlannedFor.goes_on``."""
    brakes: bool = False
    """Whether it is the brake of one: where exactly that leads is up to the controller."""
    stops: bool = False
    """Whether it is the stop of one, in the time of that."""
    before: "Published | None" = None
    """The motion that it ends, if it is a brake or a stop."""
    past: "tuple[Published, ...]" = ()
    """The motions of these joints that it, and each other, took the place of lately, the oldest first: drives that lag
    are still behind these."""
    progress: Progress = field(default_factory=Progress, compare=False, repr=False)
    """Written by who watches it."""

    def with_past(self, last: "Published | None") -> "Published":
        """Return it with the past of the motion of the same joints that it takes the place of."""
        if last is None or not (self.stamped and last.stamped and last.robot is self.robot):
            return self
        known = (*last.past, replace(last, past=(), before=None))  # else all that ever was is kept
        begun = sum(one.start <= self.start - PAST for one in known)
        return replace(self, past=known[max(begun - 1, 0) :][-_MOST_PAST:])

    @property
    def ends_at_rest(self) -> bool:
        """Whether nothing leaves it before it is at rest: brakes, and stops that slow down as no motion may."""
        index = [self.robot.variable_index[name] for name in self.message.joint_names]
        return self.brakes or (self.stops and stops_hard(self.robot, index))

    @property
    def stamped(self) -> bool:
        """Whether its controller knows when it begins; else that was when it came."""
        stamp = self.message.header.stamp
        return bool(stamp.sec or stamp.nanosec)

    @property
    def end(self) -> int:
        """Time of the motion's last point, ns of the node's clock."""
        last = self.message.points[-1].time_from_start if self.message.points else None
        return self.start + (0 if last is None else nanoseconds(last))

    def runs(self, now: int) -> bool:
        """Whether it is not over: as the controller says, else by time (ns of the node's clock)."""
        if self.execution is not None:
            return not self.execution.over
        # One that begins later is of a clock that was set back.
        return self.start - _AHEAD <= now < self.end

    def runs_as_seen(self, state: RobotState, now: int) -> bool:
        """Whether it is not over, or was not when its joints were measured (``state``, of its robot): at its end it is
        so slow that they count as standing, and come to rest elsewhere."""
        index = [self.robot.variable_index[name] for name in self.message.joint_names]
        return self.runs(now) or self.runs(state.seen(index, now))

    @cached_property
    def motion(self) -> JointTrajectory:
        """Its numbers."""
        return trajectory_from_message(self.message)

    def commanded(self, joints: tuple[str, ...]) -> Commanded | None:
        """Return it with its joints in another order; None if it was not published, or moves other joints."""
        given = self.message.joint_names
        if self.execution is not None or len(self.message.points) < 2 or sorted(given) != sorted(joints):
            return None
        motion = self.motion
        order = [motion.joint_names.index(name) for name in joints]
        rows = (array[:, order] for array in (motion.position, motion.velocity, motion.acceleration))
        return Commanded(JointTrajectory(joints, motion.time, *rows), self.start, self.start, self.start)


class ToldMotion:
    """What a controller was told lately by motions with stamps, each of which begins with a part of the one before."""

    def __init__(self, motions: Sequence[Commanded]) -> None:
        """``motions``: the oldest first."""
        self._motions = motions
        self._starts = [motion.start for motion in motions]

    @property
    def start(self) -> int:
        """As of ``Commanded``."""
        return self._starts[0]

    @property
    def last_start(self) -> int:
        """When the last of them begins, ns."""
        return self._starts[-1]

    def at(self, time: int) -> MotionState:
        """As of ``Commanded``."""
        return self._motions[max(bisect_right(self._starts, time) - 1, 0)].at(time)

    def at_all(self, times: Annotated[Int64, "K"]) -> tuple[Annotated[Float64, "K n"], ...]:
        """As of ``Commanded``."""
        rows = np.maximum(np.searchsorted(self._starts, times, side="right") - 1, 0)
        found = np.zeros((3, len(times), len(self._motions[0].trajectory.joint_names)))
        for row in np.unique(rows).tolist():
            found[:, rows == row] = self._motions[row].at_all(times[rows == row])
        return found[0], found[1], found[2]


def last_of(published: Iterable[Published], joints: Sequence[str]) -> Published | None:
    """Return the motion of just these joints, in any order, that was sent last."""
    given = sorted(joints)
    return next((one for one in published if sorted(one.message.joint_names) == given), None)


def told_by(published: Published, joints: tuple[str, ...]) -> ToldMotion | None:
    """Return what a motion and its past have told joints, in this order; None if that is not known."""
    motions = [one.commanded(joints) for one in (*published.past, published)]
    known = [motion for motion in motions if motion is not None]
    return ToldMotion(known) if known and len(known) == len(motions) else None


def told_lately(published: Iterable[Published], joints: tuple[str, ...]) -> ToldMotion | None:
    """Return what the last motion of just these joints, and its past, have told them; None if that is not known."""
    last = last_of(published, joints)
    return None if last is None else told_by(last, joints)


def followed(motion: Commanded, setup: ServoSetup, state: RobotState, now: int, tolerance: float) -> bool:
    """Check whether the robot is in a motion, as far as what was measured can say.

    Args:
        motion: was published, and may be over.
        setup: the robot and the motion's joints.
        state: as measured, of all these joints.
        now: ns of the node's clock.
        tolerance: rad or m by which the robot may be elsewhere, besides the way that it is late.
    """
    seen = state.seen(setup.variables, now)
    if not (not_begun_since(motion) <= now and seen < motion.end):
        return False
    measured, late = state.q[setup.variables], LAG / NANOSECONDS_PER_SECOND
    # Where it was when it was measured counts: it may have begun, or ended, since.
    return any(
        (setup.away(measured, at.position) <= tolerance + late * np.abs(at.velocity)).all()
        for at in (motion.at(now), motion.at(seen))
    )


def not_begun_since(motion: Commanded) -> int:
    """Return the earliest time at which a motion may have been sent that has not begun, ns of the node's clock.

    The robot counts as being in it from then on, as it stands where that begins.
    """
    return motion.start - round(MOST_DELAY * NANOSECONDS_PER_SECOND)


def followed_motion(
    published: Iterable[Published], setup: ServoSetup, state: RobotState, now: int, tolerance: float
) -> Commanded | None:
    """Return the motion of these joints that was published last if the robot is in it, and it may be left. Else None:
    nobody knows exactly where in a brake the joints are. Arguments as of ``followed``."""
    motions = (motion.commanded(setup.joints) for motion in published if not motion.ends_at_rest)
    return next((m for m in motions if m is not None and followed(m, setup, state, now, tolerance)), None)


def begin_of(
    message: TrajectoryMessage,
    robot: RobotModel,
    state: RobotState,
    now: int,
    delay: float = START_DELAY,
    published: Iterable[Published] = (),
) -> int | None:
    """Return when a motion is to begin that stands at its first point, ns of the node's clock; None: when its
    controller gets it, by any clock.

    The node never hears when that was. Whatever leaves the motion half way, or brakes it, would find the joints behind
    by their velocity times the way of the message, and a controller would jump. From a stamp that lies ahead both know.

    A controller has the joints at the first point by then. Where they stand a little beside it, or it holds them beside
    it (``lead_to``), that takes longer than the usual delay within their limits of acceleration.

    Args:
        message: the motion, without a stamp.
        robot: its robot.
        state: as measured.
        now: ns of the node's clock.
        delay: s until then; 0: it begins when its controller gets it.
        published: the motions before.
    """
    if not delay or not message.points or any(message.points[0].velocities):
        return None
    index = [robot.variable_index[name] for name in message.joint_names]
    alike = _is_same_clock(state.late[index])
    if state.stamped is None or not (state.stamped[index] & alike).all():
        return None  # nobody knows the controller's clock, or it is another one
    begin = np.array(message.points[0].positions)
    needed = _seconds_to(np.abs(state.q[index] - begin), robot.limits.acceleration[index])
    ahead = round(min(max(delay, needed), MOST_DELAY) * NANOSECONDS_PER_SECOND)
    return now + max(ahead, lead_to(robot, message.joint_names, begin, published, delay))


def lead_to(
    robot: RobotModel,
    joints: Sequence[str],
    begin: Annotated[Float64, "n"],
    published: Iterable[Published],
    delay: float,
) -> int:
    """Return how long before a motion begins where joints were measured it has to be sent, ns, for a controller to get
    there from where it holds them: gravity pulls them down from there, drives lag, sensors are noisy.

    It holds them where their motion before has ended, as far as this node knows.

    Args:
        robot: the robot.
        joints: those of the motion.
        begin: where it begins, rad or m.
        published: the motions before.
        delay: s, where nobody knows: there was none, or somebody else has moved them since; 0: none in any case.
    """
    if not delay:
        return 0
    last = last_of(published, joints)
    seconds = delay
    if last is not None:
        message = last.message
        order = [list(message.joint_names).index(name) for name in joints]
        index = [robot.variable_index[name] for name in joints]
        held = np.array(message.points[-1].positions)[order]
        beside = apart(begin - held, continuous_joints(robot, joints))
        needed = _seconds_to(beside, robot.limits.acceleration[index])
        seconds = needed if beside.max() <= _HELD else max(delay, needed)
    return 0 if seconds < _AT_ONCE else round(min(seconds, MOST_DELAY) * NANOSECONDS_PER_SECOND)


def _seconds_to(beside: Annotated[Float64, "n"], acceleration: Annotated[Float64, "n"]) -> float:
    """Return how long joints take to where they stand beside (rad or m), from rest to rest, within limits of
    acceleration, s."""
    return float(np.sqrt(QUINTIC * beside / acceleration).max())


def _is_same_clock(late: Any, earliest: float = EARLIEST) -> Any:
    """Return whether joint states are of the node's clock that arrive so many seconds (or arrays of them) after their
    stamps; ``earliest``: see EARLIEST."""
    return (earliest <= late) & (late <= LATEST)


class TooSoonToTellError(StartStateError):
    """Nobody can tell yet whether drives lag or a speed slider slows a motion down."""

    def __init__(self, sentence: str, until: int) -> None:
        """``until``: when what is measured may say more, ns of the node's clock."""
        super().__init__(sentence)
        self.until = until


def check_keeps_stamps(
    motion: Commanded, setup: ServoSetup, state: RobotState, now: int, told: ToldMotion | None = None
) -> None:
    """Raise StartStateError if the robot is as far ahead of a motion as by a controller that began when it came, or
    behind it and slower, as by one that slows motions down.

    Whatever leaves the motion would set the joints back, or on.

    Args:
        motion: the robot is in it, or was sent it.
        setup: the robot and the motion's joints.
        state: as measured, of all these joints.
        now: ns of the node's clock.
        told: the motion with those before it; None if these are not known.

    Raises:
        TooSoonToTellError: the motion may have been on for too short to tell.
    """
    measured = state.q[setup.variables]
    then = state.seen(setup.variables, now)
    ahead = then + round(START_DELAY * NANOSECONDS_PER_SECOND)
    away, away_ahead = (setup.away(measured, motion.at(time).position).max() for time in (then, ahead))
    if away_ahead + ALIKE < away:
        raise StartStateError(
            "the robot is ahead of the motion that it is in, as by a controller that does not keep the stamps of "
            "trajectories: what leaves the motion would set it back. Parameter start_delay: 0.0 is for such controllers"
        )
    times = then - np.arange(_DRIVE, LATEST_BEGIN, LOOK_EVERY)
    position, velocity, _ = motion.at_all(times)
    beside = setup.away(measured, position).max(axis=1)
    best = int(np.argmin(beside))
    share = share_of(velocity[best], setup, state) if beside[best] + ALIKE < away else 1.0
    # Behind drives that lag joints are slower than at any time of the motion while that gets faster.
    slower = share < _SLOWER and not _lags(told or motion, setup, state, now)
    if slower or (np.isnan(share) and away > _FAR and not _may_lag(motion, setup, state, then)):
        late = (then - int(times[best])) / NANOSECONDS_PER_SECOND
        sentence = (
            f"the robot is {late:.2g} s behind the motion that it is in, and slower, as by a controller that slows "
            "motions down: what leaves the motion would set it on. Wait until that one is over"
        )
        tells = motion.start + _TELLS_FROM + _TELLS
        if slower and then < tells:
            raise TooSoonToTellError(sentence, tells + (now - then))
        raise StartStateError(sentence)
    pace = None if away <= THERE else pace_of(motion, setup, state, now)
    if pace is not None:
        raise StartStateError(
            f"the robot does the motion that it is in at {pace:.1%} of its speed, as by a speed slider: what leaves "
            "the motion would set it on. Wait until that one is over, or put the slider at 100 %"
        )
    if away > _ASIDE and _is_led_aside(motion, setup, state, then):
        raise StartStateError(
            f"the robot is {away:.3g} away from where the motion has it that it is in, and was not a moment ago: "
            "somebody else moves it, or a speed slider slows it down. Wait until it stands"
        )


def _is_led_aside(motion: Commanded, setup: ServoSetup, state: RobotState, then: int) -> bool:
    """Check whether joints have just begun to leave a motion, as when a controller gets somebody else's; arguments as
    of ``_may_lag``."""
    if (
        state.stamped is None or not state.stamped[setup.variables].all()
    ):  # nobody knows when they were measured
        return False
    since, places = _known_past(motion, setup, state, then)
    return len(since) >= _LEAST_PAST and led_aside(motion, setup, state, since, places, then) > _ASIDE


def _known_past(
    motion: Commanded, setup: ServoSetup, state: RobotState, then: int
) -> tuple[Annotated[Float64, "K"], Annotated[Float64, "K n"]]:
    """Return ``RobotState.past`` as far as it is known what joints were told."""
    since, places = state.past(setup.variables)
    if motion.trajectory.velocity[0].any():  # what was before is not known
        known = then - since * NANOSECONDS_PER_SECOND >= motion.start
        since, places = since[known], places[known]
    return since, places


def _lags(motion: Told, setup: ServoSetup, state: RobotState, now: int) -> bool:
    """Check whether joints are behind a motion by their drives, and were for as long as tells these from a speed
    slider: one of 90 % looks like drives that lag by 20 ms at first. Arguments as of ``check_keeps_stamps``."""
    seen = state.seen(setup.variables, now)
    since = np.round(state.past(setup.variables)[0] * NANOSECONDS_PER_SECOND).astype(np.int64)
    moving = [seen - since[since >= _TELLS - _TELLS_LESS]]  # then, and a moment before
    moving.append(moving[0] - _TELLS_FROM // 2)
    speeds = [np.abs(motion.at_all(times)[1]) / setup.unscaled.velocity for times in moving]
    tells = np.min([speed.max(axis=1) for speed in speeds], axis=0) > _MOVES
    tells &= moving[1] >= motion.start
    return bool(tells.any()) and time_in(motion, setup, state, now, trusting=True) is not None


def _may_lag(motion: Commanded, setup: ServoSetup, state: RobotState, then: int) -> bool:
    """Check whether drives that lag explain where joints of a slow motion were until a time, ``then``: where it has
    just begun, those that most robots have, as a speed slider has had no time to look different from others."""
    since, places = _known_past(motion, setup, state, then)
    most = _USUAL_LAG if then < motion.start + _BEGINS else np.inf
    since, places = np.append(since, 0.0), np.vstack([places, state.q[setup.variables]])
    return least_lag_error(motion, setup, since, places, then, most) <= _EXPLAINED


def check_clock(state: RobotState, setup: ServoSetup, earliest: float = EARLIEST) -> None:
    """Raise StartStateError if who measures the joints has another clock, as far as stamps tell; ``earliest``: see
    EARLIEST. One that is far behind begins late, and goes there from where the joints are as fast as the stamp says."""
    for name, k in zip(setup.joints, setup.variables, strict=True):
        late = float(state.late[k])
        if not _is_same_clock(late, earliest):
            when = f"{-late:.2g} s ahead of" if late < 0.0 else f"{late:.2g} s behind"
            raise StartStateError(
                f"the motion begins at a time of the node's clock, but the joint state of {name!r} is stamped {when} "
                "that clock: its controller may begin at another time. Set the clocks of all machines, and "
                "use_sim_time for all or none; motions other than servo's begin all the same once the robot stands"
            )
