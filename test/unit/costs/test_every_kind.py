"""Every registered kind: numpy and JAX agree, and JAX's derivatives are those of the numpy formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
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


@pytest.fixture
def quickly_compiled(kept_folder: Path) -> Iterator[None]:
    """Most of the time is XLA's, which it needs but once, and less of without optimizations: numbers are the same."""
    jax = pytest.importorskip("jax")
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    with kept_compilations(kept_folder / "xla"):
        yield
    jax.config.update("jax_disable_most_optimizations", before)


def residual(path: NumpyPath, cost: Cost, t: int) -> np.ndarray:
    return np.asarray(cost.residual(path[t]))


@pytest.mark.slow
@pytest.mark.usefixtures("quickly_compiled")
@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_values_and_derivatives_of_jax(
    name: str, kind: str, robots: dict[str, RobotModel], paths: dict[str, np.ndarray]
) -> None:
    """The numpy formula through ``tangent.moved``, by central differences."""
    jax = pytest.importorskip("jax")
    pytest.importorskip("jaxlie")
    from kinopt_ros.solvers.jax_lm.objectives.layout import layout_of, pack, unpack
    from kinopt_ros.solvers.jax_lm.objectives.rows import row_plan, rows_at

    robot, q = robots[name], paths[name]
    objective = Objective([cost_cases(name, robot)[kind]])
    cost = objective.costs[0]
    everything = [joint.name for joint in robot.joints if joint.is_active]
    problem = objective_problem(robot, objective, joints=everything, num_points=NUM_POINTS, dt=DT)
    layout = layout_of(robot, problem)
    with jax.enable_x64(True):

        def rows(numbers: jax.Array, q: jax.Array) -> tuple[jax.Array, jax.Array]:
            costs, dt = unpack(objective, numbers)
            plan = row_plan(layout, costs, dt)
            blocks.extend(plan.blocks)
            found = rows_at(layout, costs, dt, q)
            unit = np.eye(NUM_POINTS * directions(robot).nv)
            return found.r, jax.vmap(lambda by: plan.times(found.J, by))(unit)

        blocks: list[tuple[int, ...]] = []
        r, J = map(np.array, jax.jit(rows)(pack(objective, DT), q))
    points = objective.points_of(cost, NUM_POINTS)
    own = np.array([residual(NumpyPath(robot, q, DT), cost, t) for t in points])
    assert blocks == [(0, *own.shape)]
    np.testing.assert_allclose(r, own.ravel(), atol=1e-9, rtol=1e-9)

    known, step = directions(robot), 1e-7
    J = J.T.reshape(own.size, NUM_POINTS, known.nv)
    scale = max(1.0, np.abs(J).max())
    for t in range(NUM_POINTS):
        for v in range(known.nv):
            ends = []
            for sign in (1.0, -1.0):
                after = q.copy()
                after[t] = moved(known, q[t], sign * step * np.eye(known.nv)[v])
                path = NumpyPath(robot, after, DT)
                ends.append(np.concatenate([residual(path, cost, point) for point in points]))
            expected = (ends[0] - ends[1]) / (2.0 * step)
            np.testing.assert_allclose(
                J[:, t, v], expected, atol=1e-5 * scale, err_msg=f"{t}, {known.names[v]}"
            )
