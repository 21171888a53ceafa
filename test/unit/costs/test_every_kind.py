"""Every registered kind: numpy and JAX agree, and JAX's derivatives are those of the numpy formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.cost_cases import DT, NUM_POINTS, ROBOTS, cost_cases
from support.kept_compilations import kept_compilations

from kinopt_ros.costs.base import Cost, numbers_of, structure_of
from kinopt_ros.costs.registry import cost_kind, cost_names
from kinopt_ros.kinematics.tangent import directions, moved
from kinopt_ros.objectives.numpy_point import NumpyPath
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.robot.model import RobotModel

EVERY = [
    (robot, kind)
    for robot in ROBOTS
    for kind in cost_names()
    if cost_kind(kind).__module__.startswith("kinopt_ros.")
]

BY_JAX = [
    *((name, kind) for name, kind in EVERY if name == "every_joint"),
    *(("panda", kind) for kind in ("link_pose", "self_collision", "velocity_limits", "world_collision")),
]
"""Every kind where every type of joint moves. The Panda has meshes, spheres fitted to them and no quaternions: kinds of
poses, of speeds and of its shapes show that, and each takes its program seconds more to compile."""


@pytest.mark.parametrize("name", ROBOTS)
def test_every_registered_kind_has_a_case(name: str, robots: dict[str, RobotModel]) -> None:
    assert set(cost_cases(name, robots[name])) == {kind for _, kind in EVERY}


@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_it_says_what_it_is(name: str, kind: str, robots: dict[str, RobotModel]) -> None:
    cost = cost_cases(name, robots[name])[kind]
    assert cost.formula.startswith("r")
    assert cost.units
    assert type(cost).__doc__
    assert cost.replace() is not cost
    assert structure_of(cost.replace()) == structure_of(cost)
    assert structure_of(cost.replace(label="another", tolerance=cost.tolerance)) == structure_of(cost)
    for array in numbers_of(cost).values():
        assert np.isfinite(array).all()
    for field in fields(cost):
        if isinstance(value := getattr(cost, field.name), np.ndarray):
            assert not value.flags.writeable


Rows = dict[str, tuple[np.ndarray, np.ndarray]]
"""Residuals (P, m) of a kind's cost, and their derivatives (P, m, T, nv)."""


@pytest.fixture(scope="module")
def quickly_compiled(kept_folder: Path) -> Iterator[None]:
    """Most of the time is XLA's, which it needs but once, and less of without optimizations: numbers are the same."""
    jax = pytest.importorskip("jax")
    pytest.importorskip("jaxlie")
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    with kept_compilations(kept_folder / "xla"):
        yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="module")
def rows_by_jax(
    quickly_compiled: None, robots: dict[str, RobotModel], paths: dict[str, np.ndarray]
) -> Callable[[str], Rows]:
    """Computes a robot's rows of all of its kinds by one program: they share what takes long to compile."""

    @cache
    def of(name: str) -> Rows:
        cases = cost_cases(name, robots[name])
        return rows_of(robots[name], [cases[kind] for one, kind in BY_JAX if one == name], paths[name])

    return of


def rows_of(robot: RobotModel, costs: list[Cost], q: np.ndarray) -> Rows:
    """Rows of costs of different kinds."""
    import jax

    from kinopt_ros.solvers.jax_lm.objectives.layout import layout_of, pack, unpack
    from kinopt_ros.solvers.jax_lm.objectives.rows import RowPlan, row_plan, rows_at

    objective = Objective(costs)
    everything = [joint.name for joint in robot.joints if joint.is_active]
    problem = objective_problem(robot, objective, joints=everything, num_points=NUM_POINTS, dt=DT)
    layout = layout_of(robot, problem)
    nv = directions(robot).nv
    plans: list[RowPlan] = []

    def rows(numbers: jax.Array, q: jax.Array) -> tuple[jax.Array, jax.Array]:
        costs, dt = unpack(objective, numbers)
        plans.append(row_plan(layout, costs, dt))
        found = rows_at(layout, costs, dt, q)
        return found.r, jax.vmap(lambda by: plans[0].times(found.J, by))(np.eye(NUM_POINTS * nv))

    with jax.enable_x64(True):
        r, J = map(np.array, jax.jit(rows)(pack(objective, DT), q))
    (plan,) = plans
    sizes = np.cumsum([P * m for _, P, m in plan.blocks])
    parts = zip(plan.blocks, np.split(r, sizes[:-1]), np.split(J.T, sizes[:-1]), strict=True)
    return {
        objective.costs[number].name: (own.reshape(P, m), by.reshape(P, m, NUM_POINTS, nv))
        for (number, P, m), own, by in parts
    }


def residual(path: NumpyPath, cost: Cost, t: int) -> np.ndarray:
    return np.asarray(cost.residual(path[t]))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), BY_JAX)
def test_values_and_derivatives_of_jax(
    name: str,
    kind: str,
    robots: dict[str, RobotModel],
    paths: dict[str, np.ndarray],
    rows_by_jax: Callable[[str], Rows],
) -> None:
    """The numpy formula through ``tangent.moved``, by central differences."""
    robot, q = robots[name], paths[name]
    objective = Objective([cost_cases(name, robot)[kind]])
    cost = objective.costs[0]
    r, J = rows_by_jax(name)[kind]
    points = objective.points_of(cost, NUM_POINTS)
    own = np.array([residual(NumpyPath(robot, q, DT), cost, t) for t in points])
    assert r.shape == own.shape
    np.testing.assert_allclose(r, own, atol=1e-9, rtol=1e-9)

    known, step = directions(robot), 1e-7
    scale = max(1.0, np.abs(J).max())
    for t in range(NUM_POINTS):
        for v in range(known.nv):
            ends = []
            for sign in (1.0, -1.0):
                after = q.copy()
                after[t] = moved(known, q[t], sign * step * np.eye(known.nv)[v])
                path = NumpyPath(robot, after, DT)
                ends.append(np.array([residual(path, cost, point) for point in points]))
            expected = (ends[0] - ends[1]) / (2.0 * step)
            np.testing.assert_allclose(
                J[..., t, v], expected, atol=1e-5 * scale, err_msg=f"{t}, {known.names[v]}"
            )
