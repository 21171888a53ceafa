"""A chain with its limits, and what the algorithms need of a configuration: poses, axes, Jacobian columns."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import chain_motions, chain_pose
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.search_ranges import variable_rows
from kinopt_ros.robot.chain import KinematicChain, Motion
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False)
class Arm:
    """A chain of m motions driven by n variables (rad, m)."""

    chain: KinematicChain
    lower: Annotated[Float64, "n"]
    """Limits, which no configuration leaves; -inf where there is none."""
    upper: Annotated[Float64, "n"]
    sample_lower: Annotated[Float64, "n"]
    """Ends of the ranges that starts are drawn from; always finite."""
    sample_upper: Annotated[Float64, "n"]

    @property
    def span(self) -> Annotated[Float64, "n"]:
        """Width of the ranges; noise is given as parts of it."""
        return self.sample_upper - self.sample_lower

    @property
    def turns(self) -> Annotated[Bool, "n"]:
        """Which variables turn anything."""
        rotates = np.zeros(len(self.lower), dtype=np.bool_)
        rotates[self.chain.column[self.chain.motion == Motion.ROTATION]] = True
        return rotates

    def clamped(self, q: Annotated[Float64, "... n"]) -> Annotated[Float64, "... n"]:
        """Return the nearest configuration inside the limits."""
        return np.asarray(np.minimum(np.maximum(q, self.lower), self.upper))

    def poses(self, q: Annotated[Float64, "... n"]) -> Annotated[Float64, "... 4 4"]:
        """Compute poses of the tip in the chain's base, eq. (1)."""
        return chain_pose(self.chain, q)

    def jacobian(self, q: Annotated[Float64, "n"]) -> Annotated[Float64, "6 n"]:
        """Eq. (7): rows are m and rad per unit of each variable. A prismatic joint has [z; 0]; columns of motions that
        share a variable are added."""
        return geometric_jacobian(self.chain, q)

    def axes(self, q: Annotated[Float64, "n"]) -> tuple[Annotated[Float64, "m 3"], Annotated[Float64, "m 3"]]:
        """Return the unit axis, and a point on it, of every motion, in the base frame."""
        steps = chain_motions(self.chain).transforms(np.asarray(q)[None])[:, 0]
        T, directions, points = np.eye(4), [], []
        for i, step in enumerate(steps):
            T = T @ step  # behind the motion, which leaves its own axis where it was
            directions.append(T[:3, :3] @ self.chain.axis[i])
            points.append(T[:3, 3])
        m = len(self.chain.motion)
        return np.array(directions).reshape(m, 3), np.array(points).reshape(m, 3)


def arm_of(robot: RobotModel, chain: KinematicChain) -> Arm:
    """Return the chain with the robot's limits.

    Raises:
        InvalidRequestError: a floating joint is on the chain.
    """
    if (chain.motion == Motion.QUATERNION).any():
        raise InvalidRequestError(
            f"HJCD-IK moves joints of one variable each; there is a floating one between {chain.base_link!r} "
            f"and {chain.tip_link!r}"
        )
    rows = variable_rows(chain, robot.limits.lower[chain.variables], robot.limits.upper[chain.variables])
    return Arm(chain, rows[0], rows[1], rows[2], rows[3])
