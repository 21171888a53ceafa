"""Emergency stop: the quickest way to end a motion."""

from typing import Annotated

from kinopt_ros.array import Float64
from kinopt_ros.planning.motion import Motion
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.trajectory.braking import pieces_to_rest, planning_limits

LEAD = 10_000_000
"""Time until a brake begins, ns, as it has to arrive before."""


def quickest_stop(
    setup: ServoSetup, last: Commanded, now: int, q: Annotated[Float64, "nq"], lead: int = LEAD
) -> tuple[Commanded, Motion]:
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
