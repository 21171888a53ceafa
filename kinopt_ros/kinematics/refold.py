"""Rewriting of a kinematic chain so that every motion is about or along local z.

``T_fixed[i]`` between two motions becomes a shift and a twist about x. Frames are first turned so that each motion
is about or along z; then R = Rz(a) Rx(twist) Rz(b), where Rz(a) joins the motion before and Rz(b) the motion
after (turns about z commute with motions along or about z). Unlike Denavit-Hartenberg parameters this stays
accurate for nearly parallel axes, because the shift is kept whole.
"""

import math
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.robot.chain import KinematicChain, Motion, in_plane_axes

MULTIPLIER, OFFSET, COS_TWIST, SIN_TWIST, SHIFT_X, SHIFT_Y, SHIFT_Z, COS_FIXED, SIN_FIXED = range(9)
"""Columns of the table of motions."""
MOTION_SIZE = 9


def refold(
    chain: KinematicChain,
) -> tuple[Annotated[Float64, "21"], Annotated[Float64, "3"], Annotated[Float64, "m 9"]]:
    """Compute base, tip and table of motions of a chain without quaternion motions.

    Base: inverse of the first fixed transform (position, rotation rows), transposed rotation of the last one (rows).
    Tip: position of the last fixed transform. Table: per motion multiplier and offset of its value; cosine and sine
    of the twist, and the shift, before it; cosine and sine of the constant turn of a translation. The pose of the tip
    between the rotations in ``base`` is the product over the motions of shift, Rx(twist), and Rz(value) or a turn and
    a move along z by value; then the tip's position. (rad, m)
    """
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


def _zxz(R: list[list[float]]) -> tuple[float, float, float]:
    """Return the angles of R = Rz(a) Rx(twist) Rz(b); b absorbs the rest, so that they fit even where a is
    arbitrary."""
    sine = math.hypot(R[0][2], R[1][2])
    a = math.atan2(R[0][2], -R[1][2]) if sine > 1e-15 else 0.0
    twist = math.atan2(sine, R[2][2])
    x, y = _turned_back(a, R[0][0], R[1][0])
    return a, twist, math.atan2(math.cos(twist) * y + math.sin(twist) * R[2][0], x)


def _turned_back(angle: float, x: float, y: float) -> tuple[float, float]:
    """Return Rz(-angle) (x, y)."""
    c, s = math.cos(angle), math.sin(angle)
    return c * x + s * y, c * y - s * x
