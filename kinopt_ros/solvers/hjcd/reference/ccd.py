"""Algorithm 1: cyclic coordinate descent on the position, as it is usually done (Sec. II-B)."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.solvers.hjcd.reference.arm import Arm
from kinopt_ros.solvers.hjcd.reference.coordinate_steps import position_steps


def ccd(
    arm: Arm,
    q: Annotated[Float64, "n"],
    p_target: Annotated[Float64, "3"],
    tolerance: float,
    sweeps: int,
) -> tuple[Annotated[Float64, "n"], int]:
    """Turn one joint after another, from tip to base, until the tip is within the tolerance (m) of the target.

    The tip never gets farther from the target: every step ends at the nearest point of a circle or a line, or, where a
    limit is in the way, between there and where it began.

    Returns:
        The configuration, and how many sweeps were made.
    """
    q = arm.clamped(q)
    for sweep in range(sweeps):
        if np.linalg.norm(p_target - arm.poses(q)[:3, 3]) < tolerance:
            return q, sweep
        for j in reversed(range(len(q))):
            changed = q.copy()
            changed[j] += position_steps(arm, q, p_target)[j]
            q = arm.clamped(changed)
    return q, sweeps
