"""The one check of motions, whoever made them: limits and start, what else was asked, collisions all the way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Protocol

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.pauses import Pause, go_on
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.collision import first_in_collision, not_checked
from kinopt_ros.verification.sweep import WayContact, first_contact, least_clearance
from kinopt_ros.verification.trajectory import (
    TrajectoryLimits,
    TrajectoryReport,
    Violation,
    verify_trajectory,
)

ON_THE_WAY = "collisions on the way"
"""Name of a check."""
CLEARANCE_RANGE = 0.1
"""Distance up to which it is measured how near a motion comes to something, m."""
_SURE = 1e-4
"""Distance beyond the wanted clearance, m, from which on a lower bound of it needs no second look."""
_GLANCES = 12
"""Number of waypoints that are checked before the whole way."""


@dataclass(frozen=True, eq=False)
class Start:
    """State that a motion of n joints has to begin with."""

    position: Annotated[Float64, "n"]
    velocity: Annotated[Float64, "n"]
    outside: float
    """How far a joint may be outside its position limits, rad or m; from there it moves inwards only."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a motion must be free of collisions with, besides the robot itself."""

    robot: RobotModel
    scene: Scene
    q: Annotated[Float64, "nq"]
    """Configuration of the whole robot; the values of joints that move do not matter."""
    variables: Annotated[Int64, "n"]
    """Indices in q of the joints that move."""
    clearance: float
    """Least distance of bodies that must not touch, m."""
    measured: bool = False
    """Whether to measure how near the motion comes to something, which takes longer."""
    patience: int | None = None
    """Most looks of the collision judge; who needs more counts as too near. None: as many as it takes."""

    def look(self, trajectory: JointTrajectory, pause: Pause = go_on) -> tuple[WayContact | None, float]:
        """Return where a motion comes too near to something, if it does, and how near it comes: a lower bound, m.

        The distance is infinite if nothing comes within ``CLEARANCE_RANGE``, and NaN if it was not measured.
        """
        motion = self.robot, self.scene, self.q, self.variables, trajectory
        if not self.measured:
            return first_contact(*motion, self.clearance, patience=self.patience, pause=pause), float("nan")
        least = least_clearance(*motion, CLEARANCE_RANGE, pause)
        contact = None
        if least <= self.clearance + _SURE:  # it is a lower bound: above that, nothing is left to look at
            contact = self._glance(trajectory, pause)
            contact = contact or first_contact(*motion, self.clearance, patience=self.patience, pause=pause)
            if contact is None:  # it keeps this, by its shapes; the bound is by larger ones
                least = max(least, self.clearance)
        return contact, float("inf") if least >= CLEARANCE_RANGE else least

    def _glance(self, trajectory: JointTrajectory, pause: Pause) -> WayContact | None:
        """Return a contact at one of some waypoints.

        It is sooner found than the first one of all, which may begin with a graze.
        """
        some = np.arange(0, len(trajectory.time), max(1, len(trajectory.time) // _GLANCES))
        full = np.repeat(self.q[None], len(some), axis=0)
        full[:, self.variables] = trajectory.position[some]
        found = first_in_collision(self.robot, self.scene, full, self.clearance, pause)
        if found is None:
            return None
        k, (deepest, *_) = found
        return WayContact(
            deepest.a, deepest.b, self.clearance - deepest.depth, float(trajectory.time[some[k]])
        )


class Demand(Protocol):
    """Something that a motion has to do besides keeping limits and touching nothing."""

    name: str
    """Name of the check."""

    def look(self, trajectory: JointTrajectory, pause: Pause) -> tuple[str, list[Violation]]:
        """Return the name of the check, with how it was made, and what is wrong."""


@dataclass(frozen=True, eq=False)
class VerifiedMotion:
    """A motion, and the float64 check of the very numbers in it. Send it only if ``report.ok``."""

    trajectory: JointTrajectory
    report: TrajectoryReport
    contact: WayContact | None = None
    """Where the motion comes too near to something; ``report`` says it, too."""
    clearance: float = float("nan")
    """Distance that all bodies that must not touch keep from each other, m; as ``Surroundings.look`` returns it."""


def verify(
    trajectory: JointTrajectory,
    limits: TrajectoryLimits,
    start: Start,
    surroundings: Surroundings | None,
    demands: Sequence[Demand] = (),
    pause: Pause = go_on,
) -> VerifiedMotion:
    """Check a motion: numbers, limits, start, demands, collisions all the way.

    Collisions are looked at last. What is not looked at, as something else is wrong already, is named in
    ``report.not_checked``.

    Args:
        trajectory: the motion.
        limits: of its joints, in their order.
        start: what it has to begin with.
        surroundings: what it must not touch; None: nobody looks at collisions.
        demands: what else it has to do.
        pause: called between pieces of work.
    """
    report = verify_trajectory(
        trajectory,
        limits,
        start.position,
        start_velocity=start.velocity,
        start_outside=start.outside,
    )
    if not report.ok:
        return VerifiedMotion(trajectory, _left_out(report, (*(one.name for one in demands), ON_THE_WAY)))
    for demand in demands:
        pause()
        name, found = demand.look(trajectory, pause)
        report = replace(report, violations=(*report.violations, *found), checks=(*report.checks, name))
    if surroundings is None or not report.ok:
        return VerifiedMotion(trajectory, _left_out(report, (ON_THE_WAY,)))
    pause()
    contact, clearance = surroundings.look(trajectory, pause)
    violations: tuple[Violation, ...] = ()
    if contact is not None:
        sentence = contact_sentence(contact, surroundings.clearance)
        violations = (Violation(ON_THE_WAY, sentence, time=contact.time),)
    report = replace(
        report,
        violations=violations,
        checks=(*report.checks, ON_THE_WAY),
        not_checked=(*report.not_checked, *not_checked(surroundings.robot)),
    )
    return VerifiedMotion(trajectory, report, contact, clearance)


def contact_sentence(contact: WayContact, clearance: float) -> str:
    """Return a sentence that says where a motion is in collision, with what, and how deep."""
    when = "where it starts" if contact.time == 0.0 else f"after {contact.time:.3f} s"
    distance = contact.distance
    how = (
        f"{contact.a!r} is {-distance:.4f} m deep in {contact.b!r}"
        if distance < 0.0
        else f"{contact.a!r} is {distance:.4f} m from {contact.b!r}"
    )
    wanted = f"; a clearance of {clearance:g} m is wanted" if clearance > 0.0 else ""
    return f"the motion is in collision {when}: {how}{wanted}"


def _left_out(report: TrajectoryReport, checks: tuple[str, ...]) -> TrajectoryReport:
    return replace(report, not_checked=(*report.not_checked, *checks))
