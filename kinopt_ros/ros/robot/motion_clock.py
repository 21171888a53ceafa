"""The time that motions are in: the node's clock, but for steps that the robot's does not share.

A clock that is set (NTP, another source of simulated time) leaves motions that run where they are: their controller
goes by its own clock. Whether that was set, too, the stamps of joint states say.
"""

import threading
import time
from collections.abc import Callable

STEP = 50_000_000
"""What a clock may be read too late or too early without having been set, ns."""
QUICKEST, CLOCK_STEP = 20, 100_000_000
"""How many times as quick as the machine's time simulated time is at most, and its longest step, ns."""
EARLIEST, LATEST = -50_000_000, 500_000_000
"""How late joint states come after their stamps where clocks agree, ns."""
_SECOND = 10**9
_HOLDS = 100_000_000
"""Time without anybody whose clock was not set after which that of motions is, ns."""
_MOST = 64
"""Most publishers of joint states that are told apart."""


class MotionClock:
    """A clock in ns. Thread-safe."""

    def __init__(self, clock: Callable[[], int], is_simulated: Callable[[], bool]) -> None:
        """
        Args:
            clock: the node's, ns.
            is_simulated: whether it may be slower or quicker than the machine's time, or stand.
        """
        self._clock, self._is_simulated = clock, is_simulated
        self._lock = threading.Lock()
        self._read: tuple[int, int, int] | None = None
        """What the clock said last, and the machine's time before and after it said so for the first time, ns."""
        self._set = 0
        """How far ahead the clock was set, ns, beside that of somebody who publishes joint states."""
        self._asked = 0
        """Since when nobody has said that his clock was not set, ns of the machine's time."""
        self._late: dict[str, int] = {}
        """How late joint states come after their stamps, by who publishes them, ns."""
        self._alone: dict[str, int] = {}
        """Whose clocks were not set, and when they were heard of last, ns of the machine's time."""

    @property
    def set_ahead(self) -> float:
        """How far ahead of the robot's the node's clock was set while this lasts, s."""
        return self._set / _SECOND

    def now(self) -> int:
        """Return the time."""
        with self._lock:
            return self._now()

    def heard(self, publisher: str, stamp: int) -> int:
        """Return the time at which a joint state has come; ``stamp``: its own, ns, 0 if it has none."""
        with self._lock:
            now = self._now()
            if not stamp:
                return now
            late, before = now - stamp, self._late.pop(publisher, None)
            if self._set and before is not None:
                if self._shares(late, before):
                    self._alone.pop(publisher, None)
                    late += self._set  # once the time of motions is set, too
                else:
                    self._alone[publisher] = time.monotonic_ns()
            self._late[publisher] = late  # to the end of the order
            while len(self._late) > _MOST:
                self._alone.pop(next(iter(self._late)), None)
                del self._late[next(iter(self._late))]
            return now

    def _shares(self, late: int, before: int) -> bool:
        """Check whether somebody's clock was set as the node's was, by how late his joint states come, by the time of
        motions, and how late they came before. Clocks that agree since then count as one, too."""
        by_node = late + self._set
        if EARLIEST <= by_node <= LATEST and not EARLIEST <= before <= LATEST:
            return True
        return abs(by_node - before) < abs(late - before)

    def _now(self) -> int:
        before = time.monotonic_ns()
        said = self._clock()
        after = time.monotonic_ns()
        if self._read is not None and self._read[0]:  # simulated time is 0 until it begins
            step = self._step(said - self._read[0], before - self._read[2], after - self._read[1])
            if step:
                self._asked = self._asked if self._set else after
                self._set += step
        if self._read is None or said != self._read[0]:  # simulated time stands until it is told again
            self._read = said, before, after
        if self._set:
            self._alone = {who: at for who, at in self._alone.items() if at >= after - _SECOND}
            if self._alone:
                self._asked = after
            elif after >= self._asked + _HOLDS:
                self._set = 0
        return said - self._set

    def _step(self, gone: int, least: int, most: int) -> int:
        """Return by how much the clock was set ahead, ns, if it has gone on by ``gone``, and the machine's time by
        ``least`` to ``most``; 0 if it was not."""
        if self._is_simulated():
            usual = gone if -STEP <= gone <= QUICKEST * most + CLOCK_STEP else most
        else:
            usual = gone if least - STEP <= gone <= most + STEP else (least + most) // 2
        return gone - usual
