"""What comes of a path along straight lines."""

from dataclasses import dataclass

from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory


@dataclass(frozen=True, eq=False)
class CartesianResult:
    """A verified motion along the lines, as far as it goes."""

    status: Status
    """SUCCESS only if all of the path is done."""
    message: str
    """Why the motion ends where it does; empty on success."""
    trajectory: JointTrajectory | None
    """The motion; None if the path does not even begin."""
    fraction: float
    """Share of the path that is done, 0 to 1."""
    waypoints: int
    """Number of waypoints that were reached."""
    solver: str
    checks: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    scene_version: int | None = None
    notes: tuple[str, ...] = ()
    """Sentences that a user of a motion that was found must know."""


@dataclass(frozen=True)
class PathEnd:
    """Reason why a path ends before its end."""

    status: Status
    message: str
