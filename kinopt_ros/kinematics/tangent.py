"""Directions in which a configuration can move: nv of them, where q has nq numbers.

One direction per variable, in their order, but three for the four numbers of a floating joint's quaternion: its angular
velocity in the child's frame, as in ``jacobian.py``, so that R changes to R exp(w). Source: J. Sola, J. Deray, D.
Atchuthan, "A micro Lie theory for state estimation in robotics" (2018), equations 25 and 26.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Immutable, Int64, taken_over
from kinopt_ros.errors import InvalidRequestError, UnknownNameError, quoted
from kinopt_ros.kinematics.se3 import matrix_to_quaternion, quaternion_to_matrix, so3_exp, so3_log
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import quaternion_starts


class UnknownDirectionError(UnknownNameError):
    """A direction that the robot does not have."""

    kind = "direction"
    status = InvalidRequestError.status


@dataclass(frozen=True, eq=False)
class Directions(Immutable):
    """The nv directions of a robot."""

    names: tuple[str, ...]
    """Names of the variables; of rotations of floating joints ``<joint>/rot_x``, ``/rot_y``, ``/rot_z``."""
    nq: int
    scalar_variables: Annotated[Int64, "s"]
    """Indices in q of the variables that are no part of a quaternion."""
    scalar_directions: Annotated[Int64, "s"]
    """Their directions."""
    quaternions: tuple[tuple[int, int], ...]
    """For each quaternion the index in q of qw, and of its first direction."""
    lower: Annotated[Float64, "nv"]
    """Position limit (rad or m); infinite for rotations of floating joints."""
    upper: Annotated[Float64, "nv"]
    velocity: Annotated[Float64, "nv"]
    """Velocity limit, rad/s or m/s."""
    acceleration: Annotated[Float64, "nv"]
    jerk: Annotated[Float64, "nv"]

    def __post_init__(self) -> None:
        taken_over(
            self,
            "scalar_variables",
            "scalar_directions",
            "lower",
            "upper",
            "velocity",
            "acceleration",
            "jerk",
        )

    @property
    def nv(self) -> int:
        """Number of directions."""
        return len(self.names)

    @cached_property
    def of_variable(self) -> Mapping[int, int]:
        """The direction of each variable of q; of a quaternion the first of three, by its qw alone."""
        scalars = zip(self.scalar_variables.tolist(), self.scalar_directions.tolist(), strict=True)
        return MappingProxyType(dict(scalars) | dict(self.quaternions))

    def of_variables(self, variables: Iterable[int]) -> Annotated[Int64, "k"]:
        """Return the directions that move some variables of q, ascending; three for a quaternion whose qw is among
        them."""
        given = list(variables)
        found = self.scalar_directions[np.isin(self.scalar_variables, given)].tolist()
        found += [v + k for q, v in self.quaternions if q in given for k in range(3)]
        return np.array(sorted(found), dtype=np.int64)

    def index(self, name: str) -> int:
        """Return the number of a direction; UnknownDirectionError if there is none of that name."""
        try:
            return self.names.index(name)
        except ValueError:
            raise UnknownDirectionError(name, self.names) from None


@remembered
def directions(robot: RobotModel) -> Directions:
    """Return the directions of a robot."""
    starts = set(quaternion_starts(robot.joints))
    names: list[str] = []
    scalar_q: list[int] = []
    scalar_v: list[int] = []
    quaternions: list[tuple[int, int]] = []
    source: list[int] = []
    variable = 0
    while variable < robot.nq:
        if variable in starts:
            joint = robot.variable_names[variable].rsplit("/", 1)[0]
            quaternions.append((variable, len(names)))
            names += [f"{joint}/rot_{axis}" for axis in "xyz"]
            source += [variable + 1, variable + 2, variable + 3]
            variable += 4
            continue
        scalar_q.append(variable)
        scalar_v.append(len(names))
        source.append(variable)
        names.append(robot.variable_names[variable])
        variable += 1
    turning = np.isin(np.arange(len(names)), scalar_v, invert=True)
    limits = robot.limits
    return Directions(
        tuple(names),
        robot.nq,
        np.array(scalar_q, dtype=np.int64),
        np.array(scalar_v, dtype=np.int64),
        tuple(quaternions),
        np.where(turning, -np.inf, limits.lower[source]),
        np.where(turning, np.inf, limits.upper[source]),
        limits.velocity[source].copy(),
        limits.acceleration[source].copy(),
        limits.jerk[source].copy(),
    )


def moved(
    known: Directions, q: Annotated[Float64, "... nq"], step: Annotated[Float64, "... nv"]
) -> Annotated[Float64, "... nq"]:
    """Return configurations after steps, rad or m; quaternions come back with length 1."""
    q, step = np.asarray(q, dtype=np.float64), np.asarray(step, dtype=np.float64)
    after = np.array(np.broadcast_to(q, (*np.broadcast_shapes(q.shape[:-1], step.shape[:-1]), known.nq)))
    after[..., known.scalar_variables] += step[..., known.scalar_directions]
    for i, v in known.quaternions:
        R = quaternion_to_matrix(after[..., i : i + 4]) @ so3_exp(step[..., v : v + 3])
        after[..., i : i + 4] = matrix_to_quaternion(R)
    return after


def difference(
    known: Directions, a: Annotated[Float64, "... nq"], b: Annotated[Float64, "... nq"]
) -> Annotated[Float64, "... nv"]:
    """Return the steps that lead from configurations a to b: ``moved(a, difference(a, b))`` is b, up to the sign of a
    quaternion. Rotations are at most half a turn."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    step = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), known.nv))
    scalars = known.scalar_variables
    step[..., known.scalar_directions] = b[..., scalars] - a[..., scalars]
    for i, v in known.quaternions:
        R_a, R_b = quaternion_to_matrix(a[..., i : i + 4]), quaternion_to_matrix(b[..., i : i + 4])
        step[..., v : v + 3] = so3_log(np.swapaxes(R_a, -1, -2) @ R_b)
    return step


def free_directions(
    robot: RobotModel, joints: tuple[str, ...], locked: tuple[str, ...] = ()
) -> Annotated[Bool, "nv"]:
    """Return which directions move: those of some joints, but for what is locked.

    Args:
        robot: the robot.
        joints: names of active joints.
        locked: names of directions, or of joints.

    Raises:
        UnknownJointError: a joint that the robot does not have.
        UnknownDirectionError: a name that is neither a direction nor a joint.
        InvalidRequestError: a joint without variables of its own, one of a floating joint's three rotations locked, or
            nothing left that moves.
    """
    known = directions(robot)
    free = np.zeros(known.nv, dtype=bool)
    for name in joints:
        if not robot.joint(name).is_active:
            raise InvalidRequestError(
                f"joint {quoted(name)} has no variables of its own: it cannot be solved for"
            )
        free[known.of_variables(robot.variables_of(name))] = True
    for name in locked:
        if name in robot.joint_by_name:
            free[known.of_variables(robot.variables_of(name))] = False
        else:
            free[known.index(name)] = False
    for _, v in known.quaternions:
        if free[v : v + 3].sum() == 2:
            raise InvalidRequestError(
                f"{known.names[v]} and the next two rotate one body: two of them alone reach every rotation, so the "
                "third cannot be locked; allowed is to lock none, two or all of them"
            )
    if not free.any():
        raise InvalidRequestError("nothing is left that moves: no joint to solve for, or all of them locked")
    return free
