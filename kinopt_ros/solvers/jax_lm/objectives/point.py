"""Points of a configuration or trajectory by JAX. See ``costs.point.Point`` for what their members are."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import jaxlie

from kinopt_ros.differentiable.forward import forward_kinematics
from kinopt_ros.differentiable.jacobian import jacobian
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.tangent import directions
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.jax_lm.objectives.manifold import difference


@dataclass(frozen=True, eq=False)
class Window:
    """Neighbouring points of a trajectory, and where among them a point is; all may be traced."""

    robot: RobotModel
    links: tuple[str, ...]
    """Links whose poses will be asked for, as far as known: they are computed together."""
    q: jax.Array
    """(W, nq)"""
    here: Any
    """Number of the point in the window."""
    index: Any
    """Number of the point in the trajectory."""
    stencils: jax.Array
    """(orders, W): weights of the derivatives by time, by order from 1 on."""


class JaxPoint:
    """One point of a window."""

    def __init__(self, window: Window, offset: int = 0) -> None:
        self._window = window
        self._offset = offset
        single = window.q.shape[0] == 1
        self.q = window.q[0] if single else window.q[window.here + offset]
        self.index = window.index + offset
        self.robot = window.robot
        self._poses: dict[str, jax.Array] = {}
        self._jacobians: dict[str, jax.Array] = {}

    @property
    def xp(self) -> ModuleType:
        """jax.numpy."""
        return jnp

    def pose(self, link: str) -> jax.Array:
        """Compute ``T_root_link``, m."""
        if link not in self._poses:
            together = self._window.links if link in self._window.links else (link,)
            T = forward_kinematics(self.robot, together)(self.q)
            self._poses.update({name: T[k] for k, name in enumerate(together)})
        return self._poses[link]

    def jacobian(self, link: str) -> jax.Array:
        """Compute the geometric Jacobian in the root link; columns are the robot's directions."""
        if link not in self._jacobians:
            self._jacobians[link] = jacobian(self.robot, link)(self.q)
        return self._jacobians[link]

    def rotation_vector(self, R: jax.Array) -> jax.Array:
        """Compute axis times angle of a rotation, rad."""
        return jaxlie.SO3.from_matrix(R).log()

    def difference(self, a: jax.Array, b: jax.Array) -> jax.Array:
        """Compute the step from configuration a to b along the robot's directions."""
        return difference(directions(self.robot), jnp.asarray(a), jnp.asarray(b))

    def derivative(self, order: int) -> jax.Array:
        """Compute a derivative of the configuration by time."""
        window = self._window
        if not 1 <= order <= window.stencils.shape[0]:
            raise InvalidRequestError(
                f"derivative({order}) is above the cost's order, which is {window.stencils.shape[0]}"
            )
        steps = jax.vmap(lambda q: self.difference(self.q, q))(window.q)
        return window.stencils[order - 1] @ steps

    def next(self, k: int = 1) -> "JaxPoint":
        """Return the k-th point after this one."""
        if not 0 <= self._offset + k < self._window.q.shape[0]:
            raise InvalidRequestError(
                f"next({k}) is beyond the cost's span, which is {self._window.q.shape[0]}"
            )
        return JaxPoint(self._window, self._offset + k)
