"""The newest value of every joint that anybody publishes."""

import math
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import InvalidStateError, StaleStateError, quoted, shortened
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.xml_text import MAX_NAME_LENGTH

_MOST_NAMES = 10_000
"""Most joints remembered, of this robot and of others on the topic."""
JUMP_SECONDS = 0.5
"""Time for which the greatest step of a joint's position is remembered, s."""
_LATE = 0.05
"""By how much two messages may come closer together than they were sent, s."""


@dataclass(frozen=True)
class _Reading:
    position: float
    velocity: float
    received: float
    late: float
    fastest: float = 0.0
    at: float = 0.0
    """When the fastest step was received."""

    def after(self, before: "_Reading | None") -> "_Reading":
        """Return this reading with the fastest of the last steps, of which the last one leads here."""
        if before is None:
            return self
        # Drivers may measure continuous joints between half a turn and minus that.
        way = self.position - before.position
        step = abs(math.remainder(way, math.tau)) if math.isfinite(way) else math.inf
        speed = step / (self.received - before.received + _LATE)
        if speed < before.fastest and self.received < before.at + JUMP_SECONDS:
            return replace(self, fastest=before.fastest, at=before.at)
        return replace(self, fastest=speed, at=self.received)


@dataclass(frozen=True, eq=False)
class RobotState:
    """Measured state of one robot."""

    q: Annotated[Float64, "nq"]
    """Positions; the robot's default where nobody published one."""
    velocity: Annotated[Float64, "nq"]
    """Velocities; 0 where nobody published one."""
    known: Annotated[Bool, "nq"]
    """Which variables somebody published."""
    age: Annotated[Float64, "nq"]
    """Seconds since each was received; 0 where nothing was."""
    late: Annotated[Float64, "nq"]
    """Seconds from each one's stamp to its arrival, by the node's clock: less than 0 if who sent it has a clock that is
    ahead. 0 where nothing was said."""
    fastest: Annotated[Float64, "nq"]
    """Greatest velocity by which each position has changed between two messages in the last JUMP_SECONDS; one that a
    joint cannot have says that positions are not to be believed."""

    def require_fresh(
        self, variables: Iterable[int], robot: RobotModel, timeout: float, parameter: str = "state_timeout"
    ) -> None:
        """Raise StaleStateError if a variable was published, but longer ago than timeout (s), which a parameter
        says."""
        if self.age.max(initial=0.0) <= timeout:
            return
        old = [int(i) for i in variables if self.known[i] and self.age[i] > timeout]
        if old:
            raise StaleStateError(
                f"the joint state of {robot.variable_names[old[0]]!r} is {self.age[old[0]]:.2f} s old; "
                f"allowed is {timeout:g} s (parameter {parameter})"
            )

    def require_known(self, variables: Iterable[int], robot: RobotModel) -> None:
        """Raise InvalidStateError if nobody has published one of the variables."""
        missing = [robot.variable_names[i] for i in variables if not self.known[i]]
        if missing:
            raise InvalidStateError(f"joint_states has no value for {', '.join(missing)}")


class JointStates:
    """Collects sensor_msgs/JointState messages, of one publisher or of several. Thread-safe.

    Age is counted on the steady clock from the arrival, since simulated time can stand still.
    """

    def __init__(self) -> None:
        self._readings: dict[str, _Reading] = {}
        self._lock = threading.Lock()

    def update(self, message: Any, late: float = 0.0) -> None:
        """Take a message. A velocity that is not finite counts as not measured.

        ros2_control publishes NaN for interfaces that a joint does not have.

        Args:
            message: sensor_msgs/JointState.
            late: s from its stamp to now, by the node's clock; 0 if it has none.

        Raises:
            InvalidStateError: lengths differ, a joint is named twice or names are too many or too long, and nothing was
                taken; or positions are not finite, and all others were taken.
        """
        names, positions, velocities = message.name, message.position, message.velocity
        if len(names) > _MOST_NAMES:
            raise InvalidStateError(f"joint state has {len(names)} names; at most {_MOST_NAMES} are read")
        if len(positions) != len(names) or (velocities and len(velocities) != len(names)):
            raise InvalidStateError(
                f"joint state has {len(names)} names, {len(positions)} positions, {len(velocities)} velocities"
            )
        if len(set(names)) != len(names):  # whichever value were taken, another one said something else
            twice = [quoted(name) for name, count in Counter(names).items() if count > 1]
            raise InvalidStateError(f"joint state names {shortened(twice)} twice")
        endless = [name for name in names if len(name) > MAX_NAME_LENGTH]
        if endless:
            raise InvalidStateError(
                f"joint state names {quoted(endless[0])}; allowed are at most {MAX_NAME_LENGTH} characters"
            )
        now = time.monotonic()
        velocities = velocities or [0.0] * len(names)
        readings = {
            name: _Reading(position, velocity if math.isfinite(velocity) else 0.0, now, late)
            for name, position, velocity in zip(names, positions, velocities, strict=True)
            if math.isfinite(position)
        }
        with self._lock:
            for name, reading in readings.items():  # to the end of the order
                self._readings[name] = reading.after(self._readings.pop(name, None))
            while (
                len(self._readings) > _MOST_NAMES
            ):  # the oldest go, so that nobody can fill the memory with names
                del self._readings[next(iter(self._readings))]
        lost = [name for name in names if name not in readings]
        if lost:
            raise InvalidStateError(f"the position of {shortened(lost)} is not finite")

    def of(self, robot: RobotModel) -> RobotState:
        """Return the state of a robot, from what was received so far."""
        with self._lock:
            readings = [self._readings.get(name) for name in robot.variable_names]
        now = time.monotonic()
        return RobotState(
            q=np.array(
                [d if r is None else r.position for r, d in zip(readings, robot.default_q, strict=True)]
            ),
            velocity=np.array([0.0 if r is None else r.velocity for r in readings]),
            known=np.array([r is not None for r in readings], dtype=bool),
            age=np.array([0.0 if r is None else now - r.received for r in readings]),
            late=np.array([0.0 if r is None else r.late for r in readings]),
            fastest=np.array(
                [0.0 if r is None or now > r.at + JUMP_SECONDS else r.fastest for r in readings]
            ),
        )
