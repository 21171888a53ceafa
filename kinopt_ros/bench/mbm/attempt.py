"""What a planner makes of one problem, and what a benchmark asks of a planner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from kinopt_ros.array import Float64
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

SEARCH, SHORTENING = "search", "shortening"
"""Names of a peer's stages."""


@dataclass(frozen=True, eq=False)
class PeerPath:
    """Path of a peer: configurations to be passed on straight lines."""

    corners: Annotated[Float64, "K n"] | None
    """Values of the problem's joints, rad or m; None: it found none."""
    why: str = ""
    """Why it found none."""
    stages: Mapping[str, float] = field(default_factory=dict)
    """Wall time of each stage, s."""


class Peer(Protocol):
    """Planner of paths to compare with."""

    name: str
    version: str

    def enter(self, problem: TrajectoryProblem) -> None:
        """Take in the scene of a problem; no clock runs."""

    def plan(self, problem: TrajectoryProblem, seconds: float, seed: int) -> PeerPath:
        """Search a path from the start to the problem's only goal, a configuration, in so many seconds."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """What was made of a problem, and how long it took."""

    planner: str
    timing: str
    """Whose time law the motion has."""
    code: str
    """SUCCESS, or why there is no motion."""
    wall: float
    """s."""
    cpu: float
    """CPU time of the process, s."""
    stages: Mapping[str, float]
    """Wall time of each stage, s."""
    motion: JointTrajectory | None
