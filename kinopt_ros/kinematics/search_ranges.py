"""Ranges and step limits of a search for joint values."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.sampling import WIDEST
from kinopt_ros.robot.chain import KinematicChain, Motion

MAX_ROTATION_STEP = 1.0
"""Largest change of a rotation per step, rad; translations are linear and need no such limit."""


def variable_rows(
    chain: KinematicChain, lower: Annotated[Float64, "n"], upper: Annotated[Float64, "n"]
) -> Annotated[Float64, "6 n"]:
    """Return rows of numbers per variable of a chain (rad or m).

    Rows: lower and upper limit; ends of the range that starts are drawn from; period, 0 if there is none; largest
    change per step.

    Args:
        chain: the chain, without quaternion motions.
        lower: limits of its variables; -inf where there is none.
        upper: likewise.
    """
    n = len(chain.variables)
    rotates = np.ones(n, dtype=np.bool_)
    periodic = np.ones(n, dtype=np.bool_)
    rotation = chain.motion == Motion.ROTATION
    rotates[chain.column[~rotation]] = False
    periodic[chain.column[~rotation | (chain.multiplier % 1.0 != 0.0)]] = False
    # One full turn holds every pose that more turns hold; an endless axis starts near 0, as one of kilometres does.
    reach = np.where(rotates, np.pi, 1.0)
    narrowed = (upper - lower > 2.0 * reach) & (periodic | ~(upper - lower <= WIDEST))
    centre = np.minimum(np.maximum(0.0, lower + reach), upper - reach)
    sample_lower = np.where(narrowed, centre - reach, lower)
    sample_upper = np.where(narrowed, centre + reach, upper)
    period = np.where(periodic, 2.0 * np.pi, 0.0)
    step_limit = np.where(rotates, MAX_ROTATION_STEP, np.inf)
    return np.array([lower, upper, sample_lower, sample_upper, period, step_limit], dtype=np.float64)
