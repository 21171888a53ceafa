"""Listeners of a topic that join late and shall hear what was published before."""

import time
from collections.abc import Callable

from rclpy.node import Node

AGAIN = (0.0, 0.5, 2.0, 10.0)
"""Times after which everything is sent to a new listener, s: it may take a while until that hears the publisher."""


def listeners_of(node: Node, topic: str) -> frozenset[bytes]:
    """Return who listens to a topic; not a number, as one may come while another one goes."""
    return frozenset(bytes(info.endpoint_gid) for info in node.get_subscriptions_info_by_topic(topic))


class Newcomers:
    """Says when everything is to be sent again. To be asked by one thread at a time."""

    def __init__(
        self, listeners: Callable[[], frozenset[bytes]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """
        Args:
            listeners: returns who listens.
            clock: seconds.
        """
        self._listeners = listeners
        self._clock = clock
        self._known: frozenset[bytes] = frozenset()
        self._due: list[float] = []
        """When everything is to be sent, s, ascending: within the last of AGAIN, so these are not many."""

    def are_due(self) -> bool:
        """Look who listens; return whether everything is to be sent now, since somebody may not have heard it."""
        now, listeners = self._clock(), self._listeners()
        if listeners - self._known:
            self._due = sorted([*self._due, *(now + seconds for seconds in AGAIN)])
        self._known = listeners
        due = [at for at in self._due if at <= now]
        self._due = self._due[len(due) :]
        return bool(due)
