"""Jacobians in the frame that a request names, and joint velocities that make a twist.

A twist is (v, w): linear velocity of the tip's origin, m/s, and angular velocity, rad/s, of the tip against the base
link. ``frame`` says along which axes it is given: those of the root link (``world``), of the base link (``base``) or of
the tip (``tip``); the same motion has another twist in each, and the same joint velocities.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64, as_numbers
from kinopt_ros.errors import (
    InvalidGoalError,
    InvalidRequestError,
    InvalidStateError,
    KinoptError,
    UnknownNameError,
    UnsupportedFeatureError,
)
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.jacobian import geometric_jacobian, tangent_columns
from kinopt_ros.robot.chain import KinematicChain, Motion, chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.status import Status

WORLD, BASE, TIP = "world", "base", "tip"
FRAMES = (WORLD, BASE, TIP)
NEAR_SINGULAR = 1e-4
"""Ratio of the smallest to the largest singular value below which a configuration is called near-singular."""
_DAMPED = 0.02
"""Share of the largest singular value below which a singular value is damped."""
_MOST_DAMPING = 0.02
"""Largest damping as a share of the largest singular value, so that no joint is faster than 25 / largest per unit of
twist."""
CHECKS = ("finite numbers", "velocity limits", "no joint pushed out of its limits")


class UnknownFrameError(UnknownNameError):
    """A frame that velocities cannot be given in."""

    kind = "frame"
    status = InvalidRequestError.status


class UnsafeVelocityError(KinoptError):
    """Joint velocities that fail their own check: a defect of this module."""

    status = Status.VERIFICATION_FAILED


@dataclass(frozen=True, eq=False)
class FrameJacobian:
    """Jacobian of a tip in a frame, with its singular values."""

    J: Annotated[Float64, "6 n"]
    """Twist per joint velocity; linear rows first."""
    smallest: float
    """Smallest singular value of J, of all min(6, n)."""
    largest: float
    """Largest singular value of J."""

    @property
    def near_singular(self) -> bool:
        """Whether the tip can hardly move in some direction."""
        return self.smallest < NEAR_SINGULAR * self.largest or self.largest == 0.0

    @property
    def damped(self) -> bool:
        """Whether some twist is so hard to make that its joint velocities are damped."""
        return self.smallest < _DAMPED * self.largest or self.largest == 0.0


@dataclass(frozen=True, eq=False)
class JointVelocity:
    """Joint velocities for a twist."""

    velocity: Annotated[Float64, "n"]
    """Joint velocities, rad/s or m/s."""
    scale: float
    """Share of the requested twist that the velocity limits allow; 1 if they allow all."""
    achieved: Annotated[Float64, "6"]
    """Twist that these velocities make, in the frame of the request."""
    residual: Annotated[Float64, "6"]
    """Twist that is missing, scale * twist - achieved, because of joint limits, missing joints or a singularity."""
    blocked: tuple[str, ...]
    """Variables that are at a limit and were not moved further, or move at one of the ``bounds``."""
    jacobian: FrameJacobian
    """Jacobian of all joints, the blocked ones too."""


def frame_jacobian(
    robot: RobotModel,
    base_link: str,
    tip_link: str,
    variables: Annotated[Int64, "n"],
    q: Annotated[Float64, "nq"],
    frame: str = BASE,
    T_link_tool: Annotated[Float64, "4 4"] | None = None,
) -> FrameJacobian:
    """Compute the Jacobian of a link, or of a tool fixed to it.

    Args:
        robot: the robot.
        base_link: link that the motion is measured against.
        tip_link: link that moves.
        variables: indices in q of the columns; one that does not move the tip has a column of zeros.
        q: configuration of the whole robot.
        frame: ``world``, ``base`` or ``tip``.
        T_link_tool: pose of the tool in the tip link; None: the link itself.

    Raises:
        KinoptError: an unknown frame or link, a state that is not finite, or a floating joint among the columns.
    """
    if frame not in FRAMES:
        raise UnknownFrameError(frame, FRAMES)
    q = as_numbers(q, "q", InvalidStateError)
    if q.shape != (robot.nq,) or not np.isfinite(q).all():
        raise InvalidStateError(f"q must be {robot.nq} finite numbers; it has shape {q.shape}")
    chain = chain_between(robot, base_link, tip_link)
    columns = _columns(robot, chain, variables)
    state = q[chain.variables]
    T_base_tip = chain_pose(chain, state)
    full = geometric_jacobian(chain, state)
    if T_link_tool is not None:
        lever = T_base_tip[:3, :3] @ T_link_tool[:3, 3]
        full[:3] += np.cross(full[3:].T, lever).T
        T_base_tip = T_base_tip @ T_link_tool
    R = _axes(robot, base_link, q, frame, T_base_tip)
    full = np.concatenate([R @ full[:3], R @ full[3:]])
    J = np.zeros((6, len(variables)))
    for k, column in enumerate(columns):
        if column is not None:
            J[:, k] = full[:, column]
    if not np.isfinite(J).all():
        raise InvalidStateError(
            "the Jacobian is not finite: the state or the tool has numbers that are too large"
        )
    singular = np.linalg.svd(J, compute_uv=False) if len(variables) else np.zeros(1)
    return FrameJacobian(J, float(singular[-1]), float(singular[0]))


def joint_velocity(
    robot: RobotModel,
    base_link: str,
    tip_link: str,
    variables: Annotated[Int64, "n"],
    q: Annotated[Float64, "nq"],
    twist: Annotated[Float64, "6"],
    frame: str = BASE,
    T_link_tool: Annotated[Float64, "4 4"] | None = None,
    velocity_scaling: float = 1.0,
    bounds: Annotated[Float64, "2 n"] | None = None,
) -> JointVelocity:
    """Compute joint velocities that make a twist of the tip, as small as possible, inside the limits.

    Least squares, damped where singular values are small, so that velocities stay bounded at singularities
    (Y. Nakamura, H. Hanafusa, "Inverse kinematic solutions with singularity robustness for robot manipulator control",
    1986; damping by the singular value: S. Chiaverini, "Singularity-robust task-priority redundancy resolution", 1997).
    A joint at a limit is not pushed further: it is taken out, and the others make up for it as far as they can.
    Velocity limits scale all joints alike, so that the direction stays.

    Args:
        robot: the robot.
        base_link: link that the motion is measured against.
        tip_link: link that moves.
        variables: indices in q of the variables that may move.
        q: configuration of the whole robot.
        twist: (v, w), m/s and rad/s.
        frame: ``world``, ``base`` or ``tip``.
        T_link_tool: pose of the tool in the tip link; None: the link itself.
        velocity_scaling: share of the velocity limits that may be used, in (0, 1].
        bounds: least and largest velocity of each variable, 0 between them; one that would pass its bound moves at
            it, and the others make up for it as far as they can. None: there are none.

    Raises:
        KinoptError: as ``frame_jacobian``, or a twist, scaling or bounds that are not usable.
    """
    twist = np.array(twist, dtype=np.float64)
    if twist.shape != (6,) or not np.isfinite(twist).all():
        raise InvalidGoalError(f"twist must be 6 finite numbers, not {twist.tolist()}")
    if not 0.0 < velocity_scaling <= 1.0:
        raise InvalidRequestError(f"velocity_scaling is {velocity_scaling}; allowed is above 0 and at most 1")
    jacobian = frame_jacobian(robot, base_link, tip_link, variables, q, frame, T_link_tool)
    lower, upper = robot.limits.lower[variables], robot.limits.upper[variables]
    values = q[variables]
    # Velocities are as large as the twist: those of a small twist come first, since squares of a huge one overflow.
    size = max(1.0, float(np.abs(twist).max()))
    moving: Bool = np.ones(len(variables), dtype=np.bool_)
    velocity = np.zeros(len(variables))
    least, most = _bounds(bounds, len(variables))
    least, most = np.where(values <= lower, 0.0, least / size), np.where(values >= upper, 0.0, most / size)
    while moving.any():
        missing = twist / size - jacobian.J[:, ~moving] @ velocity[~moving]
        velocity[moving] = _damped(jacobian.J[:, moving], missing)
        outside = (velocity < least) | (velocity > most)
        if not outside.any():
            break
        moving &= ~outside
        velocity = np.clip(velocity, least, most)
    limits = robot.limits.velocity[variables] * velocity_scaling
    excess = float(np.max(np.abs(velocity) / limits, initial=0.0))
    allowed = min(size, 1.0 / excess) if excess > 0.0 else size
    # Rounding must not leave one above its limit.
    velocity = np.clip(velocity * allowed, -limits, limits)
    scale = allowed / size
    achieved = jacobian.J @ velocity
    residual = allowed * (twist / size) - achieved
    numbers = np.concatenate([velocity, achieved, residual, [scale, jacobian.smallest, jacobian.largest]])
    if not np.isfinite(numbers).all():
        raise InvalidGoalError(
            f"no finite velocities follow from twist {twist.tolist()}, the tool and the state: their numbers are too "
            "large"
        )
    if (np.abs(velocity) > limits).any() or _outwards(velocity, values, lower, upper).any():
        raise UnsafeVelocityError(f"velocities {velocity.tolist()} failed the check: {', '.join(CHECKS)}")
    return JointVelocity(
        velocity,
        scale,
        achieved,
        residual,
        tuple(robot.variable_names[i] for i in variables[~moving]),
        jacobian,
    )


def _bounds(bounds: Float64 | None, n: int) -> tuple[Float64, Float64]:
    """Return the least and largest velocities."""
    if bounds is None:
        return np.full(n, -np.inf), np.full(n, np.inf)
    if bounds.shape != (2, n) or not ((bounds[0] <= 0.0) & (bounds[1] >= 0.0)).all():
        raise InvalidRequestError(f"bounds must be two rows of {n} velocities with 0 between them")
    return bounds[0], bounds[1]


def _outwards(velocity: Float64, values: Float64, lower: Float64, upper: Float64) -> Annotated[Bool, "n"]:
    """Return which joints are at or beyond a position limit and pushed on."""
    return np.asarray(((values <= lower) & (velocity < 0.0)) | ((values >= upper) & (velocity > 0.0)))


def _damped(J: Annotated[Float64, "6 k"], twist: Float64) -> Annotated[Float64, "k"]:
    """Solve least squares by singular values; exact where none is small."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    if s[0] == 0.0:
        return np.zeros(J.shape[1])
    small = np.minimum(s / (_DAMPED * s[0]), 1.0)
    damping = (1.0 - small**2) * (_MOST_DAMPING * s[0]) ** 2
    return np.asarray(Vt.T @ (s / (s**2 + damping) * (U.T @ twist)))


def _columns(robot: RobotModel, chain: KinematicChain, variables: Int64) -> list[int | None]:
    """Return the column of the chain's Jacobian for each variable; None if it does not move the chain."""
    first, _ = tangent_columns(chain)
    place: dict[int, int] = {}
    for column, kind, place_of in zip(chain.column.tolist(), chain.motion, first.tolist(), strict=True):
        if kind != Motion.QUATERNION:
            place[int(chain.variables[column])] = place_of
            continue
        four = set(chain.variables[column : column + 4].tolist())
        for i in four.intersection(variables.tolist()):
            raise UnsupportedFeatureError(
                f"{robot.variable_names[i]} is part of a floating joint's quaternion, which has no velocity of its own"
            )
    return [place.get(int(i)) for i in variables]


def _axes(
    robot: RobotModel, base_link: str, q: Float64, frame: str, T_base_tip: Float64
) -> Annotated[Float64, "3 3"]:
    """Return the rotation that gives vectors of the base link in the axes of a frame."""
    if frame == BASE:
        return np.eye(3)
    if frame == TIP:
        return np.asarray(T_base_tip[:3, :3].T)
    chain = chain_between(robot, robot.root_link, base_link)
    return np.asarray(chain_pose(chain, q[chain.variables])[:3, :3])
