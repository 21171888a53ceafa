"""Collision check of configurations in float64, on the original shapes, by the judge.

What has no shapes is not checked, and the report says so.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, as_numbers
from kinopt_ros.collision.adjacency import adjacent_pairs
from kinopt_ros.errors import InvalidStateError, shortened
from kinopt_ros.pauses import Pause, go_on
from kinopt_ros.problems.arguments import as_number, check_is_scene
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.srdf_line import disable_collisions
from kinopt_ros.scene.checks import check_fits
from kinopt_ros.scene.scene import Scene
from kinopt_ros.wanted import check_wanted

if TYPE_CHECKING:
    from kinopt_ros.collision.contacts import Clearance, Contact, Placement

SELF_COLLISION, WORLD_COLLISION = "self collision", "world collision"
"""Names of the checks."""
PRINTS_LINES = "`kinopt doctor --collision` prints all lines for an SRDF"


@dataclass(frozen=True, eq=False)
class CollisionReport:
    """Outcome of the check of N configurations."""

    free: Annotated[Bool, "N"]
    """Whether every pair of bodies keeps the clearance."""
    contacts: "tuple[tuple[Contact, ...], ...]"
    """Pairs of every configuration that do not keep it, the deepest first; empty if they were not asked for."""
    unchecked: Mapping[str, str]
    """Links whose shapes, or some of them, could not be had, and why."""


def check_collisions(
    robot: RobotModel,
    scene: Scene,
    q: Annotated[Float64, "N nq"],
    clearance: float = 0.0,
    contacts: bool = True,
    pause: Pause = go_on,
) -> CollisionReport:
    """Check configurations of the whole robot, in the world and with itself.

    Args:
        robot: the robot.
        scene: what is around it, and what it carries.
        q: configurations, finite (rad or m).
        clearance: least distance (m) of bodies that must not touch, besides padding.
        contacts: whether to list the pairs; without, a configuration takes a fraction of the time.
        pause: called before each configuration, and before each pair of shapes that needs a close look.

    Raises:
        InvalidStateError: q is no configurations of this robot.
        InvalidRequestError: the scene is none, or the clearance no number.
        MissingPackageError: coal or numba is not installed.
    """
    clearance = as_number(clearance, "clearance")
    free: list[bool] = []
    found: list[tuple[Contact, ...]] = []
    for placement in _placements(robot, scene, q, pause):
        check_wanted()
        pairs = placement.contacts(clearance) if contacts else ()
        free.append(not pairs if contacts else not placement.touches(clearance))
        found.append(pairs)
    return CollisionReport(np.array(free, dtype=np.bool_), tuple(found), robot.unchecked_links)


def touching_bodies(
    robot: RobotModel, scene: Scene, q: Annotated[Float64, "N nq"]
) -> list[set[tuple[str, str]]]:
    """Return the bodies that touch in each configuration. Errors as in ``check_collisions``."""
    found = []
    for placement in _placements(robot, scene, q):
        check_wanted()
        found.append(placement.touching(0.0))
    return found


def first_in_collision(
    robot: RobotModel,
    scene: Scene,
    q: Annotated[Float64, "N nq"],
    clearance: float = 0.0,
    pause: Pause = go_on,
) -> "tuple[int, tuple[Contact, ...]] | None":
    """Find the first of some configurations in collision, and its contacts, deepest first; None if all are free.

    Arguments and errors as ``check_collisions``.
    """
    for k, placement in enumerate(_placements(robot, scene, q, pause)):
        if placement.touches(clearance):
            return k, placement.contacts(clearance)
    return None


def is_free(
    robot: RobotModel,
    scene: Scene,
    q: Annotated[Float64, "nq"],
    clearance: float = 0.0,
    pause: Pause = go_on,
) -> bool:
    """Check one configuration as ``check_collisions`` does, in the quickest way. Errors as there."""
    return not next(_placements(robot, scene, q[None], pause)).touches(clearance)


def clearance_of(robot: RobotModel, scene: Scene, q: Annotated[Float64, "nq"]) -> "Clearance":
    """Return the two bodies that are nearest to each other in a configuration. Errors as in ``check_collisions``."""
    return next(_placements(robot, scene, [q])).clearance()


@remembered
def not_checked(robot: RobotModel) -> tuple[str, ...]:
    """Return what a collision check leaves out, as an answer names it.

    Pairs that the SRDF disables are left out because it says so, and not named.
    """
    from kinopt_ros.collision.compiler import require_numba

    require_numba()
    from kinopt_ros.collision.pairs import Reason, checked_pairs

    sentences = list(without_shapes(robot))
    if robot.collision.only_seen:
        links = shortened(robot.collision.only_seen)
        sentences.append(f"collisions of links with visual but without collision shapes: {links}")
    elif not robot.collision_shapes and not sentences:
        sentences.append("collisions: the robot's description has no collision shapes")
    guessed = checked_pairs(robot).guessed
    if guessed:
        sentences.append(f"self collision of {_named(guessed)}: {Reason.ALWAYS.value}")
    return tuple(sentences)


def without_shapes(robot: RobotModel) -> tuple[str, ...]:
    """Return which links, or parts of them, cannot be checked as their shapes cannot be had, and why: a sentence for
    each reason. Reads meshes."""
    links: dict[str, list[str]] = {}
    for link, reason in robot.unchecked_links.items():
        links.setdefault(reason, []).append(link)
    return tuple(
        f"collisions of {shortened(some)} are not looked at: {reason}" for reason, some in links.items()
    )


def left_out(robot: RobotModel) -> tuple[str, ...]:
    """Return what a reader of a success must know of links and pairs that the check leaves out: those whose shapes
    cannot be had, and those that only samples exclude."""
    return (*without_shapes(robot), *left_out_by_guess(robot))


@remembered
def left_out_by_guess(robot: RobotModel) -> tuple[str, ...]:
    """Return what a reader of a success must know of pairs of links that only samples exclude from the check.

    Empty if the robot's files leave no doubt.
    """
    from kinopt_ros.collision.compiler import require_numba

    require_numba()
    from kinopt_ros.collision.pairs import checked_pairs

    guessed = checked_pairs(robot).guessed
    if not guessed:
        return ()
    return (
        f"collisions of {_named(guessed)} are not looked at: no SRDF says so, but they touch in nearly every "
        f"sampled state; {PRINTS_LINES} to settle it",
    )


def self_collision_remedy(robot: RobotModel, contacts: "Sequence[Contact]") -> str:
    """Return the end of a sentence that names contacts: what to do if links touch by design.

    Empty if none of the contacts is of two links, or if an SRDF says which pairs may touch and these are not
    neighbours.
    """
    pairs = [(c.a, c.b) for c in contacts if c.a in robot.link_index and c.b in robot.link_index]
    if robot.disabled_collisions:
        neighbours = {frozenset(pair) for pair in adjacent_pairs(robot, math.inf)}
        pairs = [pair for pair in pairs if frozenset(pair) in neighbours]
    if not pairs:
        return ""
    first, second = pairs[0]
    line = disable_collisions(first, second, "Default")
    may = f"{first!r} and {second!r} touch by design, or their shapes are too coarse"
    if robot.disabled_collisions:
        return f". If {may}, the SRDF lacks {line}"
    return f". No SRDF says which links may touch: if {may}, add {line}; {PRINTS_LINES} of this robot"


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    return shortened([f"{a} and {b}" for a, b in pairs])


def _placements(
    robot: RobotModel,
    scene: Scene,
    q: Annotated[Float64, "N nq"] | Sequence[Annotated[Float64, "nq"]],
    pause: Pause = go_on,
) -> "Iterator[Placement]":
    check_is_scene(scene)
    check_fits(scene, robot)
    rows = np.ascontiguousarray(as_numbers(q, "q", InvalidStateError))
    # Compiled code does not look where it reads.
    if rows.ndim != 2 or rows.shape[1] != robot.nq:
        raise InvalidStateError(
            f"q has shape {np.shape(q)}; allowed is (N, {robot.nq}) of robot {robot.name!r}"
        )
    if not np.isfinite(rows).all():
        raise InvalidStateError("q contains a value that is not finite")

    from kinopt_ros.collision.compiler import require_numba

    require_numba()
    from kinopt_ros.collision.contacts import Placement
    from kinopt_ros.collision.packed_bodies import packed_bodies_of

    packed = packed_bodies_of(robot, scene)
    for row in rows:
        pause()
        yield Placement(packed, row, pause)
