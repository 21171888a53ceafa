"""Distribution of attempts among requests: all of them a little first, then the hard ones, on several cores."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Protocol

import numpy as np

from kinopt_ros.array import Bool, all_set

LOOK_SECONDS = 1e-3
"""Approximate time between two looks at the clock, s."""
FIRST_BLOCK = 4
"""Number of requests or restarts before the pace is known."""
DATED_BLOCK = 64
"""Most requests between two looks at the clock if there is a deadline: all may be harder than those before."""
TOGETHER = 8
"""Number that restarts come in multiples of, itself a multiple of ``kernel.LANES``.

Kernels make some of them at once, and end when the first of those is done: which they are must not depend on the
pace."""
WORTH_THREADS = 32
"""Number of requests from which on several threads are used: handing work to one costs some 50 us."""


class Work(Protocol):
    """B requests in progress. ``run`` may be called from several threads for different rows."""

    done: Annotated[Bool, "B"]

    def run(self, rows: slice, use_seeds: bool, first: int, last: int, polish: bool, end: float) -> bool:
        """Search for every row that is not done; return whether all was done before ``end`` (time.monotonic()).

        Tries seeds and the table if ``use_seeds``, then what follows from solutions, then random restarts ``first`` to
        ``last``. If ``polish``, the best attempt is then brought as near as it gets. Work that takes long looks at the
        clock itself, and stops at ``end``.
        """


class Cores:
    """Threads of one solver, made when they are first needed."""

    def __init__(self, threads: int) -> None:
        """``threads`` 0: as many as this process may use."""
        self.count = threads or len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    def run(self, worker: Callable[[], None], units: int) -> None:
        """Run a worker on all threads, or here if there is little to do, until all are back."""
        helpers = min(self.count, units) - 1 if units >= WORTH_THREADS else 0
        if helpers <= 0:
            worker()
            return
        with self._lock:
            if self._pool is None and not self._closed:
                self._pool = ThreadPoolExecutor(self.count - 1, thread_name_prefix="kinopt_cpu")
            futures = [] if self._pool is None else [self._pool.submit(worker) for _ in range(helpers)]
        worker()
        for future in futures:
            if not future.cancel():  # one that has not begun has nothing left to do
                future.result()

    def close(self) -> None:
        """End the threads. A thread that is at work goes on alone."""
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = None


def search(
    work: Work, restarts: int, hopeless: Callable[[], Bool], deadline: float | None, cores: Cores
) -> Annotated[Bool, "B"]:
    """Work on every request until it is done, its restarts are spent or the deadline has come.

    Answers do not depend on the number of threads, nor on the pace: a request's attempts are the same in any order.

    Args:
        work: the requests.
        restarts: random restarts per request.
        hopeless: tells, if asked, which requests get none, because no configuration can solve them: (B,).
        deadline: value of time.monotonic(), or None.
        cores: threads to use.

    Returns:
        Which requests were cut short by the deadline.
    """
    B = len(work.done)
    end = float("inf") if deadline is None else deadline
    cut = np.zeros(B, dtype=np.bool_)
    if B == 1:  # most requests, and most of them end here
        cut[0] = time.monotonic() >= end or not work.run(slice(0, 1), True, 0, 0, False, end)
        if work.done[0]:
            cut[0] = False
            return cut
    else:
        _seeds(work, cut, end, deadline is not None, cores)
    if all_set(work.done):
        return np.zeros(B, dtype=np.bool_)
    left = np.flatnonzero(~work.done)
    if time.monotonic() >= end:
        cut[left] = True
        return cut & ~work.done
    lost = hopeless()
    singles = _Blocks(len(left))

    def hard() -> None:
        size = TOGETHER
        while (one := singles.take(1)) is not None:
            b = int(left[one.start])
            rows = slice(b, b + 1)
            last = 0 if lost[b] else restarts
            first = 0
            while not work.done[b]:
                start = time.monotonic()
                until = min(first + size, last)
                if start >= end or not work.run(rows, False, first, until, until == last, end):
                    cut[b] = True
                    break
                if until == last:
                    break
                size = _whole_groups(_pace(until - first, time.monotonic() - start))
                first = until

    cores.run(hard, len(left) * WORTH_THREADS if len(left) > 1 and restarts > 0 else 1)
    return cut & ~work.done


def _seeds(work: Work, cut: Annotated[Bool, "B"], end: float, dated: bool, cores: Cores) -> None:
    """Try the seeds of every request; mark in ``cut`` those that there was no time for."""
    B = len(cut)
    most = DATED_BLOCK if dated else B
    blocks = _Blocks(B)

    def seeds() -> None:
        size = FIRST_BLOCK
        while (rows := blocks.take(size)) is not None:
            start = time.monotonic()
            if start >= end or not work.run(rows, True, 0, 0, False, end):
                cut[rows] = True
                continue
            size = min(_pace(rows.stop - rows.start, time.monotonic() - start), most)

    cores.run(seeds, B)


class _Blocks:
    """Hands out the numbers 0 to count in blocks, each once. Thread-safe."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._next = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> slice | None:
        """Return the next block of at most ``size``, or None if all are taken."""
        with self._lock:
            first = self._next
            if first >= self._count:
                return None
            self._next = min(first + size, self._count)
            return slice(first, self._next)


def _whole_groups(count: int) -> int:
    return max(count // TOGETHER, 1) * TOGETHER


def _pace(units: int, seconds: float) -> int:
    """Return how many units to do until the next look at the clock, from how long some took.

    The number grows with care, since the next ones may be harder.
    """
    return max(1, min(4 * units, int(units * LOOK_SECONDS / max(seconds, 1e-9))))
