"""Portion of requests that a search is given at a time, and its outcome."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import warp as wp

from kinopt_ros.array import Float64, Int64
from kinopt_ros.solvers.hjcd.kernels.transfer import (
    CHOSEN,
    ORIENTATION,
    POSITION,
    STATE,
    STEPS,
    TARGET,
    THERE,
)

CAPACITIES = (1, 16, 128, 1024, 8192)
"""Numbers of targets that buffers are allocated for."""
MOST_LANES = 2**22
"""Most lanes at once: their arrays take half a gigabyte for seven joints."""


@dataclass(frozen=True, eq=False)
class Portion:
    """Some requests, to be searched for together. Nobody's answer depends on who else is in it."""

    targets: Annotated[Float64, "b 12"]
    """Target poses, see ``KernelChain.packed_targets``."""
    state: Annotated[Float64, "b n"]
    """Where the robot is, rad or m."""
    own: Annotated[Float64, "b s n"]
    """Starts that the problem gives, rad or m; tried besides the search's."""
    round: int
    """Number of times that the search was in vain: other starts every time."""
    seed: int
    every_lane: bool
    """Whether all solutions are of use, or one."""
    tolerance: tuple[float, float]
    """Errors of a solution, m and rad."""
    gate: float
    """Errors (m, rad) after the float32 stage above which lanes are given up."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Configurations and errors, in float64, at which lanes of every request ended: all of them where every lane is of
    use, else one (``kernels.transfer.choose``), joints turned towards the state."""

    q: Annotated[Float64, "b lanes n"]
    errors: Annotated[Float64, "b lanes 2"]
    """Errors of every lane, m and rad."""
    steps: Annotated[Int64, "b"]
    """Steps of all lanes."""


class Mirror:
    """Array of doubles on a device, and its counterpart in pinned memory of the host; one on a CPU."""

    def __init__(self, count: int, device: Any) -> None:
        self.there = wp.empty(count, dtype=wp.float64, device=device)
        here = self.there if device.is_cpu else wp.empty(count, dtype=wp.float64, device="cpu", pinned=True)
        self._here = here
        self._values: Float64 = here.numpy()

    def here(self, rows: int, columns: int) -> Annotated[Float64, "rows columns"]:
        """Return the first numbers on the host, as rows."""
        return self._values[: rows * columns].reshape(rows, columns)

    def rows(self, rows: int, columns: int) -> Any:
        """Return the first numbers on the device, as rows."""
        return self.there[: rows * columns].reshape((rows, columns))

    def upload(self, count: int) -> None:
        """Copy the first numbers to the device."""
        if self._here is not self.there:
            wp.copy(self.there, self._here, count=count)

    def download(self, count: int) -> None:
        """Have the first numbers copied to the host; they are there when the device has finished."""
        if self._here is not self.there:
            wp.copy(self._here, self.there, count=count)


class Given:
    """What requests give, in one array: a copy to the device takes longer to begin than to make."""

    def __init__(self, targets: int, variables: int, device: Any) -> None:
        self._targets, self._variables, self._device = targets, variables, device
        self._mirrors: dict[int, Mirror] = {}
        """By how many numbers a request gives."""

    def rows(self, targets: int, starts: int) -> Any:
        """Return what kernels read, for so many targets with so many starts each."""
        width = self._width(starts)
        return self._mirror(width).rows(targets, width)

    def put(self, portion: Portion, targets: int) -> None:
        """Write what a portion gives; the targets beyond it are idle."""
        b, starts, n = portion.own.shape
        width = self._width(starts)
        mirror = self._mirror(width)
        here = mirror.here(targets, width)
        here[:, THERE] = 0.0
        here[:b, THERE] = 1.0
        here[:b, TARGET:STATE] = portion.targets
        here[:b, STATE : STATE + n] = portion.state
        here[:b, STATE + n :] = portion.own.reshape(b, -1)
        mirror.upload(here.size)

    def _width(self, starts: int) -> int:
        width: int = STATE + (1 + starts) * self._variables
        return width

    def _mirror(self, width: int) -> Mirror:
        if width not in self._mirrors:
            self._mirrors[width] = Mirror(self._targets * width, self._device)
        return self._mirrors[width]


class Answers:
    """Chosen lanes, as ``kernels.transfer.choose`` writes them."""

    def __init__(self, targets: int, variables: int, device: Any) -> None:
        self._width, self._device = CHOSEN + variables, device
        self._mirror = Mirror(targets * self._width, device)

    def rows(self, targets: int) -> Any:
        """Return what kernels write, for so many targets."""
        return self._mirror.rows(targets, self._width)

    def outcome(self, targets: int) -> Outcome:
        """Wait for the device; return copies."""
        self._mirror.download(targets * self._width)
        finish(self._device)
        here = self._mirror.here(targets, self._width).copy()
        return Outcome(
            q=here[:, None, CHOSEN:],
            errors=here[:, None, POSITION : ORIENTATION + 1],
            steps=here[:, STEPS].astype(np.int64),
        )


def most_targets(lanes: int) -> int:
    """Return how many targets a device is given at once, of so many lanes each."""
    return max(c for c in CAPACITIES if c == 1 or c * lanes <= MOST_LANES)


def capacity_for(count: int) -> int:
    """Return the least capacity that holds so many targets."""
    return next(capacity for capacity in CAPACITIES if count <= capacity)


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
    """Return copies of arrays of all lanes as kernels have them."""
    n = len(q)
    return Outcome(
        np.array(q.T.reshape(targets, -1, n)),
        np.array(errors.T.reshape(targets, -1, 2)),
        steps.reshape(targets, -1).sum(axis=1, dtype=np.int64),
    )
