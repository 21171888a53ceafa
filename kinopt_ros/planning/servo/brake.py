"""Emergency stop: the quickest way to end a motion."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.trajectory.braking import braking_time, pieces_to_rest, planning_limits
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.verify import VerifiedMotion

SOFTER = 1.5
"""Times the quickest brake that one by a single quintic takes: its acceleration has a peak, where that one is even."""
SHORTEST = 0.1
"""Least time of such a brake, s: what is measured may be a little beside where a controller has a joint."""
LEAD = 10_000_000
"""Time until a brake begins, ns, as it has to arrive before."""


def quickest_stop(
    setup: ServoSetup, last: Commanded, now: int, q: Annotated[Float64, "nq"], lead: int = LEAD
) -> tuple[Commanded, VerifiedMotion]:
    """Plan and check a motion to rest, as fast as the robot's own limits allow, without scaling.

    Args:
        setup: the robot, and the joints that move.
        last: the motion that is to end.
        now: ns of the clock.
        q: the whole robot; values of the joints that move do not matter.
        lead: ns until it begins.
    """
    limits = planning_limits(setup.unscaled)
    leave = last.near_waypoint(now + lead)
    stop = last.going_on(now, leave, pieces_to_rest(last.at(leave), limits))
    return stop, setup.check(stop.trajectory, last.at(stop.start), q, braking=True)


def brake_from_measured(
    setup: ServoSetup,
    position: Annotated[Float64, "n"],
    velocity: Annotated[Float64, "n"],
    slower: float = 1.0,
    least: float = 0.0,
    acceleration: Annotated[Float64, "n"] | None = None,
) -> JointTrajectory:
    """Return a brake from a measured state, of two points: of a controller that gets the second one only, it does not
    matter what its clock says, or how long the message was on its way.

    Args:
        setup: the robot, and the joints.
        position: as measured, rad or m.
        velocity: as measured, rad/s or m/s.
        slower: times as long as it would take otherwise, for one that shall keep the limits wherever a controller has
            the joints when it arrives.
        least: least time that it takes, s.
        acceleration: with which the controller has the joints, rad/s^2 or m/s^2; None: none.
    """
    still = np.zeros_like(velocity)
    limits, index = setup.robot.limits, setup.variables
    quickest = braking_time(velocity, planning_limits(setup.unscaled), still)
    seconds = max(slower * max(SOFTER * quickest, SHORTEST), least)
    # Where a quintic ends that never turns back, and one whose acceleration ends as gently as it can; one that is
    # measured outside its limits stays there.
    further = 0.0 if acceleration is None else seconds * seconds / 12.0 * acceleration
    rest = np.clip(
        position + 0.5 * seconds * velocity + further,
        np.minimum(limits.lower[index], position),
        np.maximum(limits.upper[index], position),
    )
    return JointTrajectory(
        setup.joints,
        np.array([0.0, seconds]),
        np.array([position, rest]),
        np.array([velocity, still]),
        np.array([still, still]),
    )
