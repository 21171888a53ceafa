"""Gate that every request passes: closed while the node is not active."""

from kinopt_ros.errors import NotReadyError


class Gate:
    """Whether requests are answered; open at first. Thread-safe."""

    def __init__(self) -> None:
        self._why = ""

    def close(self, why: str) -> None:
        """Refuse requests with a sentence from now on. Those that are at work go on."""
        self._why = why

    def open(self) -> None:
        """Answer requests."""
        self._why = ""

    def check(self) -> None:
        """Raise NotReadyError if requests are refused."""
        why = self._why
        if why:
            raise NotReadyError(why)
