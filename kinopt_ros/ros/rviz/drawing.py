"""What is drawn on ~/markers beside the scene: kept by name, and sent again to who joins late."""

import threading
from collections.abc import Sequence
from typing import Any

from visualization_msgs.msg import Marker, MarkerArray


class Drawing:
    """Markers of several namespaces, each drawn as a whole. Thread-safe.

    Nothing is sent while nobody listens.
    """

    def __init__(self, publisher: Any) -> None:
        """``publisher``: of visualization_msgs/MarkerArray."""
        self._publisher = publisher
        self._lock = threading.Lock()
        self._drawn: dict[str, list[Marker]] = {}
        self._listeners = 0

    @property
    def heard(self) -> bool:
        """Whether somebody listens."""
        return int(self._publisher.get_subscription_count()) > 0

    def draw(self, namespaces: dict[str, Sequence[Marker]]) -> None:
        """Draw some namespaces, in one message; what was in them before goes away.

        Args:
            namespaces: markers by namespace; their namespace and number are set here.
        """
        with self._lock:
            sent: list[Marker] = []
            for namespace, markers in namespaces.items():
                for number, marker in enumerate(markers):
                    marker.ns, marker.id = namespace, number
                before = self._drawn.pop(namespace, [])
                sent += [
                    Marker(ns=namespace, id=number, action=Marker.DELETE)
                    for number in range(len(markers), len(before))
                ]
                sent += markers
                if markers:
                    self._drawn[namespace] = list(markers)
            if sent and self.heard:
                self._publisher.publish(MarkerArray(markers=sent))

    def look(self) -> None:
        """Send all to those who have begun to listen."""
        with self._lock:
            listeners = int(self._publisher.get_subscription_count())
            new, self._listeners = listeners > self._listeners, listeners
            if new and self._drawn:
                everything = [marker for markers in self._drawn.values() for marker in markers]
                self._publisher.publish(MarkerArray(markers=everything))

    def clear(self) -> None:
        """Draw nothing any more."""
        with self._lock:
            names = list(self._drawn)
        self.draw(dict.fromkeys(names, ()))
