"""The time that motions are in: the node's clock, but for steps that the robot's does not share.

A clock that is set (NTP, another source of simulated time) leaves motions that run where they are: their controller
goes by its own clock. Whether that was set, too, the stamps of joint states say. Until they do, and amid motions of
robots whose clock is another one anyway, the time goes on as if the node's had not been set.
"""

import threading
import time
from collections.abc import Callable

from kinopt_ros.ros.robot.publisher_clock import STEP, PublisherClock

QUICKEST, CLOCK_STEP = 20, 100_000_000
"""How many times as quick as the machine's time simulated time is at most, and its longest step, ns."""
_PACE = 500_000_000
"""Time over which the pace of simulated time is measured, ns: it comes in steps, and late ones all at once."""
_SECOND = 10**9
_HOLDS = 100_000_000
"""Time for which a step does not count at least where nobody can say whether the robot shares it, ns."""
_SILENT, _GONE = _SECOND, 60 * _SECOND
"""Time without joint states, of which the node listens, after which somebody may be gone, and is, ns."""
_STALL = 100_000_000
"""Longest time between two looks at the clock in which the node has listened, ns."""
_MOST = 64
"""Most publishers of joint states that are told apart."""
_READ_IN, _READS = 1_000_000, 3
"""Time within which the clock is to be read, ns, and how often that is tried."""


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
        """When it was set, ns of the time listened."""
        self._listened, self._looked = 0, 0
        """For how long the node has listened, ns: not while it gets no CPU; and when it did last, ns of the machine's
        time."""
        self._known: dict[str, PublisherClock] = {}

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
                for one in self._known.values():
                    one.follow(self._set)
                self._set = 0
            return now

    def _hear(self, name: str, late: int) -> None:
        one = self._known.pop(name, None) or PublisherClock(self._listened)
        one.take(late, self._set, time.monotonic_ns())
        one.heard = self._listened
        self._known[name] = one  # to the end of the order
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]

    def _counts(self, moves: bool) -> bool:
        """Check whether a step counts."""
        telling = [one for one in self._known.values() if one.tells]
        if moves:  # who was silent already when the clock was set is gone
            telling = [one for one in telling if one.heard >= self._stepped - _SILENT]
            return bool(telling) and all(one.shares for one in telling)
        if self._listened < self._stepped + _HOLDS:
            return False
        alive = [one for one in telling if one.heard >= self._listened - _SILENT]
        if not alive:
            return not any(one.heard >= self._listened - _GONE for one in telling)
        return all(one.shares or one.is_nearer(self._set) for one in alive)

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
                self._note(step)
        self._listened += min(after - self._looked, _STALL)
        self._looked = after
        if said:
            self._measure(said, after)
        # Simulated time stands until it is told again.
        if self._read is None or said != self._read[0] or not self._is_simulated():
            self._read = said, before, after
        return said - self._set

    def _note(self, step: int) -> None:
        """Take notice that the clock was set ahead, ns."""
        alone = not self._set
        self._stepped = self._listened if alone else self._stepped
        self._set += step
        self._set = 0 if abs(self._set) < _READ_IN else self._set  # it was set right again
        self._paced = None
        for one in self._known.values():
            one.begin_anew(alone)

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
