"""A path between any two links as a sequence of elementary motions.

``T_base_tip(q) = T_fixed[0] M_0(q) T_fixed[1] M_1(q) ... M_{m-1}(q) T_fixed[m]``

A path may run up the tree, down it, or both. A joint passed upwards is the inverse motion: the same axis
turned round (a planar joint becomes three elementary motions, reversed). Fixed joints, and variables that are
held, disappear into the fixed transforms.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from kinopt_ros.array import Float64, Int64, frozen


class Motion(IntEnum):
    """Elementary motions."""

    ROTATION = 0
    TRANSLATION = 1
    QUATERNION = 2
    """Rotation by four consecutive variables qw, qx, qy, qz (normalised); inverse if multiplier is -1."""


@dataclass(frozen=True, eq=False)
class KinematicChain:
    """Path from base_link to tip_link; m elementary motions driven by n variables of the robot."""

    base_link: str
    tip_link: str
    T_fixed: Annotated[Float64, "m+1 4 4"]
    motion: Annotated[Int64, "m"]
    axis: Annotated[Float64, "m 3"]
    """Unit axes in the frame before the motion."""
    column: Annotated[Int64, "m"]
    """Which of ``variables`` drives the motion (for QUATERNION: the first of its four)."""
    multiplier: Annotated[Float64, "m"]
    offset: Annotated[Float64, "m"]
    """The motion's value is multiplier * q[variables[column]] + offset (rad or m)."""
    variables: Annotated[Int64, "n"]
    """Indices in the robot's q of the variables that move this chain, in ascending order."""

    def __post_init__(self) -> None:
        for array in (self.T_fixed, self.motion, self.axis, self.column, self.multiplier, self.offset):
            frozen(array)
        frozen(self.variables)
