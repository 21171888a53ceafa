"""How fast joints go in a motion that was to be stopped: some controllers say that they stop it, and go on."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.ros.motion.beside import variables_of
from kinopt_ros.ros.motion.brakes import commanded_of
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

KEPT = 0.9
"""Share of its pace that a joint keeps which nobody stops: what brakes, however gently, has lost more soon."""
MOVES = 0.05
"""Share of its limit of velocity from which on it is told how fast a joint goes."""


class Paces:
    """How fast joints went in a motion when its controllers were told to stop it, as shares of their velocities there:
    a speed slider makes them less than 1."""

    def __init__(self, running: Published, state: RobotState, now: int) -> None:
        """
        Args:
            running: the motion.
            state: as measured then.
            now: that time, ns of the node's clock.
        """
        self._running, self._begin = running, now
        self._joints = list(running.message.joint_names)
        self._index = variables_of(running.robot, [running])
        self._before = self._paces(state, now)

    def are_kept(self, joints: Sequence[str], state: RobotState, now: int, seconds: float) -> bool:
        """Check whether the fastest of some joints keeps its pace, by what was measured so many seconds after the
        controllers were told to stop, or later."""
        chosen = [self._joints.index(name) for name in joints]
        if not chosen or state.seen(self._index, now) < self._begin + round(seconds * NANOSECONDS_PER_SECOND):
            return False
        kept = self._paces(state, now)[chosen] >= KEPT * self._before[chosen]
        fastest = int(np.argmax(np.abs(state.seen_velocity[self._index][chosen])))
        return bool(kept[fastest])  # not where one of them is not known

    def _paces(self, state: RobotState, now: int) -> Annotated[Float64, "n"]:
        """Return how fast joints are, as shares of the velocities of their motion; NaN where that hardly moves them."""
        commanded, limit = commanded_of(self._running), self._running.robot.limits.velocity[self._index]
        velocity = commanded.at(state.seen(self._index, now)).velocity
        moves = state.known[self._index] & (np.abs(velocity) > MOVES * limit)
        return np.where(moves, state.seen_velocity[self._index] / np.where(moves, velocity, 1.0), np.nan)
