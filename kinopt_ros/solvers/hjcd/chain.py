"""Kinematic chain as kernels take it: numbers in arrays, so that one kernel serves all robots with as many joints."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.refold import refold
from kinopt_ros.kinematics.search_ranges import variable_rows
from kinopt_ros.robot.chain import KinematicChain, Motion
from kinopt_ros.robot.model import RobotModel

LOWER, UPPER, SAMPLE_LOWER, SAMPLE_SPAN, MOST_STEP, ROTATES, PERIOD = range(7)
"""Rows of ``ranges``."""
MULTIPLIER, OFFSET, COS_TWIST, SIN_TWIST, SHIFT_X, SHIFT_Y, SHIFT_Z, COS_FIXED, SIN_FIXED = range(9)
"""Columns of ``motions``, see ``kinematics.refold``."""


@dataclass(frozen=True)
class ChainShape:
    """Shape of a chain that a kernel is compiled for."""

    motions: int
    variables: int
    one_to_one: bool
    """Whether every variable drives one motion, and in the chain's order."""


@dataclass(frozen=True, eq=False)
class KernelChain:
    """A chain of m motions driven by n variables. Variables are in the order in which they move the chain."""

    shape: ChainShape
    motions: Annotated[Float64, "m 9"]
    translates: Annotated[Int64, "m"]
    """Kind of each motion: 1 for motions along z, 0 for turns about it."""
    column: Annotated[Int64, "m"]
    """Index of the variable that drives each motion."""
    frame: Annotated[Float64, "15"]
    """First fixed transform (position, rotation rows), and position of the last one."""
    R_last: Annotated[Float64, "3 3"]
    """Rotation of the last fixed transform; it is taken off the targets instead."""
    ranges: Annotated[Float64, "7 n"]
    """Limits, lower end and width of the sampled range, largest change per step (rad, m); 1 for rotations; periods, 0
    for none."""
    variables: Annotated[Int64, "n"]
    """Indices in the robot's q."""

    def packed_targets(self, T_base_target: Annotated[Float64, "B 4 4"]) -> Annotated[Float64, "B 12"]:
        """Return the position and rotation rows that the frame before ``R_last`` shall have."""
        R = T_base_target[:, :3, :3] @ self.R_last.T
        return np.concatenate([T_base_target[:, :3, 3], R.reshape(-1, 9)], axis=1)


def kernel_chain(robot: RobotModel, chain: KinematicChain) -> KernelChain:
    """Pack a chain without quaternion motions."""
    base, tip, motions = refold(chain)
    # In the order of their first motions: then most chains need no table of columns in the kernel.
    _, first = np.unique(chain.column, return_index=True)
    order = np.argsort(first, kind="stable")
    place = np.argsort(order, kind="stable")
    column = place[chain.column] if len(chain.column) else chain.column
    variables = chain.variables[order]
    limits = robot.limits
    rows = variable_rows(chain, limits.lower[chain.variables], limits.upper[chain.variables])[:, order]
    rotates = np.zeros(len(variables))
    rotates[column[chain.motion == Motion.ROTATION]] = 1.0
    R_first = base[3:12].reshape(3, 3).T
    first_pose = np.concatenate([-R_first @ base[:3], R_first.reshape(-1)])
    return KernelChain(
        shape=ChainShape(
            motions=len(column),
            variables=len(variables),
            one_to_one=bool(np.array_equal(column, np.arange(len(variables)))),
        ),
        motions=motions,
        translates=np.asarray(chain.motion == Motion.TRANSLATION, dtype=np.int64),
        column=np.asarray(column, dtype=np.int64),
        frame=np.concatenate([first_pose, tip]),
        R_last=base[12:21].reshape(3, 3).T,
        ranges=np.array([rows[0], rows[1], rows[2], rows[3] - rows[2], rows[5], rotates, rows[4]]),
        variables=variables,
    )
