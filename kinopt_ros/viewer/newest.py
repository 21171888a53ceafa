"""A thread that does the newest of what it is asked: whoever drags a gizmo wants no answers to where it was before."""

import threading
from collections.abc import Callable

Work = Callable[[], None]


class Newest:
    """Does work on a thread of its own. Of work of one kind that waits, only the newest is done."""

    def __init__(self, name: str, failed: Callable[[BaseException], None]) -> None:
        """
        Args:
            name: of the thread.
            failed: is told what work raises; the thread goes on.
        """
        self._failed = failed
        self._waiting: dict[str, Work] = {}
        self._wake = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask(self, kind: str, work: Work) -> None:
        """Do this in place of what waits of the same kind."""
        with self._wake:
            self._waiting[kind] = work
            self._wake.notify_all()

    def wait(self, timeout: float) -> bool:
        """Wait until nothing is left to do, at most so long (s); return whether that is so."""
        with self._wake:
            return self._wake.wait_for(lambda: not (self._waiting or self._busy), timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Drop what waits, and end after what is being done; wait for that at most so long (s)."""
        with self._wake:
            self._closed = True
            self._waiting.clear()
            self._wake.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
                work = self._waiting.pop(next(iter(self._waiting)))
                self._busy = True
            try:
                work()
            except Exception as error:  # whatever one drag does wrong, the next one counts
                self._failed(error)
            finally:
                with self._wake:
                    self._busy = False
                    self._wake.notify_all()
