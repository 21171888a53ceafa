"""Brakes of motions that controllers do: from where the robot is measured, or else from where it should be.

They are for a controller that goes there from wherever its joints are when the brake comes, so nothing steps, whatever
its clock says.
"""

from typing import Annotated

import numpy as np
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.brake import (
    SOON,
    brake_from_any,
    brake_on_the_way,
    brake_to,
    gone_on,
    inside_limits,
    spread,
)
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.session import LAG
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.motion.drives import ALIKE, share_of
from kinopt_ros.ros.motion.made_soon import made_soon
from kinopt_ros.ros.motion.published import LATEST_BEGIN, LOOK_EVERY, Published
from kinopt_ros.ros.motion.slider import slowed_to
from kinopt_ros.ros.robot.joint_states import FASTER, RobotState
from kinopt_ros.ros.robot.parameters import MOST_DELAY
from kinopt_ros.trajectory.braking import MotionState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory
from kinopt_ros.verification.motion import AT_REST

BEYOND = 0.1
"""Distance beyond its position limits at which a joint may be measured, rad or m."""
FARTHEST = 1e6
"""Farthest that a joint without limits may be measured from 0, rad or m."""
ON_THE_WAY = 0.03
"""Longest time that a brake is on its way, s, besides that of the slowest joint states lately."""
UNSURE = 60 * 10**9
"""Longest time that a robot that nobody hears of may still be in a motion, ns, after this should be over."""
_EARLIEST_BEGIN = round(MOST_DELAY * NANOSECONDS_PER_SECOND)
"""How far one may be ahead of it that does not keep stamps, ns."""
_IN_TIME, _FASTEST = 0.07, 1.5
"""Share of its velocity by which a motion that is done in time may be slower or faster, and the most that counts."""
_SOMETIME = 0.1
"""What the time of a measurement may be wrong by, s, where joint states have no stamps."""
_FRESH = 50_000_000
"""Age of joint states, ns, up to which a robot that stands has hardly moved since."""
_STUCK = 0.5
"""Share of its velocity below which a joint that is slow stands."""
_TOGETHER = 0.05
"""How far apart joints may have been measured that count as of one time, s."""
_LEAST_PACE, _MOST_PACE = 0.08, 0.3
"""How long before joints were to have been measured, s, to say how fast they do a motion."""
_EXPLAINED, _CLEAR = 5e-3, 0.3
"""How far they may have been then from where a pace has them, rad or m; and how much paces may differ that do so as
well."""
_UNEVEN, _UNEVEN_SHARE = 1.2e8, 0.15
"""How far joints may be in a motion from where one pace has them, ns, or as a share of how far they are."""
_PASSES = 0.02
"""Share of a joint's limit of velocity by which it is faster than in a motion that it only passes by."""


def credible(setup: ServoSetup, state: RobotState) -> bool:
    """Check whether a robot can be as measured. A stop that begins where it cannot be would make it jump."""
    index, limits = setup.variables, setup.robot.limits
    q, velocity = state.q[index], np.abs(state.velocity[index])
    inside = (
        (q >= limits.lower[index] - BEYOND) & (q <= limits.upper[index] + BEYOND) & (np.abs(q) <= FARTHEST)
    )
    believed = inside & (velocity <= FASTER * limits.velocity[index])
    # A position that has jumped, as of a driver that begins anew with zeros, is not where the robot is.
    return bool(believed.all()) and state.jumped(index, setup.robot) is None


def is_heard(context: Context, setup: ServoSetup, state: RobotState) -> bool:
    """Check whether it is known where a robot is."""
    age = state.age[setup.variables].max()
    return bool(age <= context.parameter("servo.state_timeout")) and _is_known(setup, state)


def was_heard(context: Context, setup: ServoSetup, state: RobotState, commanded: Commanded, now: int) -> bool:
    """Check whether it is known where a robot is, or where it was in a motion when it was measured last, however long
    ago: its joints at one time, and not before that motion. Arguments as of ``brake_in``."""
    index = setup.variables
    if is_heard(context, setup, state):
        return True
    together = bool(np.ptp(state.age[index]) <= _TOGETHER)
    return together and state.seen(index, now) >= commanded.start and _is_known(setup, state)


def _is_known(setup: ServoSetup, state: RobotState) -> bool:
    return bool(state.known[setup.variables].all()) and credible(setup, state)


def commanded_of(running: Published) -> Commanded:
    """Return a motion that a controller does, in the time of the node's clock. It may begin a little later."""
    return Commanded(running.motion, running.start, running.start, running.start)


def brake_as_measured(
    setup: ServoSetup, state: RobotState, velocity: Annotated[Float64, "n"], near: Annotated[Float64, "n"]
) -> JointTrajectory:
    """Return the brake of joints from where they are measured; a controller gets its second point.

    Args:
        setup: the robot, and the joints.
        state: of the robot, as measured; it has gone on since.
        velocity: of the joints, rad/s or m/s.
        near: where they were commanded to be, rad or m, to within whole turns of continuous ones.
    """
    index = setup.variables
    position = _carried_on(setup, state, velocity, state.behind[index], near)
    return brake_on_the_way(setup, position, velocity, state.way(index) / NANOSECONDS_PER_SECOND)


def stands(setup: ServoSetup, state: RobotState) -> bool:
    """Check whether all joints are measured to stand."""
    index = setup.variables
    return bool((np.abs(state.seen_velocity[index]) <= AT_REST * setup.robot.limits.velocity[index]).all())


def freshly_stands(setup: ServoSetup, state: RobotState, now: int) -> bool:
    """Check whether all joints are measured to stand, and were just now: they have hardly moved since."""
    return now - state.seen(setup.variables, now) <= _FRESH and stands(setup, state)


def is_stuck(setup: ServoSetup, commanded: Commanded, state: RobotState, now: int) -> bool:
    """Check whether joints are measured to stand where a motion has had them move for as long as drives may lag:
    something holds them, or their driver repeats itself. One that has just begun, or is slow itself, says nothing where
    nobody has heard of the robot since: it has gone on."""
    if not stands(setup, state):
        return False
    seen, least = state.seen(setup.variables, now), _PASSES * setup.unscaled.velocity
    times = (seen,) if now - seen <= _FRESH else (seen - LAG, seen)
    moved = all((np.abs(commanded.at(time).velocity) > least).any() for time in times)
    return moved and share_of(commanded.at(seen).velocity, setup, state, _PASSES) < _STUCK


def brake_where_it_stands(
    setup: ServoSetup, commanded: Commanded, state: RobotState, now: int
) -> JointTrajectory:
    """Return the brake of joints that are measured to stand, though they were told to move; a controller gets its
    second point. A driver that repeats its last joint states says so, too: from where the joints were told to be the
    brake keeps the limits as well."""
    position = setup.as_commanded(state.q[setup.variables], commanded.at(now).position)
    latest = now + state.way(setup.variables) + ON_THE_WAY * NANOSECONDS_PER_SECOND
    times = spread(now - LAG, latest)  # a controller may have begun a little later
    return brake_to(setup, position, [commanded.at(round(time)) for time in times])


def brake_of(context: Context, running: Published) -> TrajectoryMessage:
    """Return the brake of a motion, of two points; a controller gets the second one.

    Args:
        context: the node's.
        running: the motion.
    """
    robot, joints = running.robot, tuple(running.message.joint_names)
    setup = servo_setup(robot, robot.root_link, robot.root_link, joints)
    commanded = commanded_of(running)

    def brake_for(ahead: int) -> JointTrajectory:
        state = context.joint_states.of(robot).later(ahead)
        return brake_in(context, setup, commanded, state, context.now() + ahead)

    return trajectory_message(made_soon(brake_for, context.now), robot.root_link)


def brake_in(
    context: Context,
    setup: ServoSetup,
    commanded: Commanded,
    state: RobotState,
    now: int,
    soon: float = SOON,
) -> JointTrajectory:
    """Return the brake of joints that were told to do a motion, from where that may be done by now, or else from where
    they are measured; a controller gets its second point.

    Args:
        context: the node's.
        setup: the robot, and the joints.
        commanded: the motion, in the time of the node's clock.
        state: of the robot, as measured.
        now: when the brake is made, ns of the node's clock.
        soon: as of ``brake_from_any``.
    """
    if was_heard(context, setup, state, commanded, now) and is_stuck(setup, commanded, state, now):
        return brake_where_it_stands(setup, commanded, state, now)
    states, times = _where(setup, commanded, state, now, context)
    return brake_from_any(setup, states, None if times is None else (commanded, *times), soon)


def _where(
    setup: ServoSetup, commanded: Commanded, state: RobotState, now: int, context: Context
) -> tuple[list[MotionState], tuple[int, int] | None]:
    """Return where a controller may have the joints of a motion when a brake comes, and between which times of it that
    is; None if they are not in it."""
    index = setup.variables
    behind = float(state.behind[index].max())
    lead = round(behind * NANOSECONDS_PER_SECOND)
    if not was_heard(context, setup, state, commanded, now):
        # It is in the motion, and may be a little behind.
        return [commanded.at(now - late) for late in (LAG, LAG // 2, 0)], (now - LAG, now)
    heard = is_heard(context, setup, state)
    found = _found_in(setup, commanded, state, now - lead, context, heard)
    between, share = None, 1.0
    older = _may_be_older(setup, state)
    slowed = None if older else slowed_to(commanded, setup, state, now - lead)
    if slowed is not None:
        found = slowed[0], slowed[0]
    if found is None:
        velocity = state.seen_velocity[index]
        at = [
            _gone_on(setup, commanded, state, behind + way / NANOSECONDS_PER_SECOND, velocity, now)
            for way in _ways(setup, state)
        ]
    else:
        if slowed is not None:
            share = slowed[1]
        else:
            share = (_share_in if heard else _pace_in)(setup, commanded, state, found[1])
        times = [
            round(seen) + round(share * (lead + way))
            for seen, way in zip(spread(*found), _ways(setup, state), strict=True)
        ]
        between = (times[0], times[-1])
        at = _gone_on_in(setup, commanded, state, found[1], times, share)
    gone = found is None and not heard  # nobody knows whether it has come back
    if gone or share != 1.0 or (lead <= LAG and not state.may_lie_unread(index)):
        return at, between
    late = 0
    if not older:
        if found is None:
            return at, between
        late = max(0, now - lead - found[1])
    elif found is None and not _may_be_in(setup, commanded, state, now):
        return at, between
    # It may have gone on as commanded; messages that lie unread for long may be older than is known.
    first, last = now - late - LAG, now - late
    if between is not None:
        between = (min(between[0], first), max(between[1], last))
    return [commanded.at(first), *at, commanded.at(last)], between


def _may_be_older(setup: ServoSetup, state: RobotState) -> bool:
    """Check whether joints may have been measured longer ago than is known."""
    index = setup.variables
    stamped = state.stamped is not None and bool(state.stamped[index].all())
    return not stamped or state.may_lie_unread(index)


def _may_be_in(setup: ServoSetup, commanded: Commanded, state: RobotState, now: int) -> bool:
    """Check whether joints that may be older than is known can have come into a motion by now."""
    index = setup.variables
    unread = np.maximum(state.late[index], 0.0) if state.may_lie_unread(index) else 0.0
    since = state.behind[index] + unread + _SOMETIME
    way = setup.away(state.q[index], commanded.at(now).position)
    return bool((way <= since * setup.unscaled.velocity).all())


def was_on_its_way(
    context: Context, setup: ServoSetup, commanded: Commanded, state: RobotState, now: int
) -> bool:
    """Check whether joints were moving in a motion when they were heard of last, at one pace since its begin: somebody
    else may have moved them since. Arguments as of ``brake_in``."""
    if stands(setup, state) or not was_heard(context, setup, state, commanded, now):
        return False
    seen = state.seen(setup.variables, now)
    found = _found_in(setup, commanded, state, seen, context, heard=False)
    if found is None:
        return False
    pace = _pace_in(setup, commanded, state, found[1])
    got, expected = found[1] - commanded.start, pace * (seen - commanded.start)
    return pace > 0.0 and abs(got - expected) <= max(_UNEVEN, _UNEVEN_SHARE * got)


def _found_in(
    setup: ServoSetup, commanded: Commanded, state: RobotState, measured: int, context: Context, heard: bool
) -> tuple[int, int] | None:
    """Return ``_times_in`` of joints that are ``heard`` of, or of ones that were: these may be anywhere in it."""
    latest = LATEST_BEGIN if heard else min(max(LATEST_BEGIN, measured - commanded.start), UNSURE)
    tolerance = context.parameter("servo.tracking_tolerance")
    return _times_in(setup, commanded, state, measured, tolerance, latest)


def _share_in(setup: ServoSetup, commanded: Commanded, state: RobotState, seen: int) -> float:
    """Return by which share of its velocity joints do a motion that were in it at a time, ``seen``, when they were
    measured: 1 where that is about as fast as it says, or nobody knows."""
    share = _counted(share_of(commanded.at(seen).velocity, setup, state))
    return 1.0 if share > 1.0 and _came_along(setup, commanded, state, seen) else share


def _pace_in(setup: ServoSetup, commanded: Commanded, state: RobotState, seen: int) -> float:
    """Return ``_share_in`` by how far joints had come in the motion a little before: what a driver says of velocities
    may be of before, and where nobody hears of the robot that counts for long."""
    since, places = state.past(setup.variables)
    begun = (seen - commanded.start) / NANOSECONDS_PER_SECOND  # what stood then says nothing
    longer = np.flatnonzero((since >= _LEAST_PACE) & (since <= min(_MOST_PACE, begun)))
    if not len(longer):
        return _share_in(setup, commanded, state, seen)
    row = longer[-1]
    shares = np.arange(0.0, _FASTEST, 0.01)
    times = seen - np.round(shares * since[row] * NANOSECONDS_PER_SECOND).astype(np.int64)
    away = setup.away(places[row], commanded.at_all(times)[0]).max(axis=1)
    alike = shares[away <= away.min() + ALIKE]
    if away.min() > _EXPLAINED or np.ptp(alike) > _CLEAR:
        return _share_in(setup, commanded, state, seen)
    return _counted(float(shares[np.argmin(away)]))


def _counted(share: float) -> float:
    """Return a share of a velocity as it counts: 1 where that is about so, or nobody knows."""
    in_time = np.isnan(share) or abs(share - 1.0) <= _IN_TIME
    return 1.0 if in_time else min(max(share, 0.0), _FASTEST)


def _gone_on_in(
    setup: ServoSetup, commanded: Commanded, state: RobotState, seen: int, times: list[int], share: float
) -> list[MotionState]:
    """Return states at some times of a motion of joints that were in it at another one, ``seen``, when they were
    measured: that says how far beside the motion they are, and the motion how it goes on from there. ``share``: of its
    velocity by which they do it."""
    then = commanded.at(seen)
    measured = setup.as_commanded(state.q[setup.variables], then.position)
    at = [commanded.at(time) for time in times]
    return [
        MotionState(
            inside_limits(setup, one.position + measured - then.position, measured),
            share * one.velocity,
            share * share * one.acceleration,
        )
        for one in at
    ]


def _ways(setup: ServoSetup, state: RobotState) -> list[float]:
    """Return times that a brake may be on its way, ns."""
    return spread(0.0, state.way(setup.variables) + ON_THE_WAY * NANOSECONDS_PER_SECOND)


def _gone_on(
    setup: ServoSetup,
    commanded: Commanded,
    state: RobotState,
    seconds: float,
    velocity: Annotated[Float64, "n"],
    now: int,
) -> MotionState:
    """Return the state of joints that have gone on for so many seconds as measured."""
    position = _carried_on(setup, state, velocity, seconds, commanded.at(now).position)
    return MotionState(position, velocity, np.zeros_like(velocity))


def _carried_on(
    setup: ServoSetup,
    state: RobotState,
    velocity: Annotated[Float64, "n"],
    seconds: float | Annotated[Float64, "n"],
    near: Annotated[Float64, "n"],
) -> Annotated[Float64, "n"]:
    """Return where joints are some time after they were measured, with the whole turns of where they were commanded to
    be: drivers may measure fewer than controllers command."""
    return setup.as_commanded(gone_on(setup, state.q[setup.variables], velocity, seconds), near)


def _passes_by(setup: ServoSetup, commanded: Commanded, state: RobotState, seen: int) -> bool:
    """Check whether joints that are where a motion has them at a time, ``seen``, are not in it: they are measured to be
    much faster, and nothing says that they were not."""
    wanted = np.abs(commanded.at(seen).velocity)
    return _exceeds(np.abs(state.velocity[setup.variables]), wanted, setup) and not _came_along(
        setup, commanded, state, seen
    )


def _came_along(setup: ServoSetup, commanded: Commanded, state: RobotState, seen: int) -> bool:
    """Check whether joints came to where a motion has them at a time, ``seen``, as fast as it goes: then they are not
    faster, but their driver was wrong once, as one that misses a cycle and divides by the time of one."""
    lately = state.shortly_before(setup.variables)
    if lately is None:
        return False
    since, place = lately
    way = setup.away(state.q[setup.variables], place) / since
    before = seen - round(since * NANOSECONDS_PER_SECOND)
    wanted = np.abs([commanded.at(time).velocity for time in (max(before, commanded.start), seen)])
    return not _exceeds(way, wanted.max(axis=0), setup)


def _exceeds(velocity: Annotated[Float64, "n"], wanted: Annotated[Float64, "n"], setup: ServoSetup) -> bool:
    """Check whether any of some velocities is much greater than what is wanted."""
    return bool((velocity > _FASTEST * wanted + _PASSES * setup.unscaled.velocity).any())


def _times_in(
    setup: ServoSetup,
    commanded: Commanded,
    state: RobotState,
    measured: int,
    tolerance: float,
    latest: int,
) -> tuple[int, int] | None:
    """Return the earliest and the latest time (ns of the node's clock) of a motion at which the joints may have been
    when they were measured: a controller may have begun later, by ``latest`` (ns) at most; or sooner, if it does not
    keep stamps. None: they were not in it."""
    times = measured + np.arange(_EARLIEST_BEGIN, -latest, -LOOK_EVERY)
    position, velocity, _ = commanded.at_all(times)
    index = setup.variables
    away = setup.away(state.q[index], position)
    seen = state.seen_velocity[index]
    # The way lately, of a driver that measures no velocities, is of before: it says nothing where joints slow down.
    off = np.where((state.velocity[index] == 0.0) & (seen != 0.0), 0.0, np.abs(velocity - seen))
    off *= LAG / NANOSECONDS_PER_SECOND
    unlike = (away + off).max(axis=1)
    behind = times <= measured
    best = int(np.argmin(np.where(behind, unlike, np.inf)))
    if unlike.min() + ALIKE < unlike[best]:
        best = int(np.argmin(unlike))
    if away[best].max() > tolerance or _passes_by(setup, commanded, state, int(times[best])):
        return None
    alike = times[(behind == behind[best]) & (unlike <= unlike[best] + ALIKE)]
    first, last = int(alike.min()), int(alike.max())  # many, where the joints stand or hardly move
    return (max(first, last - LAG), last) if behind[best] else (first, min(last, first + LAG))
