"""What is drawn on ~/markers beside the scene: kept by name, and sent again to who joins late."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from visualization_msgs.msg import Marker, MarkerArray

from kinopt_ros.ros.serving.newcomers import Newcomers


class Drawing:
    """Markers of several namespaces, each drawn as a whole. Thread-safe."""

    def __init__(
        self,
        publisher: Any,
        listeners: Callable[[], frozenset[bytes]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            publisher: of visualization_msgs/MarkerArray.
            listeners: returns who listens to it.
            clock: seconds.
        """
        self._publisher = publisher
        self._newcomers = Newcomers(listeners, clock)
        self._lock = threading.Lock()
        self._drawn: dict[str, list[Marker]] = {}

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
            if sent:
                self._publisher.publish(MarkerArray(markers=sent))

    def look(self) -> None:
        """Send all to those who have begun to listen."""
        with self._lock:
            if self._newcomers.are_due() and self._drawn:
                everything = [marker for markers in self._drawn.values() for marker in markers]
                self._publisher.publish(MarkerArray(markers=everything))

    def clear(self) -> None:
        """Draw nothing any more."""
        with self._lock:
            names = list(self._drawn)
        self.draw(dict.fromkeys(names, ()))
