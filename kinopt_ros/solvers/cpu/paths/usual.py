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
from kinopt_ros.verification.collision import check_collisions

SAMPLES = 200
RARE = 0.02
"""Spheres that overlap in a smaller part of the free samples are taken at their word."""


@remembered
def usual_gaps(robot: RobotModel) -> Annotated[Float64, "S S"]:
    """Distance (m) of two spheres of ``robot_spheres`` that free configurations go down to, where that is below 0 in
    more than a few of them; infinite for all other pairs, and for those that need no check.

    Needs coal.
    """
    spheres = robot_spheres(robot)
    S = len(spheres.radii)
    q = np.concatenate([robot.default_q[None], halton_configurations(robot, SAMPLES, seed=0)])
    q = q[check_collisions(robot, EMPTY_SCENE, q, contacts=False).free]
    gaps = np.full((S, S), np.inf)
    if not len(q) or not S:
        return gaps
    poses = link_poses(robot, q, robot.link_names)[:, spheres.link]
    p = (poses[..., :3, :3] @ spheres.centers[:, :, None])[..., 0] + poses[..., :3, 3]
    for one, two in checked_pairs(robot).checked:
        a = np.flatnonzero(spheres.link == robot.link_index[one])
        b = np.flatnonzero(spheres.link == robot.link_index[two])
        d = np.linalg.norm(p[:, a, None] - p[:, None, b], axis=-1)
        d -= spheres.radii[a][:, None] + spheres.radii[b][None]
        usual = (d < 0.0).mean(axis=0) > RARE
        gaps[np.ix_(a, b)] = np.where(usual, d.min(axis=0, initial=np.inf), np.inf)
    return gaps
