"""Say when a process waits for numba."""

from typing import Any

from numba.core import event as numba_event

from kinopt_ros.compiler_notice import CompilerNotice


class NumbaListener(numba_event.Listener):  # type: ignore[misc]
    """Hears when numba compiles one of our functions; it does so in one thread at a time, callees inside of callers."""

    def __init__(self, notice: CompilerNotice) -> None:
        self._notice = notice

    def on_start(self, event: Any) -> None:
        """Ours, or what one of ours calls."""
        module = event.data["dispatcher"].py_func.__module__ or ""  # None where text was executed
        if self._notice.at_work or module.startswith("kinopt_ros."):
            self._notice.begin(module)

    def on_end(self, event: Any) -> None:
        """As above."""
        del event
        if self._notice.at_work:
            self._notice.end()


def announce_compiling(kept: str) -> None:
    """Have it said when this process waits for numba; ``kept`` as for ``CompilerNotice``."""
    numba_event.register("numba:compile", NumbaListener(CompilerNotice(kept)))
