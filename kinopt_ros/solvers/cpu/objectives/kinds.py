"""Kinds of costs that are compiled: how each becomes rows, and which numbers of it the rows need."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

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
    constant: Annotated[Float64, "c"] = field(default_factory=lambda: np.empty(0))
    """Numbers that follow from the robot; they come after those of the cost."""


@dataclass(frozen=True)
class Kind:
    """One kind of costs."""

    rows: Callable[[RobotModel, Any], Rows]
    numbers: Callable[[RobotModel, list[Any]], tuple[Float64, ...]]
    """Those of B costs, in parts of (B, n), or of (n,) that are the same for all."""


def _twelve(poses: list[Float64]) -> Annotated[Float64, "B 12"]:
    T = np.array(poses)
    numbers = np.empty((len(T), 12))
    numbers[:, :9].reshape(-1, 3, 3)[:] = T[:, :3, :3]
    numbers[:, 9:] = T[:, :3, 3]
    return numbers


_IDENTITY = _twelve([np.eye(4)])[0]


def _link_pose_numbers(robot: RobotModel, costs: list[LinkPose]) -> tuple[Float64, ...]:
    targets = _twelve([cost.T_base_target for cost in costs])
    if costs[0].T_link_tool is None:  # that is structure: all of them have none
        return targets, _IDENTITY
    return targets, _twelve([cast(Float64, cost.T_link_tool) for cost in costs])


def _rest_numbers(robot: RobotModel, costs: list[Rest]) -> tuple[Float64, ...]:
    if costs[0].q is None:
        return (robot.default_q,)
    return (np.array([cost.q for cost in costs]),)


def _unit(vectors: list[tuple[float, ...]]) -> Annotated[Float64, "B 3"]:
    given = np.array(vectors)
    unit: Float64 = given / np.sqrt((given * given).sum(axis=1, keepdims=True))
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
    return Rows("REST", len(listed) // 3, listed=tuple(listed))


def _limit_rows(robot: RobotModel, cost: PositionLimits) -> Rows:
    known, listed, constant = directions(robot), [], []
    own = _per_direction(robot, cost.joints)
    for sign, limits in ((-1, known.lower), (1, known.upper)):
        for variable, part, direction in zip(own[::3], own[1::3], own[2::3], strict=True):
            counts = part < 0 and bool(np.isfinite(limits[direction]))
            listed += [variable, direction, sign if counts else 0]
            constant.append(float(limits[direction]) if counts else 0.0)
    return Rows("LIMITS", len(constant), listed=tuple(listed), constant=np.array(constant))


def _index_rows(robot: RobotModel, cost: Manipulability) -> Rows:
    counts = np.isin(np.arange(directions(robot).nv), counted(robot, cost.joints))
    variant = {"translation": "TRANSLATION_ROWS", "rotation": "ROTATION_ROWS", "full": "ALL_ROWS"}[cost.part]
    return Rows("MANIPULABILITY", 1, cost.link, listed=tuple(counts.astype(int).tolist()), variant=variant)


KINDS: dict[type[Cost], Kind] = {
    LinkPose: Kind(
        lambda robot, cost: Rows(
            "POSE", 6, cost.link, cost.base_link, variant="IN_BASE_AXES" if cost.frame == "base" else ""
        ),
        _link_pose_numbers,
    ),
    RelativePose: Kind(
        lambda robot, cost: Rows("POSE", 6, cost.link_b, cost.link_a),
        lambda robot, costs: (_twelve([cost.T_a_b for cost in costs]), _IDENTITY),
    ),
    Rest: Kind(_rest_rows, _rest_numbers),
    Reference: Kind(_rest_rows, lambda robot, costs: (np.array([cost.q[0] for cost in costs]),)),
    PositionLimits: Kind(_limit_rows, lambda robot, costs: (np.array([[cost.margin] for cost in costs]),)),
    Manipulability: Kind(_index_rows, lambda robot, costs: ()),
    Alignment: Kind(
        lambda robot, cost: Rows("ALIGNMENT", 3, cost.link),
        lambda robot, costs: (
            _unit([cost.axis for cost in costs]),
            _unit([cost.direction for cost in costs]),
        ),
    ),
    LookAt: Kind(
        lambda robot, cost: Rows("LOOK_AT", 3, cost.link, cost.base_link),
        lambda robot, costs: (
            _unit([cost.axis for cost in costs]),
            np.array([cost.place for cost in costs]),
        ),
    ),
    CenterOfMass: Kind(
        lambda robot, cost: Rows("CENTER_OF_MASS", 3, base_link=cost.base_link, masses=True),
        lambda robot, costs: (np.array([cost.place for cost in costs]),),
    ),
}
"""The kinds that are compiled, by class: one of a subclass may have another residual."""
