"""The newest value of every joint that anybody publishes."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.errors import InvalidStateError, StaleStateError, quoted, shortened
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import endless_variables
from kinopt_ros.robot.xml_text import MAX_NAME_LENGTH
from kinopt_ros.ros.robot.motion_clock import CLOCK_STEP, QUICKEST
from kinopt_ros.ros.robot.publisher_clock import LATEST

_MOST_NAMES = 10_000
"""Most joints remembered, of this robot and of others on the topic."""
JUMP_SECONDS = 0.5
"""Time for which the greatest step of a joint's position is remembered, at least, s; at most twice that."""
FASTER = 2.0
"""Times its velocity limit that a joint may be measured to move."""
_LATE = 0.05
"""By how much two messages without stamps may come closer together than they were sent, s."""
_EQUALLY, _ANOTHER_CLOCK = 0.05, 0.3
"""By how much messages that come equally late may differ, s; and for how long they have come so if they are of another
clock and do not lie unread, s."""
_UNEVEN = 0.005
"""By how much stamps may be closer together than what they are of was measured, s."""
_HELD = 0.1
"""Longest time that a position which is told again and again may be old, s: drivers repeat what they measured last."""
SLOWEST_WAY, FADES = 0.1, 0.5
"""Longest way of a joint state that is reckoned with, s: what a message to the controller takes, too; and the time in
which a way that is not seen again fades to a third, s."""
_LONGEST_GAP, _SHORT_GAP = 0.3, 0.01
"""Longest time between two messages that counts as usual, s, and one that always does: what lay in a network comes all
at once."""
_NOISE = 5e-3
"""Step that says nothing, rad or m: at 1 kHz noise would be faster than a slow joint can be."""
_WAY_SECONDS = 0.05
"""Least time that the velocity of a way is the mean of, s; at most twice that, unless joint states are rarer."""
_WAYS = 14
"""Number of earlier positions that are kept, so far apart."""
_TOGETHER = 2e-3
"""How far apart positions of several joints may be measured that count as of one time, s."""
LEAST_SINCE = 0.03
"""Least time between two positions that say how fast joints are, s."""
_STEADY = 2e-3
"""Way in that time that says nothing, rad or m: noise again."""
_SAYS = 2.5e-3, 2.0
"""Ways in that time by which a joint's positions may contradict its velocities, rad or m: what hardly moves says
nothing, nor does what may have turned over or jumped."""
_ENOUGH, _FULL = 0.02, 0.1
"""Sum of squares of such ways, rad^2 or m^2, from which on they do, which is about 0.5 s of a motion; and the most, as
what was long ago is forgotten."""
_REPEATED = 0.02
"""Time for which a driver tells the same position, s, so that this says nothing about its velocities."""
_ALIKE = 0.7, 1.4
"""How many times as far as by its velocities a joint may go."""
_SILENT_GAPS, _LEAST_SILENCE = 1.5, 0.015
"""How many times as long as the longest time between two messages lately nothing may come; and the least time, s,
that counts as silence."""
UNREAD_SECONDS, _UNREAD_LOOK = 0.5, 5e-3
"""Time for which is waited for joint states that are too old, s, as newer ones may lie unread where a compiler has just
held Python's lock; and the time between two looks."""


class _Reading(NamedTuple):
    """What was read of one joint; a tuple, as each joint of each message makes one."""

    position: float
    velocity: float
    received: float
    stamp: int
    """0: none."""
    arrived: int
    """Time of the arrival, ns of the node's clock."""
    fastest: float
    """Velocity of the fastest step since ..."""
    since: float
    """... this was received, JUMP_SECONDS ago at most; 0 for none."""
    earlier: float
    """Velocity of the fastest step in the JUMP_SECONDS before that."""
    turned: float
    """When a step of more than half a turn was received."""
    held: float
    """Time for which the position has been told already, s, _HELD at most."""
    speaks: bool
    """Whether its driver measures velocities: it has told another one than 0."""
    passed: float
    """Time since the joint was first heard of, s, by stamps as far as there are some."""
    slowest: float
    """Longest time from a stamp to its arrival lately, s."""
    alike: tuple[float, float]
    """Since when messages have come about equally late, s, and how late that is, s."""
    gap: float
    """Longest usual time between two messages lately, s, _LONGEST_GAP at most; infinite after one."""
    ways: tuple[tuple[float, float], ...]
    """Earlier positions, two or more, each with ``passed`` then, the oldest first; the last but one begins the way."""
    swept: float = 0.0
    """Way by velocities since the last of these; NaN where nothing can be said of it."""
    compared: tuple[float, float] = (0.0, 0.0)
    """Sums over such ways: of the way by positions times that by velocities, and of the square of the latter. Their
    ratio is how many times as far the joint goes as its velocities say (least squares)."""

    @classmethod
    def first(
        cls, position: float, velocity: float, received: float, stamp: int, arrived: int, late: float
    ) -> "_Reading":
        """Return the first one of a joint; ``late``: ``believed_late`` of its message, s."""
        ways = ((0.0, position),) * 2
        return cls(
            position,
            velocity,
            received,
            stamp,
            arrived,
            fastest=0.0,
            since=0.0,
            earlier=0.0,
            turned=-math.inf,
            held=0.0,
            speaks=velocity != 0.0,
            passed=0.0,
            slowest=late,
            alike=(received, _late(stamp, arrived)),
            gap=math.inf,
            ways=ways,
        )

    def then(
        self, position: float, velocity: float, received: float, stamp: int, arrived: int, late: float
    ) -> "_Reading":
        """Return the next one, with the fastest of the last steps, of which the last one leads from here to there."""
        # Drivers may measure continuous joints between half a turn and minus that.
        way = position - self.position
        step = abs(math.remainder(way, math.tau)) if math.isfinite(way) else math.inf
        # Messages may come in a heap. Stamps of two publishers may say anything, but not always go on.
        between = (stamp - self.stamp) / 1e9 if stamp and self.stamp else 0.0
        passed = between + _UNEVEN if between > 0.0 else received - self.received + _LATE
        speed = max(step - _NOISE, 0.0) / (passed + self.held)
        if received < self.since + JUMP_SECONDS:
            speed = max(speed, self.fastest)
            since, earlier = self.since, self.earlier
        else:
            since, earlier = received, self.fastest_at(received)
        now = self.passed + (between if between > 0.0 else received - self.received)
        ways, compared, by = self.ways, self.compared, _late(stamp, arrived)
        swept = self.swept + 0.5 * (self.velocity + velocity) * (now - self.passed)
        held = min(self.held + passed, _HELD) if way == 0.0 else 0.0
        if max(held, self.held) > _REPEATED:  # and then it goes on from elsewhere
            swept = math.nan
        if now - ways[-1][0] >= _WAY_SECONDS:
            compared = _compared(compared, swept, position - ways[-1][1], now - ways[-1][0])
            ways, swept = (*ways, (now, position))[-_WAYS:], 0.0
        return _Reading(
            position,
            velocity,
            received,
            stamp,
            arrived,
            speed,
            since,
            earlier,
            received if abs(way) > math.pi else self.turned,
            held,
            self.speaks or velocity != 0.0,
            now,
            max(late, self.slowest_at(received)),
            self.alike if abs(by - self.alike[1]) <= _EQUALLY else (received, by),
            self.gap_after(received),
            ways,
            swept,
            compared,
        )

    @property
    def late(self) -> float:
        """Time from the stamp to the arrival, s; 0 without a stamp."""
        return _late(self.stamp, self.arrived)

    @property
    def believed_late(self) -> float:
        """The same; 0 where it says that the clock is another one."""
        return _believed(self.late)

    def slowest_at(self, now: float) -> float:
        """Return the longest time from a stamp to its arrival lately, s: this one's, or what of earlier ones' has not
        faded until now (s)."""
        return max(self.believed_late, self.slowest * math.exp((self.received - now) / FADES))

    def gap_after(self, received: float) -> float:
        """Return ``gap`` when the next message is received (s): that one, at most twice what was usual before, as a
        single hiccup is not; or what of a longer one has not faded."""
        gap = received - self.received
        if not math.isfinite(self.gap):
            return min(gap, _LONGEST_GAP)
        most = min(max(2.0 * self.gap, _SHORT_GAP), _LONGEST_GAP)
        return max(min(gap, most), self.gap * math.exp(-gap / FADES))

    @property
    def contradiction(self) -> float:
        """How many times as far the joint goes as its velocities say, where that is not about so; else 1."""
        product, square = self.compared
        if square < _ENOUGH or _ALIKE[0] <= product / square <= _ALIKE[1]:
            return 1.0
        return product / square

    @property
    def drift(self) -> float:
        """Velocity of the way lately, if the driver measures none."""
        if self.speaks:
            return 0.0
        begin, position = self.ways[-2]
        way, passed = self.position - position, self.passed - begin
        if passed <= 0.0 or not math.isfinite(way):  # that is a jump
            return 0.0
        way = math.remainder(way, math.tau)
        return math.copysign(max(abs(way) - _STEADY, 0.0), way) / passed

    @property
    def earlier_position(self) -> tuple[float, float]:
        """How long ago the way lately began, as of when this was measured, s; and the position then. 0 s: at once."""
        begin, position = self.ways[-2]
        return self.passed - begin, position

    def fastest_at(self, now: float) -> float:
        """Return the velocity of the fastest step until now (s)."""
        if now < self.since + JUMP_SECONDS:
            return max(self.fastest, self.earlier)
        return self.fastest if now < self.since + 2.0 * JUMP_SECONDS else 0.0


def _compared(sums: tuple[float, float], swept: float, way: float, passed: float) -> tuple[float, float]:
    """Add a way of so many seconds to the sums that compare positions with velocities."""
    far = math.remainder(way, math.tau) if math.isfinite(way) else math.nan
    says = all(_SAYS[0] <= abs(one) <= _SAYS[1] for one in (swept, far))
    if not says or passed > 2.0 * _WAY_SECONDS:
        return sums
    product, square = sums
    product, square = product + far * swept, square + swept * swept
    share = min(_FULL / square, 1.0)
    return share * product, share * square


def _late(stamp: int, arrived: int) -> float:
    return (arrived - stamp) / 1e9 if stamp else 0.0


def _believed(late: float) -> float:
    return late if 0.0 < late <= LATEST else 0.0


class Received:
    """What was received of a robot's variables, and how long ago."""

    known: Annotated[Bool, "nq"]
    age: Annotated[Float64, "nq"]

    def require_fresh(
        self,
        variables: Iterable[int],
        robot: RobotModel,
        timeout: float,
        why: str = "parameter state_timeout",
    ) -> None:
        """Raise StaleStateError if a variable was published, but longer ago than timeout (s); ``why`` says whose that
        is."""
        if self.age.max(initial=0.0) <= timeout:
            return
        old = [int(i) for i in variables if self.known[i] and self.age[i] > timeout]
        if old:
            raise StaleStateError(
                f"the joint state of {robot.variable_names[old[0]]!r} is {self.age[old[0]]:.2f} s old; "
                f"allowed is {timeout:g} s ({why})"
            )

    def require_known(self, variables: Iterable[int], robot: RobotModel) -> None:
        """Raise InvalidStateError if nobody has published one of the variables."""
        missing = [robot.variable_names[i] for i in variables if not self.known[i]]
        if missing:
            raise InvalidStateError(f"joint_states has no value for {', '.join(missing)}")


@dataclass(frozen=True, eq=False)
class Positions(Received):
    """Where one robot was measured last."""

    q: Annotated[Float64, "nq"]
    """Positions; the robot's default where nobody published one."""
    known: Annotated[Bool, "nq"]
    """Which variables somebody published."""
    age: Annotated[Float64, "nq"]
    """Seconds since each was received; 0 where nothing was."""


@dataclass(frozen=True, eq=False)
class RobotState(Received):
    """Measured state of one robot."""

    q: Annotated[Float64, "nq"]
    """Positions; the robot's default where nobody published one."""
    velocity: Annotated[Float64, "nq"]
    """Velocities; 0 where nobody published one."""
    known: Annotated[Bool, "nq"]
    """Which variables somebody published."""
    age: Annotated[Float64, "nq"]
    """Seconds since each was received; 0 where nothing was."""
    stamp: Annotated[Int64, "nq"]
    """When each was measured, ns of the clock of who sent it; without a stamp when it was received, by the node's
    clock. 0 where nothing was said."""
    late: Annotated[Float64, "nq"]
    """Seconds from each one's stamp to its arrival, by the node's clock: less than 0 if who sent it has a clock that is
    ahead. 0 where nothing was said."""
    fastest: Annotated[Float64, "nq"]
    """Greatest velocity by which each position has changed between two messages in the last JUMP_SECONDS; one that a
    joint cannot have says that positions are not to be believed. Infinite where a joint that has ends has jumped by a
    turn."""
    drift: Annotated[Float64, "nq"] | None = None
    """Velocities of the way lately where the driver measures none, rad/s or m/s; else 0. None: nobody knows."""
    stamped: Annotated[Bool, "nq"] | None = None
    """Which have come with a stamp; None: nobody knows."""
    slowest: Annotated[Float64, "nq"] | None = None
    """The longest that joint states lately were on their way, s, as far as stamps say so; None: as long as these."""
    earlier: tuple[Annotated[Float64, "nq"], Annotated[Float64, "nq"]] | None = None
    """How long before each was measured it had been measured, too, s (some 0.05 to 0.1 s; 0: not yet), and where it was
    then. None: nobody knows."""
    ways: Sequence[tuple[float, tuple[tuple[float, float], ...]]] | None = None
    """A time of each, s, and earlier positions with theirs, the oldest first. None: nobody knows."""
    alike: Annotated[Float64, "nq"] | None = None
    """For how long joint states of each have come equally late, s. None: nobody knows."""
    elapsed: Annotated[Float64, "nq"] | None = None
    """Seconds since each was received, in simulated time, which motions are in; ``age`` goes on while that stands.
    None: time is not simulated."""
    gap: Annotated[Float64, "nq"] | None = None
    """Longest time between two messages of each lately, s; infinite if one has come. None: nobody knows."""

    def later(self, ahead: int) -> "RobotState":
        """Return it as it will be so many ns later if nothing comes until then."""
        if not ahead:
            return self
        more = ahead / 1e9
        elapsed = None if self.elapsed is None else self.elapsed + more
        return replace(self, age=self.age + more, elapsed=elapsed)

    def past(self, variables: Iterable[int]) -> tuple[Annotated[Float64, "K"], Annotated[Float64, "K n"]]:
        """Return how long before some variables were measured they had been measured, too, s, every 0.05 s or more in
        the last 0.7 s, the longest first, and where they were then; nothing if they are not measured together."""
        index = list(variables)
        nothing = np.zeros(0), np.zeros((0, len(index)))
        if self.ways is None:
            return nothing
        kept = [self.ways[i] for i in index]
        count = min((len(ways) for _, ways in kept), default=0)
        if count == 0:
            return nothing
        rows = np.array([ways[-count:] for _, ways in kept])  # n, K, 2
        since = np.array([now for now, _ in kept])[:, None] - rows[:, :, 0]
        together = np.ptp(since, axis=0) <= _TOGETHER
        return since[0, together], rows[:, together, 1].T

    def shortly_before(self, variables: Iterable[int]) -> tuple[float, Annotated[Float64, "n"]] | None:
        """Return the last of ``past`` that says how fast joints came to where they are, s and rad or m; None if none
        does."""
        since, places = self.past(variables)
        longer = np.flatnonzero(since >= LEAST_SINCE)
        return (float(since[longer[-1]]), places[longer[-1]]) if len(longer) else None

    @property
    def seen_velocity(self) -> Annotated[Float64, "nq"]:
        """Velocities as measured, and of the way lately where the driver measures none."""
        if self.drift is None:
            return self.velocity
        return np.asarray(np.where(self.velocity == 0.0, self.drift, self.velocity))

    @property
    def behind(self) -> Annotated[Float64, "nq"]:
        """Seconds since each was measured, in the time of the node's clock, as far as stamps say so."""
        return np.asarray((self.age if self.elapsed is None else self.elapsed) + self._believed_late)

    @property
    def _believed_late(self) -> Annotated[Float64, "nq"]:
        """``late``; 0 where it says that the clock is another one."""
        return np.where((self.late > 0.0) & (self.late <= LATEST), self.late, 0.0)

    def seen(self, variables: Iterable[int], now: int) -> int:
        """Return when the oldest of some variables was measured, as far as stamps say so; as ``now``, ns of the node's
        clock."""
        return now - round(1e9 * float(self.behind[list(variables)].max(initial=0.0)))

    def way(self, variables: Iterable[int]) -> int:
        """Return how long messages are on their way between the node and who measures some variables, ns: as long as
        the slowest joint states lately, as far as stamps say so; SLOWEST_WAY at most."""
        believed = self._believed_late if self.slowest is None else self.slowest
        return round(1e9 * min(float(believed[list(variables)].max(initial=0.0)), SLOWEST_WAY))

    def may_lie_unread(self, variables: Iterable[int]) -> bool:
        """Check whether joint states of some variables come so late by their stamps that they may have lain unread, and
        newer ones may still. Ones that always do are of another clock."""
        index = list(variables)
        late = self.late[index] > LATEST
        return bool((late if self.alike is None else late & (self.alike[index] < _ANOTHER_CLOCK)).any())

    def is_silent(self, variables: Iterable[int]) -> bool:
        """Check whether nothing has come of some variables for clearly longer than usual: it may lie in the network,
        and what is sent to who measures them, too."""
        if self.gap is None:
            return False
        index = list(variables)
        usual = _SILENT_GAPS * self.gap[index]
        return bool((self.age[index] > np.maximum(usual, _LEAST_SILENCE)).any())

    def jumped(self, variables: Iterable[int], robot: RobotModel) -> str | None:
        """Return a variable whose position has changed faster lately than it can; None if none has."""
        limits = robot.limits.velocity
        found = (i for i in variables if self.known[i] and not self.fastest[i] <= FASTER * limits[i])
        return next((robot.variable_names[i] for i in found), None)


class JointStates:
    """Collects sensor_msgs/JointState messages, of one publisher or of several. Thread-safe.

    Age is counted on the steady clock from the arrival, since simulated time can stand still.
    """

    def __init__(self, simulated: Callable[[], int | None] = lambda: None) -> None:
        """``simulated``: ns of the node's clock, if that is simulated; else None."""
        self._simulated = simulated
        self._readings: dict[str, _Reading] = {}
        self._lock = threading.Lock()

    def update(self, message: Any, stamp: int = 0, now: int = 0) -> None:
        """Take a message. A velocity that is not finite counts as not measured.

        ros2_control publishes NaN for interfaces that a joint does not have.

        Args:
            message: sensor_msgs/JointState.
            stamp: its stamp, ns; 0: it has none.
            now: ns of the node's clock.

        Raises:
            InvalidStateError: lengths differ, a joint is named twice or names are too many or too long, and nothing was
                taken; or positions are not finite, and all others were taken.
        """
        names, positions, velocities = message.name, message.position, message.velocity
        if len(names) > _MOST_NAMES:
            raise InvalidStateError(f"joint state has {len(names)} names; at most {_MOST_NAMES} are read")
        if len(positions) != len(names) or (velocities and len(velocities) != len(names)):
            raise InvalidStateError(
                f"joint state has {len(names)} names, {len(positions)} positions, {len(velocities)} velocities"
            )
        if len(set(names)) != len(names):  # whichever value were taken, another one said something else
            twice = [quoted(name) for name, count in Counter(names).items() if count > 1]
            raise InvalidStateError(f"joint state names {shortened(twice)} twice")
        endless = [name for name in names if len(name) > MAX_NAME_LENGTH]
        if endless:
            raise InvalidStateError(
                f"joint state names {quoted(endless[0])}; allowed are at most {MAX_NAME_LENGTH} characters"
            )
        received = time.monotonic()
        velocities = velocities or [0.0] * len(names)
        late = _believed(_late(stamp, now))
        lost = []
        with self._lock:
            for name, position, velocity in zip(names, positions, velocities, strict=True):
                if not math.isfinite(position):
                    lost.append(name)
                    continue
                before = self._readings.pop(name, None)  # to the end of the order
                follow = _Reading.first if before is None else before.then
                said = velocity if math.isfinite(velocity) else 0.0
                self._readings[name] = follow(position, said, received, stamp, now, late)
            while len(self._readings) > _MOST_NAMES:  # the oldest go: nobody can fill the memory with names
                del self._readings[next(iter(self._readings))]
        if lost:
            raise InvalidStateError(f"the position of {shortened(lost)} is not finite")

    def fresh(
        self, robot: RobotModel, variables: Iterable[int], timeout: float, patience: float = UNREAD_SECONDS
    ) -> RobotState:
        """Return the state of a robot; wait a little where it is too old. Not for the thread that reads messages.

        Raises:
            StaleStateError: one of some variables was published, but longer ago than timeout (s) even so.
        """
        needed, end = list(variables), time.monotonic() + patience
        while True:
            state = self.of(robot)
            try:
                state.require_fresh(needed, robot, timeout)
            except StaleStateError:
                if time.monotonic() >= end:
                    raise
            else:
                return state
            time.sleep(_UNREAD_LOOK)

    def positions(self, robot: RobotModel) -> Positions:
        """Return where a robot was measured last: all of ``of`` that most requests need, for much less time."""
        readings = self._readings_of(robot)
        return _positions(readings, robot, time.monotonic())

    def _readings_of(self, robot: RobotModel) -> "list[_Reading | None]":
        with self._lock:
            return [self._readings.get(name) for name in robot.variable_names]

    def contradictions(self, robot: RobotModel) -> Annotated[Float64, "nq"]:
        """Return how many times as far each variable goes as its velocities say, where that is not about so (another
        unit, the motor's side of a gear); else 1, as where nobody knows."""
        return np.array([1.0 if r is None else r.contradiction for r in self._readings_of(robot)])

    def of(self, robot: RobotModel) -> RobotState:
        """Return the state of a robot, from what was received so far."""
        readings = self._readings_of(robot)
        now, simulated = time.monotonic(), self._simulated()
        where = _positions(readings, robot, now)
        before = np.array([(0.0, 0.0) if r is None else r.earlier_position for r in readings]).reshape(-1, 2)
        return RobotState(
            q=where.q,
            velocity=np.array([0.0 if r is None else r.velocity for r in readings]),
            known=where.known,
            age=where.age,
            stamp=np.array([0 if r is None else r.stamp or r.arrived for r in readings], dtype=np.int64),
            late=np.array([0.0 if r is None else r.late for r in readings]),
            fastest=np.array(
                [
                    0.0 if r is None else _fastest(r, now, bool(endless))
                    for r, endless in zip(readings, endless_variables(robot), strict=True)
                ]
            ),
            drift=np.array([0.0 if r is None else r.drift for r in readings]),
            stamped=np.array([r is not None and r.stamp != 0 for r in readings], dtype=bool),
            slowest=np.array([0.0 if r is None else r.slowest_at(now) for r in readings]),
            earlier=(before[:, 0], before[:, 1]),
            ways=[(0.0, ()) if r is None else (r.passed, r.ways) for r in readings],
            gap=np.array([math.inf if r is None else r.gap for r in readings]),
            alike=np.array([0.0 if r is None else r.received - r.alike[0] for r in readings]),
            elapsed=None
            if simulated is None
            else np.array(
                [0.0 if r is None else _elapsed(simulated - r.arrived, now - r.received) for r in readings]
            ),
        )


def _elapsed(simulated: int, age: float) -> float:
    """Return the simulated time that has passed, ns, in s; not what a clock jumps by that begins, or was set."""
    return min(max(simulated, 0) / 1e9, QUICKEST * age + CLOCK_STEP / 1e9)


def _fastest(reading: _Reading, now: float, endless: bool) -> float:
    if not endless and now <= reading.turned + JUMP_SECONDS:
        return math.inf
    return reading.fastest_at(now)


def _positions(readings: Sequence[_Reading | None], robot: RobotModel, now: float) -> Positions:
    return Positions(
        q=np.array(
            [d if r is None else r.position for r, d in zip(readings, robot.default_q.tolist(), strict=True)]
        ),
        known=np.array([r is not None for r in readings], dtype=bool),
        age=np.array([0.0 if r is None else now - r.received for r in readings]),
    )
