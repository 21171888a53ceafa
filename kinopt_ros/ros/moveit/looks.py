"""What MoveIt's messages say of objects that matters to no plan: colours and types, kept for who asks."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any


class Looks:
    """Colours (std_msgs/ColorRGBA) and types (object_recognition_msgs/ObjectType) of objects by id. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._colors: dict[str, Any] = {}
        self._types: dict[str, Any] = {}

    def take(self, colors: Mapping[str, Any], types: Mapping[str, Any], present: Iterable[str]) -> None:
        """Take colours and types, and forget those of objects that are not present."""
        ids = set(present)
        with self._lock:
            self._colors = {id: one for id, one in {**self._colors, **colors}.items() if id in ids}
            self._types = {id: one for id, one in {**self._types, **types}.items() if id in ids}

    def colors(self, present: Iterable[str]) -> dict[str, Any]:
        """Return the colours that are known of some objects."""
        with self._lock:
            return {id: self._colors[id] for id in present if id in self._colors}

    def types(self, present: Iterable[str]) -> dict[str, Any]:
        """Return the types that are known of some objects."""
        with self._lock:
            return {id: self._types[id] for id in present if id in self._types}
