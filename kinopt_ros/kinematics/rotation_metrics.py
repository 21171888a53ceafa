"""Distances between orientations and poses, one number per sample.

Phi1 to Phi5 are the metrics of that number in D. Q. Huynh, "Metrics for 3D rotations: comparison and
analysis", J. Math. Imaging and Vision 35 (2009). With theta the geodesic angle, in [0, pi]: Phi2 = 2
sin(theta / 4), Phi3 = theta / 2, Phi4 = 1 - cos(theta / 2), Phi5 = 2 sqrt(2) sin(theta / 2). Quaternions are
(w, x, y, z) of any length but 0; all inputs broadcast.
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import normalized, pose_error


def phi1_euler(
    rpy_a: Annotated[Float64, "... 3"], rpy_b: Annotated[Float64, "... 3"]
) -> Annotated[Float64, "..."]:
    """Compute Phi1: Euclidean distance of roll, pitch and yaw (rad), each difference wrapped; range [0, pi sqrt(3)].

    Not bi-invariant, and not 0 for all equal rotations: several triples of angles stand for the same one.
    """
    difference = np.asarray(rpy_a, dtype=np.float64) - np.asarray(rpy_b, dtype=np.float64)
    wrapped = np.pi - (np.pi - difference) % (2.0 * np.pi)
    return np.asarray(np.linalg.norm(wrapped, axis=-1))


def phi2_quaternion(
    a: Annotated[Float64, "... 4"], b: Annotated[Float64, "... 4"]
) -> Annotated[Float64, "..."]:
    """Compute Phi2: min(|a - b|, |a + b|); range [0, sqrt(2)]."""
    return _chords(a, b)[0]


def phi3_angle(a: Annotated[Float64, "... 4"], b: Annotated[Float64, "... 4"]) -> Annotated[Float64, "..."]:
    """Compute Phi3: arccos(|a . b|), half the geodesic angle (rad); range [0, pi/2]. Accurate also near 0."""
    short, long = _chords(a, b)
    return np.asarray(2.0 * np.arctan2(short, long))


def phi4_dot(a: Annotated[Float64, "... 4"], b: Annotated[Float64, "... 4"]) -> Annotated[Float64, "..."]:
    """Compute Phi4: 1 - |a . b|; range [0, 1]. Accurate also near 0."""
    return np.asarray(0.5 * _chords(a, b)[0] ** 2)


def phi5_matrix(
    R_a: Annotated[Float64, "... 3 3"], R_b: Annotated[Float64, "... 3 3"]
) -> Annotated[Float64, "..."]:
    """Compute Phi5: Frobenius norm of I - R_a R_b^T; range [0, 2 sqrt(2)]."""
    # R_a - R_b has the same norm, and no product loses digits.
    difference = np.asarray(R_a, dtype=np.float64) - np.asarray(R_b, dtype=np.float64)
    return np.asarray(np.linalg.norm(difference, axis=(-2, -1)))


def translation_distance(
    T_a: Annotated[Float64, "... 4 4"], T_b: Annotated[Float64, "... 4 4"]
) -> Annotated[Float64, "..."]:
    """Compute the distance of the origins (m); range [0, inf)."""
    return np.asarray(np.linalg.norm(np.asarray(T_a)[..., :3, 3] - np.asarray(T_b)[..., :3, 3], axis=-1))


def combined_distance(
    T_a: Annotated[Float64, "... 4 4"], T_b: Annotated[Float64, "... 4 4"], metres_per_radian: float
) -> Annotated[Float64, "..."]:
    """Compute the distance of the origins plus the weighted geodesic angle (m); range [0, inf).

    Args:
        T_a: poses.
        T_b: poses.
        metres_per_radian: how many metres of distance one radian counts as.
    """
    distance, angle = pose_error(T_a, T_b)
    return np.asarray(distance + metres_per_radian * angle)


def _chords(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """Return the smaller and the larger of |a - b| and |a + b|, for a and b of length 1."""
    a, b = normalized(a), normalized(b)
    minus, plus = np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)
    return np.asarray(np.minimum(minus, plus)), np.asarray(np.maximum(minus, plus))
