"""One path in a scene, evaluated by the compiled kernel without a step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kinopt_ros
from kinopt_ros.array import Float64
from kinopt_ros.problems.trajectory import Goal, JointGoal, TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths import optimize
from kinopt_ros.solvers.cpu.paths.compiling import load_or_compile
from kinopt_ros.solvers.cpu.paths.kernels import levenberg_marquardt
from kinopt_ros.solvers.cpu.paths.model import path_model


@pytest.fixture(scope="session")
def panda() -> RobotModel:
    return kinopt_ros.load_robot("panda")


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    load_or_compile(may_compile=True)


@pytest.fixture(scope="session")
def problem_of(panda: RobotModel) -> Callable[..., TrajectoryProblem]:
    """A problem of the arm from a configuration to a goal (configuration or ``Goal``)."""

    def make(begin: Float64, goal: Float64 | Goal, **others: Any) -> TrajectoryProblem:
        q = panda.default_q.copy()
        q[:7] = begin
        problem = TrajectoryProblem(
            joints=tuple(f"panda_joint{i}" for i in range(1, 8)),
            variables=np.arange(7),
            start=q,
            start_velocity=np.zeros(panda.nq),
            goals=(JointGoal(goal) if isinstance(goal, np.ndarray) else goal,),
            base_link="panda_link0",
        )
        return replace(problem, **others)

    return make


class Evaluated:
    """A path as the kernel sees it."""

    def __init__(
        self, robot: RobotModel, problem: TrajectoryProblem, path: Float64, margin: float = 0.02
    ) -> None:
        model = path_model(robot, problem)
        passed = np.zeros(0, dtype=np.int64)
        self.path = path.copy()
        self.one = optimize._Path(robot, problem, model, self.path, 0, passed, margin)
        self.one._call(0)

    def at(self, path: Float64) -> tuple[float, float]:
        """Costs and constraints of another path."""
        self.path[:] = path
        self.one._call(0)
        return self.costs, self.constraints

    @property
    def costs(self) -> float:
        return float(self.one._state[levenberg_marquardt.COSTS])

    @property
    def constraints(self) -> float:
        return float(self.one._state[levenberg_marquardt.CONSTRAINTS])

    @property
    def slack(self) -> float:
        return float(self.one._state[levenberg_marquardt.SLACK_NOW])

    @property
    def arrays(self) -> dict[str, Float64]:
        """Half gradients and blocks."""
        store = self.one._store
        return {"constraints": store[2][0], "D": store[3][0], "E": store[4][0], "costs": store[5][0]}

    def differences(self, points: list[int], h: float = 1e-6) -> tuple[Float64, Float64]:
        """Half of the central differences of costs and constraints by all values of some points."""
        path = self.path.copy()
        found = np.zeros((2, len(points), path.shape[1]))
        for row, t in enumerate(points):
            for j in range(path.shape[1]):
                values = []
                for step in (h, -h):
                    moved = path.copy()
                    moved[t, j] += step
                    values.append(np.array(self.at(moved)))
                found[:, row, j] = (values[0] - values[1]) / (4.0 * h)
        self.at(path)
        return found[0], found[1]


@pytest.fixture(scope="session")
def evaluated(panda: RobotModel) -> Callable[..., Evaluated]:
    return lambda problem, path, **others: Evaluated(panda, problem, path, **others)
