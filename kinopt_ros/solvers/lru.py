"""Memory of the most recently used values."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values by key, up to a number of them: the longest unused ones go first. Not thread-safe."""

    def __init__(self, most: int) -> None:
        """``most``: how many are kept, at least 1."""
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        """Check whether there is a value; it does not count as used."""
        return key in self._values

    def get(self, key: K) -> V | None:
        """Return a value and mark it as the last one used; None if there is none."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Keep a value as the last one used."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        self._values.clear()
