"""Float64 reference Jacobians."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.forward import chain_motions
from kinopt_ros.kinematics.motions import as_states
from kinopt_ros.robot.chain import KinematicChain, Motion


def geometric_jacobian(
    chain: KinematicChain, q: Annotated[Float64, "... n"]
) -> Annotated[Float64, "... 6 k"]:
    """Velocity of the chain's tip per unit velocity of what moves it.

    Rows: linear velocity of the tip's origin (m/s), then angular velocity (rad/s), both in the base frame.
    Columns: one per variable of the chain, in their order, but three for the four numbers of a quaternion:
    the angular velocity of a floating joint in its child's frame (R changes to R exp(w)). A floating joint so
    has six
    columns: three for x, y, z, which move along the axes of the joint's frame, and three for rotation; a
    planar joint has three. Motions that share a variable, as mimic joints do, are summed in its column.

    Raises:
        InvalidStateError: the last dimension is not n, or a quaternion is zero.
    """
    states, leading = as_states(q, len(chain.variables), f"the chain {chain.base_link} -> {chain.tip_link}")
    first_column, k = tangent_columns(chain)
    J = np.zeros((len(states), 6, k))
    m = len(chain.motion)
    if m == 0:
        return J.reshape(*leading, 6, k)
    frames = chain_motions(chain).transforms(states)  # turned into the frames behind each motion, in place
    before = np.empty((m, len(states), 3, 3))
    R = np.broadcast_to(np.eye(3), (len(states), 3, 3))
    for i in range(m):
        before[i] = R @ chain.T_fixed[i, :3, :3]
        if i:
            frames[i] = frames[i - 1] @ frames[i]
        R = frames[i, :, :3, :3]
    origin = frames[..., :3, 3]
    p_tip = (frames[-1] @ chain.T_fixed[-1])[:, :3, 3]
    for i in range(m):
        column, multiplier = first_column[i], chain.multiplier[i]
        if chain.motion[i] == Motion.QUATERNION:
            # Inverted (multiplier -1), the child's frame is the one before the motion; it turns back.
            axes = np.swapaxes(frames[i, :, :3, :3] if multiplier > 0.0 else -before[i], -1, -2)
        else:
            axes = (before[i] @ (multiplier * chain.axis[i]))[:, None]
        for step in range(axes.shape[1]):
            axis = axes[:, step]
            if chain.motion[i] == Motion.TRANSLATION:
                J[:, :3, column] += axis
            else:
                J[:, :3, column + step] += np.cross(axis, p_tip - origin[i])
                J[:, 3:, column + step] += axis
    return J.reshape(*leading, 6, k)


def tangent_columns(chain: KinematicChain) -> tuple[Annotated[Int64, "m"], int]:
    """First Jacobian column of each motion, and the number of columns k."""
    quaternions = np.unique(chain.column[chain.motion == Motion.QUATERNION])
    before = np.searchsorted(quaternions, chain.column)  # quaternions whose fourth number has no column
    return np.asarray(chain.column - before, dtype=np.int64), len(chain.variables) - len(quaternions)
