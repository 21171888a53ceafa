"""Spheres of a robot that overlap in free configurations, too, as they contain more than the shapes."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.collision.link_poses import link_poses
from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.collision.spheres import robot_spheres
from kinopt_ros.kinematics.sampling import halton_configurations
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.verification.collision import touching_bodies
from kinopt_ros.wanted import check_wanted

SAMPLES = 400
RARE = 0.02
"""Share of the free samples below which bodies' overlapping spheres are not corrected."""
SPARED = 0.7
"""Share of the free samples that a gap must leave alone."""


@remembered
def usual_gaps(robot: RobotModel) -> Annotated[Float64, "S S"]:
    """Return the distance (m) that two spheres of ``robot_spheres`` shall keep, where that is below 0; else infinity.

    Of two links whose spheres overlap in free configurations, too, it is what collisions have at most, so that it tells
    these from free ones as well as spheres can. Needs coal.
    """
    spheres = robot_spheres(robot)
    gaps = np.full((len(spheres.radii), len(spheres.radii)), np.inf)
    if not spheres.radii.size:
        return gaps
    q = np.concatenate([robot.default_q[None], halton_configurations(robot, SAMPLES, seed=0)])
    hits = [set(map(frozenset, found)) for found in touching_bodies(robot, EMPTY_SCENE, q)]
    poses = link_poses(robot, q, robot.link_names)[:, spheres.link]
    p = (poses[..., :3, :3] @ spheres.centers[:, :, None])[..., 0] + poses[..., :3, 3]
    for one, two in checked_pairs(robot).checked:
        check_wanted()
        a = np.flatnonzero(spheres.link == robot.link_index[one])
        b = np.flatnonzero(spheres.link == robot.link_index[two])
        if not a.size or not b.size:
            continue
        d = np.linalg.norm(p[:, a, None] - p[:, None, b], axis=-1)
        least = (d - spheres.radii[a][:, None] - spheres.radii[b][None]).min(axis=(1, 2))
        hit = np.array([frozenset((one, two)) in found for found in hits], dtype=np.bool_)
        free = least[~hit]
        if free.size and (free < 0.0).mean() > RARE:
            most = least[hit].max() if hit.any() else free.min()
            gaps[np.ix_(a, b)] = min(most, np.quantile(free, 1.0 - SPARED), 0.0)
    return gaps
