"""Whether joints move, as far as their measured positions say so.

Who stops a robot from where it is measured sends it there. So one wrong value, as of a driver that begins anew with
zeros, or of a second publisher, must not count as movement, and noise must not either.
"""

from collections import deque
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.ros.robot.joint_states import FASTER, RobotState
from kinopt_ros.trajectory.timing import nearest_equivalent

FAR = 5e-3
"""Way that counts as moving, rad or m: more than noise, and than a robot that settles."""
CALM = 0.5
"""Time after a jump for which nothing is believed, s."""
_LATE = 0.05
"""By how much two messages may come closer together than they were sent, s."""
_SPEED_SECONDS = 0.03
"""Least time that a velocity is the mean of, s."""
_ANOTHER = 1e-3
"""Time between two messages that counts as different, s: it is taken more than once."""
_FASTER_MEASURED = 1.5
"""Times the velocity of the way that the measured one may be."""


class Movement:
    """Follows joints. One way (rad or m) counts without its largest step, and only as far as it does not go back."""

    def __init__(self, setup: ServoSetup) -> None:
        """
        Args:
            setup: the joints.
        """
        self.setup = setup
        """The joints."""
        self._endless = continuous_joints(setup.robot, setup.joints)
        self._limits = FASTER * setup.robot.limits.velocity[setup.variables]
        self._believed = -np.inf
        self.jumped: str | None = None
        """Joint whose position has jumped, if one has."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the way so far."""
        n = len(self.setup.joints)
        self._rows: deque[tuple[float, Annotated[Float64, "n"]]] = deque()
        """When positions were received, s, and these, without turns of continuous joints; the last of them."""
        self._way, self._largest = np.zeros((2, n)), np.zeros((2, n))  # forth and back

    def take(self, state: RobotState, now: float) -> None:
        """Take a state.

        Args:
            state: the robot's.
            now: s, of the clock by which its age counts.
        """
        index = self.setup.variables
        at, position = now - float(state.age[index].max()), state.q[index]
        if not self._rows:
            self._rows.append((at, position))
            return
        before, last = self._rows[-1]
        if at < before + _ANOTHER:
            return
        position = nearest_equivalent(position, last, self._endless)
        step = position - last
        jumps = np.abs(step) > self._limits * (at - before + _LATE) + FAR
        if jumps.any():
            self.jumped = self.setup.joints[int(np.argmax(jumps))]
            self._believed = now + CALM
            self.begin_anew()
            self._rows.append((at, state.q[index]))
            return
        self._rows.append((at, position))
        while at - self._rows[1][0] >= _SPEED_SECONDS:
            self._rows.popleft()
        steps = np.array([step, -step])
        self._way = np.maximum(self._way + steps, 0.0)
        self._largest = np.where(self._way > 0.0, np.maximum(self._largest, steps), 0.0)

    def moving(self, now: float) -> str | None:
        """Return the joint that has moved farthest, if one has."""
        far = (self._way - self._largest).max(axis=0)
        if now < self._believed or not (far > FAR).any():
            return None
        return self.setup.joints[int(np.argmax(far))]

    def velocity(self, state: RobotState) -> Annotated[Float64, "n"]:
        """Return how joints move: as measured, as far as their way agrees; else as their way says."""
        at, position = self._rows[-1]
        since, first = self._rows[0]
        of_way = np.clip((position - first) / max(at - since, _SPEED_SECONDS), -self._limits, self._limits)
        measured = state.velocity[self.setup.variables]
        if not measured.any():
            return np.asarray(of_way)
        most = _FASTER_MEASURED * of_way
        return np.asarray(np.clip(measured, np.minimum(most, 0.0), np.maximum(most, 0.0)))
