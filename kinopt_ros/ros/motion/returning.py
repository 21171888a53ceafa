"""Motions that are where they end before they are over: loops begin there, others come there more than once.

Joints that are there may be anywhere in such a motion: only what was seen of their way says where.
"""

import numpy as np

from kinopt_ros.planning.servo.session import LAG
from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.ros.motion.arrival import off_end_of
from kinopt_ros.ros.motion.beside import OFF, STEP, is_at_end, variables_of
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.motion.visits import Visits
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.instants import instants
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

LEAVES, SEEN = 0.04, 0.03
"""How far from its end a motion leads to be elsewhere, and how far from there joints are seen to be elsewhere: they may
stand beside it by OFF, and be measured with noise; rad or m."""
_RATIO, _RATIO_SEEN = 5.0, 3.0
"""How many times farther from its end than before a motion leads to be elsewhere, and joints are seen to be."""
_NEAR_SEEN = 0.015
"""Distance from the end at which joints are seen to be there in any case, rad or m."""
_MOST_PLACES = 2_000
"""Places of a motion that are looked at, as somebody waits for that; about as many again where it is quick."""
_BETWEEN, _FAR_APART = 4, 0.5
"""Places between two measurements that joints have passed, unless these are so far apart, rad or m: joint states may
come too slowly to show a quick turn."""


def look(one: Published, state: RobotState) -> None:
    """Take notice of whether joints are where their motion ends, or elsewhere."""
    progress, once = one.progress, times_at_end(one) == 1
    if once and progress.left:  # nothing else matters of most motions, which are looked at all the time
        return
    variables = variables_of(one.robot, [one])
    if not state.known[variables].all() or state.jumped(variables, one.robot) is not None:
        return
    progress.left = progress.left or not is_at_end(one, state, SEEN)
    if once:
        return
    q, before = state.q[variables], progress.seen
    progress.seen = q
    places = q[None]
    if before is not None and np.abs(q - before).max() < _FAR_APART:
        places = before + np.linspace(0.0, 1.0, _BETWEEN + 1)[1:, None] * (q - before)
    for distance in off_end_of(one, places).max(axis=1).tolist():
        progress.visits.take(distance, _RATIO_SEEN, _NEAR_SEEN, SEEN)


def may_be_to_come(one: Published, state: RobotState, now: int) -> bool:
    """Check whether all of a published motion may be to come: it ends where it begins, its joints are there, and by
    then (``now``: ns of the node's clock) it should have led them away, but nobody has seen that."""
    variables = variables_of(one.robot, [one])
    if one.execution is not None or one.progress.left or not state.known[variables].all():
        return False
    positions = one.motion.position
    turns = continuous_joints(one.robot, one.message.joint_names)
    leaves = (np.abs(positions - positions[0]) > LEAVES).any(axis=1)
    if not leaves.any() or (apart(positions[-1] - positions[0], turns) > 2.0 * OFF).any():
        return False
    leaves_at = one.motion.time[int(np.argmax(leaves))]
    by_then = state.seen(variables, now) >= one.start + round(float(leaves_at) * NANOSECONDS_PER_SECOND) + LAG
    return by_then and is_at_end(one, state)


def waits_at_its_end(one: Published, state: RobotState, now: int) -> bool:
    """Check whether a published motion may go on though its joints are where it ends, and it should be over; ``now``:
    ns of the node's clock."""
    over = one.execution is None and now >= one.end
    return may_be_to_come(one, state, now) or (over and is_at_end(one, state) and times_at_end(one) > 1)


def times_at_end(one: Published) -> int:
    """Count how often a motion comes from elsewhere to where it ends: once, or more often."""
    progress = one.progress
    if progress.times_at_end is None:
        position, _, _ = evaluate(one.motion, instants(one.motion, STEP, _MOST_PLACES))
        off = off_end_of(one, position).max(axis=1)
        rises = np.diff(off) > 0.0
        extremes = np.flatnonzero(rises[1:] != rises[:-1]) + 1
        led, seen = Visits(), Visits()
        for distance in (off[0], *off[extremes], off[-1]):
            led.take(float(distance), _RATIO, OFF, LEAVES)
            seen.take(float(distance), _RATIO_SEEN, _NEAR_SEEN, SEEN)  # as joints that do it would be
        progress.times_at_end = seen.count if led.count > 1 else 1
    return progress.times_at_end
