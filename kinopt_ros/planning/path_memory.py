"""Memory of configurations that led around obstacles, from which searches begin when a straight line does not do."""

import threading
from collections import deque
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64

CAPACITY = 256
"""Configurations kept; the oldest go first."""
_PER_PATH = 3


class PathMemory:
    """Configurations of one robot's earlier paths, which later searches start from. Thread-safe.

    With it the answer to a request may depend on the requests before; without it, it never does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[Annotated[Float64, "nq"]] = deque(maxlen=CAPACITY)

    def add(self, path: Annotated[Float64, "T nq"]) -> None:
        """Keep some configurations of a free path of the whole robot that was no straight line."""
        middle = np.linspace(0, len(path) - 1, _PER_PATH + 2).round().astype(np.int64)[1:-1]
        with self._lock:
            self._kept.extend(path[k].copy() for k in middle.tolist())

    def near(
        self,
        start: Annotated[Float64, "nq"],
        end: Annotated[Float64, "nq"],
        variables: Annotated[Int64, "n"],
        count: int,
    ) -> Annotated[Float64, "m n"]:
        """Return up to ``count`` remembered values of some variables that are the least detour between two
        configurations."""
        with self._lock:
            kept = list(self._kept)
        if not kept:
            return np.empty((0, len(variables)))
        values = np.array(kept)[:, variables]
        detour = np.linalg.norm(values - start[variables], axis=1) + np.linalg.norm(
            values - end[variables], axis=1
        )
        return np.asarray(values[np.argsort(detour, kind="stable")[:count]])
