"""Stand-ins for the last check of motions and the watch over them, for tests of those who come before and after."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kinopt_ros.ros.motion.watched import WatchedMotions


class Trusting:
    """Sends every motion."""

    def send(self, planned: Any, message: Any, published: Any, send: Callable[[], bool]) -> bool:
        return send()


class Unwatched(WatchedMotions):
    """Watches nothing; remembers what is to be watched, and who is to be told how it ended."""

    def __init__(self, reports: Any = None) -> None:
        """``reports``: publisher of ~/report, where one is to be told."""
        super().__init__(SimpleNamespace(warning=lambda sentence: None), reports)
        self.begun: list[tuple[Any, Callable[[Any], None]]] = []

    def begin(self, run: Any, ended: Callable[[Any], None]) -> None:
        self.begun.append((run, ended))
