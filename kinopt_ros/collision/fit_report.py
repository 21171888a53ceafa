"""Report of how well a robot's spheres fit its shapes, and which pairs of links look suspicious."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kinopt_ros.collision.adjacency import adjacent_pairs, link_pairs, rigid_pairs
from kinopt_ros.collision.obstacles import nearest, pack
from kinopt_ros.collision.pair_samples import SAMPLES, PairSamples, sample_pairs
from kinopt_ros.collision.pairs import ALWAYS, LinkPairs, Reason, checked_pairs
from kinopt_ros.collision.spheres import RobotSpheres
from kinopt_ros.geometry.surfaces import surface_points
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.srdf_line import disable_collisions

_POINTS = 20_000
"""Number of random points by which volumes are compared."""
OFTEN = 0.1
"""Share of the configurations from which on a checked pair that collides may be in the way of most requests."""
_SAMPLED_PAIRS = 400_000
"""Most configurations times pairs that are sampled: robots with many links get fewer configurations."""


@dataclass(frozen=True)
class LinkFit:
    """One link that has shapes, or should have some."""

    link: str
    shapes: str
    """The link's shapes in words, such as "2 cylinders, 1 mesh"."""
    source: str
    """Where its spheres come from: "fit", "srdf" or "file"; empty if it has none."""
    spheres: int
    volume_ratio: float | None
    """Volume of the union of its spheres over that of its shapes; None if it has none of either."""
    uncovered: int
    """Points on the surface of its shapes, of ``points``, that are in no sphere."""
    points: int
    unchecked: str
    """Why not all of its shapes could be read; empty if they could."""
    hull: str
    """Which mesh is no closed solid, so that its convex hull counts; empty if none."""


@dataclass(frozen=True)
class PairFinding:
    """A pair of links worth a look."""

    first: str
    second: str
    what: str
    share: float
    """Share of the sampled configurations in which the pair collides."""


@dataclass(frozen=True)
class FitReport:
    """Findings about a robot's collision model."""

    links: tuple[LinkFit, ...]
    checked: int
    excluded: tuple[tuple[str, int], ...]
    """Reasons why pairs are not checked, and the number of pairs of each."""
    suspicious: tuple[PairFinding, ...]
    samples: int
    srdf: tuple[str, ...]
    """Lines for an SRDF of a robot that has none: pairs that cannot be otherwise, then, as comments, those that
    somebody must decide. None for a robot whose SRDF disables pairs."""


def report_fit(robot: RobotModel, spheres: RobotSpheres) -> FitReport:
    """Compare spheres and shapes by random points, and pairs by sampled configurations. Needs coal.

    Args:
        robot: the robot.
        spheres: of this robot.
    """
    pairs = checked_pairs(robot)
    by_design = rigid_pairs(robot) | adjacent_pairs(robot)
    asked = tuple(pair for pair in link_pairs(robot) if pair not in by_design)
    samples = max(min(SAMPLES, _SAMPLED_PAIRS // max(len(asked), 1)), 100)
    found = sample_pairs(robot, asked, samples)
    names = [
        name for name in robot.link_names if name in robot.collision_shapes or name in robot.unchecked_links
    ]
    return FitReport(
        links=tuple(_link(robot, spheres, name) for name in names),
        checked=len(pairs.checked),
        excluded=tuple((reason.value, count) for reason, count in Counter(pairs.excluded.values()).items()),
        suspicious=tuple(_suspicious(robot, pairs, found)),
        samples=samples,
        srdf=() if robot.disabled_collisions else tuple(_srdf_lines(pairs, found)),
    )


def _srdf_lines(pairs: LinkPairs, samples: PairSamples) -> Iterator[str]:
    for pair, reason in pairs.excluded.items():
        yield disable_collisions(*pair, "Always" if reason is Reason.ALWAYS else "Adjacent")
    often = [pair for pair in pairs.checked if samples.share[pair] >= OFTEN or pair in samples.at_default]
    for pair in sorted(often, key=lambda pair: -samples.share[pair]):
        where = ", also at the default configuration" if pair in samples.at_default else ""
        yield (
            f"<!-- {disable_collisions(*pair, 'Default')} only if they touch by design or their shapes are too coarse: "
            f"they collide in {100.0 * samples.share[pair]:.3g} % of the states{where} -->"
        )


def _suspicious(robot: RobotModel, pairs: LinkPairs, samples: PairSamples) -> Iterator[PairFinding]:
    for (first, second), share in samples.share.items():
        reason = pairs.excluded.get((first, second))
        default = (first, second) in samples.at_default
        if reason is None and share >= ALWAYS:
            what = "is always in collision, but checked: every configuration will be refused"
        elif reason is None and default:
            what = "is in collision at the default configuration, and checked"
        elif reason is Reason.DISABLED and 0.0 < share < ALWAYS:
            what = "is disabled in the SRDF, but does collide"
        elif reason is Reason.ALWAYS:
            what = "is not checked, since it is in collision in nearly every state"
        else:
            continue
        yield PairFinding(first, second, what, share)


def _link(robot: RobotModel, spheres: RobotSpheres, name: str) -> LinkFit:
    shapes = robot.collision_shapes.get(name, ())
    own = spheres.of(robot.link_index[name])
    points = surface_points(shapes)
    ratio = None
    if len(own.radii) and shapes:
        low = np.minimum((own.centers - own.radii[:, None]).min(axis=0), points.min(axis=0))
        high = np.maximum((own.centers + own.radii[:, None]).max(axis=0), points.max(axis=0))
        random = np.random.default_rng(0).uniform(low, high, (_POINTS, 3))
        within = nearest(pack(shapes), np.column_stack([random, np.zeros(_POINTS)]), 0.0).obstacles >= 0
        if within.any():
            ratio = float(np.count_nonzero(own.contain(random)) / np.count_nonzero(within))
    kinds = Counter(type(placed.shape).__name__.lower() for placed in shapes)
    return LinkFit(
        link=name,
        shapes=", ".join(f"{count} {_plural(kind, count)}" for kind, count in kinds.items()),
        source=spheres.sources.get(name, ""),
        spheres=len(own.radii),
        volume_ratio=ratio,
        uncovered=int(np.count_nonzero(~own.contain(points))),
        points=len(points),
        unchecked=robot.unchecked_links.get(name, ""),
        hull=robot.collision.hulls.get(name, ""),
    )


def _plural(kind: str, count: int) -> str:
    if count == 1:
        return kind
    return f"{kind}es" if kind in ("box", "mesh") else f"{kind}s"
