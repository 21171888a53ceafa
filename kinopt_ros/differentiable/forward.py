"""Forward kinematics that can be differentiated, mapped and compiled."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from kinopt_ros.differentiable.frames import FramePlan, plan_frames
from kinopt_ros.differentiable.motions import geometry, values
from kinopt_ros.differentiable.parameters import KinematicParameters
from kinopt_ros.differentiable.products import frames
from kinopt_ros.differentiable.states import as_lanes
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel


class ForwardKinematics:
    """Poses of links as a pure function ``fk(q)`` or ``fk(q, parameters)`` of arrays.

    Compiled once per shape; inside another ``jax.jit`` it becomes part of that. Use it with ``jax.grad``, ``jax.jvp``,
    ``jax.vmap`` as any function of JAX.
    """

    def __init__(self, plan: FramePlan, links: tuple[str, ...], base_link: str) -> None:
        self.links = links
        self.base_link = base_link
        self._plan = plan
        self._compiled = jax.jit(self._poses)

    def __call__(self, q: Any, parameters: KinematicParameters | None = None) -> jax.Array:
        """Compute ``T_base_link`` of every link, (..., L, 4, 4), m, in the order of ``links``.

        Args:
            q: configurations of the whole robot, (..., nq), rad or m, as ``RobotModel`` describes them. Any floating
                type; other numbers become JAX's default one.
            parameters: model parameters; None for the description's.

        Raises:
            InvalidStateError: the last dimension of q is not nq.
            InvalidRequestError: parameters of another robot.
        """
        if parameters is not None:
            parameters.check(self._plan.num_joints)
        T: jax.Array = self._compiled(q, parameters)
        return T

    def _poses(self, q: Any, parameters: KinematicParameters | None) -> jax.Array:
        plan = self._plan
        states, leading = as_lanes(q, plan.nq)
        numbers = [*plan.links, *([plan.base] if plan.base else [])]
        wanted = frames(plan, geometry(plan, parameters), values(plan, states), states, numbers)
        if plan.base:
            base, wanted = wanted[-1], wanted[:-1]
            wanted = wanted.at[:, 3].add(-base[3])
            # Rows of the inverse rotation are the base's columns.
            wanted = jnp.stack([(base[k] * wanted).sum(axis=2) for k in range(3)], axis=2)
        last = jnp.array([0.0, 0.0, 0.0, 1.0], wanted.dtype)[:, None, None]
        last = jnp.broadcast_to(last, (len(plan.links), 4, 1, states.shape[1]))
        T = jnp.concatenate([wanted, last], axis=2).transpose(3, 0, 2, 1)
        return T.reshape(*leading, len(plan.links), 4, 4)


def forward_kinematics(
    robot: RobotModel, links: Sequence[str] | None = None, base_link: str | None = None
) -> ForwardKinematics:
    """Return forward kinematics of some links; the same object for equal arguments, so that nothing is compiled twice.

    Args:
        robot: the robot; any joint types.
        links: which links, in the order of the answer; all of ``robot.link_names`` if None.
        base_link: the link whose frame the poses are in; the root link if None. It may be any one, also a moving one.

    Raises:
        UnknownLinkError: a link that the robot does not have.
    """
    return _forward(robot, tuple(robot.link_names if links is None else links), base_link or robot.root_link)


@remembered
def _forward(robot: RobotModel, links: tuple[str, ...], base_link: str) -> ForwardKinematics:
    return ForwardKinematics(plan_frames(robot, links, base_link), links, base_link)
