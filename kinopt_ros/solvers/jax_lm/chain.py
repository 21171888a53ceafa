"""Kinematic chain as a program sees it: what is fixed when the program is compiled, and numbers that may change."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.refold import refold
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.kinematics.search_ranges import variable_rows
from kinopt_ros.robot.chain import KinematicChain, Motion, chain_between
from kinopt_ros.robot.model import RobotModel

_EXACT = 1e-14
"""Distance from 0, 1 or -1 up to which numbers are taken to come from right angles.

Answers are verified with the robot's own numbers."""
_ROUNDING = 2e-7
"""Relative rounding error of float32."""


@dataclass(frozen=True)
class ChainShape:
    """Shape of a chain that a compiled program depends on: one program serves all chains of equal shape."""

    variables: int
    translation: tuple[bool, ...]
    """Per motion, whether it moves along z; else it turns about z."""
    column: tuple[int, ...]
    """Per motion, the variable that drives it."""
    turns: tuple[bool, ...]
    """Per variable, whether whole turns lead to other values of it inside its limits."""
    exact: tuple[float | None, ...]
    """Values of the chain's numbers that are known to be 0, 1 or -1; None for the others."""


@dataclass(frozen=True, eq=False)
class LaneChain:
    """A chain of m motions driven by n variables; see ``kinematics.refold``."""

    shape: ChainShape
    numbers: Annotated[Float64, "9m+12"]
    """Table of motions, and the last fixed transform (position, rotation rows)."""
    T_base_first: Annotated[Float64, "4 4"]
    """Frame before the first motion."""
    ranges: Annotated[Float64, "4 n"]
    """Lower and upper limits, largest steps back and forth of the variables, rad or m."""
    ranges32: Annotated[np.ndarray, "4 n"]
    """``ranges`` in float32, rounded so that they are inside the float64 limits."""
    period: Annotated[Float64, "n"]
    """Period of each variable: 2 pi, or 0 if it has none."""
    sample: Annotated[Float64, "2 n"]
    """Ends of the ranges that starts are drawn from."""
    variables: Annotated[Int64, "n"]
    """Indices in the robot's q."""


def lane_chain(robot: RobotModel, chain: KinematicChain) -> LaneChain:
    """Pack a chain without quaternion motions."""
    base, tip, motions = refold(chain)
    numbers = np.concatenate([motions.reshape(-1), tip, base[12:21].reshape(3, 3).T.reshape(-1)])
    for value in (-1.0, 0.0, 1.0):
        numbers[np.abs(numbers - value) < _EXACT] = value
    whole = chain_between(robot, chain.base_link, chain.tip_link)
    exact = np.isin(numbers, (-1.0, 0.0, 1.0))
    exact[motions.size :] = False  # one program serves all tools
    if len(whole.variables) != len(chain.variables):
        exact[:] = (
            False  # values of held joints are in the numbers: other ones shall not need another program
        )
    T_first_base = np.eye(4)
    T_first_base[:3, 3], T_first_base[:3, :3] = base[:3], base[3:12].reshape(3, 3)
    limits = robot.limits
    rows = variable_rows(chain, limits.lower[chain.variables], limits.upper[chain.variables])
    lower, upper, period, most = rows[[0, 1, 4, 5]]
    return LaneChain(
        shape=ChainShape(
            variables=len(chain.variables),
            translation=tuple((chain.motion == Motion.TRANSLATION).tolist()),
            column=tuple(chain.column.tolist()),
            turns=tuple(((period > 0.0) & (upper - lower >= period)).tolist()),
            exact=tuple(
                float(number) if known else None for number, known in zip(numbers, exact, strict=True)
            ),
        ),
        numbers=numbers,
        T_base_first=inverse(T_first_base),
        ranges=np.stack([lower, upper, -most, most]),
        ranges32=np.stack([*_narrowed(lower, upper), -most, most]).astype(np.float32),
        period=period,
        sample=rows[2:4],
        variables=chain.variables,
    )


def _narrowed(
    lower: Annotated[Float64, "n"], upper: Annotated[Float64, "n"]
) -> tuple[Annotated[Float64, "n"], Annotated[Float64, "n"]]:
    """Return limits that stay inside the given ones when they are rounded to float32."""
    margin = _ROUNDING * np.maximum(1.0, np.maximum(np.abs(lower), np.abs(upper)))
    margin = np.where(np.isfinite(margin), margin, 0.0)
    narrow = upper - lower < 2.0 * margin
    margin[narrow] = 0.5 * (upper - lower)[narrow]
    return lower + margin, upper - margin
