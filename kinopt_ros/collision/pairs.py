"""Choice of the pairs of a robot's links that are checked for collisions with one another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from kinopt_ros.collision.adjacency import LinkPair, adjacent_pairs, link_pairs, rigid_pairs
from kinopt_ros.collision.pair_samples import sample_pairs
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel

ALWAYS = 0.95
"""A pair that collides in at least this part of the samples is taken to touch by design, as MoveIt's setup assistant
takes it. Whatever collides less often
is checked, also where the robot begins: two arms may cross at mid-limits, which nobody chose."""


class Reason(Enum):
    """Why a pair is not checked."""

    DISABLED = "disabled in the SRDF"
    RIGID = "no joint between them moves"
    ADJACENT = "connected by a joint"
    ALWAYS = "in collision in nearly every state"


@dataclass(frozen=True)
class LinkPairs:
    """All pairs of links that have shapes, checked or not. Links come in the order of ``robot.link_names``."""

    checked: tuple[LinkPair, ...]
    excluded: Mapping[LinkPair, Reason]
    never: frozenset[LinkPair] = field(default_factory=frozenset)
    """Checked pairs that never collided in the samples: a search may skip them, a verification must not."""

    @property
    def guessed(self) -> tuple[LinkPair, ...]:
        """Excluded pairs for which only the samples speak."""
        return tuple(pair for pair, reason in self.excluded.items() if reason is Reason.ALWAYS)


@remembered
def checked_pairs(robot: RobotModel) -> LinkPairs:
    """Return the pairs to check: all but those that the SRDF disables and those that touch by design.

    An SRDF that disables pairs is taken at its word. Without one, configurations are sampled (the same ones for the
    same robot), and pairs that are always in collision are left out, too: a guess, which answers name. Needs coal then.
    A robot that is like another one has the pairs of that one.
    """
    alike = None if robot.alike is None else robot.alike()
    if alike is not None:
        return checked_pairs(alike)
    pairs = link_pairs(robot)
    excluded: dict[LinkPair, Reason] = {}
    rigid, adjacent = rigid_pairs(robot), adjacent_pairs(robot)
    for pair in pairs:
        if frozenset(pair) in robot.disabled_collisions:
            excluded[pair] = Reason.DISABLED
        elif pair in rigid:
            excluded[pair] = Reason.RIGID
        elif pair in adjacent:
            excluded[pair] = Reason.ADJACENT
    left = tuple(pair for pair in pairs if pair not in excluded)
    if robot.disabled_collisions or not left:
        return LinkPairs(left, excluded)
    samples = sample_pairs(robot, left)
    excluded.update({pair: Reason.ALWAYS for pair, share in samples.share.items() if share >= ALWAYS})
    return LinkPairs(
        checked=tuple(pair for pair in left if pair not in excluded),
        excluded=excluded,
        never=frozenset(
            pair for pair in left if samples.share[pair] == 0.0 and pair not in samples.at_default
        ),
    )
