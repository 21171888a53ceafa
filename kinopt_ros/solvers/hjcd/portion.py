"""Portion of requests that a search is given at a time, and its outcome."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import warp as wp

from kinopt_ros.array import Float64, Int64

CAPACITIES = (1, 16, 128, 1024)
"""Numbers of targets that buffers are allocated for."""


@dataclass(frozen=True, eq=False)
class Portion:
    """Some requests, to be searched for together. Nobody's answer depends on who else is in it."""

    targets: Annotated[Float64, "b 12"]
    """Target poses, see ``KernelChain.packed_targets``."""
    own: Annotated[Float64, "b s n"]
    """Starts that the problem gives, rad or m; tried besides the search's."""
    round: int
    """Number of times that the search was in vain: other starts every time."""
    seed: int
    every_lane: bool
    """Whether all solutions are of use, or only the first."""
    gate: float
    """Errors (m, rad) after the float32 stage above which lanes are given up."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Configurations and errors, in float64, at which the lanes of every request ended."""

    q: Annotated[Float64, "b lanes n"]
    errors: Annotated[Float64, "b lanes 2"]
    """Errors of every lane, m and rad."""
    steps: Annotated[Int64, "b"]


class Idle:
    """Marks of the targets of a buffer that are there, and of room that is not used."""

    def __init__(self, targets: int, device: Any) -> None:
        self.array = wp.empty(targets, dtype=wp.int32, device=device)
        """Marks: 1 for targets that are idle."""
        self._used = -1

    def use(self, targets: int) -> None:
        """Mark the first so many targets as there, the others as idle."""
        if targets != self._used:
            self.array.assign((np.arange(len(self.array)) >= targets).astype(np.int32))
            self._used = targets


def capacity_for(count: int) -> int:
    """Return the least capacity that holds so many targets."""
    return next(capacity for capacity in CAPACITIES if count <= capacity)


def put(array: Any, values: np.ndarray) -> None:
    """Write the first rows of a buffer; the others may become anything."""
    if array.device.is_cpu:
        array.numpy()[: len(values)] = values
        return
    whole = np.zeros(array.shape, dtype=wp.dtype_to_numpy(array.dtype))
    whole[: len(values)] = values
    array.assign(whole)


def put_lanes(array: Any, own: Annotated[Float64, "b s n"], lanes: int) -> None:
    """Write own starts to the first lanes of every target of a buffer (n, L); the others may become anything."""
    b, s, n = own.shape
    whole = array.numpy() if array.device.is_cpu else np.zeros(array.shape, dtype=np.float32)
    whole[:, : b * lanes].reshape(n, b, lanes)[:, :, :s] = own.transpose(2, 0, 1)
    if not array.device.is_cpu:
        array.assign(whole)


def finish(device: Any) -> None:
    """Wait for the device. What went wrong there is told here at the latest, before results are read.

    Raises:
        RuntimeError: kernels failed, or the device is lost.
    """
    wp.synchronize_device(device)


def outcome_of(
    q: Annotated[np.ndarray, "n L"],
    errors: Annotated[np.ndarray, "2 L"],
    steps: Annotated[np.ndarray, "L"],
    targets: int,
) -> Outcome:
    """Return copies of arrays as kernels have them."""
    n = len(q)
    return Outcome(
        np.array(q.T.reshape(targets, -1, n)),
        np.array(errors.T.reshape(targets, -1, 2)),
        steps.reshape(targets, -1).sum(axis=1, dtype=np.int64),
    )
