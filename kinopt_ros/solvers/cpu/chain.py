"""A kinematic chain in the form the kernel wants: every motion about or along local z, everything in two arrays.

``T_fixed[i]`` between two motions becomes a shift and a twist about x. Frames are first turned so that each motion
is about or along z; then R = Rz(a) Rx(twist) Rz(b), where Rz(a) joins the motion before and Rz(b) the motion
after (turns about z commute with motions along or about z). Unlike Denavit-Hartenberg parameters this stays
accurate for nearly parallel axes, because the shift is kept whole.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.robot.chain import KinematicChain, Motion
from kinopt_ros.solvers.cpu.seeds import scrambled_halton

TABLE_SIZE = 256
"""Seed configurations with known tip poses. More cost time in every solve, fewer need more attempts."""
TABLE_RANGE = 0.9
"""Part of the joint range that table seeds use: starts at a limit are poor ones."""
QUICK_TOLERANCE = 1e-6
"""Position (m) and orientation (rad) tolerance of the quick path."""
AIM_RATIO = 0.5
"""Attempts go on to this part of the tolerance, so that rounding elsewhere cannot spoil the verdict."""
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
    base, tip, motions = _refold(chain)
    variables = _variable_rows(chain, lower, upper)
    shape = np.array([n, m, table_size, *_kinds(chain), quick_restarts], dtype=np.int64)
    table = _table(variables, table_size)
    aim, accept = AIM_RATIO * QUICK_TOLERANCE, 0.999 * QUICK_TOLERANCE
    tail = np.array([aim, aim, accept, accept, 0.0, 0.0])
    poses = np.zeros((7, table_size))
    parts = (base, tip, motions, variables, poses, table, tail)
    numbers = np.concatenate([part.reshape(-1) for part in parts])
    tip_poses(numbers, shape, table, poses)
    first = base.size + tip.size + motions.size + variables.size
    numbers[first : first + poses.size] = poses.reshape(-1)
    return PackedChain(numbers, shape, chain.variables, lower, upper)


def _refold(chain: KinematicChain) -> tuple[Float64, Float64, Float64]:
    """Base, tip and table of motions, see ``PackedChain``."""
    m = len(chain.motion)
    aligned = [_z_to(axis) for axis in chain.axis]
    before = [np.eye(4), *aligned]
    after = [*aligned, np.eye(4)]
    T = [_transposed(before[i]) @ chain.T_fixed[i] @ after[i] for i in range(m + 1)]
    turn = np.zeros(m + 1)  # constant turn about z that each motion takes over
    motions = np.zeros((m, 9))
    motions[:, 0] = chain.multiplier
    motions[:, 2] = 1.0
    for i in range(1, m):
        a, twist, b = _zxz(T[i][:3, :3])
        turn[i - 1] += a
        turn[i] += b
        shift = _about_z(-a) @ T[i][:3, 3]
        motions[i, 2:7] = np.cos(twist), np.sin(twist), *shift
    rotation = chain.motion == Motion.ROTATION
    motions[:, 1] = chain.offset + np.where(rotation, turn[:m], 0.0)
    motions[:, 7], motions[:, 8] = np.cos(turn[:m]), np.sin(turn[:m])
    first, last = T[0], T[m]
    if m == 0:
        first = np.eye(4)
    R = first[:3, :3]
    base = np.concatenate([-R.T @ first[:3, 3], R.T.reshape(-1), last[:3, :3].T.reshape(-1)])
    return base, last[:3, 3].copy(), motions


def _variable_rows(chain: KinematicChain, lower: Float64, upper: Float64) -> Float64:
    """Rows LOWER, UPPER, SAMPLE_LOWER, SAMPLE_UPPER, PERIOD, STEP_LIMIT of the kernel."""
    n = len(chain.variables)
    rotates = np.ones(n, dtype=np.bool_)
    periodic = np.ones(n, dtype=np.bool_)
    for kind, column, multiplier in zip(chain.motion, chain.column, chain.multiplier, strict=True):
        rotates[column] &= kind == Motion.ROTATION
        periodic[column] &= kind == Motion.ROTATION and float(multiplier).is_integer()
    sample_lower, sample_upper = lower.copy(), upper.copy()
    reach = np.where(rotates, np.pi, 1.0)
    for j in range(n):
        width = 2.0 * reach[j]
        if upper[j] - lower[j] > width and (periodic[j] or not np.isfinite(upper[j] - lower[j])):
            # One full turn holds every pose that more turns hold; an endless axis starts near 0.
            centre = min(max(0.0, lower[j] + reach[j]), upper[j] - reach[j])
            sample_lower[j], sample_upper[j] = centre - reach[j], centre + reach[j]
    period = np.where(periodic, 2.0 * np.pi, 0.0)
    step_limit = np.where(rotates, MAX_ROTATION_STEP, np.inf)
    return np.array([lower, upper, sample_lower, sample_upper, period, step_limit], dtype=np.float64)


def _table(variables: Float64, size: int) -> Float64:
    low, high = variables[2], variables[3]
    u = 0.5 + TABLE_RANGE * (scrambled_halton(size, variables.shape[1]) - 0.5)
    return np.ascontiguousarray(np.clip(low + u * (high - low), low, high))


def _kinds(chain: KinematicChain) -> Int64:
    """Per motion: is translation, variable, whether an earlier motion has the same variable."""
    _, first = np.unique(chain.column, return_index=True)
    adds = np.ones(len(chain.column), dtype=np.int64)
    adds[first] = 0
    return (
        np.stack([chain.motion != Motion.ROTATION, chain.column, adds], axis=1).astype(np.int64).reshape(-1)
    )


def _z_to(axis: Float64) -> Float64:
    """Transform that turns z to a unit axis, by the smallest rotation."""
    x, y, z = axis
    T = np.eye(4)
    if z < -1.0 + 1e-12:
        T[:3, :3] = np.diag([1.0, -1.0, -1.0])
        return T
    K = np.array([[0.0, 0.0, x], [0.0, 0.0, y], [-x, -y, 0.0]])
    T[:3, :3] += K + K @ K / (1.0 + z)
    return T


def _zxz(R: Float64) -> tuple[float, float, float]:
    """Angles of R = Rz(a) Rx(twist) Rz(b); b absorbs the rest, so that they fit even where a is arbitrary."""
    sine = float(np.hypot(R[0, 2], R[1, 2]))
    a = float(np.arctan2(R[0, 2], -R[1, 2])) if sine > 1e-15 else 0.0
    twist = float(np.arctan2(sine, R[2, 2]))
    c, s = np.cos(twist), np.sin(twist)
    rest = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]]) @ _about_z(-a) @ R
    return a, twist, float(np.arctan2(rest[1, 0], rest[0, 0]))


def _about_z(angle: float) -> Float64:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _transposed(rotation: Float64) -> Float64:
    """Inverse of a transform without translation."""
    return np.ascontiguousarray(rotation.T)
