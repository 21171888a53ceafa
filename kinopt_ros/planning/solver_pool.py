"""Solvers of one robot, prepared before they serve, and who takes over when one cannot honour a problem."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from kinopt_ros.costs.base import Cost
from kinopt_ros.errors import (
    KinoptError,
    NotReadyError,
    SolverUnavailableError,
    UnsupportedFeatureError,
    cut,
    said_by,
    writable,
)
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveResult
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Feature, Solver
from kinopt_ros.solvers.judgement import PluginError
from kinopt_ros.solvers.paths import Report
from kinopt_ros.solvers.readiness import PreparingError, check_ready
from kinopt_ros.solvers.registry import AUTO, by_preference, solver_class, solver_names
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.solvers.scene_ready import PreparingSceneError
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.wanted import AbandonedError, check_wanted

_log = logging.getLogger(__name__)

COOL_DOWN = 1.0
"""Seconds that a solver which broke down is left alone where another one may take over."""


R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Pooled(Generic[R]):
    """An answer, and why it is not from the solver that was asked for (empty if it is)."""

    result: R
    fallback_reason: str


PooledResult: TypeAlias = Pooled[IkResult]


class SolverFailedError(SolverUnavailableError):
    """A solver broke down; the message says how."""


class SolverPool:
    """Thread-safe. ``prepare`` and ``warm_up`` may take as long as a compiler; ``get`` and ``solve_ik`` never do."""

    def __init__(
        self,
        robot: RobotModel,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        chain: Sequence[str] = (),
        on_demand: Callable[[str], None] | None = None,
    ) -> None:
        """
        Args:
            robot: the robot.
            options: settings by name of the solver.
            chain: names of solvers that may take over, in order; empty: all, ``cpu`` first, then by name.
            on_demand: called with the name of a solver that is asked for and not prepared; must not wait.
        """
        self.robot = robot
        self._options = dict(options or {})
        self._chain = tuple(chain)
        self._solvers: dict[str, Solver] = {}
        self._refused: dict[str, SolverUnavailableError] = {}
        self._broken: dict[str, tuple[float, SolverFailedError]] = {}
        self._on_demand = on_demand
        self._lock = threading.Lock()
        self._preparing: dict[str, threading.Lock] = {}
        self._closed = False
        self._plans = False
        """Whether motions were prepared for."""
        self._retired = False

    def prepare(self, name: str) -> Solver:
        """Configure a solver (``auto`` picks one) unless that is done already.

        Raises:
            UnknownSolverError: there is none of that name.
            SolverUnavailableError: it cannot run here or not for this robot; ``get`` will say so from now on.
            AbandonedError: nobody wants it any more (``wanted.py``).
        """
        chosen = solver_class(name)
        with self._lock:
            preparing = self._preparing.setdefault(chosen.name, threading.Lock())
        with preparing:  # a compiler may be at work: nobody else waits for it
            known = self._solvers.get(chosen.name)
            if known is not None:
                return known
            try:
                solver = chosen()
                solver.configure(self.robot, self._options.get(chosen.name))
            except (KeyboardInterrupt, AbandonedError):
                raise
            except BaseException as error:  # whatever a plugin raises must not take the others down
                refused = SolverUnavailableError(
                    f"solver {chosen.name!r} cannot be used for robot {self.robot.name!r}: {said_by(error)}"
                )
                self._refused[chosen.name] = refused
                raise refused from error
            with self._lock:
                if not self._closed:
                    self._solvers[chosen.name] = solver
                    return solver
            solver.close()
            raise NotReadyError(f"solver {chosen.name!r} is not needed any more: the robot was replaced")

    def get(self, name: str) -> Solver:
        """Return a solver that was prepared (``auto`` picks one).

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
            if self._on_demand is not None:
                self._on_demand(chosen.name)
            raise NotReadyError(f"solver {chosen.name!r} is being prepared; try again soon")
        return solver

    def is_prompt(self, name: str) -> bool:
        """Check whether a solver (``auto`` picks one) is there, and may be asked on a thread that others wait for."""
        try:
            return self.get(name).prompt
        except KinoptError:
            return False

    def trouble(self, name: str) -> str | None:
        """Return why a solver cannot be used, or how it broke down if it has not answered since; None if neither."""
        refused = self._refused.get(name)
        if refused is not None:
            return str(refused)
        _, failure = self._broken.get(name, (0.0, None))
        return None if failure is None else str(failure)

    def remark(self, name: str) -> str:
        """Return what a solver says about how it works at present; empty if there is nothing to say."""
        solver = self._solvers.get(name)
        if solver is None:
            return ""
        try:
            return cut(writable(str(solver.remark)))
        except KeyboardInterrupt:
            raise
        except (
            BaseException
        ) as error:  # a defect of the plugin, which must not keep others from being reported
            return f"its remark cannot be had: {said_by(error)}"

    def warm_up(self) -> None:
        """Let every prepared solver do what some later request would have to wait for.

        Raises:
            KinoptError: the first that cannot; the others have done it all the same.
        """
        self._with_all(lambda solver: solver.warm_up())

    def warm_up_trajectories(self) -> None:
        """Let every prepared solver do what some later request for a motion would have to wait for.

        Raises:
            KinoptError: a solver cannot plan them for this robot.
        """
        from kinopt_ros.planning.trajectory_warm_up import warm_up_trajectories
        from kinopt_ros.trajectory import path_timing

        try:
            path_timing.warm_up()  # straight lines are timed whatever the plugins can
            self._with_all(lambda solver: warm_up_trajectories(solver, self._for_poses(solver)))
        except AbandonedError:
            raise
        except Exception:  # what did not work here is said to those who ask for it
            self._plans = True
            raise
        self._plans = True

    def _with_all(self, work: Callable[[Solver], None]) -> None:
        """Do something with every prepared solver; raise the first failure afterwards."""
        failures: list[KinoptError] = []
        for solver in list(self._solvers.values()):
            check_wanted()
            try:
                work(solver)
            except (AbandonedError, KeyboardInterrupt):
                raise
            except KinoptError as error:
                failures.append(error)
            except BaseException as failure:  # as in _ask
                failures.append(self._failed(solver, failure))
        if failures:
            raise failures[0]

    def check_plans(self, collisions: bool) -> None:
        """Raise PreparingError unless motions (with collisions) were prepared; another error if they cannot be."""
        if collisions:
            check_ready(self.robot)
        if not self._plans:
            raise PreparingError("the optimizer of trajectories is being prepared", "try again soon")

    def check_prepared(self, collisions: bool, motions: bool) -> None:
        """Raise PreparingError unless what a request needs was prepared: collision checks, motions, or both.

        Where it cannot be prepared, the error says why.

        Raises:
            NotReadyError: they will not be, as another robot is in service.
        """
        try:
            if motions:
                self.check_plans(collisions)
            elif collisions:
                check_ready(self.robot)
        except PreparingError as error:
            if not self._retired:
                raise
            raise NotReadyError(
                f"another robot description came while {error.what} for the one before; ask again"
            ) from None

    def must_wait(self, collisions: bool, motions: bool, until: float) -> bool:
        """Check whether what a request needs is still being prepared, and ``until`` (``time.monotonic()``) is ahead."""
        if self._closed or time.monotonic() >= until:
            return False
        try:
            self.check_prepared(collisions, motions)
        except PreparingError:
            return True
        except KinoptError:
            pass  # it has to be said to whoever asks
        return False

    @property
    def missing(self) -> tuple[str, ...]:
        """What is still being prepared, in words for people."""
        found = []
        for motions, what in ((False, "collision checks"), (True, "trajectories")):
            try:
                self.check_prepared(not motions, motions)
            except PreparingError:
                found.append(what)
            except KinoptError:
                continue
        return tuple(found)

    def retire(self) -> None:
        """Prepare nothing any more: another robot is in service. Who was waiting for that is told so."""
        self._retired = True

    def solve_ik(self, problem: IkProblem, solver: str = AUTO, allow_fallback: bool = True) -> PooledResult:
        """Solve with one solver, or with the next that can.

        The next one takes over if the solver is unavailable, not ready, cannot honour the problem or breaks down.

        Raises:
            KinoptError: the problem is malformed, the name unknown, or nobody may or can take over.
        """
        if problem.scene is not None and problem.deadline is not None:
            check_ready(self.robot)  # no other solver could do without
        return self._first_able(lambda able: able.solve_ik(problem), solver, allow_fallback)

    def solve_objective(
        self, problem: ObjectiveProblem, solver: str = AUTO, allow_fallback: bool = True
    ) -> Pooled[ObjectiveResult]:
        """Solve objectives with one solver, or with the next that can; see ``planning.objectives``.

        Raises:
            KinoptError: as in ``solve_ik``.
        """
        from kinopt_ros.planning.objectives import solve_objective

        if problem.scene is not None and problem.deadline is not None:
            check_ready(self.robot)
        helper = self._for_starts()
        chosen, reason = self._for_objectives(problem.objective, problem.num_points, solver, allow_fallback)
        pooled = self._first_able(
            lambda able: solve_objective(able, problem, helper), chosen, allow_fallback and not reason
        )
        return replace(pooled, fallback_reason=pooled.fallback_reason or reason)

    def plan_trajectory(
        self,
        problem: TrajectoryProblem,
        solver: str = AUTO,
        allow_fallback: bool = True,
        report: Report | None = None,
        costs: Sequence[Cost] = (),
    ) -> Pooled[TrajectoryResult]:
        """Plan a motion with a solver or, if it cannot, with another one; see ``planning.trajectories``, and with costs
        ``planning.objective_trajectories``.

        A problem with a deadline needs ``warm_up_trajectories`` to be done.
        """
        from kinopt_ros.planning.objective_trajectories import POINTS, plan_with_costs
        from kinopt_ros.planning.trajectories import plan_trajectory

        if problem.deadline is not None:
            self.check_plans(problem.scene is not None)
        if costs:
            helper = self._first_prepared(
                lambda able: able.solves_ik() and Feature.TRAJECTORIES in able.capabilities.features
            )
            chosen, reason = self._for_objectives(costs, POINTS, solver, allow_fallback)
            pooled = self._first_able(
                lambda able: plan_with_costs(able, problem, costs, helper, report),
                chosen,
                allow_fallback and not reason,
            )
            return replace(pooled, fallback_reason=pooled.fallback_reason or reason)
        return self._first_able(
            lambda able: plan_trajectory(able, problem, report, ik_solver=self._for_poses(able)),
            solver,
            allow_fallback,
        )

    def check_trajectory(
        self,
        problem: TrajectoryProblem,
        solver: str = AUTO,
        allow_fallback: bool = True,
        costs: Sequence[Cost] = (),
    ) -> None:
        """Look whether a motion can be planned, as far as a problem tells that fits the robot. Returns at once.

        Raises:
            KinoptError: the name is unknown, or each solver that may answer refuses the problem. One that is being
                prepared may not.
        """

        def check(able: Solver) -> None:
            able.check_optimizes()
            able.check_supported_trajectory(problem)

        if costs:
            from kinopt_ros.planning.objective_trajectories import POINTS, check_with_costs

            def check(able: Solver) -> None:
                able.check_supported_costs(costs, POINTS)

            check_with_costs(self.robot, problem, costs)
            solver, reason = self._for_objectives(costs, POINTS, solver, allow_fallback)
            allow_fallback = allow_fallback and not reason
        refusal: KinoptError | None = None
        for name in (solver, *self._others(solver, allow_fallback)):
            try:
                check(self.get(name))
            except NotReadyError:
                return
            except (SolverUnavailableError, UnsupportedFeatureError) as error:
                refusal = refusal or error
            else:
                return
        if refusal is not None:
            raise refusal

    def _others(self, solver: str, allow_fallback: bool) -> list[str]:
        """Return the names of the solvers that may take over from one, in order."""
        if not allow_fallback:
            return []
        asked = solver_class(AUTO).name if solver == AUTO else solver
        return [other for other in self._chain or by_preference(solver_names()) if other != asked]

    def _for_poses(self, solver: Solver) -> Solver | None:
        """Return who finds configurations at poses for a solver of trajectories: itself (None), or else the first of
        the prepared ones that can."""
        if solver.solves_ik():
            return None
        return self._first_prepared(lambda other: other.solves_ik())

    def _for_starts(self) -> Solver | None:
        """Return who finds configurations that objectives begin from: the first prepared one that answers at once, as
        others may have to compile for that, or else the first."""
        return self._first_prepared(lambda able: able.prompt and able.solves_ik()) or self._first_prepared(
            lambda able: able.solves_ik()
        )

    def _for_objectives(
        self, costs: Iterable[Cost], num_points: int, solver: str, allow_fallback: bool
    ) -> tuple[str, str]:
        """Return the name of the solver to ask for objectives of some costs, and why it is not the one asked for (empty
        if it is).

        It is the first of the chain that can, prepared or not, as few can.
        """
        from kinopt_ros.planning.objectives import solver_for

        given = tuple(costs)
        try:
            solver_class(solver).check_supported_costs(given, num_points)
        except UnsupportedFeatureError as refusal:
            if not allow_fallback:
                return solver, ""
            try:
                return solver_for(given, num_points, self._chain), str(refusal)
            except UnsupportedFeatureError:
                return solver, ""
        return solver, ""

    def _first_prepared(self, fits: Callable[[Solver], bool]) -> Solver | None:
        """Return the first of the prepared solvers, in the order of the chain, that fits; None if none does."""
        found = (self._solvers.get(name) for name in (*self._chain, *by_preference(solver_names())))
        return next((other for other in found if other is not None and fits(other)), None)

    def _first_able(self, ask: Callable[[Solver], R], solver: str, allow_fallback: bool) -> Pooled[R]:
        unable = (SolverUnavailableError, UnsupportedFeatureError, NotReadyError)
        try:
            return Pooled(self._ask(ask, self.get(solver), allow_fallback), "")
        except (
            PreparingError,
            PreparingSceneError,
        ):  # no other solver could do without, and large ones would be loaded
            raise
        except unable as refusal:
            if not allow_fallback:
                raise
            for other in self._others(solver, allow_fallback):
                try:
                    return Pooled(self._ask(ask, self.get(other), True), str(refusal))
                except unable:
                    continue
            if isinstance(refusal, SolverFailedError):  # nobody else can: it may have recovered
                return Pooled(self._ask(ask, self.get(solver), False), "")
            raise

    def close(self) -> None:
        """Close every solver that was prepared."""
        with self._lock:
            self._closed = True
            solvers = list(self._solvers.values())
            self._solvers.clear()
        for solver in solvers:
            try:
                solver.close()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # the others are to be closed, too
                _log.warning("solver %s cannot be closed: %s", solver.name, said_by(error))

    def _ask(self, ask: Callable[[Solver], R], solver: Solver, may_skip: bool) -> R:
        """Ask a solver; SolverFailedError if the plugin breaks down, or did so a moment ago and may be left out."""
        since, error = self._broken.get(solver.name, (0.0, None))
        if error is not None and may_skip and time.monotonic() < since + COOL_DOWN:
            raise error
        try:
            result = ask(solver)
        except PluginError as failure:
            raise self._failed(solver, failure) from failure
        except KinoptError:  # about the problem
            raise
        except KeyboardInterrupt:
            raise
        # A defect of the plugin, or a device that was lost. Those written in Rust panic with no Exception.
        except BaseException as failure:
            raise self._failed(solver, failure) from failure
        self._broken.pop(solver.name, None)
        return result

    def _failed(self, solver: Solver, failure: BaseException) -> SolverFailedError:
        error = SolverFailedError(f"solver {solver.name!r} failed: {said_by(failure)}")
        self._broken[solver.name] = (time.monotonic(), error)
        return error
