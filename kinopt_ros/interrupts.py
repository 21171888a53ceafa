"""Handling of Ctrl-C and SIGTERM: silent while a program is being imported, and heard at once while it serves."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_END = 0
"""What ends the thread that listens to signals: no number of one."""
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


@contextmanager
def heard_at_once(hear: Callable[[], None], *signals: int) -> Iterator[None]:
    """Call a function on a thread of its own as soon as one of the signals comes, whatever the main thread does.

    Python calls handlers on its main thread when that comes back to Python: ROS waits for messages for up to a second
    before. To be used on the main thread. Afterwards the signals do nothing, until somebody sets other handlers.

    The function must not raise: the thread would hear nothing any more. A forked process must not go on with this one's
    handlers: its signals would be heard here.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)

    def listen() -> None:
        while not set(numbers := os.read(read, 64)) & {_END}:
            if not set(numbers).isdisjoint(signals):
                hear()

    thread = threading.Thread(target=listen, name="signals", daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, _leave_it_to_the_thread)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.set_blocking(write, True)
        os.write(write, bytes([_END]))
        thread.join()
        os.close(write)
        os.close(read)


def _leave_it_to_the_thread(number: int, frame: object) -> None:
    del number, frame


def _end(number: int, frame: object) -> None:
    del number, frame
    sys.stdout.flush()
    os._exit(INTERRUPTED)
