"""Whether joints go on that were to be stopped: some controllers say that they stop a motion, and do not."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.ros.motion.last_look import allowed_at_rest
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

KEPT = 0.9
"""Share of its speed that a joint keeps which nobody stops: what brakes has mostly lost more soon, and a brake in its
place does no harm to what brakes still more gently."""
MOVES = 0.03
"""Speed from which on a joint counts as moving, rad/s or m/s; slow ones do so sooner."""
WAY = 5e-3
"""Way that a joint may still go when it should stand, rad or m: it is measured with noise, and swings as it stops."""
REACTS_SECONDS, BRAKES_SECONDS, STANDS_SECONDS = 0.1, 0.2, 0.7
"""Times after which joints are no faster any more, brake, and stand, s: how fast a motion leads them by then does not
matter."""


class Paces:
    """How fast joints are, and how far they go, since their controllers were told to stop."""

    def __init__(self, robot: RobotModel, state: RobotState, now: int) -> None:
        """
        Args:
            robot: theirs.
            state: as measured when they were told.
            now: that time, ns of the node's clock.
        """
        self._robot, self._told = robot, now
        self._moves = np.minimum(MOVES, allowed_at_rest(robot))
        self._speeds = _speeds(state)
        """The greatest of each variable until it should be no faster."""
        self._q: Annotated[Float64, "nq"] = np.full(len(state.q), np.nan)
        """Where each was first measured when it should stand; not a number before."""

    def look(self, state: RobotState, now: int) -> None:
        """Take notice of what is measured; some variables may come later than others, or never."""
        passed = self._passed(state, now)
        reacts = passed < REACTS_SECONDS
        self._speeds[reacts] = np.maximum(self._speeds, _speeds(state))[reacts]
        first = np.isnan(self._q) & state.known & (passed >= STANDS_SECONDS)
        self._q[first] = state.q[first]

    def are_kept(self, joints: Sequence[str], state: RobotState, now: int) -> bool:
        """Check whether one of some joints is as fast as before when it should brake, or goes on when it should
        stand."""
        index = [self._robot.variable_index[name] for name in joints]
        brakes, speeds = self._passed(state, now)[index] >= BRAKES_SECONDS, _speeds(state)[index]
        as_fast = brakes & (speeds > np.maximum(self._moves, KEPT * self._speeds)[index])
        # Drivers may leave out whole turns. What is not a number says nothing.
        gone = apart(state.q[index] - self._q[index], continuous_joints(self._robot, joints)) > WAY
        return bool((as_fast | gone).any())

    def _passed(self, state: RobotState, now: int) -> Annotated[Float64, "nq"]:
        """Return how long after they were told joints were measured, s."""
        told: Annotated[Int64, "nq"] = np.full(len(state.q), now - self._told)
        return told / NANOSECONDS_PER_SECOND - state.behind


def _speeds(state: RobotState) -> Annotated[Float64, "nq"]:
    return np.where(state.known, np.abs(state.seen_velocity), 0.0)
