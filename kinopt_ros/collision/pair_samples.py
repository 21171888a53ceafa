"""How often pairs of a robot's links collide, by sampling."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.collision.adjacency import LinkPair
from kinopt_ros.collision.judge import in_collision
from kinopt_ros.collision.spheres import fitted_spheres
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import halton_configurations, sampling_range
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel

SAMPLES = 3000
"""Configurations: half of them uniform, half pushed towards the ends of the joints, where robots fold."""
_JUDGED = 300
"""Of the configurations where spheres around a pair overlap, so many are judged to estimate how often it collides. If
none of them collides, all are judged."""
_SEED = 1


@dataclass(frozen=True)
class PairSamples:
    """What sampling has found."""

    share: Mapping[LinkPair, float]
    """Part of the configurations in which the pair collides; exactly 0 if none does."""
    at_default: frozenset[LinkPair]
    """Pairs that collide at the default configuration."""


@remembered
def sample_pairs(robot: RobotModel, pairs: tuple[LinkPair, ...], samples: int = SAMPLES) -> PairSamples:
    """How often pairs collide; the same for the same robot. The shapes themselves are judged, by coal."""
    q = _configurations(robot, samples)
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    poses = dict(zip(names, np.moveaxis(forward_kinematics(robot, q, names), 1, 0), strict=True))
    # Fitted spheres, never those that somebody gave: these may leave something out.
    balls = fitted_spheres(robot, tuple(robot.collision_shapes))
    share: dict[LinkPair, float] = {}
    at_default: set[LinkPair] = set()
    for a, b in pairs:
        near = _near(poses[a], poses[b], balls[a], balls[b])
        if near[0] and _collide(robot, (a, b), poses, 0):
            at_default.add((a, b))
        share[a, b] = _share(robot, (a, b), poses, (np.flatnonzero(near[1:]) + 1).tolist(), samples)
    return PairSamples(share, frozenset(at_default))


def _share(
    robot: RobotModel,
    pair: LinkPair,
    poses: Mapping[str, Float64],
    near: Sequence[int],
    samples: int,
) -> float:
    hits = judged = 0
    for i in near:
        hits += _collide(robot, pair, poses, i)
        judged += 1
        if judged >= _JUDGED and hits:
            break
    return hits / judged * len(near) / samples if hits else 0.0


def _collide(robot: RobotModel, pair: LinkPair, poses: Mapping[str, Float64], i: int) -> bool:
    """Whether two links touch in configuration i."""
    a, b = (
        [(placed.shape, poses[name][i] @ placed.T_frame_shape) for placed in robot.collision_shapes[name]]
        for name in pair
    )
    return any(in_collision(*solid_a, *solid_b) for solid_a in a for solid_b in b)


def _configurations(robot: RobotModel, samples: int) -> Float64:
    """The default configuration, then so many others."""
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


def _near(T_a: Float64, T_b: Float64, a: SphereSet, b: SphereSet) -> Bool:
    """Configurations in which spheres overlap."""
    near = np.zeros(len(T_a), dtype=np.bool_)
    centers_a = a.centers @ T_a[:, :3, :3].swapaxes(1, 2) + T_a[:, None, :3, 3]
    centers_b = b.centers @ T_b[:, :3, :3].swapaxes(1, 2) + T_b[:, None, :3, 3]
    for i in range(len(a.radii)):
        for j in range(len(b.radii)):
            away = centers_a[:, i] - centers_b[:, j]
            near |= (away**2).sum(axis=1) < (a.radii[i] + b.radii[j]) ** 2
    return near
