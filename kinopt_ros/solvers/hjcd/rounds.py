"""Rounds of a search, put together once, and made one launch where graphs are wanted."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import warp as wp

from kinopt_ros.solvers.hjcd.graph import Graph
from kinopt_ros.solvers.hjcd.portion import capacity_for
from kinopt_ros.solvers.lru import LruCache

KEPT = 64
"""Number of rounds that are kept; the longest unused ones go first."""
Launch: TypeAlias = tuple[Any, int | tuple[int, int], list[Any]]
"""Launch of a kernel: the kernel, the numbers of its threads, and its arguments."""


class Rounds:
    """Rounds that were put together. Not thread-safe.

    They are kept, as most requests are like others, and Warp takes longer to put a launch together than to make it.
    """

    def __init__(self, device: Any, graphs: bool) -> None:
        """``graphs``: whether rounds are captured, for as many targets as there is room for, and replayed."""
        self._device, self._graphs = device, graphs
        self._known: LruCache[tuple[object, ...], Sequence[Any]] = LruCache(KEPT)

    def __len__(self) -> int:
        return len(self._known)

    def size(self, targets: int) -> int:
        """Return the number of targets that a round is launched for if there are ``targets`` of them."""
        return capacity_for(targets) if self._graphs else targets

    def launch(self, key: tuple[object, ...], plan: Callable[[], Sequence[Launch]]) -> None:
        """Launch a round, put together by ``plan`` where none of that key is known."""
        known = self._known.get(key)
        if known is None:
            known = [
                wp.launch(kernel, dim=dim, inputs=inputs, device=self._device, record_cmd=True)
                for kernel, dim, inputs in plan()
            ]
            if self._graphs:
                known = [Graph(known, self._device)]
            self._known.put(key, known)
        for launch in known:
            launch.launch()

    def clear(self) -> None:
        """Forget all, and with it the arrays that they read and write."""
        self._known.clear()
