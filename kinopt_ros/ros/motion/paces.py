"""Whether joints go on that were to be stopped: some controllers say that they stop a motion, and do not."""

from collections.abc import Sequence

import numpy as np

from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.ros.motion.beside import nearest_to, variables_of
from kinopt_ros.ros.motion.own_pace import of_joints
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

KEPT = 0.9
"""Share of its way that a joint keeps which nobody stops: what brakes has mostly lost more soon, and a brake in its
place does no harm to what brakes still more gently."""
MOVES = 1e-3
"""Way from which on a joint counts as going on, rad or m."""


class Paces:
    """How far joints go since their controllers were told to stop a motion, beside how far they would have gone."""

    def __init__(self, one: Published, state: RobotState, now: int, seconds: float) -> None:
        """
        Args:
            one: the motion.
            state: as measured when they were told.
            now: that time, ns of the node's clock.
            seconds: time after which joints should brake, that is have lost a tenth of their pace.
        """
        self._one = one
        self._speeds = np.where(state.known, np.abs(state.seen_velocity), 0.0)
        self._after = now + round(seconds * NANOSECONDS_PER_SECOND)
        self._from: tuple[RobotState, int] | None = None
        """The first state that was measured after that, and when that was, ns of the node's clock."""
        self._parts: dict[tuple[str, ...], tuple[Published, int | None]] = {}
        """The motion of some joints, and the time of it (ns of the node's clock) at which they were there."""

    def look(self, state: RobotState, now: int) -> None:
        """Take notice of what is measured."""
        if self._from is None:
            seen = state.seen(variables_of(self._one.robot, [self._one]), now)
            if seen >= self._after:
                self._from = state, seen

    def are_kept(self, joints: Sequence[str], state: RobotState, now: int) -> bool:
        """Check whether one of some joints has gone on since ``seconds`` passed: as fast as before, or as the motion
        leads on from where it was then, whatever is slower."""
        if self._from is None:
            return False
        first, begin = self._from
        key = tuple(joints)
        if key not in self._parts:
            one = of_joints(self._one, joints)
            self._parts[key] = one, nearest_to(one, first)
        one, nearest = self._parts[key]
        if nearest is None:
            return False  # nobody has said where they were
        variables = variables_of(one.robot, [one])
        passed = (state.seen(variables, now) - begin) / NANOSECONDS_PER_SECOND
        # Where the motion pauses, times at which they may be where they are differ.
        since = (np.array([nearest, begin]) - one.start) / NANOSECONDS_PER_SECOND
        times = np.clip([since, since + passed], 0.0, one.motion.duration)
        before, after = evaluate(one.motion, times.ravel())[0].reshape(2, 2, -1)
        leads = np.abs(after - before).max(axis=0)
        # Drivers may leave out whole turns.
        gone = apart(state.q[variables] - first.q[variables], continuous_joints(one.robot, key))
        kept = gone >= KEPT * np.minimum(leads, self._speeds[variables] * passed)
        return bool((kept & (gone >= MOVES) & (leads >= MOVES)).any())
