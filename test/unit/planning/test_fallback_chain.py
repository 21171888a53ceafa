"""Solvers that break down: who takes over, in which order, for how long, and how they come back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kinopt_ros.conformance.ik import reachable_problem
from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.errors import InvalidRequestError, KinoptError, UnknownSolverError
from kinopt_ros.planning import solver_pool
from kinopt_ros.planning.solver_pool import SolverFailedError, SolverPool
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers.base import Capabilities, Solver
from kinopt_ros.solvers.result import IkCandidates

ROBOT = seven_revolute()
PROBLEM = reachable_problem(ROBOT, 2)


class Fragile(Solver):
    """Finds nothing, honestly, until it is told to break."""

    name = "first"
    version = "0"
    capabilities = Capabilities(frozenset(JointType))
    breaks: Exception | None = None
    malformed = False
    calls = 0

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        pass

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        type(self).calls += 1
        if self.breaks is not None:
            raise self.breaks
        B, n = problem.batch_size, len(problem.variables)
        attempt = problem.state[:, problem.variables]
        q = np.zeros((B, n)) if self.malformed else np.full((B, 1, n), np.nan)
        return IkCandidates(q, attempt, np.zeros(B, np.int64), np.zeros(B, bool))


@pytest.fixture
def solvers(monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Fragile]]:
    """Three solvers named first, second and third."""
    made = {name: type(name, (Fragile,), {"name": name}) for name in ("first", "second", "third")}

    def solver_class(name: str) -> type[Solver]:
        if name not in made:
            raise UnknownSolverError(name, made)
        return made[name]

    monkeypatch.setattr(solver_pool, "solver_class", solver_class)
    monkeypatch.setattr(solver_pool, "solver_names", lambda: tuple(made))
    return made


def pool_of(solvers: Mapping[str, type[Fragile]], chain: tuple[str, ...] = ()) -> SolverPool:
    pool = SolverPool(ROBOT, chain=chain)
    for name in solvers:
        pool.prepare(name)
    return pool


def test_the_next_takes_over_within_the_request(solvers: dict[str, type[Fragile]]) -> None:
    pool = pool_of(solvers)
    solvers["first"].breaks = RuntimeError("device lost")
    pooled = pool.solve_ik(PROBLEM, "first")
    assert pooled.result.solver == "second"
    for word in ("'first'", "RuntimeError", "device lost"):
        assert word in pooled.fallback_reason


def test_an_answer_of_the_wrong_form_is_a_breakdown(solvers: dict[str, type[Fragile]]) -> None:
    pool = pool_of(solvers)
    solvers["first"].malformed = True
    pooled = pool.solve_ik(PROBLEM, "first")
    assert pooled.result.solver == "second"
    assert "agreed" in pooled.fallback_reason


def test_the_chain_gives_the_order(solvers: dict[str, type[Fragile]]) -> None:
    pool = pool_of(solvers, chain=("third", "second"))
    solvers["first"].breaks = RuntimeError()
    assert pool.solve_ik(PROBLEM, "first").result.solver == "third"
    solvers["third"].breaks = RuntimeError()
    assert pool.solve_ik(PROBLEM, "first").result.solver == "second"


def test_who_is_not_in_the_chain_does_not_take_over(solvers: dict[str, type[Fragile]]) -> None:
    pool = pool_of(solvers, chain=("third",))
    solvers["first"].breaks = solvers["third"].breaks = RuntimeError("broken")
    with pytest.raises(SolverFailedError, match="broken"):
        pool.solve_ik(PROBLEM, "first")
    assert solvers["second"].calls == 0


def test_one_that_is_not_ready_is_passed_over(solvers: dict[str, type[Fragile]]) -> None:
    pool = SolverPool(ROBOT, chain=("second", "third"))
    pool.prepare("third")
    pooled = pool.solve_ik(PROBLEM, "first")
    assert pooled.result.solver == "third"
    assert "being prepared" in pooled.fallback_reason


def test_it_rests_and_comes_back(solvers: dict[str, type[Fragile]], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = pool_of(solvers)
    first = solvers["first"]
    monkeypatch.setattr(solver_pool, "COOL_DOWN", 1000.0)
    first.breaks = RuntimeError("broken")
    pool.solve_ik(PROBLEM, "first")
    first.breaks = None
    calls = first.calls
    resting = pool.solve_ik(PROBLEM, "first")
    assert (resting.result.solver, first.calls) == ("second", calls)
    assert "broken" in resting.fallback_reason
    monkeypatch.setattr(solver_pool, "COOL_DOWN", 0.0)
    recovered = pool.solve_ik(PROBLEM, "first")
    assert (recovered.result.solver, recovered.fallback_reason) == ("first", "")
    monkeypatch.setattr(solver_pool, "COOL_DOWN", 1000.0)
    assert pool.solve_ik(PROBLEM, "first").result.solver == "first"


def test_without_fallback_a_breakdown_is_the_answer_and_nobody_rests(
    solvers: dict[str, type[Fragile]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = pool_of(solvers)
    monkeypatch.setattr(solver_pool, "COOL_DOWN", 1000.0)
    solvers["first"].breaks = RuntimeError("broken")
    with pytest.raises(SolverFailedError, match="broken"):
        pool.solve_ik(PROBLEM, "first", allow_fallback=False)
    solvers["first"].breaks = None
    assert pool.solve_ik(PROBLEM, "first", allow_fallback=False).result.solver == "first"


def test_the_only_solver_never_rests(
    solvers: dict[str, type[Fragile]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One client's request that breaks it must not cost everybody a second."""
    del solvers["second"], solvers["third"]
    pool = pool_of(solvers)
    monkeypatch.setattr(solver_pool, "COOL_DOWN", 1000.0)
    solvers["first"].breaks = RuntimeError("broken")
    with pytest.raises(SolverFailedError, match="broken"):
        pool.solve_ik(PROBLEM, "first")
    solvers["first"].breaks = None
    assert pool.solve_ik(PROBLEM, "first").result.solver == "first"


def test_an_error_about_the_request_is_no_breakdown(solvers: dict[str, type[Fragile]]) -> None:
    pool = pool_of(solvers)
    solvers["first"].breaks = InvalidRequestError("no such thing")
    with pytest.raises(KinoptError, match="no such thing"):
        pool.solve_ik(PROBLEM, "first")
    assert solvers["second"].calls == 0
    solvers["first"].breaks = None
    assert pool.solve_ik(PROBLEM, "first").result.solver == "first"
