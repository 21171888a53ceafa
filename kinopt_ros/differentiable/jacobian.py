"""Jacobians that can be differentiated, mapped and compiled."""

from typing import Any

import jax
import jax.numpy as jnp

from kinopt_ros.differentiable.frames import FramePlan, plan_frames
from kinopt_ros.differentiable.motions import Geometry, geometry, motion_of, values
from kinopt_ros.differentiable.parameters import KinematicParameters
from kinopt_ros.differentiable.products import frames
from kinopt_ros.differentiable.states import as_lanes
from kinopt_ros.robot.chain import Motion
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import velocity_columns


class Jacobian:
    """Geometric Jacobian of a link as a pure function ``J(q)`` or ``J(q, parameters)`` of arrays.

    Analytic; compiled once per shape, like ``ForwardKinematics``.
    """

    def __init__(self, plan: FramePlan, first_column: tuple[int, ...], columns: int) -> None:
        self._plan = plan
        self._first_column = first_column
        self._columns = columns
        self._compiled = jax.jit(self._geometric)
        self._compiled_rates = jax.jit(self._rpy_rates)

    def __call__(self, q: Any, parameters: KinematicParameters | None = None) -> jax.Array:
        """Compute the velocity of the tip per unit velocity of the robot's variables, (..., 6, nv).

        Rows: linear velocity of the tip's origin (m/s), then angular velocity (rad/s), against the base link and along
        its axes. Columns: one per variable of the whole robot, in their order, zero for what does not move the tip; but
        three for the four numbers of a quaternion: the angular velocity of a floating joint in its child's frame (see
        ``kinematics.jacobian``).

        Args:
            q: configurations of the whole robot, (..., nq), rad or m.
            parameters: model parameters; None for the description's.

        Raises:
            InvalidStateError: the last dimension of q is not nq.
            InvalidRequestError: parameters of another robot.
        """
        self._check(parameters)
        J: jax.Array = self._compiled(q, parameters)
        return J

    def rpy_rates(self, q: Any, parameters: KinematicParameters | None = None) -> tuple[jax.Array, jax.Array]:
        """Compute the Jacobian with rates of roll, pitch and yaw (rad/s) of ``T_base_tip`` in its last three rows.

        Returns the Jacobian (..., 6, nv), and where its representation is singular, bool (...).

        At pitch +-pi/2 the rates do not exist: the second array is true there, and the last three rows are NaN. (The
        geometric Jacobian knows no such singularity.) Near it, where fewer than half of the digits would be left, too.
        """
        self._check(parameters)
        rates: tuple[jax.Array, jax.Array] = self._compiled_rates(q, parameters)
        return rates

    def _check(self, parameters: KinematicParameters | None) -> None:
        if parameters is not None:
            parameters.check(self._plan.num_joints)

    def _geometric(self, q: Any, parameters: KinematicParameters | None) -> jax.Array:
        return self._with_rotation(q, parameters)[0]

    def _rpy_rates(self, q: Any, parameters: KinematicParameters | None) -> tuple[jax.Array, jax.Array]:
        J, R = self._with_rotation(q, parameters)
        cos_pitch = jnp.hypot(R[..., 0, 0], R[..., 1, 0])
        singular = cos_pitch < jnp.sqrt(jnp.finfo(R.dtype).eps)  # type: ignore[no-untyped-call]
        safe = jnp.where(singular, 1.0, cos_pitch)[..., None]
        cos_yaw, sin_yaw = R[..., 0, 0, None] / safe, R[..., 1, 0, None] / safe
        x, y, z = J[..., 3, :], J[..., 4, :], J[..., 5, :]
        roll = (cos_yaw * x + sin_yaw * y) / safe
        pitch = cos_yaw * y - sin_yaw * x
        yaw = z - R[..., 2, 0, None] * roll
        rates = jnp.where(singular[..., None, None], jnp.nan, jnp.stack([roll, pitch, yaw], -2))
        return jnp.concatenate([J[..., :3, :], rates], -2), singular

    def _with_rotation(self, q: Any, parameters: KinematicParameters | None) -> tuple[jax.Array, jax.Array]:
        """Compute the Jacobian and the rotation of the tip in the base."""
        plan = self._plan
        states, leading = as_lanes(q, plan.nq)
        own = geometry(plan, parameters)
        known = frames(plan, own, values(plan, states), states, range(len(plan.steps) + 1))
        base, tip = known[plan.base], known[plan.links[0]]
        up, down = set(plan.path(plan.base)), set(plan.path(plan.links[0]))
        columns: list[jax.Array | None] = [None] * self._columns
        for i in sorted(up ^ down):
            for first, column in self._of_step(i, own, known[i + 1], tip):
                signed = column if i in down else -column
                before = columns[first]
                columns[first] = signed if before is None else before + signed
        zero = jnp.zeros((6, states.shape[1]), known.dtype)
        J = jnp.stack([zero if column is None else column for column in columns], axis=1)  # (6, nv, lanes)
        if plan.base:
            J = jnp.concatenate([_turned_back(base, J[:3]), _turned_back(base, J[3:])])
        # Columns of frames are the first axis: (column, row, lanes).
        R = jnp.stack([_turned_back(base, tip[c]) for c in range(3)], axis=1)
        return (
            J.transpose(2, 0, 1).reshape(*leading, 6, self._columns),
            R.transpose(2, 0, 1).reshape(*leading, 3, 3),
        )

    def _of_step(
        self, i: int, own: Geometry, frame: jax.Array, tip: jax.Array
    ) -> list[tuple[int, jax.Array]]:
        """Return columns (6, lanes) of what one motion does, and where they belong; in frame 0."""
        step = self._plan.steps[i]
        if step.motion is None:
            return []
        first = self._first_column[step.motion.variable]
        lever = tip[3] - frame[3]
        if motion_of(step) is Motion.QUATERNION:
            return [(first + k, jnp.concatenate([_cross(frame[k], lever), frame[k]])) for k in range(3)]
        # A motion does not turn its own axis, so the frame behind it serves as well as the one before.
        axis = (jnp.asarray(own.axis[i], frame.dtype)[:, None, None] * frame[:3]).sum(
            0
        ) * step.motion.multiplier
        if motion_of(step) is Motion.TRANSLATION:
            return [(first, jnp.concatenate([axis, jnp.zeros_like(axis)]))]
        return [(first, jnp.concatenate([_cross(axis, lever), axis]))]


def jacobian(robot: RobotModel, tip_link: str, base_link: str | None = None) -> Jacobian:
    """Return the Jacobian of a link; the same object for equal arguments, so that nothing is compiled twice.

    Args:
        robot: the robot; any joint types.
        tip_link: the link that moves.
        base_link: the link that the motion is measured against; the root link if None.

    Raises:
        UnknownLinkError: a link that the robot does not have.
    """
    return _jacobian(robot, tip_link, base_link or robot.root_link)


@remembered
def _jacobian(robot: RobotModel, tip_link: str, base_link: str) -> Jacobian:
    return Jacobian(plan_frames(robot, [tip_link], base_link), *velocity_columns(robot))


def _turned_back(base: jax.Array, vectors: jax.Array) -> jax.Array:
    """Return vectors (3, ..., lanes) of frame 0 along the axes of a frame."""
    return jnp.stack(
        [sum((base[k][r] * vectors[r] for r in range(1, 3)), base[k][0] * vectors[0]) for k in range(3)]
    )


def _cross(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the cross product of arrays (3, lanes)."""
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
