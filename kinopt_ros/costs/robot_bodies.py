"""What collision costs know of a robot: spheres, or one capsule, for each link that has shapes; on the safe side.

A body is a capsule: all within a radius of a segment from a to b; of spheres, both are the centre.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Immutable, Int64, taken_over
from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.collision.spheres import robot_spheres
from kinopt_ros.costs.point import Point
from kinopt_ros.costs.solids import between_segments
from kinopt_ros.errors import InvalidRequestError, quoted
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel

SHAPES = ("spheres", "capsules")


@dataclass(frozen=True, eq=False)
class RobotBodies(Immutable):
    """N bodies of a robot."""

    links: tuple[str, ...]
    """Links that have some."""
    link: Annotated[Int64, "N"]
    """Whose each body is, as an index into ``links``."""
    a: Annotated[Float64, "N 3"]
    """Ends of the segments in the link's frame, m."""
    b: Annotated[Float64, "N 3"]
    radius: Annotated[Float64, "N"]

    def __post_init__(self) -> None:
        taken_over(self, "link", "a", "b", "radius")

    def placed(self, point: Point) -> tuple[Annotated[Any, "N 3"], Annotated[Any, "N 3"]]:
        """Return the ends of all segments at a point, in the root link."""
        xp = point.xp
        T = xp.stack([point.pose(name) for name in self.links])[self.link]

        def there(local: Float64) -> Any:
            return (T[:, :3, :3] * xp.asarray(local)[:, None, :]).sum(-1) + T[:, :3, 3]

        a = there(self.a)
        return a, (a if np.array_equal(self.a, self.b) else there(self.b))


@remembered
def bodies_of(robot: RobotModel, shape: str) -> RobotBodies:
    """Return the bodies of a robot, ``spheres`` or ``capsules``. Reads meshes, and fits spheres, the first time.

    Raises:
        InvalidRequestError: another shape, or a robot without any.
    """
    if shape not in SHAPES:
        raise InvalidRequestError(f"shape is {quoted(shape)}; allowed are {', '.join(SHAPES)}")
    spheres = robot_spheres(robot)
    if not len(spheres.radii):
        raise InvalidRequestError(f"robot {quoted(robot.name)} has no shapes that could collide")
    known = np.unique(spheres.link)
    links = tuple(robot.link_names[i] for i in known.tolist())
    if shape == "spheres":
        return RobotBodies(
            links, np.searchsorted(known, spheres.link), spheres.centers, spheres.centers, spheres.radii
        )
    ends = [_capsule(spheres.centers[spheres.link == i], spheres.radii[spheres.link == i]) for i in known]
    return RobotBodies(
        links,
        np.arange(len(links)),
        np.array([a for a, _, _ in ends]),
        np.array([b for _, b, _ in ends]),
        np.array([radius for _, _, radius in ends]),
    )


def _capsule(
    centers: Annotated[Float64, "n 3"], radii: Annotated[Float64, "n"]
) -> tuple[Float64, Float64, float]:
    """Return a capsule that contains some spheres: about the axis along which their centres spread most."""
    middle = centers.mean(axis=0)
    axis = np.linalg.svd(centers - middle)[2][0] if len(centers) > 1 else np.array([1.0, 0.0, 0.0])
    along = (centers - middle) @ axis
    across = np.linalg.norm(centers - middle - along[:, None] * axis, axis=1)
    radius = float((across + radii).max())
    # A sphere ends where the capsule's round cap, or its side, does.
    slack = np.sqrt(np.maximum((radius - radii) ** 2 - across**2, 0.0))
    low, high = float((along + slack).min()), float((along - slack).max())
    if low > high:
        low = high = 0.5 * (low + high)
    return middle + low * axis, middle + high * axis, radius


@dataclass(frozen=True, eq=False)
class BodyPairs(Immutable):
    """P pairs of links, each with M pairs of bodies; shorter lists repeat their first."""

    names: tuple[tuple[str, str], ...]
    first: Annotated[Int64, "P M"]
    second: Annotated[Int64, "P M"]
    slack: Annotated[Float64, "P"]
    """How far the bodies of a pair may overlap, m: as far as they do in the default configuration, as they contain more
    than the links' shapes."""

    def __post_init__(self) -> None:
        taken_over(self, "first", "second", "slack")


@remembered
def body_pairs(robot: RobotModel, shape: str) -> BodyPairs:
    """Return the pairs of links that are checked for collisions with one another, body by body.

    Raises:
        InvalidRequestError: there are none.
    """
    bodies = bodies_of(robot, shape)
    number = {name: k for k, name in enumerate(bodies.links)}
    names, first, second = [], [], []
    for one, two in checked_pairs(robot).checked:
        if one not in number or two not in number:
            continue
        i, j = np.flatnonzero(bodies.link == number[one]), np.flatnonzero(bodies.link == number[two])
        names.append((one, two))
        first.append(np.repeat(i, len(j)))
        second.append(np.tile(j, len(i)))
    if not names:
        raise InvalidRequestError(f"robot {quoted(robot.name)} has no two links that could collide")
    most = max(len(part) for part in first)
    padded = [
        np.array([np.concatenate([p, np.full(most - len(p), p[0])]) for p in parts])
        for parts in (first, second)
    ]
    T = forward_kinematics(robot, robot.default_q, bodies.links)[bodies.link]
    a, b = ((T[:, :3, :3] @ local[:, :, None])[..., 0] + T[:, :3, 3] for local in (bodies.a, bodies.b))
    gaps = between_segments(np, a[padded[0]], b[padded[0]], a[padded[1]], b[padded[1]])
    gaps = (gaps - bodies.radius[padded[0]] - bodies.radius[padded[1]]).min(axis=1)
    return BodyPairs(tuple(names), padded[0], padded[1], np.maximum(-gaps, 0.0))
