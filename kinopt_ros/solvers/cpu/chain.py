"""A kinematic chain in the form the kernel wants: every motion about or along local z, everything in two arrays.

``T_fixed[i]`` between two motions becomes a shift and a twist about x. Frames are first turned so that each motion
is about or along z; then R = Rz(a) Rx(twist) Rz(b), where Rz(a) joins the motion before and Rz(b) the motion
after (turns about z commute with motions along or about z). Unlike Denavit-Hartenberg parameters this stays
accurate for nearly parallel axes, because the shift is kept whole.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.robot.chain import KinematicChain, Motion, in_plane_axes
from kinopt_ros.solvers.cpu.seeds import scrambled_halton

TABLE_SIZE = 256
"""Seed configurations with known tip poses. More cost time in every solve, fewer need more attempts."""
TABLE_RANGE = 0.9
"""Part of the joint range that table seeds use: starts at a limit are poor ones."""
QUICK_TOLERANCE = 1e-6
"""Position (m) and orientation (rad) tolerance of the quick path."""
AIM_RATIO = 0.5
"""Attempts go on to this part of the tolerance, so that rounding elsewhere cannot spoil the verdict."""
KIND_COLUMN = 1
"""Which number of a motion's kind is its variable."""
MAX_ROTATION_STEP = 1.0
"""Largest change of a rotation per step, rad; translations are linear and need no such limit."""


@dataclass(frozen=True, eq=False)
class PackedChain:
    """What the kernel needs to know of a chain of m motions driven by n variables.

    ``numbers``: inverse of the first fixed transform (position, rotation rows), transposed rotation of the last
    one, position of the last one; per motion multiplier, offset, cos and sin of the twist, shift, cos and sin of
    the constant turn of a translation; limits, sampling limits, period and step limit of the variables; the table
    of seeds, first its poses and then its configurations; effort of the quick path.
    ``shape``: n, m, table size; per motion its kind, variable, and whether an earlier one has that variable;
    random restarts of the quick path.
    """

    numbers: Annotated[Float64, "len"]
    shape: Annotated[Int64, "len"]
    variables: Annotated[Int64, "n"]
    """Indices in the robot's q."""
    lower: Annotated[Float64, "n"]
    upper: Annotated[Float64, "n"]
    motions: int
    """m"""


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
    from kinopt_ros.solvers.cpu.kernel import tip_poses

    n, m = len(chain.variables), len(chain.motion)
    base, tip, motions = refold(chain)
    variables = variable_rows(chain, lower, upper)
    shape = np.concatenate([[n, m, table_size], motion_kinds(chain), [quick_restarts]])
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


def refold(chain: KinematicChain) -> tuple[Float64, Float64, Float64]:
    """Base, tip and table of motions, see ``PackedChain``."""
    m = len(chain.motion)
    identity = np.eye(3).tolist()
    # Rows of the rotation that turns an axis to z; its transpose turns z to the axis.
    aligned = [[*in_plane_axes(axis), axis] for axis in chain.axis.tolist()]
    before = np.array([identity, *aligned])
    after = np.array([*aligned, identity]).transpose(0, 2, 1)
    rotation = before @ chain.T_fixed[:, :3, :3] @ after
    position = (before @ chain.T_fixed[:, :3, 3:])[..., 0]
    turn = np.zeros(m + 1)  # constant turn about z that each motion takes over
    motions = np.zeros((m, 9))
    motions[:, 0] = chain.multiplier
    motions[:, 2] = 1.0
    rotations, positions = (
        rotation.tolist(),
        position.tolist(),
    )  # plain floats: ten times as quick, one by one
    for i in range(1, m):
        a, twist, b = _zxz(rotations[i])
        turn[i - 1] += a
        turn[i] += b
        x, y, z = positions[i]
        motions[i, 2:7] = math.cos(twist), math.sin(twist), *_turned_back(a, x, y), z
    motions[:, 1] = chain.offset + np.where(chain.motion == Motion.ROTATION, turn[:m], 0.0)
    motions[:, 7], motions[:, 8] = np.cos(turn[:m]), np.sin(turn[:m])
    R, p = (rotation[0], position[0]) if m else (np.eye(3), np.zeros(3))
    base = np.concatenate([-R.T @ p, R.T.reshape(-1), rotation[m].T.reshape(-1)])
    return base, position[m], motions


def variable_rows(chain: KinematicChain, lower: Float64, upper: Float64) -> Float64:
    """Rows LOWER, UPPER, SAMPLE_LOWER, SAMPLE_UPPER, PERIOD, STEP_LIMIT of the kernel."""
    n = len(chain.variables)
    rotates = np.ones(n, dtype=np.bool_)
    periodic = np.ones(n, dtype=np.bool_)
    rotation = chain.motion == Motion.ROTATION
    rotates[chain.column[~rotation]] = False
    periodic[chain.column[~rotation | (chain.multiplier % 1.0 != 0.0)]] = False
    # One full turn holds every pose that more turns hold; an endless axis starts near 0.
    reach = np.where(rotates, np.pi, 1.0)
    narrowed = (upper - lower > 2.0 * reach) & (periodic | ~np.isfinite(upper - lower))
    centre = np.minimum(np.maximum(0.0, lower + reach), upper - reach)
    sample_lower = np.where(narrowed, centre - reach, lower)
    sample_upper = np.where(narrowed, centre + reach, upper)
    period = np.where(periodic, 2.0 * np.pi, 0.0)
    step_limit = np.where(rotates, MAX_ROTATION_STEP, np.inf)
    return np.array([lower, upper, sample_lower, sample_upper, period, step_limit], dtype=np.float64)


def seed_table(variables: Annotated[Float64, "6 n"], size: int) -> Annotated[Float64, "size n"]:
    """Seeds spread evenly over the sampling ranges (see ``variable_rows``)."""
    low, high = variables[2], variables[3]
    u = 0.5 + TABLE_RANGE * (scrambled_halton(size, variables.shape[1]) - 0.5)
    return np.ascontiguousarray(np.clip(low + u * (high - low), low, high))


def motion_kinds(chain: KinematicChain) -> Int64:
    """Per motion: is translation, variable, whether an earlier motion has the same variable."""
    columns = chain.column.tolist()
    adds = [column in columns[:i] for i, column in enumerate(columns)]
    return np.array([chain.motion != Motion.ROTATION, columns, adds], dtype=np.int64).T.reshape(-1)


def _zxz(R: list[list[float]]) -> tuple[float, float, float]:
    """Angles of R = Rz(a) Rx(twist) Rz(b); b absorbs the rest, so that they fit even where a is arbitrary."""
    sine = math.hypot(R[0][2], R[1][2])
    a = math.atan2(R[0][2], -R[1][2]) if sine > 1e-15 else 0.0
    twist = math.atan2(sine, R[2][2])
    x, y = _turned_back(a, R[0][0], R[1][0])
    return a, twist, math.atan2(math.cos(twist) * y + math.sin(twist) * R[2][0], x)


def _turned_back(angle: float, x: float, y: float) -> tuple[float, float]:
    """Rz(-angle) (x, y)."""
    c, s = math.cos(angle), math.sin(angle)
    return c * x + s * y, c * y - s * x
