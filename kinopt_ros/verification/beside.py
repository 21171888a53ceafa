"""Float64 check of two motions of different joints that run beside each other, whatever their timing.

Controllers begin late, are slowed down, and brake: where one robot arm is when the other is somewhere cannot be relied
on. So every configuration of the one way is checked against every configuration of the other: neither a delay nor a
stop on its way brings the two together.

The way of the one is divided. In the middle of a part the whole way of the other is swept (``sweep.py``), with as much
clearance besides as the part can bring bodies nearer, whatever the other one does; where that is not enough the part is
halved. What cannot be shown to be free counts as a contact.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.pauses import Pause, go_on
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.bounds import halve
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.sweep import curves_of, first_of, motions_of

if TYPE_CHECKING:
    from kinopt_ros.collision.packed_bodies import PackedBodies

RESOLUTION = 1e-3
"""Movement of bodies below which parts are not divided further, m."""
MOST_LOOKS = 2000
"""Parts that are looked at until the rest counts as a contact: the robot waits for the answer."""
_FEW = 64
"""Places in doubt by which the pairs that matter are told from the others."""


@dataclass(frozen=True, eq=False)
class Way:
    """A motion of some variables of a robot."""

    variables: Annotated[Int64, "n"]
    trajectory: JointTrajectory


@dataclass(frozen=True)
class Meeting:
    """Two bodies that two motions may bring too near to each other."""

    a: str
    b: str
    distance: float
    """Distance of the two (m) in the nearest configuration that was looked at, paddings subtracted."""


def first_meeting(
    robot: RobotModel,
    scene: Scene,
    state: Annotated[Float64, "nq"],
    one: Way,
    other: Way,
    clearance: float = 0.0,
    pause: Pause = go_on,
) -> Meeting | None:
    """Return bodies that two motions may bring together, or None if they cannot, whenever each begins and stops.

    Only bodies whose distance depends on both motions are looked at: each motion has to be free by itself.

    Args:
        robot: the robot.
        scene: what is around it, and what it carries.
        state: values of the variables that neither moves, rad or m.
        one: a motion.
        other: a motion of other variables.
        clearance: least distance (m) of bodies that must not touch, besides padding.
        pause: called between pieces of work.

    Raises:
        ValueError: both move a variable.
        InvalidRequestError, MissingPackageError: as ``first_contact``.
    """
    from kinopt_ros.collision.judge import IN_DOUBT

    if np.intersect1d(one.variables, other.variables).size:
        raise ValueError("both motions move a variable")
    packed = motions_of(robot, scene, state, one.variables).packed
    levers = _levers(packed, state, (one, other))
    chosen = np.flatnonzero(levers[:, one.variables].any(axis=1) & levers[:, other.variables].any(axis=1))
    control, _ = curves_of(one.trajectory)
    curves, times = curves_of(other.trajectory)
    waiting = [(control, chosen)]
    looks = 0
    while waiting:
        part, pairs = waiting.pop()
        if not len(pairs):
            continue
        pause()
        looks += 1
        left, right = _halves(part)
        middle = right[0, 0]
        change = np.abs(part - middle).max(axis=(0, 1))
        nearer = float((levers[pairs][:, one.variables] @ change).max())
        at = state.copy()
        at[one.variables] = middle
        motions = motions_of(robot, scene, at, other.variables, pause)
        enough = clearance + IN_DOUBT
        doubts, _ = motions.in_doubt(curves, times, enough + nearer, pairs, _FEW, len(curves))
        if not doubts:
            continue
        if len(doubts) < _FEW:
            pairs = np.unique([doubt.pair for doubt in doubts])
        if nearer <= RESOLUTION or looks >= MOST_LOOKS:
            return _meeting(packed, motions.middle(doubts[0]), doubts[0].pair)
        # Where they do meet, that is found at once.
        meeting, _ = motions.in_doubt(curves, times, enough, pairs, _FEW, len(curves))
        contact = first_of(motions, meeting, clearance, when=False)
        if contact is not None:
            return Meeting(contact.a, contact.b, contact.distance)
        waiting += [(right, pairs), (left, pairs)]
    return None


def _meeting(packed: "PackedBodies", q: Annotated[Float64, "nq"], pair: int) -> Meeting:
    from kinopt_ros.collision.contacts import Placement

    return Meeting(*packed.names(pair), Placement(packed, q).distance_of(pair))


def _halves(
    part: Annotated[Float64, "K d+1 n"],
) -> tuple[Annotated[Float64, "J d+1 n"], Annotated[Float64, "I d+1 n"]]:
    """Divide a sequence of Bezier curves in two: between curves, or the only one."""
    if len(part) > 1:
        return part[: len(part) // 2], part[len(part) // 2 :]
    left, right = halve(part[0])
    return left[None], right[None]


def _levers(
    packed: "PackedBodies", state: Annotated[Float64, "nq"], ways: tuple[Way, ...]
) -> Annotated[Float64, "P nq"]:
    """Return how far each variable can move the one body of each pair against the other, at most: m per rad, or m/m.

    They hold wherever the variables are on the ways: a point is no farther from an axis than all the links between
    are long. Zeros are for variables that do not move the two against each other.
    """
    from kinopt_ros.collision.kernels.tree import ROTATION, TRANSLATION

    tree, shapes = packed.tree, packed.shapes
    farthest = np.abs(state)
    for way in ways:
        hull = np.abs(curves_of(way.trajectory)[0]).max(axis=(0, 1))
        farthest[way.variables] = np.maximum(farthest[way.variables], hull)
    own = np.zeros((len(shapes.numbers), len(tree.motion)))
    """Levers of the joints above each shape."""
    for s, (link, *_) in enumerate(shapes.numbers.tolist()):
        length = float(np.linalg.norm(shapes.T_link_box[s, :3, 3]) + shapes.reach[s])
        while link >= 0:
            for k in range(tree.last[link] - 1, tree.first[link] - 1, -1):
                size = abs(tree.multiplier[k])
                if tree.motion[k] == ROTATION:
                    own[s, k] = size * length
                elif tree.motion[k] == TRANSLATION:
                    own[s, k] = size
                    length += size * farthest[tree.variable[k]] + abs(tree.offset[k])
            length += float(np.linalg.norm(tree.T_fixed[link][:3, 3]))
            link = tree.parent[link]
    a, b = packed.pairs.numbers[:, 0], packed.pairs.numbers[:, 1]
    # What moves both does not move them against each other.
    between = np.where((own[a] > 0.0) != (own[b] > 0.0), own[a] + own[b], 0.0)
    levers = np.zeros((len(a), len(state)))
    for k, variable in enumerate(tree.variable.tolist()):
        levers[:, variable] += between[:, k]
    return levers
