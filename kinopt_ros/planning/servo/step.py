"""Planning of servo's next motion: some way towards a wanted velocity, then to rest, verified as a whole."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.planning.servo.velocity import Wanted
from kinopt_ros.status import Status
from kinopt_ros.trajectory.braking import MotionState, Piece, piece_towards, pieces_to_rest
from kinopt_ros.verification.verify import VerifiedMotion

RECOVERY = 1.25
"""Factor by which the part of the wanted velocity grows, at most, from one period to the next."""
LEAST_PART = 1.0 / 64.0
"""Smallest share of a velocity that is tried first; smaller ones are tried only after others were refused."""
NOTHING = 1e-9
"""Velocity below which it counts as none, rad/s or m/s: rounding leaves so much."""

Wish: TypeAlias = Callable[[MotionState, Annotated[Float64, "nq"], int], Wanted]
"""Function that returns what is wanted in a state of the joints, a configuration of the whole robot, at a time (ns)."""


@dataclass(frozen=True, eq=False)
class Step:
    """Outcome of one period."""

    commanded: Commanded
    """The motion that holds from now on: a new one, or the one before."""
    motion: VerifiedMotion | None
    """The new one with its check; None if there is none to send."""
    wanted: Wanted | None
    part: float
    """Share of the wanted velocity that is commanded, in [0, 1]."""
    status: Status = Status.SUCCESS
    sentence: str = ""
    brakes: bool = False
    """Whether the new one is a stop."""
    missing: bool = False
    """Whether a brake is needed that cannot be made yet."""


def servo_step(
    setup: ServoSetup,
    last: Commanded,
    now: int,
    q: Annotated[Float64, "nq"],
    wish: Wish,
    part: float = 1.0,
    takes: int = 0,
    way: int = 0,
) -> Step:
    """Make the motion of one period.

    Where it leaves the last one it goes towards the wanted velocity for two periods, for more if steps take long, and
    then to rest. If that fails its check, smaller parts of the velocity are tried. If they fail, too, or no velocity is
    wanted, there is nothing to send: the end of the last motion brings the robot to rest, and that was verified when it
    was sent.

    Args:
        setup: the robot.
        last: the motion that was sent last.
        now: ns of the clock.
        q: the whole robot; values of the joints that servo moves do not matter.
        wish: what is wanted.
        part: share of the wanted velocity that the step before could do. It grows slowly from one step to the next, so
            that the robot gets slower in front of an obstacle instead of hopping.
        takes: ns that a step may take until its motion is sent.
        way: ns that the motion is on its way then.

    Raises:
        KinoptError: as ``wish`` raises it.
    """
    # Motions leave each other at the ends of periods, however late the clock calls: what is nearer cannot arrive in
    # time, and what is farther is late for what is wanted.
    least = setup.period // 4
    usual = max(setup.period, way + max(least, 2 * takes))
    fits = way + max(least, takes) <= last.turn - now <= usual + setup.period // 2
    now, leave = last.left_at(now, last.turn - now if fits else usual, way)
    # No brake is to be felt when the next motion is a period late.
    periods = 1 + -(-usual // setup.period)
    state = last.at(leave)
    wanted = wish(state, setup.whole(q, state.position), leave)
    if wanted.reached:
        # A robot that only passes by has not reached it: what counts is where the last motion ends.
        rest = last.trajectory.position[-1]
        wanted = replace(wanted, reached=wish(last.at(last.end), setup.whole(q, rest), leave).reached)
    if wanted.reached or (np.abs(wanted.velocity) < NOTHING).all():
        hindered = bool(wanted.hindrance) and not wanted.reached
        status = Status.SERVO_INFEASIBLE if hindered else Status.SUCCESS
        return Step(last, None, wanted, 1.0, status, wanted.hindrance if hindered else "")
    first = min(1.0, RECOVERY * max(part, LEAST_PART))
    said, status = "", Status.SERVO_INFEASIBLE
    for smaller in (first, first / 2.0, first / 4.0):
        pieces = _pieces(setup, state, smaller, wanted, periods)
        candidate = last.going_on(now, leave, pieces)
        motion = setup.check(candidate.trajectory, last.at(candidate.start), q)
        if motion.report.ok:
            slower = f"slowed down to {smaller:.2g} of what is wanted" if smaller < 1.0 else ""
            slower = f"{slower}: {said}" if slower and said else slower
            sentence = "; ".join(part for part in (wanted.hindrance, slower) if part)
            return Step(candidate, motion, wanted, smaller, sentence=sentence)
        said = said or motion.report.violations[0].message
        if motion.contact is not None and motion.contact.time == 0.0:
            status = Status.START_STATE_IN_COLLISION
            break
    return Step(
        last, None, wanted, 0.0, status, f"there is no verified motion towards what is wanted: {said}"
    )


def _pieces(setup: ServoSetup, state: MotionState, part: float, wanted: Wanted, periods: int) -> list[Piece]:
    limits = setup.planning
    pieces: list[Piece] = []
    for _ in range(periods):
        pieces.append(piece_towards(state, part * wanted.velocity, limits, setup.period))
        state = pieces[-1][1]
    return [*pieces, *pieces_to_rest(state, limits)]
