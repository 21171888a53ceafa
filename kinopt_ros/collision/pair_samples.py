"""Sampling of how often pairs of a robot's links collide."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.collision.adjacency import LinkPair
from kinopt_ros.collision.coal_geometry import geometry_of, load_coal
from kinopt_ros.collision.spheres import fitted_spheres
from kinopt_ros.geometry import kept
from kinopt_ros.geometry.shapes import (
    HeightMap,
    Mesh,
    Octomap,
    PlacedShape,
    PointCloud,
    Primitive,
    Shape,
)
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import halton_configurations, sampling_range
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.wanted import check_wanted

MOST_POSES = 1_000_000
"""Most link poses in all configurations together, some 300 bytes each.

Robots of many links therefore get fewer configurations."""
SAMPLES = 2000
"""Number of configurations: half of them uniform, half pushed towards the ends of the joints, where robots fold."""
_FEW, _MANY, _MOST = 60, 300, 600
"""Configurations, of those in which spheres around a pair overlap, that are judged to estimate how often it collides.

More are judged where nearly all collide so far, and most where none does."""
_NEARLY_ALL = 0.9
_ROUNDING = 1e-9
"""Distance up to which balls count as touching, m."""
_SEED = 1
_SOURCES = (
    __name__,
    "kinopt_ros.collision.coal_geometry",
    "kinopt_ros.collision.obstacles",
    "kinopt_ros.collision.spheres",
    "kinopt_ros.kinematics.forward",
    "kinopt_ros.kinematics.sampling",
)


@dataclass(frozen=True)
class PairSamples:
    """Result of sampling."""

    share: Mapping[LinkPair, float]
    """Estimated share of the configurations in which each pair collides; exactly 0 if none was found."""
    at_default: frozenset[LinkPair]
    """Pairs that collide at the default configuration."""


@remembered
def sample_pairs(robot: RobotModel, pairs: tuple[LinkPair, ...], samples: int = SAMPLES) -> PairSamples:
    """Estimate how often pairs collide; the same for the same robot. The shapes themselves are judged, by coal. Kept on
    disk."""
    names = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    samples = min(samples, max(MOST_POSES // max(len(names), 1), _FEW))
    shapes = tuple(robot.collision_shapes[name] for name in names)
    limits = robot.limits.lower, robot.limits.upper, robot.default_q
    key = kept.digest(_SOURCES, _coal_version(), samples, pairs, names, shapes, robot.joints, limits)
    found = kept.load(key)
    if found is None:
        shares, defaults = _sampled(robot, names, pairs, samples)
        found = {"share": np.array(shares, dtype=np.float64), "default": np.array(defaults, dtype=np.bool_)}
        kept.store(key, found)
    return PairSamples(
        share=dict(zip(pairs, found["share"].tolist(), strict=True)),
        at_default=frozenset(pair for pair, there in zip(pairs, found["default"], strict=True) if there),
    )


def _coal_version() -> str:
    return str(load_coal().__version__)


def _sampled(
    robot: RobotModel, names: tuple[str, ...], pairs: tuple[LinkPair, ...], samples: int
) -> tuple[list[float], list[bool]]:
    q = _configurations(robot, samples)
    poses = dict(zip(names, np.moveaxis(forward_kinematics(robot, q, names), 1, 0), strict=True))
    # Fitted spheres, never those that somebody gave: these may leave something out.
    fitted = fitted_spheres(robot, tuple(robot.collision_shapes))
    balls = {name: _Balls(fitted[name], poses[name]) for name in names}
    solids = {name: _Solids(robot.collision_shapes[name]) for name in names}
    shuffled = np.random.default_rng(_SEED).permutation(samples) + 1
    shares, defaults = [], []
    for a, b in pairs:
        check_wanted()
        near = _near(balls[a], balls[b])
        collide = partial(_collide, solids[a], poses[a], solids[b], poses[b])
        defaults.append(bool(near[0]) and collide(0))
        shares.append(_share(collide, shuffled[near[shuffled]].tolist(), samples))
    return shares, defaults


def _share(collide: Callable[[int], bool], near: Sequence[int], samples: int) -> float:
    hits = judged = 0
    for i in near[:_MOST]:
        hits += collide(i)
        judged += 1
        if (judged >= _FEW and 0 < hits < _NEARLY_ALL * judged) or (judged >= _MANY and hits):
            break
    return hits / judged * len(near) / samples if hits else 0.0


class _Balls:
    """A link's spheres in all configurations."""

    def __init__(self, spheres: SphereSet, T_root_link: Annotated[Float64, "N 4 4"]) -> None:
        self.radii = spheres.radii
        self.centers = spheres.centers @ T_root_link[:, :3, :3].swapaxes(1, 2) + T_root_link[:, None, :3, 3]
        middle = spheres.centers.mean(axis=0)
        self.reach = float((np.sqrt(((spheres.centers - middle) ** 2).sum(axis=1)) + spheres.radii).max())
        self.middle = self.centers.mean(axis=1)


def _near(a: _Balls, b: _Balls) -> Bool:
    """Find configurations in which spheres overlap."""
    near: Bool = ((a.middle - b.middle) ** 2).sum(axis=1) < (a.reach + b.reach) ** 2
    some = np.flatnonzero(near)
    square = np.zeros((len(some), len(a.radii), len(b.radii)))
    for axis in range(3):
        square += (a.centers[some, :, None, axis] - b.centers[some, None, :, axis]) ** 2
    near[some] = (square < (a.radii[:, None] + b.radii) ** 2).any(axis=(1, 2))
    return near


class _Solids:
    """A link's shapes as coal knows them, and balls around each."""

    def __init__(self, shapes: Sequence[PlacedShape]) -> None:
        known = [(geometry_of(_known(placed.shape)), placed.T_frame_shape) for placed in shapes]
        self.parts = [(part, T) for geometry, T in known for part in geometry.parts]
        self.radii = np.concatenate([geometry.balls[:, 3] for geometry, _ in known])
        self.centers = np.concatenate(
            [geometry.balls[:, :3] @ T[:3, :3].T + T[:3, 3] for geometry, T in known]
        )

    def placed(self, T_root_link: Annotated[Float64, "4 4"]) -> Annotated[Float64, "S 3"]:
        """Return the centres of the balls."""
        return np.asarray(self.centers @ T_root_link[:3, :3].T + T_root_link[:3, 3])


def _known(shape: Shape) -> Primitive | Mesh:
    assert not isinstance(shape, HeightMap | PointCloud | Octomap)  # a URDF has none
    return shape


def _collide(a: _Solids, T_a: Float64, b: _Solids, T_b: Float64, i: int) -> bool:
    """Check whether two links touch in configuration i.

    A shape that lies wholly inside of a mesh is missed; then a pair rather stays checked.
    """
    coal = load_coal()
    request = coal.CollisionRequest()
    away = np.linalg.norm(a.placed(T_a[i])[:, None] - b.placed(T_b[i]), axis=2)
    # There may be hundreds of shapes on a link, most of which are far from most others.
    for one, other in np.argwhere(away <= (a.radii[:, None] + b.radii) + _ROUNDING).tolist():
        (geometry_a, T_link_a), (geometry_b, T_link_b) = a.parts[one], b.parts[other]
        pose_a, pose_b = (
            coal.Transform3s(T[:3, :3], T[:3, 3]) for T in (T_a[i] @ T_link_a, T_b[i] @ T_link_b)
        )
        if coal.collide(geometry_a, pose_a, geometry_b, pose_b, request, coal.CollisionResult()):
            return True
    return False


def _configurations(robot: RobotModel, samples: int) -> Float64:
    """Return the default configuration, then so many others."""
    q = halton_configurations(robot, samples, _SEED)
    lower, upper = sampling_range(robot)
    pushed = slice(samples // 2, None)
    quaternions = {i for joint in robot.floating_joints for i in robot.variables_of(joint.name)}
    bounded = np.array([i for i in range(robot.nq) if i not in quaternions], dtype=np.int64)
    width = np.maximum(upper - lower, 1e-300)[bounded]
    part = (q[pushed][:, bounded] - lower[bounded]) / width
    part = 0.5 - 0.5 * np.cos(np.pi * part)
    half = q[pushed].copy()
    half[:, bounded] = lower[bounded] + part * (upper - lower)[bounded]
    return np.concatenate([robot.default_q[None], q[: samples // 2], half])
