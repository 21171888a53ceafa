"""Steps of single variables: Sec. II-B, eqs. (8), (9), and Sec. III, eqs. (10), (11).

Both are exact for a variable that drives one motion. One that drives several (mimic joints) gets the step that its
Jacobian column asks for.
"""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import cross
from kinopt_ros.robot.chain import Motion
from kinopt_ros.solvers.hjcd.reference.arm import Arm

TINY = 1e-9
"""Projections (m) and axes shorter than this have no direction."""


def position_steps(
    arm: Arm, q: Annotated[Float64, "n"], p_target: Annotated[Float64, "3"]
) -> Annotated[Float64, "n"]:
    """Compute how far each variable alone would bring the tip nearest to the target (rad or m), eqs. (8), (9).

    Eq. (9) prints an arc cosine, which has no sign; here the angle is signed: atan2(z . (u x v), u . v) of the
    projections. 0 where tip or target lie on the axis.
    """
    chain = arm.chain
    p_tip = arm.poses(q)[:3, 3]
    axes, points = arm.axes(q)
    J = arm.jacobian(q)[:3]
    steps = np.zeros(len(q))
    for j in range(len(q)):
        driven = np.flatnonzero(chain.column == j)
        if len(driven) > 1:
            squared = float(J[:, j] @ J[:, j])
            steps[j] = J[:, j] @ (p_target - p_tip) / squared if squared > TINY**2 else 0.0
            continue
        i = driven[0]
        z = axes[i]
        if chain.motion[i] == Motion.TRANSLATION:
            change = float(z @ (p_target - p_tip))
        else:
            u, v = p_tip - points[i], p_target - points[i]
            u, v = u - (u @ z) * z, v - (v @ z) * z
            on_axis = min(np.linalg.norm(u), np.linalg.norm(v)) < TINY
            change = 0.0 if on_axis else float(np.arctan2(z @ cross(u, v), u @ v))
        steps[j] = change / chain.multiplier[i]
    return steps


def orientation_steps(
    arm: Arm, q: Annotated[Float64, "n"], r_o: Annotated[Float64, "3"], factor: float
) -> Annotated[Float64, "n"]:
    """Eqs. (10), (11): factor * sgn(a . z) * phi for each variable (rad), where phi a is the rotation that is missing.

    The text speaks of a projection, eq. (11) takes the whole angle: so does this. sgn(0) = 0.
    """
    phi = float(np.linalg.norm(r_o))
    turning = arm.jacobian(q)[3:]
    along = turning.T @ r_o
    length = np.linalg.norm(turning, axis=0)
    moves = (length > TINY) & (np.abs(along) > TINY * phi)
    return np.asarray(np.where(moves, factor * np.sign(along) * phi / np.where(moves, length, 1.0), 0.0))


def annealed(iteration: int, iterations: int) -> float:
    """Return delta(k) of eq. (11), of which the paper says that it anneals: from 1 to 0.75."""
    return 0.75 + 0.25 * (1.0 - iteration / iterations)
