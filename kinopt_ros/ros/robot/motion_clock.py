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
_SECOND = 10**9
_HOLDS = 100_000_000
"""Time for which a step does not count at least where nobody can say whether the robot shares it, ns."""
_SOONER, _SLEW = 10_000_000, 2e-3
"""By how much joint states may come sooner than they ever did lately, ns, and share of the time by which clocks may
drift apart."""
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

    @property
    def agrees(self) -> bool:
        """Whether his clock is as that of motions."""
        return EARLIEST * _SECOND <= self.least <= LATEST * _SECOND

    @property
    def shares(self) -> bool:
        """Whether his clock was set as the node's was."""
        return self.count >= _TIMES


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
            if stamp:
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
            late = late if own else late + self._set
            one = _Publisher(late, at, 0 if own else _TIMES)
        elif self._set:
            longer, by_node = late - one.least, late + self._set - one.least
            shares = by_node >= -_SOONER and (longer < -_SOONER or by_node < longer)
            one.count = one.count + 1 if shares else 0
            late = late + self._set if shares else late
        one.least = min(late, one.least + round(_SLEW * (at - one.heard)))
        one.heard = at
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
        if self._read is None or said != self._read[0]:  # simulated time stands until it is told again
            self._read = said, before, after
        return said - self._set

    def _step(self, gone: int, least: int, most: int) -> int:
        """Return by how much the clock was set ahead, ns, if it has gone on by ``gone``, and the machine's time by
        ``least`` to ``most``; 0 if it was not."""
        if self._is_simulated():
            if -STEP <= gone <= QUICKEST * most + CLOCK_STEP:
                self._rate = gone / most if gone > 0 else self._rate
                return 0
            usual = round(self._rate * most)
        else:
            usual = gone if least - STEP <= gone <= most + STEP else (least + most) // 2
        return gone - usual
