"""The time that motions are in: the node's clock, but for steps that the robot's does not share.

A clock that is set (NTP, another source of simulated time) leaves motions that run where they are: their controller
goes by its own clock. Whether that was set, too, the stamps of joint states say. Until they do, and amid motions of
robots whose clock is another one anyway, the time goes on as if the node's had not been set.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

EARLIEST, LATEST = -0.05, 0.5
"""How late joint states come after their stamps where clocks agree, s."""
STEP = 50_000_000
"""What a clock may be read too late or too early without having been set, ns."""
QUICKEST, CLOCK_STEP = 20, 100_000_000
"""How many times as quick as the machine's time simulated time is at most, and its longest step, ns."""
_PACE = 500_000_000
"""Time over which the pace of simulated time is measured, ns: it comes in steps, and late ones all at once."""
_SECOND = 10**9
_HOLDS = 100_000_000
"""Time for which a step does not count at least where nobody can say whether the robot shares it, ns."""
_SOONER, _SLEW = 10_000_000, 2e-3
"""By how much joint states may come sooner than they ever did lately, ns, and share of the time by which clocks may
drift apart."""
_SOON = 500_000_000
"""Time after which joint states that come much sooner are those of a clock that was set by itself, ns."""
_TOO_SOON = 50.0
"""How much less likely it is that joint states come even sooner than that they come later."""
_TIMES = 3
"""Messages in a row that say that a clock was set, too: one may have been long on its way."""
_MOST = 64
"""Most publishers of joint states that are told apart."""
_READ_IN, _READS = 1_000_000, 3
"""Time within which the clock is to be read, ns, and how often that is tried."""


@dataclass
class _Publisher:
    """Somebody who publishes joint states."""

    least: int
    """The least time by which they come after their stamps lately, ns, by the clock that he shares."""
    heard: int
    """When he was heard of last, ns of the machine's time."""
    count: int = 0
    """How many messages in a row have said that his clock was set as the node's was."""
    sooner: int = 0
    """Since when they come much sooner, ns of the machine's time; 0 if they don't. He may have heard of a new time
    before the node has."""

    @property
    def agrees(self) -> bool:
        """Whether his clock is as that of motions."""
        return EARLIEST * _SECOND <= self.least <= LATEST * _SECOND

    @property
    def shares(self) -> bool:
        """Whether his clock was set as the node's was."""
        return self.count >= _TIMES

    def take(self, late: int, at: int) -> None:
        """Take a message that has come ``late`` (ns), at a time of the machine's (ns)."""
        much = late < self.least - STEP
        self.sooner = (self.sooner or at) if much else 0
        if not self.agrees and EARLIEST * _SECOND <= late <= LATEST * _SECOND:
            self.least = late  # his clock was set right
        elif not much or at >= self.sooner + _SOON:
            self.least = min(late, self.least + round(_SLEW * (at - self.heard)))
        self.heard = at


class MotionClock:
    """A clock in ns. Thread-safe."""

    def __init__(
        self, clock: Callable[[], int], is_simulated: Callable[[], bool], moves: Callable[[], bool]
    ) -> None:
        """
        Args:
            clock: the node's, ns.
            is_simulated: whether it may be slower or quicker than the machine's time, or stand.
            moves: whether a motion runs. May ask this clock.
        """
        self._clock, self._is_simulated, self._moves = clock, is_simulated, moves
        self._lock = threading.Lock()
        self._read: tuple[int, int, int] | None = None
        """What the clock said last, and the machine's time before and after it said so for the first time, ns."""
        self._rate = 1.0
        """How quick simulated time was lately, as a share of the machine's."""
        self._paced: tuple[int, int] | None = None
        """From when on this is measured: what the clock said, and the machine's time, ns."""
        self._set = 0
        """How far ahead the clock was set, ns, which does not count yet."""
        self._stepped = 0
        """When it was set, ns of the machine's time."""
        self._known: dict[str, _Publisher] = {}

    @property
    def set_ahead(self) -> float:
        """How far ahead of the robot's the node's clock was set while this lasts, s; 0 where nobody says so."""
        with self._lock:
            says = any(one.agrees and not one.shares for one in self._known.values())
            return self._set / _SECOND if says else 0.0

    def now(self) -> int:
        """Return the time."""
        with self._lock:
            return self._now()

    def heard(self, publisher: str, stamp: int) -> int:
        """Return the time at which a joint state has come; ``stamp``: its own, ns, 0 if it has none."""
        with self._lock:
            now = self._now()
            if stamp and self._read is not None and self._read[0]:
                self._hear(publisher, now - stamp)
            asks = bool(self._set)
        return self.look() if asks else now

    def look(self) -> int:
        """Let a step count where nothing speaks against it any more; return the time."""
        moves = self._moves()
        with self._lock:
            now = self._now()
            if self._set and self._counts(moves):
                now += self._set
                self._set = 0
                for one in self._known.values():
                    one.count = 0
            return now

    def _hear(self, name: str, late: int) -> None:
        at = time.monotonic_ns()
        one = self._known.pop(name, None)
        if one is None:
            # Of two clocks that may be his it is the nearer one.
            own = not self._set or abs(late) < abs(late + self._set)
            one = _Publisher(late if own else late + self._set, at, 0 if own else _TIMES)
        elif self._set:
            shares = _unlikely(late + self._set - one.least) < _unlikely(late - one.least)
            one.count = one.count + 1 if shares else 0
            one.take(late + self._set if shares else late, at)
        else:
            one.take(late, at)
        self._known[name] = one  # to the end of the order
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]

    def _counts(self, moves: bool) -> bool:
        """Check whether a step counts."""
        now = time.monotonic_ns()
        telling = [one for one in self._known.values() if one.agrees]
        if any(one.shares for one in telling):  # who is silent may be gone
            return all(one.shares or now > one.heard + _SECOND for one in telling)
        return not (telling or moves) and now >= self._stepped + _HOLDS

    def _now(self) -> int:
        for _ in range(_READS):
            before = time.monotonic_ns()
            said = self._clock()
            after = time.monotonic_ns()
            if after - before <= _READ_IN:
                break
        if self._read is not None and self._read[0]:  # simulated time is 0 until it begins
            step = self._step(said - self._read[0], before - self._read[2], after - self._read[1])
            if step:
                self._stepped = self._stepped if self._set else after
                self._set += step
                self._paced = None
        if said:
            self._measure(said, after)
        if self._read is None or said != self._read[0]:  # simulated time stands until it is told again
            self._read = said, before, after
        return said - self._set

    def _measure(self, said: int, at: int) -> None:
        """Measure how quick simulated time is."""
        begin, since = self._paced or (said, at)
        if at < since + _PACE:
            self._paced = begin, since
            return
        self._rate = min(max((said - begin) / (at - since), 0.0), float(QUICKEST))
        self._paced = said, at

    def _step(self, gone: int, least: int, most: int) -> int:
        """Return by how much the clock was set ahead, ns, if it has gone on by ``gone``, and the machine's time by
        ``least`` to ``most``; 0 if it was not."""
        if self._is_simulated():
            if -STEP <= gone <= QUICKEST * most + CLOCK_STEP:
                return 0
            usual = round(self._rate * most)
        else:
            usual = gone if least - STEP <= gone <= most + STEP else (least + most) // 2
        return gone - usual


def _unlikely(longer: int) -> float:
    """Return a measure of how unlikely it is that a message was longer on its way than any lately, by ``longer``."""
    return abs(longer) if longer >= -_SOONER else -_TOO_SOON * longer
