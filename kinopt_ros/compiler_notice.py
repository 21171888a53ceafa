"""Say that a compiler is at work, to people who would think that the library hangs."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_log = logging.getLogger(__name__)
_PATIENCE = 2.0
"""s of compiling, of all that is compiled together, before it is said."""


class CompilerNotice:
    """Warns once per process, as soon as its callers have waited for a compiler for a while. Thread-safe.

    It is a warning, as Python shows these in scripts that set up no logging.
    """

    def __init__(
        self,
        kept: str,
        clock: Callable[[], float] = time.monotonic,
        timer: Callable[[float, Callable[[], None]], Any] = threading.Timer,
    ) -> None:
        """Say nothing yet.

        Args:
            kept: says where compiled code is kept.
            clock: tells s.
            timer: makes something with ``start`` and ``cancel`` that calls a function after so many s.
        """
        self._kept, self._clock, self._timer = kept, clock, timer
        self._lock = threading.Lock()
        self._depth, self._spent, self._said = 0, 0.0, False
        self._began = 0.0
        self._waiting: Any = None

    @property
    def at_work(self) -> bool:
        """Whether something is being compiled."""
        return self._depth > 0

    def begin(self, what: str) -> None:
        """Wait for the time to say that something is being compiled."""
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            self._began = self._clock()
            if not self._said:
                self._waiting = self._timer(max(_PATIENCE - self._spent, 0.0), lambda: self._say(what))
                self._waiting.daemon = True  # no process stays for it
                self._waiting.start()

    def end(self) -> None:
        """Count the time, and say nothing if that was all."""
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._spent += self._clock() - self._began
                self._waiting.cancel()

    @contextmanager
    def compiling(self, what: str) -> Iterator[None]:
        """Something is being compiled in here."""
        self.begin(what)
        try:
            yield
        finally:
            self.end()

    def _say(self, what: str) -> None:
        self._said = True
        _log.warning(
            "compiling %s and what else is used for the first time on this machine takes seconds to minutes, once; %s",
            what,
            self._kept,
        )
