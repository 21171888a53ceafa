"""Solvers that a module shares: programs are compiled once for all of its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kinopt_ros.conformance.robots import two_hands
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver

SharedMaker = Callable[[RobotModel], JaxLmSolver]


@pytest.fixture(scope="session")
def arm() -> RobotModel:
    """Four joints in a plane, quick to compile for."""
    return two_hands()


@pytest.fixture(scope="session")
def panda() -> RobotModel:
    """Panda."""
    return load_robot("panda")


@pytest.fixture(scope="module")
def shared(kept_folder: Path) -> Iterator[SharedMaker]:
    """Makes solvers, one for each robot, that compile nothing but what objectives need."""
    for package in ("jax", "jaxlie", "jaxls"):
        pytest.importorskip(package)
    made: dict[int, JaxLmSolver] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(kept_folder))

        def make(robot: RobotModel) -> JaxLmSolver:
            if id(robot) not in made:
                made[id(robot)] = JaxLmSolver()
                made[id(robot)].configure(robot, {"groups": ""})
            return made[id(robot)]

        yield make
        for solver in made.values():
            solver.close()
