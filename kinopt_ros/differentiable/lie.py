"""Exponentials, logarithms and interpolation of SO(3) and SE(3) as functions of JAX; those of ``kinematics``.

Twists are (v, w). Gradients are finite at all rotations. At small angles the quotients of sine and cosine are series.
At half a turn, where two opposite axes do, the logarithm takes that of ``kinematics.se3``, and gradients are those of
the side that it belongs to. Gradients in matrices count along rotations: what they say across, where no rotation is,
depends on the formula.

Written out, since jaxlie 1.5's SE3.exp has another derivative than the exponential at angles below 1e-5 (in float32,
below 3e-3).
"""

from typing import Any

import jax
import jax.numpy as jnp

from kinopt_ros.differentiable.matrices import applied, product, skew, transposed
from kinopt_ros.differentiable.states import as_floats
from kinopt_ros.kinematics.sine_series import LARGEST_SQUARED_ANGLE, series

_TERMS = 9
"""Terms of the arc tangent's series."""
_LOG_SERIES = 0.02
"""Squared tangent of half the angle below which the arc tangent is a series."""


@jax.jit
def so3_exp(w: Any) -> jax.Array:
    """Return rotation matrices (..., 3, 3) of rotation vectors (..., 3), rad.

    Raises:
        InvalidRequestError: another last dimension than 3.
    """
    return _rotation_and_v(as_floats(w, (3,), "w"))[0]


@jax.jit
def so3_log(R: Any) -> jax.Array:
    """Return rotation vectors (..., 3), of length at most pi, of rotation matrices (..., 3, 3).

    Raises:
        InvalidRequestError: other last dimensions than 3, 3.
    """
    w, v = _quaternion(as_floats(R, (3, 3), "R"))
    squared = (v * v).sum(-1)
    small = squared < _LOG_SERIES * w * w
    ratio = jnp.where(small, squared / jnp.where(small, w * w, 1.0), 0.0)
    series = sum((-ratio) ** k / (2 * k + 1) for k in range(_TERMS)) * 2.0 / jnp.where(small, w, 1.0)
    sine = jnp.sqrt(jnp.where(small, 1.0, squared))
    return jnp.where(small, series, 2.0 * jnp.arctan2(sine, w) / sine)[..., None] * v


@jax.jit
def se3_exp(twist: Any) -> jax.Array:
    """Return rigid motions (..., 4, 4) of twists (..., 6), m and rad.

    Raises:
        InvalidRequestError: another last dimension than 6.
    """
    twist = as_floats(twist, (6,), "twist")
    R, V = _rotation_and_v(twist[..., 3:])
    return _pose(R, applied(V, twist[..., :3]))


@jax.jit
def se3_log(T: Any) -> jax.Array:
    """Return twists (..., 6), with rotation of at most pi, of rigid motions (..., 4, 4).

    Raises:
        InvalidRequestError: other last dimensions than 4, 4.
    """
    T = as_floats(T, (4, 4), "T")
    w = so3_log(T[..., :3, :3])
    squared = (w * w).sum(-1)
    small = squared < LARGEST_SQUARED_ANGLE
    angle = jnp.sqrt(jnp.where(small, 1.0, squared))
    # (1 - (t / 2) cot(t / 2)) / t^2 = (1 - sin(t) t / (2 (1 - cos(t)))) / t^2, by series (E3 - 2 E4) / (2 E2).
    inside = jnp.where(small, squared, 0.0)
    by_series = 0.5 * (series(inside, 3) - 2.0 * series(inside, 4)) / series(inside, 2)
    d = jnp.where(
        small, by_series, (1.0 - 0.5 * angle * jnp.cos(0.5 * angle) / jnp.sin(0.5 * angle)) / angle**2
    )
    p, K = T[..., :3, 3], skew(w)
    Kp = applied(K, p)
    return jnp.concatenate([p - 0.5 * Kp + d[..., None] * applied(K, Kp), w], -1)


@jax.jit
def inverse(T: Any) -> jax.Array:
    """Return inverses of rigid motions (..., 4, 4), by transposition of the rotation.

    Raises:
        InvalidRequestError: other last dimensions than 4, 4.
    """
    T = as_floats(T, (4, 4), "T")
    R = transposed(T[..., :3, :3])
    return _pose(R, -applied(R, T[..., :3, 3]))


@jax.jit
def so3_interpolate(R_a: Any, R_b: Any, s: Any) -> jax.Array:
    """Return R_a exp(s log(R_a^T R_b)), the geodesic from R_a at s = 0 to R_b at s = 1; see
    ``kinematics.interpolation``.

    Args:
        R_a: rotation matrices, (..., 3, 3).
        R_b: likewise.
        s: shares of the way, (...); any numbers.

    Raises:
        InvalidRequestError: other last dimensions than 3, 3.
    """
    R_a, R_b, s = as_floats(R_a, (3, 3), "R_a"), as_floats(R_b, (3, 3), "R_b"), as_floats(s, (), "s")
    R: jax.Array = product(R_a, so3_exp(s[..., None] * so3_log(product(transposed(R_a), R_b))))
    return R


@jax.jit
def se3_interpolate(T_a: Any, T_b: Any, s: Any) -> jax.Array:
    """Return T_a exp(s log(T_a^-1 T_b)), the screw motion from T_a at s = 0 to T_b at s = 1; see
    ``kinematics.interpolation``.

    Args:
        T_a: poses, (..., 4, 4).
        T_b: likewise.
        s: shares of the way, (...); any numbers.

    Raises:
        InvalidRequestError: other last dimensions than 4, 4.
    """
    T_a, T_b, s = as_floats(T_a, (4, 4), "T_a"), as_floats(T_b, (4, 4), "T_b"), as_floats(s, (), "s")
    T: jax.Array = product(T_a, se3_exp(s[..., None] * se3_log(product(inverse(T_a), T_b))))
    return T


def _rotation_and_v(w: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the rotation of a rotation vector, and V, with which v becomes the position of exp(v, w)."""
    squared = (w * w).sum(-1)
    small = squared < LARGEST_SQUARED_ANGLE
    t = jnp.sqrt(jnp.where(small, 1.0, squared))
    inside = jnp.where(small, squared, 0.0)  # powers of large angles are infinite, and so would gradients be
    half = jnp.sin(0.5 * t) / (0.5 * t)
    a = jnp.where(small, series(inside, 1), jnp.sin(t) / t)[..., None, None]
    b = jnp.where(small, series(inside, 2), 0.5 * half * half)[..., None, None]
    c = jnp.where(small, series(inside, 3), (t - jnp.sin(t)) / t**3)[..., None, None]
    K = skew(w)
    K2 = product(K, K)
    identity = jnp.eye(3, dtype=w.dtype)
    return identity + a * K + b * K2, identity + b * K + c * K2


def _quaternion(R: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return w >= 0 (...) and x, y, z (..., 3) of rotation matrices, as ``kinematics.se3.matrix_to_quaternion``."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = ([R[..., i, j] for j in range(3)] for i in range(3))
    rows = [  # 4 q q^T
        [1.0 + xx + yy + zz, zy - yz, xz - zx, yx - xy],
        [zy - yz, 1.0 + xx - yy - zz, xy + yx, xz + zx],
        [xz - zx, xy + yx, 1.0 - xx + yy - zz, yz + zy],
        [yx - xy, xz + zx, yz + zy, 1.0 - xx - yy + zz],
    ]
    Q = jnp.stack([jnp.stack(row, -1) for row in rows], -2)
    largest = jnp.argmax(jnp.stack([rows[k][k] for k in range(4)], -1), -1)
    row = jnp.take_along_axis(Q, largest[..., None, None], -2)[..., 0, :]
    q = row / jnp.sqrt((row * row).sum(-1, keepdims=True))
    q = jnp.where(q[..., :1] < 0.0, -q, q)
    return q[..., 0], q[..., 1:]


def _pose(R: jax.Array, p: jax.Array) -> jax.Array:
    upper = jnp.concatenate([R, p[..., None]], -1)
    last = jnp.broadcast_to(jnp.array([0.0, 0.0, 0.0, 1.0], upper.dtype), (*upper.shape[:-2], 1, 4))
    return jnp.concatenate([upper, last], -2)
