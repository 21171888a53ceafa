"""Float64 check of a whole motion for collisions: between samples, too.

What is checked is what a joint_trajectory_controller interpolates. A part of it is free if, in its middle, every
pair of shapes is farther apart than it can come nearer within the part; else it is halved. So nothing is passed
through, however thin. (Conservative advancement: B. Mirtich, J. Canny, "Impulse-based simulation of rigid bodies",
1995.) Compiled bounds (``collision/kernels/sweep.py``) clear nearly all; what they cannot is left to the judge.
"""

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError, InvalidStateError
from kinopt_ros.pauses import Pause, go_on
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.bounds import halve
from kinopt_ros.trajectory.interpolation import control_points
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

if TYPE_CHECKING:
    from kinopt_ros.collision.motions import Motions, Part

FIRST = 1e-3
"""Accuracy of the time of the first contact, s."""
AHEAD = 48
"""Most curves after the first one in doubt that are checked together with it."""
LOOSE = 5e-3
"""Accuracy of the least distance along a motion, m, or a fifth of that distance if this is more."""


@dataclass(frozen=True)
class WayContact:
    """First place at which a motion comes too near to something."""

    a: str
    b: str
    """Links or objects."""
    distance: float
    """Distance of the two bodies, paddings subtracted, m; negative in penetration."""
    time: float
    """Time from the start of the motion, s."""


def first_contact(
    robot: RobotModel,
    scene: Scene,
    state: Annotated[Float64, "nq"],
    variables: Annotated[Int64, "n"],
    trajectory: JointTrajectory,
    clearance: float = 0.0,
    *,
    patience: int | None = None,
    pause: Pause = go_on,
) -> WayContact | None:
    """Return the first contact of a motion, or None if all of it is free.

    Args:
        robot: the robot.
        scene: what is around it, and what it carries.
        state: values of the variables that do not move.
        variables: those that the trajectory's joints are, in its order; none of a quaternion, whose numbers are not
            interpolated one by one.
        trajectory: of finite numbers and increasing times.
        clearance: least distance (m) of bodies that must not touch, besides padding.
        patience: for those who cannot wait: any contact will do, not the first one, and what the judge cannot clear in
            so many looks, at up to AHEAD curves of the motion, counts as one. None: as many as it takes.
        pause: called between pieces of work.

    Raises:
        InvalidRequestError: a variable is part of a quaternion.
        MissingPackageError: coal is not installed.
    """
    from kinopt_ros.collision.judge import IN_DOUBT

    motions = motions_of(robot, scene, state, variables, pause)
    # Where a motion starts is looked at by itself: there it may be in contact.
    start = np.array(trajectory.position[:1, None], dtype=np.float64)
    parts, _ = motions.in_doubt(start, np.zeros(2), clearance + IN_DOUBT)
    found = first_of(motions, parts, clearance, patience is None)
    if found is not None or len(trajectory.time) < 2:
        return found
    control, times = curves_of(trajectory)
    ahead = 0  # what is in doubt mostly goes on to be, if it is no contact
    while len(control):
        pause()
        parts, done = motions.in_doubt(control, times, clearance + IN_DOUBT, ahead=ahead)
        ahead = min(2 * ahead + 1, AHEAD)
        if parts and (found := first_of(motions, parts, clearance, patience is None, patience)) is not None:
            return found
        control, times = control[done:], times[done:]
    return None


def free_segment(
    robot: RobotModel,
    scene: Scene,
    q0: Annotated[Float64, "nq"],
    q1: Annotated[Float64, "nq"],
    clearance: float = 0.0,
    exact: bool = True,
    pause: Pause = go_on,
) -> bool:
    """Check whether the straight line between two configurations is free of collisions, its ends included.

    Args:
        robot: the robot.
        scene: what is around it, and what it carries.
        q0: configuration of the whole robot, finite (rad or m).
        q1: another one; of quaternions it must have the same.
        clearance: least distance (m) of bodies that must not touch, besides padding.
        exact: whether the judge decides where bounds cannot; without, such lines count as not free, which is quicker
            and makes a difference near meshes, clouds and ground.
        pause: called between pieces of work, however long the line is.

    Raises:
        InvalidRequestError: a quaternion differs.
        MissingPackageError: coal or numba is not installed.
    """
    from kinopt_ros.collision.judge import IN_DOUBT

    variables = np.flatnonzero(q0 != q1)
    if not _slides_or_turns(robot)[variables].all():
        raise InvalidRequestError(
            "between configurations with different quaternions there is no straight line"
        )
    motions = motions_of(robot, scene, q0, variables, pause)
    control, enough = np.stack([q0[variables], q1[variables]]), clearance + IN_DOUBT
    line = control[None], np.array([0.0, 1.0]), enough
    parts, _ = motions.in_doubt(*line, most=1)
    if not parts or not exact:
        return not parts
    # The first part is enough to say no, mostly.
    if _is_contact(motions, parts[0], clearance)[0]:
        return False
    return first_of(motions, motions.in_doubt(*line)[0], clearance, when=False) is None


def least_clearance(
    robot: RobotModel,
    scene: Scene,
    state: Annotated[Float64, "nq"],
    variables: Annotated[Int64, "n"],
    trajectory: JointTrajectory,
    most: float = 0.1,
    pause: Pause = go_on,
) -> float:
    """A lower bound (m) of the least distance of any two bodies along a motion, paddings subtracted; ``most`` if it
    is not less. Within LOOSE, or a fifth, of the truth for convex shapes; for others it may be less, down to 0,
    which says nothing.

    Arguments and errors as ``first_contact``; the motion is taken to be free.
    """
    least = motions_of(robot, scene, state, variables, pause).least_distance(
        *curves_of(trajectory), most, LOOSE
    )
    return max(least, 0.0)


def curves_of(trajectory: JointTrajectory) -> tuple[Annotated[Float64, "K 6 n"], Annotated[Float64, "K+1"]]:
    """Return control points and times of a trajectory's segments; one point is one segment, too."""
    if len(trajectory.time) < 2:
        return np.repeat(trajectory.position[:1, None], 6, axis=1), np.zeros(2)
    control = np.array(control_points(trajectory).position.swapaxes(0, 1), order="C")
    return control, np.array(trajectory.time, dtype=np.float64)


def motions_of(
    robot: RobotModel, scene: Scene, state: Float64, variables: Int64, pause: Pause = go_on
) -> "Motions":
    from kinopt_ros.collision.compiler import require_numba

    require_numba()
    if state.shape != (robot.nq,):  # compiled code does not look where it reads
        raise InvalidStateError(
            f"a state has shape {state.shape}; allowed is ({robot.nq},) of robot {robot.name!r}"
        )
    if robot.floating_joints and not _slides_or_turns(robot)[variables].all():
        raise InvalidRequestError(
            "a motion moves numbers of a quaternion one by one; between its points they are no rotation"
        )
    from kinopt_ros.collision.motions import Motions
    from kinopt_ros.collision.packed_bodies import packed_bodies_of

    return Motions(
        packed_bodies_of(robot, scene),
        np.array(state, dtype=np.float64),
        np.array(variables, dtype=np.int64),
        pause,
    )


@remembered
def _slides_or_turns(robot: RobotModel) -> Annotated[np.ndarray, "nq"]:
    """Return which variables are no part of a quaternion."""
    found = np.ones(robot.nq, dtype=np.bool_)
    for joint in robot.floating_joints:
        found[joint.first_variable + 3 : joint.first_variable + 7] = False
    return found


def _is_contact(motions: "Motions", part: "Part", clearance: float) -> tuple[bool, float]:
    """Return whether a pair is in contact in the middle of a part, or cannot be told from it; and its exact distance
    there."""
    from kinopt_ros.collision.contacts import Placement
    from kinopt_ros.collision.judge import IN_DOUBT
    from kinopt_ros.collision.motions import RESOLUTION

    placement = Placement(motions.packed, motions.middle(part))
    if placement.pair_touches(part.pair, clearance):
        return True, 0.0
    distance = placement.distance_of(part.pair)
    # As in configurations, what coal may take for a gap counts as touching.
    left = distance - clearance - IN_DOUBT
    return left <= 0.0 or (part.nearer < RESOLUTION and left <= part.nearer), distance


def first_of(
    motions: "Motions",
    parts: "list[Part]",
    clearance: float,
    when: bool = True,
    patience: int | None = None,
) -> WayContact | None:
    """Return the first contact in some parts of a motion, or any one if it does not matter when.

    What is not cleared when patience is at its end counts as one.
    """
    from kinopt_ros.collision.contacts import Placement
    from kinopt_ros.collision.judge import IN_DOUBT

    enough = clearance + IN_DOUBT
    waiting = [(part.begin, number, part) for number, part in enumerate(parts)]
    heapq.heapify(waiting)
    number = len(waiting)
    found: Part | None = None
    first = np.inf
    looks = 0
    # Until when each pair is known to be free, and by how much (m) it is farther apart than enough then.
    known: dict[int, tuple[float, float]] = {}
    while waiting:
        motions.pause()
        begin, _, part = heapq.heappop(waiting)
        if begin >= first:
            break
        until, left_over = known.get(part.pair, (-np.inf, 0.0))
        # Within a part the distance changes by no more than twice what it can differ by from that in the middle.
        if begin <= until and left_over > 2.0 * part.nearer:
            known[part.pair] = part.end, left_over - 2.0 * part.nearer
            continue
        looks += 1
        time = 0.5 * (begin + part.end)
        left, right = halve(part.control)
        halves: list[tuple[Float64, float, float]] = []
        if time >= first:
            halves = [(left, begin, time)]
        else:
            touching, distance = _is_contact(motions, part, clearance)
            if touching or (patience is not None and looks >= patience):
                found, first = part, time
                if not when:
                    break
                # What follows does not matter any more; there may be something before.
                halves = [(left, begin, time)] if time - begin > FIRST else []
            elif distance - enough > part.nearer:
                known[part.pair] = part.end, distance - enough - part.nearer
            else:
                halves = [(left, begin, time), (right, time, part.end)]
        for points, start, end in halves:
            ends, pair = np.array([start, end]), np.array([part.pair])
            for smaller in motions.in_doubt(points[None], ends, enough, pair)[0]:
                heapq.heappush(waiting, (smaller.begin, number, smaller))
                number += 1
    if found is None:
        return None
    distance = Placement(motions.packed, motions.middle(found)).distance_of(found.pair)
    return WayContact(*motions.packed.names(found.pair), distance, first)
