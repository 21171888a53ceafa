"""Fixtures for tests of the kernels and of the plugin, which run on Warp's CPU device."""

from collections.abc import Callable, Iterator

import pytest

from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.hjcd.plugin import HjcdSolver

SolverMaker = Callable[..., HjcdSolver]


@pytest.fixture
def solver_for() -> Iterator[SolverMaker]:
    """Makes solvers on the CPU, whose kernels are compiled when they are needed."""
    reason = HjcdSolver.unavailable_reason()
    if reason is not None:
        pytest.skip(reason)
    made = []

    def make(robot: RobotModel, **options: object) -> HjcdSolver:
        solver = HjcdSolver()
        solver.configure(robot, {"device": "cpu", "groups": ""} | options)
        made.append(solver)
        return solver

    yield make
    for solver in made:
        solver.close()
