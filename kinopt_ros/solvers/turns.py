"""Whole turns, as searches for one chain need them: variables with a period (rad; 0 for those without) by column."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64

FARTHEST_TURN = 1e6
"""Largest angle that turns are added to, rad; beyond, this costs more precision than requests leave."""


def less_turns(
    q: Annotated[Float64, "... n"], period: Annotated[Float64, "n"]
) -> Annotated[Float64, "... n"]:
    """Remove whole turns from values, or differences: they are at most half a turn from 0 then."""
    return np.asarray(q - period * np.rint(q / np.where(period > 0.0, period, 1.0)))


def near_zero(
    q: Annotated[Float64, "... n"],
    lower: Annotated[Float64, "n"],
    upper: Annotated[Float64, "n"],
    period: Annotated[Float64, "n"],
) -> Annotated[Float64, "... n"]:
    """Bring endless joints near 0 by whole turns, if the limits allow it: float32 is exact there."""
    if np.maximum.reduce(np.abs(q), axis=None, initial=0.0) <= np.pi:
        return q
    turned = less_turns(q, period)
    return np.asarray(np.where((lower <= turned) & (turned <= upper), turned, q))
