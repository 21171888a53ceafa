"""Motions of other joints that run already: a motion may begin beside them where the two cannot meet.

A controller may be late, slowed down or stopped, so what is left of a motion is taken from where its joints are
measured, and checked against the other one whatever their timing (``verification/beside.py``).
"""

from collections.abc import Iterable
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import StartStateError, quoted
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.ros.motion.brakes import commanded_of
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.instants import instants
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory
from kinopt_ros.verification.beside import Way, first_meeting

OFF = 0.01
"""How far joints may be measured from the way of their motion, rad or m."""
NEAR, LEAST_NEAR = 0.05, 1e-3
"""Share of a joint's range in which it counts as at a place, and the least such way, rad or m; OFF at most."""
STILL, LEAST_STILL, MOST_STILL = 0.02, 5e-4, 5e-3
"""Share of a joint's range by which it may seem to move without having done so, and the least and largest such way, rad
or m: encoders of grippers are coarse."""
STEP = 0.01
"""Time between two points of a way that are compared with what is measured, s; longer in long motions."""
MOST_POINTS = 20_000
"""Points of a way that are compared, evenly in time; about as many again where it is quick."""


def variables_of(robot: RobotModel, motions: Iterable[Published]) -> list[int]:
    """Return the variables that some motions move."""
    return [robot.variable_index[name] for one in motions for name in one.message.joint_names]


def without(motions: Iterable[Published], others: Iterable[Published]) -> list[Published]:
    """Return those of some motions that are none of others."""
    left_out = {id(one) for one in others}
    return [one for one in motions if id(one) not in left_out]


def check_beside(
    robot: RobotModel,
    scene: Scene,
    state: RobotState,
    q: Annotated[Float64, "nq"],
    motion: JointTrajectory,
    running: Iterable[Published],
    clearance: float,
    timeout: float,
) -> None:
    """Check that a motion cannot meet others that run, whenever each of them begins and stops.

    Args:
        robot: the robot.
        scene: what is around it.
        state: as measured.
        q: values of the joints that none of the motions moves, rad or m.
        motion: of joints that none of the others moves.
        running: motions of this node that are not over.
        clearance: least distance (m) of bodies that must not touch.
        timeout: age from which on joint states are too old, s.

    Raises:
        StartStateError: they may meet, or joints are measured where their motion does not lead.
        InvalidStateError, StaleStateError: nobody says where these joints are.
    """
    way = Way(np.array([robot.variable_index[name] for name in motion.joint_names]), motion)
    for one in running:
        variables = variables_of(robot, [one])
        state.require_known(variables, robot)
        state.require_fresh(variables, robot, timeout)
        left = Way(np.array(variables), left_of(one, state))
        meeting = first_meeting(robot, scene, q, left, way, clearance)
        if meeting is not None:
            names = ", ".join(map(quoted, one.message.joint_names[:8]))
            raise StartStateError(
                f"a motion that this node has sent before moves {names}, and whatever their timing the two must not "
                f"meet, but {meeting.a!r} may come within {max(meeting.distance, 0.0):.4f} m of {meeting.b!r}. Wait "
                "until that motion is over, stop it, or ask for one motion of all these joints"
            )


def left_of(one: Published, state: RobotState) -> JointTrajectory:
    """Return what is left of a motion from where its joints are measured; StartStateError if they are elsewhere."""
    times, off, there = _compared(one, state)
    if not there.any():
        row = int(np.argmin(off.max(axis=1)))
        k = int(np.argmax(off[row]))
        raise StartStateError(
            f"{one.message.joint_names[k]!r} is {off[row, k]:.3g} from the motion that this node has sent before, "
            f"which is not over; allowed is {OFF:g}: nobody knows where it goes. Wait until it stands"
        )
    begin = times[max(int(np.argmax(there)) - 1, 0)]
    return commanded_of(one).rest(one.start + round(begin * NANOSECONDS_PER_SECOND))


def begun_by(one: Published, state: RobotState) -> int | None:
    """Return the earliest time (ns of the node's clock) at which a motion leads where its joints are measured, or
    nearest to that; None if that is not known.

    Its controller may be behind by more than joint states are: some slow motions down.
    """
    variables = variables_of(one.robot, [one])
    if not state.known[variables].all():
        return None
    times, off, there = _compared(one, state)
    row = int(np.argmax(there) if there.any() else np.argmin(off.max(axis=1)))
    return one.start + round(float(times[max(row - 1, 0)]) * NANOSECONDS_PER_SECOND)


def pace_until(one: Published, state: RobotState, then: int) -> float:
    """Return which share of its pace a motion was done at until then (ns of the node's clock), by where its joints are
    measured: 1 at most, and if that is not known."""
    begun = begun_by(one, state)
    return 1.0 if begun is None else min((begun - one.start) / max(then - one.start, 1), 1.0)


def is_at_end(one: Published, state: RobotState, within: float = OFF) -> bool:
    """Check whether the joints of a motion are measured where it ends, within rad or m, or nobody knows where they
    are."""
    variables = variables_of(one.robot, [one])
    if not state.known[variables].all():
        return True
    return bool((away(one, state, np.array(one.message.points[-1].positions)) <= within).all())


def is_left_in(one: Published, state: RobotState, begun: bool = False) -> bool:
    """Check whether joints may be left on the way of their motion, if it should be over.

    Args:
        one: the motion.
        state: as measured.
        begun: whether joints that stand where it begins do not count, as those of a robot that does nothing.
    """
    if is_at_end(one, state):
        return False
    if begun and is_at_begin(one, state):
        return False
    _, _, there = _compared(one, state)
    return bool(there.any())


def is_at_begin(one: Published, state: RobotState) -> bool:
    """Check whether the joints of a motion are measured where it begins."""
    return bool((away(one, state, one.motion.position[0]) <= _near(one)).all())


def moved_by(one: Published) -> Annotated[Bool, "n"]:
    """Return which joints a motion moves by more than they may be beside a place."""
    moves: Bool = np.ptp(one.motion.position, axis=0) > _near(one)
    return moves


def sides_of_begin(one: Published) -> Annotated[Float64, "T n"]:
    """Return on which side of where it begins a motion has its joints at each of its points: -1, 1, or 0 if they are
    there."""
    off = one.motion.position - one.motion.position[0]
    return np.asarray(np.where(np.abs(off) > _near(one), np.sign(off), 0.0))


def have_moved(one: Published, state: RobotState, q: Annotated[Float64, "n"]) -> Annotated[Bool, "n"]:
    """Return which joints of a motion are measured elsewhere than they were when it was sent (q, rad or m)."""
    variables, limits = variables_of(one.robot, [one]), one.robot.limits
    still = np.clip(STILL * (limits.upper - limits.lower)[variables], LEAST_STILL, MOST_STILL)
    moved: Bool = away(one, state, q) > still
    return moved


def stay_off_end(one: Published, state: RobotState, q: Annotated[Float64, "n"]) -> Annotated[Bool, "n"]:
    """Return which joints that a motion moves have not moved, though it ends elsewhere (q as for ``have_moved``)."""
    off = away(one, state, np.array(one.message.points[-1].positions)) > _near(one)
    stay: Bool = moved_by(one) & off & ~have_moved(one, state, q)
    return stay


def stays_arrived(one: Published, state: RobotState) -> bool:
    """Check whether joints are measured where they were when their published motion was over: that may be beside its
    end, where fingers hold something."""
    arrived = one.progress.arrived
    return arrived is not None and bool((away(one, state, arrived) <= _near(one)).all())


def _near(one: Published) -> Annotated[Float64, "n"]:
    """Return how far joints may be from a place to count as there, rad or m: ways of fingers are short."""
    variables, limits = variables_of(one.robot, [one]), one.robot.limits
    return np.clip(NEAR * (limits.upper - limits.lower)[variables], LEAST_NEAR, OFF)


def _compared(
    one: Published, state: RobotState
) -> tuple[Annotated[Float64, "T"], Annotated[Float64, "T n"], Annotated[Bool, "T"]]:
    """Return times of a motion (s from its begin), how far its joints are measured from there (rad or m), and whether
    they may be there."""
    whole = one.motion
    times = instants(whole, STEP, MOST_POINTS)
    position, velocity, _ = evaluate(whole, times)
    off = away(one, state, position)
    steps = np.diff(times, prepend=0.0, append=times[-1])
    longest: Annotated[Float64, "T 1"] = np.maximum(steps[:-1], steps[1:])[:, None]
    there: Annotated[Bool, "T"] = np.all(off <= OFF + longest * np.abs(velocity), axis=1)
    return times, off, there


def away(
    one: Published, state: RobotState, position: Annotated[Float64, "... n"]
) -> Annotated[Float64, "... n"]:
    """Return how far the joints of a motion are measured from some positions of them, rad or m."""
    off = state.q[variables_of(one.robot, [one])] - position
    # Drivers may measure whole turns less than controllers command.
    turns = continuous_joints(one.robot, one.message.joint_names)
    return apart(off, turns)
