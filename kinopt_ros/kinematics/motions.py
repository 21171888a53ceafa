"""The elementary motions of a chain or a whole robot, evaluated all at once.

A motion behind its fixed transform F is linear in (1, sin v, cos v, v): with K the skew matrix of the axis,
F rot(v) = F (I + K^2) + F K sin v - F K^2 cos v, and F trans(v) = F + F [axis] v. So that all motions of all
states cost one matrix product.
"""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidStateError
from kinopt_ros.kinematics.se3 import quaternion_to_matrix, skew
from kinopt_ros.robot.chain import Motion


class Motions:
    """m elementary motions, each behind a fixed transform."""

    def __init__(
        self,
        T_fixed: Annotated[Float64, "m 4 4"],
        motion: Annotated[Int64, "m"],
        axis: Annotated[Float64, "m 3"],
        column: Annotated[Int64, "m"],
        multiplier: Annotated[Float64, "m"],
        offset: Annotated[Float64, "m"],
    ) -> None:
        m = len(motion)
        K = np.zeros((m, 4, 4))
        K[:, :3, :3] = skew(axis)
        along = np.zeros((m, 4, 4))
        along[:, :3, 3] = axis
        turns = (motion == Motion.ROTATION)[:, None, None]
        FK, FK2 = T_fixed @ K, T_fixed @ K @ K
        basis = np.zeros((m, 4, 4, 4))
        basis[:, 0] = np.where(turns, T_fixed + FK2, T_fixed)
        basis[:, 1] = np.where(turns, FK, 0.0)
        basis[:, 2] = np.where(turns, -FK2, 0.0)
        basis[:, 3] = np.where((motion == Motion.TRANSLATION)[:, None, None], T_fixed @ along, 0.0)
        self._basis = basis.reshape(m, 4, 16)
        self._column, self._multiplier, self._offset = column, multiplier, offset
        self._T_fixed = T_fixed
        self._quaternions = [int(i) for i in np.flatnonzero(motion == Motion.QUATERNION)]

    @property
    def size(self) -> int:
        """Number m of motions."""
        return len(self._column)

    def transforms(self, q: Annotated[Float64, "B n"]) -> Annotated[Float64, "m B 4 4"]:
        """Compute ``T_fixed[i] M_i(q)`` for all motions and states.

        Raises:
            InvalidStateError: a quaternion in q is zero.
        """
        values = q.T[self._column] * self._multiplier[:, None] + self._offset[:, None]
        features = np.empty((*values.shape, 4))
        features[..., 0] = 1.0
        np.sin(values, out=features[..., 1])
        np.cos(values, out=features[..., 2])
        features[..., 3] = values
        T: Float64 = (features @ self._basis).reshape(*values.shape, 4, 4)
        for i in self._quaternions:
            T[i] = self._T_fixed[i] @ self._rotation(i, q)
        return T

    def _rotation(self, i: int, q: Float64) -> Annotated[Float64, "B 4 4"]:
        first = self._column[i]
        quaternion = q[:, first : first + 4]
        if (np.abs(quaternion).max(axis=-1, initial=0.0) == 0.0).any():
            raise InvalidStateError(f"the quaternion in q[{first}:{first + 4}] is zero")
        R = quaternion_to_matrix(quaternion)
        T = np.zeros((len(q), 4, 4))
        T[:, :3, :3] = R if self._multiplier[i] > 0.0 else np.swapaxes(R, -1, -2)
        T[:, 3, 3] = 1.0
        return T


def as_states(
    q: Float64 | Sequence[float], n: int, what: str
) -> tuple[Annotated[Float64, "B n"], tuple[int, ...]]:
    """Return joint values as float64 of shape (B, n), and the leading dimensions they had.

    Raises:
        InvalidStateError: not numbers, or the last dimension is not n; the message gives both shapes.
    """
    try:
        array = np.asarray(q, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidStateError(
            f"joint values of {what} must be an array of numbers of shape (..., {n})"
        ) from None
    if array.ndim == 0 or array.shape[-1] != n:
        raise InvalidStateError(f"joint values of {what} must have shape (..., {n}), not {array.shape}")
    leading = array.shape[:-1]
    return array.reshape(math.prod(leading), n) if len(leading) != 1 else array, leading
