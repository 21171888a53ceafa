"""A solver for each robot, shared by a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kinopt_ros.conformance.robots import two_hands
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import create_solver


@pytest.fixture(scope="session")
def arm() -> RobotModel:
    """Four joints in a plane."""
    return two_hands()


@pytest.fixture(scope="session")
def panda() -> RobotModel:
    """The bundled Panda."""
    return load_robot("panda")


@pytest.fixture(scope="module")
def shared() -> Iterator[Callable[[RobotModel], Solver]]:
    """Makes one solver for each robot."""
    pytest.importorskip("numba")
    made: dict[int, Solver] = {}

    def make(robot: RobotModel) -> Solver:
        if id(robot) not in made:
            made[id(robot)] = create_solver("cpu", robot)
        return made[id(robot)]

    yield make
    for solver in made.values():
        solver.close()
