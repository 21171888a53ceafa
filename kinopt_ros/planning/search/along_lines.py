"""Paths along straight lines."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import KinoptError


def along_lines(
    corners: Annotated[Float64, "C n"], num_points: int
) -> tuple[Annotated[Float64, "T n"], Annotated[Int64, "C"]]:
    """Place points about evenly along straight lines between corners; return them, and which of them are the corners.

    Raises:
        KinoptError: more corners than points.
    """
    C = len(corners)
    if not 2 <= C <= num_points:
        raise KinoptError(
            f"{C} corners do not fit on a path of {num_points} points; allowed are 2 to {num_points}"
        )
    lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    total = float(lengths.sum())
    share = lengths / total if total > 0.0 else np.full(C - 1, 1.0 / (C - 1))
    at = np.rint(np.concatenate([[0.0], np.cumsum(share)]) * (num_points - 1)).astype(np.int64)
    for k in range(1, C):  # every corner has a point of its own
        at[k] = max(at[k], at[k - 1] + 1)
    at[-1] = num_points - 1
    for k in range(C - 2, 0, -1):
        at[k] = min(at[k], at[k + 1] - 1)
    places = np.arange(num_points)
    path = np.stack([np.interp(places, at, column) for column in corners.T], axis=-1)
    path[at] = corners
    return path, at
