"""Stand-in for the last check of motions, for tests of those who come before and after it."""

from collections.abc import Callable
from typing import Any


class Trusting:
    """Sends every motion."""

    def send(self, planned: Any, message: Any, published: Any, send: Callable[[], bool]) -> bool:
        return send()
