"""Whether a robot does the brake that was sent to it, or goes on in its motion, as where that message was lost."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.ros.motion.brakes import ON_THE_WAY
from kinopt_ros.ros.motion.drives import time_in
from kinopt_ros.ros.motion.published import LATEST_BEGIN, LOOK_EVERY, Published
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

_AS_FAST, _HARDLY = 0.3, 0.05
"""Shares by which a joint may be faster or slower than its brake: of the velocity at its begin, or of the limit."""
_AS_MEASURED = 0.5
"""Share of these that counts for joints in the motion before whose driver measures velocities."""

_IN_IT = 5e-3
"""How far joints that are in a brake may be from where it has them, rad or m."""


def slows_down_in(
    brake: Commanded,
    setup: ServoSetup,
    state: RobotState,
    now: int,
    tolerance: float,
    latest: int = LATEST_BEGIN,
    share: float = 1.0,
) -> bool:
    """Check whether joints are about where, and as fast as, a brake has them at some time, as its controller may have
    begun later: a robot whose brake was lost is near it for a while, but goes on at its speed. Before the brake can
    have come nothing says so.

    Args:
        brake: was sent.
        setup: the robot and the brake's joints.
        state: as measured, of all these joints.
        now: ns of the node's clock.
        tolerance: rad or m by which the robot may be elsewhere.
        latest: ns by which the controller may have begun later.
        share: of how much faster or slower they may be.
    """
    index, seen = setup.variables, state.seen(setup.variables, now)
    if seen <= brake.start + _on_the_way(setup, state):
        return True
    times = seen - np.arange(0, latest, LOOK_EVERY)
    position, velocity, _ = brake.at_all(times)
    away, off = setup.away(state.q[index], position), np.abs(velocity - state.seen_velocity[index])
    alike = share * np.maximum(
        _AS_FAST * np.abs(brake.trajectory.velocity[0]), _HARDLY * setup.unscaled.velocity
    )
    slow = ((away <= tolerance) & (off <= alike)).all(axis=1)
    return bool((slow | _was_in_it(brake, setup, state, times, away)).any())


def _was_in_it(
    brake: Commanded,
    setup: ServoSetup,
    state: RobotState,
    times: Annotated[Int64, "T"],
    away: Annotated[Float64, "T n"],
) -> Annotated[Bool, "T"]:
    """Return at which times of a brake, from which joints are measured so far away, they are in it by where they were a
    little before, too: a driver that says other velocities is wrong once."""
    lately = state.shortly_before(setup.variables)
    if lately is None:
        return np.zeros(len(times), dtype=np.bool_)
    since, place = lately
    before = times - round(since * NANOSECONDS_PER_SECOND)
    was = setup.away(place, brake.at_all(before)[0])
    begun = before >= brake.start + _on_the_way(setup, state)  # until then the motion before is like it
    return begun & ((away <= _IN_IT) & (was <= _IN_IT)).all(axis=1)


def goes_on_in(
    stop: Published, setup: ServoSetup, state: RobotState, now: int, tolerance: float
) -> Published | None:
    """Return the motion that a stop, or a brake, was to end, if the robot is in it all the same, in time, and not in
    what was to end it; else None. Arguments as of ``slows_down_in``."""
    motion = None if stop.before is None else stop.before.commanded(setup.joints)
    brake = stop.commanded(setup.joints)
    got = None if motion is None else time_in(motion, setup, state, now)
    way = _on_the_way(setup, state)
    # A filter may say what was before the brake came.
    if got is None or brake is None or got <= brake.start + way:
        return None
    share = _AS_MEASURED if state.velocity[setup.variables].any() else 1.0
    return None if slows_down_in(brake, setup, state, now, tolerance, 2 * way, share) else stop.before


def _on_the_way(setup: ServoSetup, state: RobotState) -> int:
    """Return the longest time that a brake may be on its way, ns."""
    return state.way(setup.variables) + round(ON_THE_WAY * NANOSECONDS_PER_SECOND)
