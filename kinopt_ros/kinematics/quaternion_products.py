"""Products of unit quaternions wxyz, and turns about the axes x, y, z one after the other."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64


def product(a: Annotated[Float64, "... 4"], b: Annotated[Float64, "... 4"]) -> Annotated[Float64, "... 4"]:
    """Return the quaternions of first turning by b and then by a; leading dimensions are broadcast."""
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def conjugate(q: Annotated[Float64, "... 4"]) -> Annotated[Float64, "... 4"]:
    """Return the quaternions of the inverse rotations."""
    return np.asarray(q * np.array([1.0, -1.0, -1.0, -1.0]))


def quaternion_of_angles(angles: Annotated[Float64, "... 3"]) -> Annotated[Float64, "... 4"]:
    """Return the quaternions of ``Rx(a) Ry(b) Rz(c)`` for angles a, b, c (rad); they change as smoothly as these."""
    cosine, sine = np.cos(0.5 * angles), np.sin(0.5 * angles)
    zero = np.zeros(angles.shape[:-1])
    x, y, z = (
        np.stack([cosine[..., k], *(sine[..., k] if i == k else zero for i in range(3))], axis=-1)
        for k in range(3)
    )
    return product(product(x, y), z)


def angles_of_matrix(
    R: Annotated[Float64, "... 3 3"], near: Annotated[Float64, "... 3"]
) -> Annotated[Float64, "... 3"]:
    """Return angles a, b, c (rad) with ``R = Rx(a) Ry(b) Rz(c)``, of all that there are those nearest to given ones.

    Where b is a quarter turn only the sum or difference of a and c is determined; c is then the given one.
    """
    b = np.arctan2(R[..., 0, 2], np.hypot(R[..., 0, 0], R[..., 0, 1]))
    a = np.arctan2(-R[..., 1, 2], R[..., 2, 2])
    c = np.arctan2(-R[..., 0, 1], R[..., 0, 0])
    locked = np.hypot(R[..., 0, 0], R[..., 0, 1]) < _QUARTER_TURN
    # There R has the sine and cosine of a + c (b up) or a - c (b down) in its second column.
    together = np.arctan2(R[..., 2, 1], R[..., 1, 1])
    a = np.where(locked, together - np.sign(b) * near[..., 2], a)
    c = np.where(locked, near[..., 2], c)
    both = np.stack([np.stack([a, b, c], axis=-1), np.stack([a + np.pi, np.pi - b, c + np.pi], axis=-1)])
    both += 2.0 * np.pi * np.rint((near - both) / (2.0 * np.pi))
    off = np.square(both - near).sum(axis=-1)
    return np.asarray(np.where((off[0] <= off[1])[..., None], both[0], both[1]))


_QUARTER_TURN = 1e-9
"""Cosine of the second angle below which it counts as a quarter turn."""
