"""Kinds of costs that are compiled: how each becomes rows, and which numbers of it the rows need."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.alignment import Alignment
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.center_of_mass import CenterOfMass
from kinopt_ros.costs.joints import counted
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.look_at import LookAt
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.position_limits import PositionLimits
from kinopt_ros.costs.reference import Reference
from kinopt_ros.costs.relative_pose import RelativePose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.kinematics.tangent import directions
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True)
class Rows:
    """Structure of a cost: what its rows depend on, apart from numbers."""

    code: str
    """Name of the code in ``kernels/model.py``."""
    size: int
    link: str = ""
    base_link: str = ""
    listed: tuple[int, ...] = ()
    variant: str = ""
    """Name of the variant in ``kernels/model.py``."""
    masses: bool = False
    """Whether it looks at all links that have a mass."""
    numbers: Annotated[Float64, "n"] = field(default_factory=lambda: np.empty(0))
    """Its numbers, of which those that differ between costs of one structure are still to be written."""


@dataclass(frozen=True)
class Kind:
    """One kind of costs."""

    rows: Callable[[RobotModel, Any], Rows]
    write: Callable[[Any, Float64], None]
    """Write the numbers of a cost over those of its ``Rows``."""


_TWELVE = np.array([0, 1, 2, 4, 5, 6, 8, 9, 10, 3, 7, 11])
"""Rotation and position, of the entries of a pose."""
_NO_POSE = np.concatenate([np.zeros(12), np.eye(4).ravel()[_TWELVE]])
"""A target that is still to be written, and no tool."""


def _write_link_pose(cost: LinkPose, numbers: Annotated[Float64, "24"]) -> None:
    numbers[:12] = cost.T_base_target.ravel()[_TWELVE]
    if cost.T_link_tool is not None:
        numbers[12:] = cost.T_link_tool.ravel()[_TWELVE]


def _write_relative_pose(cost: RelativePose, numbers: Annotated[Float64, "24"]) -> None:
    numbers[:12] = cost.T_a_b.ravel()[_TWELVE]


def _write_rest(cost: Rest, numbers: Annotated[Float64, "nq"]) -> None:
    if cost.q is not None:
        numbers[:] = cost.q


def _write_reference(cost: Reference, numbers: Annotated[Float64, "nq"]) -> None:
    numbers[:] = cost.q[0]


def _write_margin(cost: PositionLimits, numbers: Annotated[Float64, "n"]) -> None:
    numbers[0] = cost.margin


def _write_nothing(cost: Manipulability, numbers: Annotated[Float64, "0"]) -> None:
    del cost, numbers


def _write_directions(cost: Alignment, numbers: Annotated[Float64, "6"]) -> None:
    numbers[:3], numbers[3:] = _unit(cost.axis), _unit(cost.direction)


def _write_sight(cost: LookAt, numbers: Annotated[Float64, "6"]) -> None:
    numbers[:3], numbers[3:] = _unit(cost.axis), cost.place


def _write_place(cost: CenterOfMass, numbers: Annotated[Float64, "3"]) -> None:
    numbers[:] = cost.place


def _unit(vector: tuple[float, ...]) -> Annotated[Float64, "3"]:
    given = np.array(vector)
    unit: Float64 = given / np.sqrt((given * given).sum())
    return unit


def _per_direction(robot: RobotModel, joints: tuple[str, ...]) -> list[int]:
    """Return for each direction that counts its variable, the component of a quaternion's turn or -1, and the
    direction, of quaternions the first one."""
    known = directions(robot)
    scalar = dict(zip(known.scalar_directions.tolist(), known.scalar_variables.tolist(), strict=True))
    turning = {v + k: (i, k, v) for i, v in known.quaternions for k in range(3)}
    listed: list[int] = []
    for direction in counted(robot, joints).tolist():
        listed += (scalar[direction], -1, direction) if direction in scalar else turning[direction]
    return listed


def _rest_rows(robot: RobotModel, cost: Rest | Reference) -> Rows:
    listed = _per_direction(robot, cost.joints)
    return Rows("REST", len(listed) // 3, listed=tuple(listed), numbers=robot.default_q)


def _limit_rows(robot: RobotModel, cost: PositionLimits) -> Rows:
    known, listed, numbers = directions(robot), [], [0.0]
    own = _per_direction(robot, cost.joints)
    for sign, limits in ((-1, known.lower), (1, known.upper)):
        for variable, part, direction in zip(own[::3], own[1::3], own[2::3], strict=True):
            counts = part < 0 and bool(np.isfinite(limits[direction]))
            listed += [variable, direction, sign if counts else 0]
            numbers.append(float(limits[direction]) if counts else 0.0)
    return Rows("LIMITS", len(numbers) - 1, listed=tuple(listed), numbers=np.array(numbers))


def _index_rows(robot: RobotModel, cost: Manipulability) -> Rows:
    counts = np.isin(np.arange(directions(robot).nv), counted(robot, cost.joints))
    variant = {"translation": "TRANSLATION_ROWS", "rotation": "ROTATION_ROWS", "full": "ALL_ROWS"}[cost.part]
    return Rows("MANIPULABILITY", 1, cost.link, listed=tuple(counts.astype(int).tolist()), variant=variant)


KINDS: dict[type[Cost], Kind] = {
    LinkPose: Kind(
        lambda robot, cost: Rows(
            "POSE",
            6,
            cost.link,
            cost.base_link,
            variant="IN_BASE_AXES" if cost.frame == "base" else "",
            numbers=_NO_POSE,
        ),
        _write_link_pose,
    ),
    RelativePose: Kind(
        lambda robot, cost: Rows("POSE", 6, cost.link_b, cost.link_a, numbers=_NO_POSE), _write_relative_pose
    ),
    Rest: Kind(_rest_rows, _write_rest),
    Reference: Kind(_rest_rows, _write_reference),
    PositionLimits: Kind(_limit_rows, _write_margin),
    Manipulability: Kind(_index_rows, _write_nothing),
    Alignment: Kind(
        lambda robot, cost: Rows("ALIGNMENT", 3, cost.link, numbers=np.empty(6)), _write_directions
    ),
    LookAt: Kind(
        lambda robot, cost: Rows("LOOK_AT", 3, cost.link, cost.base_link, numbers=np.empty(6)), _write_sight
    ),
    CenterOfMass: Kind(
        lambda robot, cost: Rows(
            "CENTER_OF_MASS", 3, base_link=cost.base_link, masses=True, numbers=np.empty(3)
        ),
        _write_place,
    ),
}
"""The kinds that are compiled, by class: one of a subclass may have another residual."""
