"""What is drawn on ~/markers beside the scene: kept by name, and sent again to who joins late."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

AGAIN = (0.0, 0.5, 2.0, 10.0)
"""Times after which everything is sent to a new listener, s: it may take a while until that hears the publisher."""


def listeners_of(node: Node, topic: str) -> frozenset[bytes]:
    """Return who listens to a topic; not a number, as one may come while another one goes."""
    return frozenset(bytes(info.endpoint_gid) for info in node.get_subscriptions_info_by_topic(topic))


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
        self._listeners = listeners
        self._clock = clock
        self._lock = threading.Lock()
        self._drawn: dict[str, list[Marker]] = {}
        self._known: frozenset[bytes] = frozenset()
        self._due: list[float] = []
        """When everything is to be sent, s, ascending."""

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
        now, listeners = self._clock(), self._listeners()
        with self._lock:
            if listeners - self._known:
                self._due = sorted([*self._due, *(now + seconds for seconds in AGAIN)])[-2 * len(AGAIN) :]
            self._known = listeners
            due = [at for at in self._due if at <= now]
            self._due = self._due[len(due) :]
            if due and self._drawn:
                everything = [marker for markers in self._drawn.values() for marker in markers]
                self._publisher.publish(MarkerArray(markers=everything))

    def clear(self) -> None:
        """Draw nothing any more."""
        with self._lock:
            names = list(self._drawn)
        self.draw(dict.fromkeys(names, ()))
