"""What a program is compiled for: the costs by their structure, in groups that look at the same points.

Numbers of costs are arguments of a program, one vector per request (``pack``); what else it needs is in a ``Layout``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.costs.base import Cost, numbers_of, structure_of
from kinopt_ros.costs.stencils import window_of
from kinopt_ros.kinematics.tangent import Directions, directions
from kinopt_ros.objectives.cost_error import CostError, blamed, where
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.jax_lm.objectives.manifold import moved
from kinopt_ros.solvers.jax_lm.objectives.point import JaxPoint, Window


@dataclass(frozen=True, eq=False)
class Group:
    """Costs that are evaluated at the same P points, with windows of W points."""

    costs: tuple[int, ...]
    """Their numbers in the objective."""
    index: Annotated[Int64, "P"]
    first: Annotated[Int64, "P"]
    """First point of each window."""
    width: int
    stencils: Annotated[Float64, "P orders W"]
    """Weights of derivatives by the place on the path."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Structure of an objective for a robot."""

    robot: RobotModel
    objective: Objective
    num_points: int
    free: Annotated[Bool, "nv"]
    groups: tuple[Group, ...]

    @property
    def known(self) -> Directions:
        """The robot's directions."""
        return directions(self.robot)

    @property
    def columns(self) -> Annotated[Int64, "d"]:
        """Directions that move."""
        return np.flatnonzero(self.free)

    @property
    def text(self) -> str:
        """The structure in words: equal ones may share programs, as long as the robot is the same object."""
        costs = [structure_of(cost) for cost in self.objective]
        return f"{self.num_points} {self.columns.tolist()} {costs!r}"


def layout_of(robot: RobotModel, problem: ObjectiveProblem) -> Layout:
    """Return the structure of a problem."""
    T, objective = problem.num_points, problem.objective
    together: dict[tuple[tuple[int, ...], int, int], list[int]] = {}
    for number, cost in enumerate(objective):
        points = objective.points_of(cost, T)
        if points:
            together.setdefault((points, cost.span, cost.order), []).append(number)
    groups = [
        _group(tuple(costs), points, span, order, T) for (points, span, order), costs in together.items()
    ]
    return Layout(robot, objective, T, problem.free, tuple(groups))


def _group(costs: tuple[int, ...], points: tuple[int, ...], span: int, order: int, T: int) -> Group:
    index = np.array(points, dtype=np.int64)
    if not order:
        return Group(costs, index, index, span, np.zeros((len(points), 0, span)))
    first, width, stencils = [], len(window_of(order, T, 0)[1]), []
    for t in points:
        begin, _ = window_of(order, T, t)
        rows = np.zeros((order, width))
        for k in range(1, order + 1):
            at, weights = window_of(k, T, t)
            rows[k - 1, at - begin : at - begin + len(weights)] = weights
        first.append(begin)
        stencils.append(rows)
    return Group(costs, index, np.array(first, dtype=np.int64), width, np.array(stencils))


def pack(objective: Objective, dt: float) -> Annotated[Float64, "N"]:
    """Return the numbers of an objective as one vector; the last one is the time between points, s."""
    parts = [array.ravel() for cost in objective for array in numbers_of(cost).values()]
    return np.concatenate([*parts, [dt]])


def unpack(objective: Objective, numbers: jax.Array) -> tuple[tuple[Cost, ...], jax.Array]:
    """Return the costs with traced numbers, and the time between points."""
    costs, at = [], 0
    for cost in objective:
        values = {}
        for name, array in numbers_of(cost).items():
            values[name] = numbers[at : at + array.size].reshape(array.shape)
            at += array.size
        costs.append(cost.with_values(**values))
    return tuple(costs), numbers[at]


def residual_at(cost: Cost, title: str, point: JaxPoint) -> jax.Array:
    """Trace a cost's residual; what its code does wrong becomes a CostError."""
    with blamed(cost, title, "failed where JAX traces it"):
        residual = jnp.asarray(cost.residual(point))
    if not (jnp.issubdtype(residual.dtype, jnp.floating) or jnp.issubdtype(residual.dtype, jnp.integer)):
        raise CostError(
            f"{where(cost, title)} returned an array of type {residual.dtype}; allowed is one of numbers"
        )
    weight = jnp.asarray(cost.weight).shape
    if residual.ndim != 1 or weight not in ((), residual.shape):
        raise CostError(
            f"{where(cost, title)} returned an array of shape {residual.shape} for weights of shape {weight}; "
            "allowed is a vector, and one weight or one for each number"
        )
    return residual


def group_residuals(
    layout: Layout, group: Group, costs: Sequence[Cost], dt: jax.Array, window: "RawWindow"
) -> tuple[jax.Array, ...]:
    """Return residuals of the costs of a group at one window."""
    orders = group.stencils.shape[1]
    scale = ((layout.num_points - 1) * dt) ** -jnp.arange(1.0, orders + 1.0)
    found = Window(
        layout.robot,
        _links(layout),
        window.q,
        window.here,
        window.index,
        window.stencils * scale[:, None],
    )
    point = JaxPoint(found)
    titles = layout.objective.titles
    return tuple(residual_at(costs[number], titles[number], point) for number in group.costs)


def _links(layout: Layout) -> tuple[str, ...]:
    """Return the links that costs will ask poses of."""
    names: list[str] = []
    for cost, title in zip(layout.objective.costs, layout.objective.titles, strict=True):
        with blamed(cost, title, refusals=True):
            names += cost.links(layout.robot)
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, eq=False)
class RawWindow:
    """Arrays of one window, or of all windows of a group with a leading dimension."""

    q: Any
    here: Any
    index: Any
    stencils: Any


jax.tree_util.register_dataclass(RawWindow, ["q", "here", "index", "stencils"], [])


def windows(group: Group, q: jax.Array) -> RawWindow:
    """Return the windows of a group of a trajectory (T, nq)."""
    at = group.first[:, None] + np.arange(group.width)
    return RawWindow(
        q[at],
        jnp.asarray(group.index - group.first),
        jnp.asarray(group.index),
        jnp.asarray(group.stencils),
    )


def window_step(layout: Layout, q: jax.Array, step: jax.Array) -> jax.Array:
    """Return configurations (W, nq) after steps (W, d) along the free directions."""
    full = jnp.zeros((q.shape[0], layout.known.nv), q.dtype).at[:, layout.columns].set(step)
    return jax.vmap(lambda one, by: moved(layout.known, one, by))(q, full)
