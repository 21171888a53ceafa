"""The one check of motions: what is looked at, in which order, and what is said of the rest."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.pauses import go_on
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.timing import point_to_point
from kinopt_ros.verification.sweep import WayContact
from kinopt_ros.verification.trajectory import TrajectoryLimits, Violation
from kinopt_ros.verification.verify import ON_THE_WAY, Start, Surroundings, VerifiedMotion, verify

ROBOT = seven_revolute()
AT = ROBOT.default_q
SPEED, ACCELERATION, JERK = np.full(7, 1.0), np.full(7, 5.0), np.full(7, 50.0)
LIMITS = TrajectoryLimits(np.full(7, -3.0), np.full(7, 3.0), SPEED, ACCELERATION, JERK)
START = Start(AT, np.zeros(7), 0.0)
MOTION = point_to_point(
    tuple(f"j{i + 1}" for i in range(7)), AT, AT + 0.3, SPEED, ACCELERATION, JERK, start_velocity=np.zeros(7)
)


class Told(Surroundings):
    """Surroundings that say what they are told to, and whether they were asked."""

    contact: WayContact | None = None
    asked = 0

    def look(self, trajectory: JointTrajectory, pause: Any = go_on) -> tuple[WayContact | None, float]:
        type(self).asked += 1
        return self.contact, 0.02


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    monkeypatch.setattr(Told, "asked", 0)
    return Told(ROBOT, Scene(), AT, np.arange(7), 0.01)


class Wanted:
    """Demand that finds what it is told to."""

    name = "a demand"

    def __init__(self, *found: Violation) -> None:
        self.found = list(found)
        self.asked = 0

    def look(self, trajectory: JointTrajectory, pause: Any) -> tuple[str, list[Violation]]:
        self.asked += 1
        return f"{self.name} (twice)", self.found


def test_what_passes_all_was_looked_at_for_all(around: Surroundings) -> None:
    motion = verify(MOTION, LIMITS, START, around, [Wanted()])
    assert motion.report.ok
    assert motion.trajectory is MOTION
    assert motion.report.checks[-2:] == ("a demand (twice)", ON_THE_WAY)
    assert ON_THE_WAY not in motion.report.not_checked
    assert motion.clearance == 0.02


def test_nobody_asked_for_collisions() -> None:
    motion = verify(MOTION, LIMITS, START, None, [Wanted()])
    assert motion.report.ok
    assert motion.report.not_checked[-1] == ON_THE_WAY
    assert np.isnan(motion.clearance)


def of(limits: TrajectoryLimits, start: Start, around: Surroundings) -> tuple[VerifiedMotion, Wanted]:
    demand = Wanted()
    return verify(MOTION, limits, start, around, [demand]), demand


@pytest.mark.parametrize(
    ("limits", "start", "wrong"),
    [
        (replace(LIMITS, velocity=0.1 * SPEED), START, "velocity limits"),
        (LIMITS, replace(START, position=AT + 0.1), "start position"),
        (LIMITS, replace(START, velocity=SPEED), "start velocity"),
    ],
)
def test_broken_limits_end_it(
    limits: TrajectoryLimits, start: Start, wrong: str, around: Surroundings
) -> None:
    motion, demand = of(limits, start, around)
    assert {violation.check for violation in motion.report.violations} == {wrong}
    assert motion.report.not_checked[-2:] == ("a demand", ON_THE_WAY)
    assert not demand.asked
    assert not Told.asked


def test_a_demand_that_is_not_met_ends_it(around: Surroundings) -> None:
    missed, other = Violation("a demand", "missed"), Wanted()
    motion = verify(MOTION, LIMITS, START, around, [Wanted(missed), other])
    assert motion.report.violations == (missed,)
    assert other.asked  # all of them are told at once
    assert motion.report.not_checked[-1] == ON_THE_WAY
    assert not Told.asked


def test_a_contact_is_a_violation_with_place_and_time(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Told, "contact", WayContact("hand", "wall", -0.003, 0.25))
    motion = verify(MOTION, LIMITS, START, around)
    [violation] = motion.report.violations
    assert violation.check == ON_THE_WAY
    assert violation.time == 0.25
    assert "'hand' is 0.0030 m deep in 'wall'" in violation.message
    assert "0.01 m" in violation.message
    assert motion.contact is Told.contact
