"""Say that the compiler is at work, to people who would think that the library hangs."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from numba.core import event as numba_event

_log = logging.getLogger(__name__)
_PATIENCE = 2.0
"""s of compiling, of all functions together, before it is said."""


class CompilerNotice(numba_event.Listener):  # type: ignore[misc]
    """Warns once per process, as soon as its callers have waited for the compiler for a while.

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
        self._depth, self._spent, self._said = 0, 0.0, False
        self._began = 0.0
        self._waiting: Any = None

    def on_start(self, event: Any) -> None:
        """Wait for the time to say it. numba compiles in one thread at a time, callees inside of callers."""
        module = event.data["dispatcher"].py_func.__module__ or ""  # None where text was executed
        if not (self._depth or module.startswith("kinopt_ros.")):
            return
        self._depth += 1
        if self._depth == 1:
            self._began = self._clock()
            if not self._said:
                self._waiting = self._timer(max(_PATIENCE - self._spent, 0.0), lambda: self._say(module))
                self._waiting.daemon = True  # no process stays for it
                self._waiting.start()

    def on_end(self, event: Any) -> None:
        """Count the time, and say nothing if that was all."""
        if not self._depth:
            return
        self._depth -= 1
        if not self._depth:
            self._spent += self._clock() - self._began
            self._waiting.cancel()

    def _say(self, module: str) -> None:
        self._said = True
        _log.warning(
            "compiling %s and what else is used for the first time on this machine takes seconds to minutes, once; %s",
            module,
            self._kept,
        )


def announce_compiling(kept: str) -> None:
    """Have it said when this process waits for numba; ``kept`` as for ``CompilerNotice``."""
    numba_event.register("numba:compile", CompilerNotice(kept))
