"""Stand-ins for the last check of motions and the watch over them, for tests of those who come before and after."""

from collections.abc import Callable
from typing import Any


class Trusting:
    """Sends every motion."""

    def send(self, planned: Any, message: Any, published: Any, send: Callable[[], bool]) -> bool:
        return send()


class Unwatched:
    """Watches nothing; remembers what is to be watched, and who is to be told how it ended."""

    def __init__(self) -> None:
        self.begun: list[tuple[Any, Callable[[Any], None]]] = []

    def begin(self, run: Any, ended: Callable[[Any], None]) -> None:
        self.begun.append((run, ended))
