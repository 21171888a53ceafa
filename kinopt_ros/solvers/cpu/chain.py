"""Kinematic chain in the form that the kernel takes: every motion about or along local z, everything in two arrays."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.refold import refold
from kinopt_ros.kinematics.search_ranges import variable_rows
from kinopt_ros.robot.chain import KinematicChain, Motion
from kinopt_ros.solvers.cpu.seeds import scrambled_halton

TABLE_SIZE = 256
"""Number of seed configurations with known tip poses. More cost time in every solve, fewer need more attempts."""
TABLE_RANGE = 0.9
"""Share of the joint range that table seeds use: starts at a limit are poor ones."""
QUICK_TOLERANCE = 1e-6
"""Position (m) and orientation (rad) tolerance of the quick path."""
AIM_RATIO = 0.5
"""Share of the tolerance to which attempts go on, so that rounding elsewhere cannot spoil the verdict."""
KIND_COLUMN = 1
"""Index of the variable among the numbers of a motion's kind."""


@dataclass(frozen=True, eq=False)
class PackedChain:
    """A chain of m motions driven by n variables, as the kernel needs it.

    ``numbers``: inverse of the first fixed transform (position, rotation rows), transposed rotation of the last
    one, position of the last one; per motion multiplier, offset, cos and sin of the twist, shift, cos and sin of
    the constant turn of a translation; limits, sampling limits, period and step limit of the variables; the table
    of seeds, first its poses and then its configurations; effort of the quick path.
    ``shape``: n, m, table size; per motion its kind, variable, and whether an earlier one has that variable;
    random restarts of the quick path; indices of the variables in the robot's q.
    """

    numbers: Annotated[Float64, "len"]
    shape: Annotated[Int64, "len"]
    variables: Annotated[Int64, "n"]
    """Indices in the robot's q."""
    lower: Annotated[Float64, "n"]
    upper: Annotated[Float64, "n"]
    motions: int
    """Number m of motions."""


def pack_chain(
    chain: KinematicChain, lower: Float64, upper: Float64, quick_restarts: int, table_size: int = TABLE_SIZE
) -> PackedChain:
    """Pack a chain without quaternion motions.

    Args:
        chain: the chain.
        lower: lower limits of the chain's variables, (n,); -inf where there is none.
        upper: upper limits, (n,).
        quick_restarts: random restarts of the quick path.
        table_size: number of table seeds, at least 1.
    """
    from kinopt_ros.solvers.cpu.kernels.plain import tip_poses

    n, m = len(chain.variables), len(chain.motion)
    base, tip, motions = refold(chain)
    variables = variable_rows(chain, lower, upper)
    shape = np.concatenate([[n, m, table_size], motion_kinds(chain), [quick_restarts], chain.variables])
    table = seed_table(variables, table_size)
    aim, accept = AIM_RATIO * QUICK_TOLERANCE, 0.999 * QUICK_TOLERANCE
    tail = np.array([aim, aim, accept, accept, 0.0, 0.0])
    poses = np.zeros((7, table_size))
    parts = (base, tip, motions, variables, poses, table, tail)
    numbers = np.concatenate([part.reshape(-1) for part in parts])
    tip_poses(numbers, shape, table, poses)
    first = base.size + tip.size + motions.size + variables.size
    numbers[first : first + poses.size] = poses.reshape(-1)
    return PackedChain(numbers, shape, chain.variables, lower, upper, m)


def seed_table(variables: Annotated[Float64, "6 n"], size: int) -> Annotated[Float64, "size n"]:
    """Return seeds spread evenly over the sampling ranges (see ``variable_rows``)."""
    low, high = variables[2], variables[3]
    u = 0.5 + TABLE_RANGE * (scrambled_halton(size, variables.shape[1]) - 0.5)
    return np.ascontiguousarray(np.clip(low + u * (high - low), low, high))


def motion_kinds(chain: KinematicChain) -> Int64:
    """Return per motion: is translation, variable, whether an earlier motion has the same variable."""
    columns = chain.column.tolist()
    adds = [column in columns[:i] for i, column in enumerate(columns)]
    return np.array([chain.motion != Motion.ROTATION, columns, adds], dtype=np.int64).T.reshape(-1)
