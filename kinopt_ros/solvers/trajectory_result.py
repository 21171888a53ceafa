"""Answers to trajectory problems."""

from dataclasses import dataclass, field
from typing import Annotated

from kinopt_ros.array import Float64
from kinopt_ros.objectives.evaluation import Term
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.trajectory import Violation


@dataclass(frozen=True, eq=False)
class PathAttempt:
    """The best path that was no answer."""

    path: Annotated[Float64, "T n"]
    """Points of the path, rad or m."""
    goal: int
    """Which of the problem's goals it ends at."""
    violation: Violation
    """What is wrong with it, and when."""
    state: Annotated[Float64, "n"] | None = None
    """Configuration at which it goes wrong, rad or m; None if it has none."""
    clearance: float = float("nan")
    """Least distance (m) by the optimizer's model; NaN if no optimizer made the path."""


@dataclass(frozen=True, eq=False)
class TurningJoint:
    """How a floating joint turns along a motion: ``R = R_before Rx(a) Ry(b) Rz(c) R_after``.

    What is interpolated, and was verified, are the angles a, b, c (rad): columns of the trajectory. Where b and c
    stay 0 the joint turns about one axis, along the geodesic.
    """

    joint: str
    angles: tuple[str, str, str]
    """Names of the trajectory's columns."""
    before: Annotated[Float64, "4"]
    """Quaternion wxyz of R_before."""
    after: Annotated[Float64, "4"]
    """Quaternion wxyz of R_after."""


@dataclass(frozen=True, eq=False)
class TrajectoryResult:
    """A verified motion, or why there is none."""

    status: Status
    message: str
    """Why there is no motion, one sentence; empty on success."""
    trajectory: JointTrajectory | None
    """The motion; it passed every check in ``checks``. None if there is none."""
    solver: str
    """Name of the plugin that found it."""
    checks: tuple[str, ...] = ()
    """Names of the checks made in float64."""
    not_checked: tuple[str, ...] = ()
    """What was not verified."""
    notes: tuple[str, ...] = ()
    """Sentences that a user of the motion must know: what was given and changed, what was left out by guess."""
    goal: int | None = None
    """Which of the problem's goals it reaches."""
    length: float = float("nan")
    """Length of the path in joint space, rad (and m); NaN without a trajectory."""
    clearance: float = float("nan")
    """Distance that all bodies that must not touch keep from each other, m.

    Infinity if nothing comes within ``CLEARANCE_RANGE``; NaN if collisions were not asked for."""
    attempt: PathAttempt | None = None
    """Best attempt of a failed request."""
    scene_version: int | None = None
    """Version of the scene in which the motion is collision-free; None if collisions were not asked for."""
    costs: tuple[Term, ...] = ()
    """Costs of the objective that the path was made for, at its points; empty without one."""
    iterations: int = 0
    """Steps of the optimizer, all attempts together."""
    attempts: int = 0
    """Paths that were optimized."""
    turning: tuple[TurningJoint, ...] = ()
    """How floating joints turn along the motion; empty if none does."""
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds spent in each stage."""
    solve_time: float = 0.0
    """Seconds in all."""

    @property
    def success(self) -> bool:
        """Whether there is a motion."""
        return self.status is Status.SUCCESS
