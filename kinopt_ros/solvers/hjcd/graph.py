"""Several launches made as one: Warp's graphs, which are CUDA's on CUDA devices."""

from collections.abc import Sequence
from typing import Any

import warp as wp


class Graph:
    """Launches of a round, captured once.

    It reads and writes the arrays that its launches were put together with: what changes from round to round, how many
    targets there are included, is in these.
    """

    def __init__(self, launches: Sequence[Any], device: Any) -> None:
        """Nothing is computed. On a CPU all of the process's launches meanwhile would be captured: for tests only.

        Raises:
            RuntimeError: the driver is too old for it.
        """
        # A stream of its own: what other threads launch on the device's stream is no part of it.
        stream = wp.Stream(device) if device.is_cuda else None
        wp.capture_begin(device=device, stream=stream, force_module_load=False)
        try:
            for launch in launches:
                launch.launch(stream)
        finally:
            self._graph = wp.capture_end(device=device, stream=stream)
        self._launches = launches  # they keep the arrays

    def launch(self) -> None:
        """Launch the round once more, on the device's stream."""
        wp.capture_launch(self._graph)
