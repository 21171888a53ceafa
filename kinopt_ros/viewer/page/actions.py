"""What buttons and sliders do: a mistake becomes a sentence on the page, nothing ends the server."""

import logging
from collections.abc import Callable
from typing import Any

from kinopt_ros.errors import KinoptError, said_by
from kinopt_ros.viewer.words import plain

_log = logging.getLogger("kinopt.view")


class Actions:
    """Wraps handlers of the page's events."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """``say`` shows a sentence, in Markdown."""
        self._say = say

    def failed(self, error: BaseException) -> None:
        """Say what went wrong."""
        if not isinstance(error, KinoptError):
            _log.error("a defect of the viewer", exc_info=error)
        sentence = (
            str(error) if isinstance(error, KinoptError) else f"a defect of the viewer: {said_by(error)}"
        )
        self._say(f"**{plain(sentence)}**")

    def guarded(self, handle: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return a handler that says what goes wrong. Changes that the page itself makes are no events."""

        def guarded(event: Any) -> None:
            if event.client_id is None:
                return
            try:
                handle(event)
            except Exception as error:  # whatever one click does wrong, the next one counts
                self.failed(error)

        return guarded
