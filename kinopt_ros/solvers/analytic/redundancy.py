"""Whether an arm can move while its tip rests."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import so3_exp
from kinopt_ros.solvers.analytic.rounding import Axes

_TRIALS = 8
"""Random configurations; in a singular one every arm can."""
_LEAST = 1e-6
"""Ratio of singular values below which a motion counts as none. EAIK ends the process up to 2e-10."""


def is_redundant(axes: Axes, tip: Annotated[Float64, "3"]) -> bool:
    """Check whether the Jacobian of an arm has a null space in every configuration.

    Args:
        axes: its axes where all angles are 0, six at most.
        tip: where its tip is then, m.
    """
    n = len(axes.direction)
    if n == 0:
        return False
    points = np.concatenate([axes.point, tip[None]])
    length = np.abs(points - points[0]).max()
    points = points / (length if length > 0.0 else 1.0)  # so that turning and moving are numbers of one size
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (_TRIALS, n))
    ratios = []
    for q in angles:
        turned, moved = axes.direction.copy(), points.copy()
        for i in range(n):  # each axis carries those after it
            R = so3_exp(q[i] * turned[i])
            turned[i + 1 :] = turned[i + 1 :] @ R.T
            moved[i + 1 :] = moved[i] + (moved[i + 1 :] - moved[i]) @ R.T
        columns = np.concatenate([np.cross(turned, moved[-1] - moved[:-1]), turned], axis=1)
        values = np.linalg.svd(columns, compute_uv=False)
        ratios.append(values[-1] / values[0])
    return bool(max(ratios) < _LEAST)
