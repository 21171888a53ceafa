"""Handling of Ctrl-C while a program is still being imported: it ends silently, without a library's stack trace."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def end_silently() -> None:
    """Let Ctrl-C end the process at once from now on. To be called before anything is imported that takes time.

    An exception would come out in the middle of an import, where libraries catch it, or print it and go on.
    """
    on_main_thread = threading.current_thread() is threading.main_thread()
    # Whoever ignores signals, as `nohup` does, or has a handler, knows why.
    if on_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on, as usual, because there is something to be tidied up."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_undisturbed() -> None:
    """Ignore Ctrl-C from now on, because the program is about to end."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def silent_imports() -> Iterator[None]:
    """Let Ctrl-C end the process at once within a context."""
    end_silently()
    try:
        yield
    finally:
        raise_again()


def _end(number: int, frame: object) -> None:
    del number, frame
    sys.stdout.flush()
    os._exit(INTERRUPTED)
