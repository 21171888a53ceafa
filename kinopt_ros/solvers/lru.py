"""Memory of the most recently used values."""

import math
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values by key, up to a number of them, or a weight of all: the longest unused ones go first. Not thread-safe."""

    def __init__(self, most: int, heaviest: float = math.inf, fewest: int = 1) -> None:
        """
        Args:
            most: how many are kept, at least 1.
            heaviest: weight that all together have at most.
            fewest: how many are kept whatever they weigh, at least 1.
        """
        self._most = most
        self._heaviest = heaviest
        self._fewest = fewest
        self._values: OrderedDict[K, V] = OrderedDict()
        self._weights: dict[K, float] = {}

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

    def pop(self, key: K) -> None:
        """Forget a value, if there is one."""
        if self._values.pop(key, None) is not None:
            del self._weights[key]

    def put(self, key: K, value: V, weight: float = 0.0) -> int:
        """Keep a value as the last one used; return how many others went for it."""
        self._values[key] = value
        self._values.move_to_end(key)
        return self.weigh(key, weight)

    def weigh(self, key: K, weight: float) -> int:
        """Take notice of what a value weighs, if it is still there; return how many go for that."""
        if key not in self._values:
            return 0
        self._weights[key] = weight
        gone = 0
        while len(self._values) > self._most or (
            sum(self._weights.values()) > self._heaviest and len(self._values) > self._fewest
        ):
            oldest, _ = self._values.popitem(last=False)
            del self._weights[oldest]
            gone += 1
        return gone

    def take_all(self) -> dict[K, V]:
        """Return all values, and forget them."""
        values = dict(self._values)
        self.clear()
        return values

    def clear(self) -> None:
        """Forget all."""
        self._values.clear()
        self._weights.clear()
