"""Simulated drives, which are behind what they are told: joints follow it with a lag of the first order."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

LONGEST_LAG = 1.0
"""Longest lag, s."""
STEP = 0.005
"""Longest time over which what is told counts as a straight line, s: that is wrong by a STEP^2 / 8, some 0.05 mrad for
arms."""


class SimulatedDrive:
    """Drives of n joints: lag x' = told - x. At an even velocity v the joints are lag v behind."""

    def __init__(self, lag: float | Annotated[Float64, "n"], start: Annotated[Float64, "n"]) -> None:
        """
        Args:
            lag: time constant, s, of all joints or of each; 0 for all: they are where they are told to be.
            start: where they are, rad or m.
        """
        self.lags = np.broadcast_to(np.asarray(lag, dtype=np.float64), len(start))
        """Time constants, s."""
        self.exact = not self.lags.any()
        """Whether joints are where they are told to be."""
        self._told = np.array(start, dtype=np.float64)
        self.position = self._told.copy()
        """Where the joints are."""

    @property
    def velocity(self) -> Annotated[Float64, "n"]:
        """How they move; only with a lag, as without one they do what they are told."""
        return np.asarray((self._told - self.position) / self.lags)

    def follow(
        self, before: int, times: Annotated[Int64, "K"], told: Annotated[Float64, "K n"]
    ) -> Annotated[Float64, "K n"]:
        """Go on, and return where the joints are at some times, rising, STEP apart at most where that counts.

        Args:
            before: time up to which they have gone on, ns; not after the first of them.
            times: ns.
            told: where they are told to be at these.
        """
        places = np.empty_like(told)
        for row, (time, aim) in enumerate(zip(times.tolist(), told, strict=True)):
            seconds = (time - before) / NANOSECONDS_PER_SECOND
            if self.exact:
                self.position = aim.copy()
            elif seconds > 0.0:
                ahead = self.lags * (aim - self._told) / seconds
                left = np.exp(-seconds / self.lags)
                self.position = aim - ahead + (self.position - self._told + ahead) * left
            self._told, before = aim.copy(), time
            places[row] = self.position
        return places
