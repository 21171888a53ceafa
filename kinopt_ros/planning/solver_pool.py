"""Solvers of one robot, prepared before they serve, and who takes over when one cannot honour a problem."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kinopt_ros.errors import KinoptError, NotReadyError, SolverUnavailableError, UnsupportedFeatureError
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
    """Thread-safe. ``options`` maps a solver's name to its settings.

    ``prepare`` may take as long as a compiler does, ``get`` and ``solve_ik`` never do.
    """

    def __init__(self, robot: RobotModel, options: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.robot = robot
        self._options = dict(options or {})
        self._solvers: dict[str, Solver] = {}
        self._refused: dict[str, SolverUnavailableError] = {}
        self._preparing = threading.Lock()

    def prepare(self, name: str) -> Solver:
        """Configure a solver (``auto`` picks) if it is not yet.

        Raises:
            UnknownSolverError: there is none of that name.
            SolverUnavailableError: it cannot run here or not for this robot; ``get`` will say so from now on.
        """
        chosen = solver_class(name)
        with self._preparing:
            if chosen.name not in self._solvers:
                try:
                    solver = chosen()
                    solver.configure(self.robot, self._options.get(chosen.name))
                except Exception as error:  # whatever a plugin raises must not take the others down
                    reason = (
                        str(error) if isinstance(error, KinoptError) else f"{type(error).__name__}: {error}"
                    )
                    refused = SolverUnavailableError(
                        f"solver {chosen.name!r} cannot be used for robot {self.robot.name!r}: {reason}"
                    )
                    self._refused[chosen.name] = refused
                    raise refused from error
                self._solvers[chosen.name] = solver
            return self._solvers[chosen.name]

    def get(self, name: str) -> Solver:
        """A solver that was prepared (``auto`` picks).

        Raises:
            UnknownSolverError: there is none of that name.
            SolverUnavailableError: it cannot run here or not for this robot; the message says why.
            NotReadyError: it can, but is not prepared yet.
        """
        chosen = solver_class(name)
        solver = self._solvers.get(chosen.name)
        if chosen.name in self._refused:
            raise self._refused[chosen.name]
        if solver is None:
            raise NotReadyError(f"solver {chosen.name!r} is being prepared; try again soon")
        return solver

    def solve_ik(self, problem: IkProblem, solver: str = AUTO, allow_fallback: bool = True) -> PooledResult:
        """Solve with one solver; if it is unavailable, not ready or cannot honour the problem, with one that can.

        Raises:
            KinoptError: the problem is malformed, the name unknown, or nobody may or can take over.
        """
        unable = (SolverUnavailableError, UnsupportedFeatureError, NotReadyError)
        try:
            return PooledResult(self.get(solver).solve_ik(problem), "")
        except unable as refusal:
            if not allow_fallback:
                raise
            for other in solver_names():
                if other != solver:
                    try:
                        return PooledResult(self.get(other).solve_ik(problem), str(refusal))
                    except unable:
                        continue
            raise

    def close(self) -> None:
        """Close every solver that was prepared."""
        with self._preparing:
            for solver in self._solvers.values():
                solver.close()
            self._solvers.clear()
