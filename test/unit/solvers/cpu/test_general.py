"""The general kernel, function by function: its errors are those of kinematics.pose_errors, its Jacobian is their
derivative, and no distinct solution is lost. Run as plain Python, without a compiler."""

import itertools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.array import Float64
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.pose_errors import axis_errors
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.cpu.kernels import general, general_descent, pose_rows, starts
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.cpu.tree import pack_tree
from kinopt_ros.solvers.kernels import forward, turns
from kinopt_ros.solvers.kernels.tuning import ORIENTATION_WEIGHT

FREE = list(itertools.product((False, True), repeat=3))


def interpreted() -> dict[str, Any]:
    """The kernels' functions as Python runs them."""
    modules = forward, starts, turns, pose_rows, general_descent, general
    names = {name: value for module in modules for name, value in vars(module).items()}
    for name, value in list(names.items()):
        if hasattr(value, "py_func"):
            names[name] = FunctionType(value.py_func.__code__, names)
    return names


PYTHON = interpreted()
PANDA = load_robot("panda")
CHAIN = build_chain(PANDA, "panda_link0", "panda_link8")
LOWER, UPPER = PANDA.limits.lower[CHAIN.variables], PANDA.limits.upper[CHAIN.variables]


@pytest.fixture(scope="module")
def residuals() -> Callable[..., tuple[Float64, Float64]]:
    """Weighted errors and Jacobian of the Panda's hand for a target and free orientation axes."""
    CpuSolver().warm_up()  # packing asks the compiled kernel for the poses of the seeds
    tree = pack_tree((CHAIN,), PANDA.limits.lower, PANDA.limits.upper, table_size=2)

    def at(q: Float64, T: Float64, free: tuple[bool, ...]) -> tuple[Float64, Float64]:
        tolerance = np.array([[1e-9] * 3 + [np.inf if axis else 1e-9 for axis in free]])
        goals, rows, jacobian = np.empty((1, 12)), np.zeros(6), np.zeros((7, 6))
        PYTHON["set_goals"](tree.base, T[None, None], 0, goals)
        PYTHON["residuals"](
            tree.base, tree.tip, tree.motions, tree.kinds, tree.starts, goals, tolerance, np.array([[0, 0]]), q,
            np.empty((len(CHAIN.motion), 6)), rows, np.empty((9, 3)), jacobian,
        )  # fmt: skip
        return rows, jacobian

    return at


@pytest.mark.parametrize("free", FREE)
@pytest.mark.parametrize("away", [1e-4, 0.1, 0.5, 1.5])
def test_errors_are_those_of_the_reference(
    residuals: Callable[..., tuple[Float64, Float64]], free: tuple[bool, bool, bool], away: float
) -> None:
    generator = np.random.default_rng(1)
    for _ in range(5):
        q = generator.uniform(LOWER, UPPER)
        T = chain_pose(CHAIN, np.clip(q + away * generator.normal(size=7), LOWER, UPPER))
        rows, _ = residuals(q, T, free)
        position, orientation = axis_errors(T, chain_pose(CHAIN, q), free_orientation=free)
        angle = np.linalg.norm(orientation)
        orientation *= 2.0 * np.sin(0.5 * angle) / angle if angle > 0.0 else 1.0
        # From the tip to the target, with angles measured by 2 sin(angle / 2).
        np.testing.assert_allclose(rows[:3], -position, atol=1e-12)
        np.testing.assert_allclose(rows[3:], -ORIENTATION_WEIGHT * orientation, atol=1e-12)


@pytest.mark.parametrize("free", FREE)
def test_jacobian_is_the_derivative_near_the_target(
    residuals: Callable[..., tuple[Float64, Float64]], free: tuple[bool, bool, bool]
) -> None:
    generator = np.random.default_rng(2)
    step = 1e-6
    for _ in range(3):
        q = generator.uniform(LOWER, UPPER)
        T = chain_pose(CHAIN, q + 1e-5 * generator.normal(size=7))
        _, jacobian = residuals(q, T, free)
        for j, along in enumerate(step * np.eye(7)):
            change = residuals(q - along, T, free)[0] - residuals(q + along, T, free)[0]
            np.testing.assert_allclose(jacobian[j], change / (2 * step), atol=2e-4)


class Kept:
    """The list of found solutions, one variable each."""

    def __init__(self, capacity: int, periodic: bool = False) -> None:
        self.found = np.full((capacity, 1), np.nan)
        self.costs = np.full(capacity, np.inf)
        self.flips = np.zeros(capacity, np.int64)
        self.periodic = np.array([periodic])
        self.count = 0

    def add(self, value: float, cost: float, separation: float = 1.0) -> list[float]:
        self.count = PYTHON["_keep"](
            np.array([value]), cost, separation, self.periodic, self.found, self.costs, self.flips, self.count
        )
        return self.found[: self.count, 0].tolist()


def test_a_better_solution_replaces_all_that_it_is_near_to() -> None:
    kept = Kept(4)
    kept.add(0.0, 5.0)
    kept.add(1.5, 6.0)
    kept.add(9.0, 7.0)
    # It is near to two, which are not near to each other: only one of the three may stay.
    assert sorted(kept.add(0.8, 1.0)) == [0.8, 9.0]
    assert kept.costs[: kept.count].tolist() == [7.0, 1.0]


def test_a_solution_near_to_a_better_one_is_dropped() -> None:
    kept = Kept(4)
    kept.add(0.0, 5.0)
    kept.add(1.5, 2.0)
    assert kept.add(0.8, 3.0) == [0.0, 1.5]
    assert kept.costs[:2].tolist() == [5.0, 2.0]


def test_of_too_many_the_better_stay() -> None:
    kept = Kept(2)
    kept.add(0.0, 5.0)
    kept.add(10.0, 3.0)
    assert kept.add(20.0, 6.0) == [0.0, 10.0]
    assert kept.add(30.0, 1.0) == [30.0, 10.0]


def test_whole_turns_of_a_joint_are_near() -> None:
    assert Kept(2, periodic=True).add(0.1, 1.0) == [0.1]
    kept = Kept(2, periodic=True)
    kept.add(0.1, 1.0)
    assert kept.add(0.2 + 2 * np.pi, 2.0) == [0.1]
    straight = Kept(2)
    straight.add(0.1, 1.0)
    assert len(straight.add(0.2 + 2 * np.pi, 2.0)) == 2


def test_what_was_tried_from_a_solution_moves_with_it() -> None:
    kept = Kept(4)
    for value, tried in ((0.0, 1), (5.0, 2), (9.0, 3)):
        kept.add(value, 10.0)
        kept.flips[kept.count - 1] = tried
    assert kept.add(0.5, 1.0) == [5.0, 9.0, 0.5]
    assert kept.flips[:3].tolist() == [2, 3, 1]  # as near as that, it would lead to the same again
    assert kept.add(20.0, 1.0)[3] == 20.0
    assert kept.flips[3] == 0
    kept.add(30.0, 0.5)  # there is no room: it takes the place of the worst, and is new
    assert kept.flips[kept.found[:, 0] == 30.0] == 0
