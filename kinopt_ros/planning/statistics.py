"""Statistics of requests: counts since the start, and times of the newest ones."""

import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np

_NEWEST = 1000
"""Times kept per name."""
_MOST_NAMES = 100
"""Names and reasons kept; more are counted under ``OTHER``, so that nobody can fill the memory with them."""
OTHER = "other"
RECENT = 30.0
"""Time span of the counts that are called recent, s."""


@dataclass(frozen=True)
class Percentiles:
    """Percentiles of the newest times, s."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class Summary:
    """Figures of one name."""

    requests: int
    codes: dict[int, int]
    """Number of times that each code was the answer."""
    wall: Percentiles | None
    """Time from arrival to answer; None before the first."""
    queue: Percentiles | None
    """Time in queues."""
    recent: dict[int, int]
    """How often each code was the answer within the last RECENT seconds."""
    reasons: dict[str, int]
    """How often each reason to take another solver."""
    recent_fallbacks: int
    """How often another one was taken within the last RECENT seconds."""


@dataclass
class _Series:
    codes: Counter[int] = field(default_factory=Counter)
    wall: deque[float] = field(default_factory=lambda: deque(maxlen=_NEWEST))
    queue: deque[float] = field(default_factory=lambda: deque(maxlen=_NEWEST))
    recent: deque[tuple[float, int, bool]] = field(default_factory=lambda: deque(maxlen=_NEWEST))
    reasons: Counter[str] = field(default_factory=Counter)


class Statistics:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[str, _Series] = {}

    def record(self, name: str, code: int, wall: float, queue: float = 0.0, reason: str = "") -> None:
        """Count one request.

        Args:
            name: of a service or solver.
            code: its answer.
            wall: time from arrival to answer, s.
            queue: time in queues, s.
            reason: why it was not the solver asked for, if so.
        """
        with self._lock:
            if name not in self._series and len(self._series) >= _MOST_NAMES:
                name = OTHER
            series = self._series.get(name)
            if series is None:
                series = self._series[name] = _Series()
            series.codes[code] += 1
            series.wall.append(wall)
            series.queue.append(queue)
            series.recent.append((time.monotonic(), code, bool(reason)))
            if reason:
                known = reason in series.reasons or len(series.reasons) < _MOST_NAMES
                series.reasons[reason if known else OTHER] += 1

    def names(self) -> tuple[str, ...]:
        """Names that were recorded."""
        with self._lock:
            return tuple(sorted(self._series))

    def summary(self, name: str) -> Summary:
        """Figures of a name; zeros if nothing was recorded."""
        with self._lock:
            series = self._series.get(name, _Series())
            codes, reasons = dict(series.codes), dict(series.reasons)
            wall, queue = list(series.wall), list(series.queue)
            recent = list(series.recent)
        since = time.monotonic() - RECENT
        newest = Counter(code for moment, code, _ in recent if moment >= since)
        fell_back = sum(moment >= since and other for moment, _, other in recent)
        return Summary(
            sum(codes.values()),
            codes,
            _percentiles(wall),
            _percentiles(queue),
            dict(newest),
            reasons,
            fell_back,
        )


def _percentiles(times: list[float]) -> Percentiles | None:
    if not times:
        return None
    p50, p95, p99 = (float(value) for value in np.percentile(times, (50, 95, 99)))
    return Percentiles(p50, p95, p99)
