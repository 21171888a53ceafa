"""What the kernels know of a robot and of the costs of an objective, in arrays: one program serves all of them."""

from typing import Annotated, NamedTuple

from kinopt_ros.array import Bool, Float64, Int64

POSE, REST, LIMITS, MANIPULABILITY, ALIGNMENT, LOOK_AT, CENTER_OF_MASS = range(7)
"""Codes of rows."""
CODE, FRAME, BASE, FIRST, SIZE, NUMBERS, LISTED, COUNT, VARIANT = range(9)
"""Columns of ``Costs.rows``: code; frame, and frame of the base link or -1; first row and number of them; where its
numbers begin; where what it lists begins in ``Costs.lists``, and how many these are; a switch."""
ROW_SIZE = 9
IN_BASE_AXES = 1
"""Variant of POSE: the residual is along the axes of the base link."""
TRANSLATION_ROWS, ROTATION_ROWS, ALL_ROWS = range(3)
"""Variants of MANIPULABILITY."""


class Tree(NamedTuple):
    """N elementary motions, each after the one it moves with, and F frames fixed to them.

    Poses are 12 numbers: the rotation by rows, and the position, m.
    """

    parent: Annotated[Int64, "N"]
    """The motion before it; -1: none."""
    kind: Annotated[Int64, "N"]
    """``robot.chain.Motion``."""
    variable: Annotated[Int64, "N"]
    """Index in q, of quaternions the first of four."""
    direction: Annotated[Int64, "N"]
    """Direction of the robot, of quaternions the first of three."""
    fixed: Annotated[Float64, "N 12"]
    """Pose of the motion in the frame of the one before it."""
    axis: Annotated[Float64, "N 3"]
    drive: Annotated[Float64, "N 2"]
    """Multiplier and offset of the variable."""
    column: Annotated[Int64, "nv"]
    """Number of each direction among the d that move; -1: it is held."""
    frame_motion: Annotated[Int64, "F"]
    """The motion that a frame is fixed to; -1: the root."""
    frame_fixed: Annotated[Float64, "F 12"]
    chain: Annotated[Int64, "C"]
    """Motions from the root to each frame, one frame after the other."""
    chain_start: Annotated[Int64, "F+1"]
    mass: Annotated[Float64, "N+1 4"]
    """Share of the robot's mass that is fixed to each motion, and its moment in the motion's frame, m; the last row is
    the root's."""


class Moving(NamedTuple):
    """The d directions that move."""

    scalar: Annotated[Int64, "s"]
    """Those that are no rotations of quaternions."""
    variable: Annotated[Int64, "s"]
    """Their indices in q."""
    lower: Annotated[Float64, "s"]
    upper: Annotated[Float64, "s"]
    quaternion: Annotated[Int64, "k 4"]
    """Index in q of each quaternion's qw, and the columns of its three rotations; -1: held."""


class Costs(NamedTuple):
    """K costs with R rows in all."""

    rows: Annotated[Int64, "K 9"]
    lists: Annotated[Int64, "L"]
    holds: Annotated[Bool, "R"]
    """Which rows have to hold."""
    one_sided: Annotated[Bool, "R"]


class Model(NamedTuple):
    """A robot and the structure of an objective."""

    tree: Tree
    moving: Moving
    costs: Costs
