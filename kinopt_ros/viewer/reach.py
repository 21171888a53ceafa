"""Where a tip can be."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel

POINTS = 6_000
"""Number of points of a cloud."""


def reachable_points(
    robot: RobotModel,
    tip: str,
    variables: Annotated[np.ndarray, "n"],
    q: Annotated[Float64, "nq"],
    count: int = POINTS,
    seed: int = 0,
) -> Annotated[Float64, "count 3"]:
    """Return positions of a link in the root link, m, for random values of some variables inside their limits.

    Everything else stays as in ``q``. Collisions are not looked at. The same for the same seed.
    """
    states = np.repeat(q[None], count, axis=0)
    states[:, variables] = random_configurations(robot, count, seed)[:, variables]
    return np.asarray(forward_kinematics(robot, states, links=(tip,))[:, 0, :3, 3])
