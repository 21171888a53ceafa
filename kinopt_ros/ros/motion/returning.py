"""Motions that are where they end before they are over: loops begin there, others come there more than once.

Joints that are there may be anywhere in such a motion: only what was seen of their way says where.
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.session import LAG
from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.ros.motion.beside import MOST_POINTS, OFF, STEP, is_at_end, variables_of
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.trajectory.instants import instants
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

LEAVES, SEEN = 0.04, 0.03
"""How far from its end a motion leads to be elsewhere, and how far from there joints are seen to be elsewhere: they may
stand beside it by OFF, and be measured with noise; rad or m."""
RESTS = 0.1
"""Velocity up to which a motion rests where it ends, rad/s or m/s: slow enough for joints to be seen there."""


def look(one: Published, state: RobotState) -> None:
    """Take notice of whether joints are elsewhere than where their motion ends, or have come there."""
    progress = one.progress
    if not is_at_end(one, state, SEEN):
        progress.left = progress.elsewhere = True
    elif progress.elsewhere and is_at_end(one, state):
        progress.elsewhere = False
        progress.visits += 1


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


def passes_end(one: Published) -> bool:
    """Check whether a motion comes to where it ends before that, from elsewhere: joints that stand there may go on."""
    return _times_at_end(one, one.motion.position) > 1


def rests_to_come(one: Published) -> int:
    """Return how often a motion that comes to rest where it ends more than once will still do so, by how often joints
    were seen to come there; 0 for others. What only passes there may not be seen, but counts if it was."""
    motion = one.motion
    position, velocity, _ = evaluate(motion, instants(motion, STEP, MOST_POINTS))
    rests = _times_at_end(one, position, np.abs(velocity).max(axis=1))
    return max(rests - one.progress.visits, 0) if rests > 1 else 0


def _times_at_end(
    one: Published,
    position: Annotated[Float64, "T n"],
    speed: Annotated[Float64, "T"] | None = None,
) -> int:
    """Return how often positions come from elsewhere to where a motion ends; where speeds are given (rad/s or m/s),
    and rest there."""
    turns = continuous_joints(one.robot, one.message.joint_names)
    off = apart(position - one.motion.position[-1], turns).max(axis=1)
    there = off <= OFF
    if speed is not None:
        there &= speed <= RESTS
    there = there[there | (off > LEAVES)]
    return int(np.sum(there[1:] & ~there[:-1]))
