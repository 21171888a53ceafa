"""Several chains with common variables, packed for the general kernel."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.refold import refold
from kinopt_ros.kinematics.search_ranges import variable_rows
from kinopt_ros.robot.chain import KinematicChain
from kinopt_ros.solvers.cpu.chain import KIND_COLUMN, TABLE_SIZE, motion_kinds, seed_table


@dataclass(frozen=True, eq=False)
class PackedTree:
    """T chains of M motions in all, driven by n variables; each packed as ``chain.PackedChain`` says."""

    base: Annotated[Float64, "T 21"]
    tip: Annotated[Float64, "T 3"]
    motions: Annotated[Float64, "M 9"]
    kinds: Annotated[Int64, "M 3"]
    starts: Annotated[Int64, "T+1"]
    """Index at which each chain's motions start."""
    rows: Annotated[Float64, "6 n"]
    """Limits, periods and ranges of the variables."""
    table: Annotated[Float64, "k n"]
    poses: Annotated[Float64, "T 7 k"]
    variables: Annotated[Int64, "n"]
    """Indices in the robot's q."""
    lower: Annotated[Float64, "n"]
    upper: Annotated[Float64, "n"]


def pack_tree(
    chains: tuple[KinematicChain, ...], lower: Float64, upper: Float64, table_size: int = TABLE_SIZE
) -> PackedTree:
    """Pack chains without quaternion motions.

    Args:
        chains: the chains, tools folded in.
        lower: lower limits of all variables of the robot, (nq,).
        upper: upper limits, (nq,).
        table_size: number of table seeds.
    """
    from kinopt_ros.solvers.cpu.kernels.general import tree_poses

    variables = np.unique(np.concatenate([chain.variables for chain in chains]))
    bases, tips, motions, kinds = [], [], [], []
    rows = np.array([[-np.inf], [np.inf], [-np.inf], [np.inf], [np.inf], [np.inf]]) * np.ones(len(variables))
    rows = np.where(np.isnan(rows), np.inf, rows)
    for chain in chains:
        columns = np.searchsorted(variables, chain.variables)
        base, tip, table = refold(chain)
        bases.append(base)
        tips.append(tip)
        motions.append(table)
        kind = motion_kinds(chain).reshape(-1, 3).copy()
        kind[:, KIND_COLUMN] = columns[kind[:, KIND_COLUMN]]
        kinds.append(kind)
        own = variable_rows(chain, lower[chain.variables], upper[chain.variables])
        for row, combine in enumerate((np.maximum, np.minimum) * 2 + (np.minimum, np.minimum)):
            rows[row, columns] = combine(rows[row, columns], own[row])
    packed = PackedTree(
        base=np.array(bases),
        tip=np.array(tips),
        motions=np.concatenate(motions),
        kinds=np.concatenate(kinds),
        starts=np.cumsum([0, *(len(chain.motion) for chain in chains)]),
        rows=rows,
        table=seed_table(rows, table_size),
        poses=np.zeros((len(chains), 7, table_size)),
        variables=variables,
        lower=lower[variables],
        upper=upper[variables],
    )
    tree_poses(
        packed.base, packed.tip, packed.motions, packed.kinds, packed.starts, packed.table, packed.poses
    )
    return packed
