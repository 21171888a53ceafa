"""A timed joint motion: the numbers of a trajectory_msgs/JointTrajectory."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Immutable, Int64, taken_over

NANOSECONDS_PER_SECOND = 1_000_000_000


@dataclass(frozen=True, eq=False)
class JointTrajectory(Immutable):
    """T waypoints of n joints. Only holds numbers; ``verification.trajectory`` judges them.

    Between waypoints the motion is the quintic of ``interpolation``, as a joint_trajectory_controller
    interpolates points that carry positions, velocities and accelerations.
    """

    joint_names: tuple[str, ...]
    time: Annotated[Float64, "T"]
    """Time from start (s), strictly increasing from 0."""
    position: Annotated[Float64, "T n"]
    """Positions of the waypoints, rad or m."""
    velocity: Annotated[Float64, "T n"]
    """Velocities of the waypoints, rad/s or m/s."""
    acceleration: Annotated[Float64, "T n"]
    """Accelerations of the waypoints, rad/s^2 or m/s^2."""

    def __post_init__(self) -> None:
        taken_over(self, "time", "position", "velocity", "acceleration")

    @property
    def duration(self) -> float:
        """Time of the last waypoint (s); 0 if there is none."""
        return float(self.time[-1]) if self.time.size else 0.0

    @property
    def nanoseconds(self) -> Annotated[Int64, "T"]:
        """Times as a message carries them: whole nanoseconds."""
        return np.rint(self.time * NANOSECONDS_PER_SECOND).astype(np.int64)
