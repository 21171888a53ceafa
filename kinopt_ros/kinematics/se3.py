"""Rotations and rigid motions in float64, batched over any leading dimensions.

Quaternions are (w, x, y, z). ``T_a_b`` is the pose of frame b in frame a. Angles are radians, lengths metres.
A twist is (v, w): translation part first, then rotation part. Formulas: J. Sola, J. Deray, D. Atchuthan,
"A micro Lie theory for state estimation in robotics" (2018), appendices B and D.
"""

import math
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Bool, Float64

LARGEST = 1e100
"""Largest number (m or rad) in poses and states; larger ones are taken for defects, as their squares overflow."""
_SMALL_ANGLE = 1e-4
"""Angle below which the quotients of sine and cosine are series; the first left-out term is below 1e-17 there."""


def normalized(quaternion: Annotated[Float64, "... 4"]) -> Annotated[Float64, "... 4"]:
    """Scale quaternions to length 1; NaN where the length is 0."""
    quaternion = np.asarray(quaternion, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        unit: Float64 = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
    return unit


def quaternion_to_matrix(quaternion: Annotated[Float64, "... 4"]) -> Annotated[Float64, "... 3 3"]:
    """Return rotation matrices of quaternions wxyz of any length but 0 (NaN for those)."""
    w, x, y, z = np.moveaxis(normalized(quaternion), -1, 0)
    R = np.empty((*w.shape, 3, 3))
    R[..., 0, 0], R[..., 0, 1], R[..., 0, 2] = (
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
    )
    R[..., 1, 0], R[..., 1, 1], R[..., 1, 2] = (
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
    )
    R[..., 2, 0], R[..., 2, 1], R[..., 2, 2] = (
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    )
    return R


def matrix_to_quaternion(R: Annotated[Float64, "... 3 3"]) -> Annotated[Float64, "... 4"]:
    """Return unit quaternions wxyz of rotation matrices, with w >= 0.

    The column of 4 q q^T with the largest diagonal entry is normalised, which is accurate at every angle
    (S. W. Shepperd, "Quaternion from rotation matrix", 1978).
    """
    R = np.asarray(R, dtype=np.float64)
    xx, yy, zz = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    Q = np.empty((*R.shape[:-2], 4, 4))  # 4 q q^T
    Q[..., 0, 0], Q[..., 1, 1] = 1 + xx + yy + zz, 1 + xx - yy - zz
    Q[..., 2, 2], Q[..., 3, 3] = 1 - xx + yy - zz, 1 - xx - yy + zz
    Q[..., 0, 1] = Q[..., 1, 0] = R[..., 2, 1] - R[..., 1, 2]
    Q[..., 0, 2] = Q[..., 2, 0] = R[..., 0, 2] - R[..., 2, 0]
    Q[..., 0, 3] = Q[..., 3, 0] = R[..., 1, 0] - R[..., 0, 1]
    Q[..., 1, 2] = Q[..., 2, 1] = R[..., 0, 1] + R[..., 1, 0]
    Q[..., 1, 3] = Q[..., 3, 1] = R[..., 0, 2] + R[..., 2, 0]
    Q[..., 2, 3] = Q[..., 3, 2] = R[..., 1, 2] + R[..., 2, 1]
    largest = np.argmax(np.diagonal(Q, axis1=-2, axis2=-1), axis=-1)
    quaternion = normalized(np.take_along_axis(Q, largest[..., None, None], axis=-2)[..., 0, :])
    flipped: Float64 = np.where(quaternion[..., :1] < 0.0, -quaternion, quaternion)
    return flipped


def rpy_to_matrix(rpy: Annotated[Float64, "... 3"]) -> Annotated[Float64, "... 3 3"]:
    """Return Rz(yaw) Ry(pitch) Rx(roll) of angles (roll, pitch, yaw), as in URDF."""
    rpy = np.asarray(rpy, dtype=np.float64)
    (sr, sp, sy), (cr, cp, cy) = np.moveaxis(np.sin(rpy), -1, 0), np.moveaxis(np.cos(rpy), -1, 0)
    R = np.empty((*rpy.shape[:-1], 3, 3))
    R[..., 0, 0], R[..., 0, 1], R[..., 0, 2] = cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr
    R[..., 1, 0], R[..., 1, 1], R[..., 1, 2] = sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr
    R[..., 2, 0], R[..., 2, 1], R[..., 2, 2] = -sp, cp * sr, cp * cr
    return R


def matrix_to_rpy(R: Annotated[Float64, "... 3 3"]) -> Annotated[Float64, "... 3"]:
    """Return angles (roll, pitch, yaw) with pitch in [-pi/2, pi/2]; at pitch +-pi/2 roll is chosen as 0."""
    R = np.asarray(R, dtype=np.float64)
    cos_pitch = np.hypot(R[..., 0, 0], R[..., 1, 0])
    regular = cos_pitch > 1e-9
    roll = np.where(regular, np.arctan2(R[..., 2, 1], R[..., 2, 2]), 0.0)
    pitch = np.arctan2(-R[..., 2, 0], cos_pitch)
    yaw = np.where(regular, np.arctan2(R[..., 1, 0], R[..., 0, 0]), np.arctan2(-R[..., 0, 1], R[..., 1, 1]))
    return np.stack([roll, pitch, yaw], axis=-1)


def pose(R: Annotated[Float64, "... 3 3"], p: Annotated[Float64, "... 3"]) -> Annotated[Float64, "... 4 4"]:
    """Return homogeneous matrices of rotations and positions; leading dimensions are broadcast."""
    R, p = np.asarray(R, dtype=np.float64), np.asarray(p, dtype=np.float64)
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0
    return T


def inverse(T_a_b: Annotated[Float64, "... 4 4"]) -> Annotated[Float64, "... 4 4"]:
    """Return ``T_b_a``, by transposition of the rotation."""
    T_a_b = np.asarray(T_a_b, dtype=np.float64)
    R_b_a = np.swapaxes(T_a_b[..., :3, :3], -1, -2)
    return pose(R_b_a, -(R_b_a @ T_a_b[..., :3, 3, None])[..., 0])


def cross(a: Annotated[Float64, "... 3"], b: Annotated[Float64, "... 3"]) -> Annotated[Float64, "... 3"]:
    """Return cross products; numpy's own costs several times as much on small arrays."""
    product = np.empty(np.broadcast_shapes(a.shape, b.shape))
    product[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    product[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    product[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


def skew(w: Annotated[Float64, "... 3"]) -> Annotated[Float64, "... 3 3"]:
    """Return matrices K with K v = w x v."""
    w = np.asarray(w, dtype=np.float64)
    K = np.zeros((*w.shape[:-1], 3, 3))
    K[..., 0, 1], K[..., 0, 2], K[..., 1, 2] = -w[..., 2], w[..., 1], -w[..., 0]
    K[..., 1, 0], K[..., 2, 0], K[..., 2, 1] = w[..., 2], -w[..., 1], w[..., 0]
    return K


def so3_exp(w: Annotated[Float64, "... 3"]) -> Annotated[Float64, "... 3 3"]:
    """Return rotation matrices of rotation vectors (axis times angle, rad)."""
    w = np.asarray(w, dtype=np.float64)
    a, b, _ = _exp_factors(np.linalg.norm(w, axis=-1))
    K = skew(w)
    R: Float64 = np.eye(3) + a[..., None, None] * K + b[..., None, None] * (K @ K)
    return R


def so3_log(R: Annotated[Float64, "... 3 3"]) -> Annotated[Float64, "... 3"]:
    """Return rotation vectors, of length at most pi, of rotation matrices. Accurate at all angles, also 0 and pi."""
    if np.shape(R) == (3, 3):
        return np.array(_one_log(np.asarray(R, dtype=np.float64).reshape(9).tolist()))
    quaternion = matrix_to_quaternion(R)
    w, v = quaternion[..., 0], quaternion[..., 1:]
    sine = np.linalg.norm(v, axis=-1)
    small = sine < _SMALL_ANGLE
    safe = np.where(small, 1.0, sine)
    # Series of 2 atan(s / w) / s for small s, with w = sqrt(1 - s^2).
    factor = np.where(small, 2.0 + sine * sine / 3.0, 2.0 * np.arctan2(sine, w) / safe)
    log: Float64 = factor[..., None] * v
    return log


def _one_log(r: list[float]) -> tuple[float, float, float]:
    """Compute ``so3_log`` of the entries of one matrix, row by row, in a tenth of the time that arrays take."""
    xx, yy, zz = r[0], r[4], r[8]
    squares = (1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz)
    k = squares.index(max(squares))
    x, y, z = r[7] - r[5], r[2] - r[6], r[3] - r[1]
    xy, xz, yz = r[1] + r[3], r[2] + r[6], r[5] + r[7]
    w, a, b, c = (
        (squares[0], x, y, z),
        (x, squares[1], xy, xz),
        (y, xy, squares[2], yz),
        (z, xz, yz, squares[3]),
    )[k]
    length = math.sqrt(w * w + a * a + b * b + c * c)
    if not length > 0.0:
        return math.nan, math.nan, math.nan
    if w < 0.0:
        length = -length
    w, a, b, c = w / length, a / length, b / length, c / length
    sine = math.sqrt(a * a + b * b + c * c)
    f = 2.0 + sine * sine / 3.0 if sine < _SMALL_ANGLE else 2.0 * math.atan2(sine, w) / sine
    return f * a, f * b, f * c


def se3_exp(twist: Annotated[Float64, "... 6"]) -> Annotated[Float64, "... 4 4"]:
    """Return rigid motions of twists (v, w)."""
    twist = np.asarray(twist, dtype=np.float64)
    v, w = twist[..., :3], twist[..., 3:]
    a, b, c = _exp_factors(np.linalg.norm(w, axis=-1))
    K = skew(w)
    K2 = K @ K
    R = np.eye(3) + a[..., None, None] * K + b[..., None, None] * K2
    V = np.eye(3) + b[..., None, None] * K + c[..., None, None] * K2
    return pose(R, (V @ v[..., None])[..., 0])


def se3_log(T: Annotated[Float64, "... 4 4"]) -> Annotated[Float64, "... 6"]:
    """Return twists (v, w), with rotation of at most pi, of rigid motions."""
    T = np.asarray(T, dtype=np.float64)
    w = so3_log(T[..., :3, :3])
    K = skew(w)
    V_inverse = np.eye(3) - 0.5 * K + log_factor(np.linalg.norm(w, axis=-1))[..., None, None] * (K @ K)
    v = (V_inverse @ T[..., :3, 3, None])[..., 0]
    return np.concatenate([v, w], axis=-1)


def log_factor(angle: Annotated[Float64, "..."]) -> Annotated[Float64, "..."]:
    """Return (1 - (t / 2) cot(t / 2)) / t^2 for angles t below 2 pi."""
    small = angle < _SMALL_ANGLE
    safe = np.where(small, 1.0, angle)
    half = 0.5 * safe
    return np.where(
        small, 1.0 / 12.0 + angle**2 / 720.0, (1.0 - half * np.cos(half) / np.sin(half)) / safe**2
    )


def _exp_factors(angle: Float64) -> tuple[Float64, Float64, Float64]:
    """Return sin(t)/t, (1 - cos t)/t^2, (t - sin t)/t^3."""
    small = angle < _SMALL_ANGLE
    t = np.where(small, 1.0, angle)
    t2 = angle * angle
    a = np.where(small, 1.0 - t2 / 6.0, np.sin(t) / t)
    b = np.where(small, 0.5 - t2 / 24.0, 0.5 * (np.sin(0.5 * t) / (0.5 * t)) ** 2)
    c = np.where(small, 1.0 / 6.0 - t2 / 120.0, (t - np.sin(t)) / t**3)
    return np.asarray(a), np.asarray(b), np.asarray(c)


def rotation_angle(R: Annotated[Float64, "... 3 3"]) -> Annotated[Float64, "..."]:
    """Return geodesic angles in [0, pi] of rotation matrices.

    By atan2 of sine and cosine: the arc cosine alone loses half of the digits near 0 and near pi.
    """
    R = np.asarray(R, dtype=np.float64)
    x = R[..., 2, 1] - R[..., 1, 2]
    y = R[..., 0, 2] - R[..., 2, 0]
    z = R[..., 1, 0] - R[..., 0, 1]
    trace = R[..., 0, 0] + R[..., 1, 1] + R[..., 2, 2]
    angle: Float64 = np.arctan2(np.sqrt(x * x + y * y + z * z), trace - 1.0)
    return angle


def pose_error(
    T_base_a: Annotated[Float64, "... 4 4"], T_base_b: Annotated[Float64, "... 4 4"]
) -> tuple[Annotated[Float64, "..."], Annotated[Float64, "..."]]:
    """Compute distance (m) and geodesic angle (rad, in [0, pi]) between two poses."""
    T_base_a, T_base_b = np.asarray(T_base_a, dtype=np.float64), np.asarray(T_base_b, dtype=np.float64)
    if T_base_a.size == 16 and T_base_b.shape == T_base_a.shape:
        one = _one_pose_error(T_base_a.reshape(16).tolist(), T_base_b.reshape(16).tolist())
        leading = T_base_a.shape[:-2]
        return np.full(leading, one[0]), np.full(leading, one[1])
    offset = T_base_b[..., :3, 3] - T_base_a[..., :3, 3]
    distance = np.sqrt(np.add.reduce(offset * offset, axis=-1))  # norm() takes twice as long for one pose
    R_a_b = np.swapaxes(T_base_a[..., :3, :3], -1, -2) @ T_base_b[..., :3, :3]
    return np.asarray(distance), np.asarray(rotation_angle(R_a_b))


def _one_pose_error(a: list[float], b: list[float]) -> tuple[float, float]:
    """Compute position (m) and orientation error (rad) from the entries of two matrices, row by row.

    This takes some 10 us less than with arrays.
    """
    dx, dy, dz = b[3] - a[3], b[7] - a[7], b[11] - a[11]
    # Entries of R_a^T R_b: what is antisymmetric, and the trace.
    x = a[2] * b[1] + a[6] * b[5] + a[10] * b[9] - (a[1] * b[2] + a[5] * b[6] + a[9] * b[10])
    y = a[0] * b[2] + a[4] * b[6] + a[8] * b[10] - (a[2] * b[0] + a[6] * b[4] + a[10] * b[8])
    z = a[1] * b[0] + a[5] * b[4] + a[9] * b[8] - (a[0] * b[1] + a[4] * b[5] + a[8] * b[9])
    trace = (
        a[0] * b[0] + a[4] * b[4] + a[8] * b[8] + a[1] * b[1] + a[5] * b[5] + a[9] * b[9]
        + a[2] * b[2] + a[6] * b[6] + a[10] * b[10]
    )  # fmt: skip
    angle = math.atan2(math.sqrt(x * x + y * y + z * z), trace - 1.0)
    return math.sqrt(dx * dx + dy * dy + dz * dz), angle


def is_pose(T: Annotated[Float64, "... 4 4"], tolerance: float = 1e-6) -> Annotated[Bool, "..."]:
    """Check which matrices have R R^T = I, det R = +1, last row 0 0 0 1, each to the tolerance, and positions up to
    LARGEST."""
    T = np.asarray(T, dtype=np.float64)
    if T.size == 16:
        return np.full(T.shape[:-2], is_one_pose(T.reshape(16).tolist(), tolerance))
    # By entries, as products of many small matrices take numpy ten times as long. Comparisons with NaN are false.
    values = np.ascontiguousarray(T.reshape(-1, 16).T)
    with np.errstate(over="ignore", invalid="ignore"):
        unit, right_handed, last_row = _pose_errors(values)
        valid: Bool = right_handed > 0.0
        for error in (*unit, *last_row):
            valid &= np.abs(error) <= tolerance
        for position in values[3:12:4]:
            valid &= np.abs(position) <= LARGEST
    return valid.reshape(T.shape[:-2])


def is_one_pose(values: list[float], tolerance: float) -> bool:
    """Check ``is_pose`` for the entries of one matrix, row by row: some 30 us less than with arrays."""
    (xx, yy, zz, xy, xz, yz), right_handed, (a, b, c, d) = _pose_errors(values)
    return (
        right_handed > 0.0
        and abs(xx) <= tolerance
        and abs(yy) <= tolerance
        and abs(zz) <= tolerance
        and abs(xy) <= tolerance
        and abs(xz) <= tolerance
        and abs(yz) <= tolerance
        and abs(a) <= tolerance
        and abs(b) <= tolerance
        and abs(c) <= tolerance
        and abs(d) <= tolerance
        and abs(values[3]) <= LARGEST
        and abs(values[7]) <= LARGEST
        and abs(values[11]) <= LARGEST
    )


def pose_defect(T: Annotated[Float64, "4 4"], tolerance: float, farthest: float = LARGEST) -> str:
    """Return what is wrong with a matrix that ``is_pose`` refuses, or that is farther away than allowed, m."""
    values = np.asarray(T, dtype=np.float64).reshape(16)
    if not np.isfinite(values).all():
        return "it has numbers that are not finite; allowed are finite ones"
    far = np.abs(values[3:12:4]).max()
    if far > farthest:
        return f"its position has {far:g} m; allowed is at most {farthest:g} m"
    with np.errstate(over="ignore", invalid="ignore"):
        unit, right_handed, last_row = _pose_errors(values)
        off = float(np.abs(unit).max())
    if not np.abs(last_row).max() <= tolerance:
        return f"its last row is {' '.join(f'{value:g}' for value in values[12:])}; allowed is 0 0 0 1"
    if not off <= tolerance:
        return (
            f"its rotation R is not orthonormal, as R R^T is {off:.1e} off the identity; allowed is {tolerance:g}: "
            "numbers rounded to a few digits are not enough, and there is no scale"
        )
    return f"its rotation has the determinant {right_handed:.3g}; allowed is 1, a right-handed one"


def _pose_errors(values: Any) -> tuple[tuple[Any, ...], Any, tuple[Any, ...]]:
    """Return R R^T - I (its six entries), det R, and the last row less 0 0 0 1, for the entries of a matrix row by row:
    numbers, or arrays."""
    xx, yx, zx, _, xy, yy, zy, _, xz, yz, zz, _, t0, t1, t2, t3 = values
    unit = (
        xx * xx + yx * yx + zx * zx - 1.0,
        xy * xy + yy * yy + zy * zy - 1.0,
        xz * xz + yz * yz + zz * zz - 1.0,
        xx * xy + yx * yy + zx * zy,
        xx * xz + yx * yz + zx * zz,
        xy * xz + yy * yz + zy * zz,
    )
    determinant = xx * (yy * zz - zy * yz) + yx * (zy * xz - xy * zz) + zx * (xy * yz - yy * xz)
    return unit, determinant, (t0, t1, t2, t3 - 1.0)
