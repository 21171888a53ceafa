"""Whether joints go on that were to be stopped: some controllers say that they stop a motion, and do not."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

KEPT = 0.9
"""Share of its speed that a joint keeps which nobody stops: what brakes has mostly lost more soon, and a brake in its
place does no harm to what brakes still more gently."""
MOVES = 0.03
"""Speed from which on a joint counts as moving, rad/s or m/s."""


class Paces:
    """How fast joints were when their controllers were told to stop."""

    def __init__(self, state: RobotState, now: int) -> None:
        """
        Args:
            state: as measured then.
            now: that time, ns of the node's clock.
        """
        self._begin, self._before = now, self._speeds(state)

    def are_kept(self, variables: list[int], state: RobotState, now: int, seconds: float) -> bool:
        """Check whether the fastest of some variables is as fast as it was, by what was measured so many seconds later,
        or still later."""
        if state.seen(variables, now) < self._begin + round(seconds * NANOSECONDS_PER_SECOND):
            return False
        speeds = self._speeds(state)[variables]
        fastest = int(np.argmax(speeds))
        return bool(speeds[fastest] > max(MOVES, KEPT * self._before[variables][fastest]))

    def _speeds(self, state: RobotState) -> Annotated[Float64, "nq"]:
        return np.where(state.known, np.abs(state.seen_velocity), 0.0)
