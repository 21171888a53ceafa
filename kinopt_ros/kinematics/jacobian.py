"""Geometric Jacobian in float64, the reference for all others."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.forward import chain_motions
from kinopt_ros.kinematics.motions import as_states
from kinopt_ros.kinematics.se3 import cross
from kinopt_ros.robot.chain import KinematicChain, Motion


def geometric_jacobian(
    chain: KinematicChain, q: Annotated[Float64, "... n"]
) -> Annotated[Float64, "... 6 k"]:
    """Compute the velocity of the chain's tip per unit velocity of what moves it.

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
    frames = chain_motions(chain).transforms(
        states
    )  # in place: each motion's frame becomes the one behind it
    for i in range(1, m):
        np.matmul(frames[i - 1], frames[i], out=frames[i])
    p_tip = (frames[-1] @ chain.T_fixed[-1])[:, :3, 3]
    lever = p_tip - frames[..., :3, 3]
    # A motion does not turn its own axis, so the frame behind it serves as well as the one before.
    axes = (frames[..., :3, :3] @ (chain.multiplier[:, None] * chain.axis)[:, None, :, None])[..., 0]
    linear = cross(axes, lever)
    for i, kind in enumerate(chain.motion):
        column = first_column[i]
        if kind == Motion.TRANSLATION:
            J[:, :3, column] += axes[i]
        elif kind == Motion.ROTATION:
            J[:, :3, column] += linear[i]
            J[:, 3:, column] += axes[i]
        else:
            child_axes = _child_axes(chain, i, frames)
            J[:, :3, column : column + 3] = cross(child_axes, lever[i][:, None]).swapaxes(-1, -2)
            J[:, 3:, column : column + 3] = child_axes.swapaxes(-1, -2)
    return J.reshape(*leading, 6, k)


def _child_axes(
    chain: KinematicChain, i: int, frames: Annotated[Float64, "m B 4 4"]
) -> Annotated[Float64, "B 3 3"]:
    """Return the axes, as rows in the base frame, that angular velocities of a floating joint's child refer to."""
    if chain.multiplier[i] > 0.0:
        return np.swapaxes(frames[i, :, :3, :3], -1, -2)
    # Passed upwards, the child's frame is the one before the motion, and what follows turns back.
    before = frames[i - 1, :, :3, :3] if i else np.broadcast_to(np.eye(3), (frames.shape[1], 3, 3))
    return -np.swapaxes(before @ chain.T_fixed[i, :3, :3], -1, -2)


def tangent_columns(chain: KinematicChain) -> tuple[Annotated[Int64, "m"], int]:
    """Return the first Jacobian column of each motion, and the number of columns k."""
    quaternions = np.unique(chain.column[chain.motion == Motion.QUATERNION])
    before = np.searchsorted(quaternions, chain.column)  # quaternions whose fourth number has no column
    return np.asarray(chain.column - before, dtype=np.int64), len(chain.variables) - len(quaternions)
