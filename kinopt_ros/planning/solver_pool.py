"""Solvers of one robot, created when first used, and who takes over when one cannot honour a problem."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kinopt_ros.errors import SolverUnavailableError, UnsupportedFeatureError
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import AUTO, solver_class, solver_names
from kinopt_ros.solvers.result import IkResult


@dataclass(frozen=True, eq=False)
class PooledResult:
    """An answer, and why it is not from the solver that was asked for (empty if it is)."""

    result: IkResult
    fallback_reason: str


class SolverPool:
    """Thread-safe. ``options`` maps a solver's name to its settings."""

    def __init__(self, robot: RobotModel, options: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.robot = robot
        self._options = dict(options or {})
        self._solvers: dict[str, Solver] = {}
        """By name, and by whatever else they were asked for as: looking plugins up takes 20 ms."""
        self._lock = threading.Lock()

    def get(self, name: str) -> Solver:
        """The configured solver of that name (``auto`` picks). Raises as ``create_solver`` does."""
        ready = self._solvers.get(
            name
        )  # without the lock: nobody waits for a solver that another one prepares
        if ready is not None:
            return ready
        with self._lock:
            if name not in self._solvers:
                chosen = solver_class(name)
                if chosen.name not in self._solvers:
                    solver = chosen()
                    solver.configure(self.robot, self._options.get(chosen.name))
                    self._solvers[chosen.name] = solver
                self._solvers[name] = self._solvers[chosen.name]
            return self._solvers[name]

    def solve_ik(self, problem: IkProblem, solver: str = AUTO, allow_fallback: bool = True) -> PooledResult:
        """Solve with one solver; if it is unavailable or cannot honour the problem, with one that can.

        Raises:
            KinoptError: the problem is malformed, the name unknown, or nobody may or can take over.
        """
        try:
            return PooledResult(self.get(solver).solve_ik(problem), "")
        except (SolverUnavailableError, UnsupportedFeatureError) as refusal:
            if not allow_fallback:
                raise
            for other in solver_names():
                if other != solver:
                    try:
                        return PooledResult(self.get(other).solve_ik(problem), str(refusal))
                    except (SolverUnavailableError, UnsupportedFeatureError):
                        continue
            raise

    def close(self) -> None:
        """Close every solver that was created."""
        with self._lock:
            for solver in set(self._solvers.values()):
                solver.close()
            self._solvers.clear()
