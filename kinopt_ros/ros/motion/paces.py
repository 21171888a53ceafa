"""Whether joints go on that were to be stopped: some controllers say that they stop a motion, and do not."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.motion.last_look import allowed_at_rest
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

KEPT = 0.9
"""Share of its speed that a joint keeps which nobody stops: what brakes has mostly lost more soon, and a brake in its
place does no harm to what brakes still more gently."""
MOVES = 0.03
"""Speed from which on a joint counts as moving, rad/s or m/s; slow ones do so sooner."""


class Paces:
    """How fast joints were when their controllers were told to stop."""

    def __init__(self, robot: RobotModel, state: RobotState, now: int, seconds: float) -> None:
        """
        Args:
            robot: theirs.
            state: as measured then.
            now: that time, ns of the node's clock.
            seconds: time after which they should be slower.
        """
        self._before = self._speeds(state)
        self._moves = np.minimum(MOVES, allowed_at_rest(robot))
        self._after = now + round(seconds * NANOSECONDS_PER_SECOND)

    def are_kept(self, variables: list[int], state: RobotState, now: int) -> bool:
        """Check whether the fastest of some variables moves as fast as it did, by what was measured after that time."""
        if state.seen(variables, now) < self._after:
            return False
        speeds = self._speeds(state)[variables]
        fastest = int(np.argmax(speeds))
        least = max(self._moves[variables][fastest], KEPT * self._before[variables][fastest])
        return bool(speeds[fastest] > least)

    def _speeds(self, state: RobotState) -> Annotated[Float64, "nq"]:
        return np.where(state.known, np.abs(state.seen_velocity), 0.0)
