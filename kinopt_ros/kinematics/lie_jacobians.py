"""Inverse Jacobians of the exponentials of SO(3) and SE(3): how logarithms change.

log(exp(d) exp(x)) = x + J(x) d for small d, with J the inverse left Jacobian; log(exp(x) exp(d)) = x + J(-x) d. Twists
are (v, w). Formulas: J. Sola, J. Deray, D. Atchuthan, "A micro Lie theory for state estimation in robotics" (2018),
equations 146 and 179 to 180; T. D. Barfoot, "State estimation for robotics" (2017), section 7.1.
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import log_factor, skew
from kinopt_ros.kinematics.sine_series import LARGEST_SQUARED_ANGLE, series


def so3_left_jacobian_inverse(w: Annotated[Float64, "... 3"]) -> Annotated[Float64, "... 3 3"]:
    """Return inverse left Jacobians at rotation vectors shorter than 2 pi."""
    w = np.asarray(w, dtype=np.float64)
    K = skew(w)
    J: Float64 = np.eye(3) - 0.5 * K + log_factor(np.linalg.norm(w, axis=-1))[..., None, None] * (K @ K)
    return J


def se3_left_jacobian_inverse(twist: Annotated[Float64, "... 6"]) -> Annotated[Float64, "... 6 6"]:
    """Return inverse left Jacobians at twists (v, w) with w shorter than 2 pi."""
    twist = np.asarray(twist, dtype=np.float64)
    inverse = so3_left_jacobian_inverse(twist[..., 3:])
    J = np.zeros((*twist.shape[:-1], 6, 6))
    J[..., :3, :3] = J[..., 3:, 3:] = inverse
    J[..., :3, 3:] = -inverse @ _coupling(twist) @ inverse
    return J


def _coupling(twist: Float64) -> Annotated[Float64, "... 3 3"]:
    """Return the upper right block Q of the left Jacobian."""
    P, K = skew(twist[..., :3]), skew(twist[..., 3:])
    squared = (twist[..., 3:] ** 2).sum(axis=-1)
    small = squared < LARGEST_SQUARED_ANGLE
    t = np.sqrt(np.where(small, 1.0, squared))
    inside = np.where(small, squared, 0.0)
    a = np.where(small, series(inside, 3), (t - np.sin(t)) / t**3)[..., None, None]
    b = np.where(small, series(inside, 4), (np.cos(t) - 1.0 + 0.5 * t**2) / t**4)[..., None, None]
    c = np.where(small, series(inside, 5), (np.sin(t) - t + t**3 / 6.0) / t**5)[..., None, None]
    KP, PK = K @ P, P @ K
    KPK = KP @ K
    Q: Float64 = (
        0.5 * P
        + a * (KP + PK + KPK)
        + b * (K @ KP + PK @ K - 3.0 * KPK)
        + 0.5 * (b - 3.0 * c) * (KPK @ K + K @ KPK)
    )
    return Q
