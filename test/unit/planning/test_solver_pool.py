"""Tests of who takes over when a solver cannot honour a problem, and that the answer says so."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.conformance.ik import reachable_problem
from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.costs.rest import Rest
from kinopt_ros.errors import (
    NotReadyError,
    SolverUnavailableError,
    UnknownSolverError,
    UnsupportedFeatureError,
)
from kinopt_ros.planning import solver_pool
from kinopt_ros.planning.solver_pool import SolverFailedError, SolverPool
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.solvers.base import Capabilities, Feature, Option, Solver
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.scene_ready import PreparingSceneError
from kinopt_ros.trajectory import path_timing

ROBOT = seven_revolute()
PROBLEM = reachable_problem(ROBOT, 2)


class Able(Solver):
    """Finds nothing, honestly."""

    name = "able"
    version = "0"
    capabilities = Capabilities(frozenset(JointType))
    options = (Option("effort", 1, "How hard it tries.", 0, 9),)

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        self.effort = options["effort"]

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        B, n = problem.batch_size, len(problem.variables)
        attempt = problem.state[:, problem.variables]
        return IkCandidates(np.full((B, 1, n), np.nan), attempt, np.zeros(B, np.int64), np.zeros(B, bool))


class Unable(Able):
    """Moves nothing."""

    name = "unable"
    capabilities = Capabilities(frozenset())


@pytest.fixture(autouse=True)
def two_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    solvers = {"able": Able, "unable": Unable}

    def solver_class(name: str) -> type[Solver]:
        if name == "absent":
            raise SolverUnavailableError("solver 'absent' is not available: no such device")
        if name not in solvers:
            raise UnknownSolverError(name, solvers)
        return solvers[name]

    monkeypatch.setattr(solver_pool, "solver_class", solver_class)
    monkeypatch.setattr(solver_pool, "solver_names", lambda: ("able", "absent", "unable"))


def ready_pool() -> SolverPool:
    pool = SolverPool(ROBOT)
    pool.prepare("able")
    pool.prepare("unable")
    return pool


def test_the_solver_asked_for_answers() -> None:
    pooled = ready_pool().solve_ik(PROBLEM, "able")
    assert pooled.result.solver == "able"
    assert pooled.fallback_reason == ""


@pytest.mark.parametrize(("asked", "reason"), [("unable", "revolute"), ("absent", "no such device")])
def test_another_one_takes_over_and_the_answer_says_why(asked: str, reason: str) -> None:
    pooled = ready_pool().solve_ik(PROBLEM, asked)
    assert pooled.result.solver == "able"
    assert reason in pooled.fallback_reason


@pytest.mark.parametrize(
    ("asked", "error"), [("unable", UnsupportedFeatureError), ("absent", SolverUnavailableError)]
)
def test_nobody_takes_over_uninvited(asked: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        ready_pool().solve_ik(PROBLEM, asked, allow_fallback=False)


def test_an_unknown_name_is_an_error_whatever_is_allowed() -> None:
    with pytest.raises(UnknownSolverError):
        ready_pool().solve_ik(PROBLEM, "ikfast")


def test_whether_a_motion_can_be_planned_is_known_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as what is asked for tells, so that nobody's motion is ended for it."""
    problem = trajectory_problem(ROBOT, ROBOT.default_q)
    pool = ready_pool()
    with pytest.raises(UnknownSolverError):
        pool.check_trajectory(problem, "ikfast")
    for solver, fallback in (("able", True), ("able", False), ("unable", True)):
        with pytest.raises(UnsupportedFeatureError, match=f"solver {solver} does not optimize trajectories"):
            pool.check_trajectory(problem, solver, fallback)
    with pytest.raises(SolverUnavailableError, match="no such device"):
        pool.check_trajectory(problem, "absent", allow_fallback=False)
    SolverPool(ROBOT).check_trajectory(problem, "able")  # which is being prepared, and may
    can = Capabilities(frozenset(JointType), frozenset({Feature.TRAJECTORIES}))
    monkeypatch.setattr(Able, "capabilities", can)
    pool.check_trajectory(problem, "able", allow_fallback=False)
    pool.check_trajectory(problem, "unable")
    with pytest.raises(UnsupportedFeatureError, match="cannot have a duration"):
        pool.check_trajectory(replace(problem, duration=9.0), "able", costs=[Rest()])
    with pytest.raises(UnsupportedFeatureError, match="solver able does not solve objectives"):
        pool.check_trajectory(problem, "able", allow_fallback=False, costs=[Rest()])


def test_a_solver_is_made_once_and_with_its_options() -> None:
    pool = SolverPool(ROBOT, {"able": {"effort": 7}})
    solver = pool.prepare("able")
    assert isinstance(solver, Able)
    assert solver.effort == 7
    assert pool.prepare("able") is solver
    assert pool.get("able") is solver
    pool.close()
    with pytest.raises(NotReadyError):
        pool.get("able")


def test_no_request_waits_for_a_solver_to_be_prepared() -> None:
    pool = SolverPool(ROBOT)
    with pytest.raises(NotReadyError, match="able"):
        pool.solve_ik(PROBLEM, "able")
    pool.prepare("unable")
    with pytest.raises(NotReadyError):
        pool.solve_ik(PROBLEM, "able")
    pool.prepare("able")
    assert "revolute" in pool.solve_ik(PROBLEM, "unable").fallback_reason


def test_no_solver_is_prepared_because_collision_checks_are_not_ready() -> None:
    asked: list[str] = []
    pool = SolverPool(ROBOT, chain=("able", "unable"), on_demand=asked.append)
    pool.prepare("able")
    problem = replace(PROBLEM, scene=EMPTY_SCENE, deadline=time.monotonic() + 10.0)
    with pytest.raises(NotReadyError, match="collision checks of this robot are being prepared"):
        pool.solve_ik(problem, "able")
    assert not asked


def test_no_solver_is_prepared_because_a_scene_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node loaded JAX and Warp, and compiled programs of half a gigabyte, because a cloud had come: in vain."""
    asked: list[str] = []
    pool = SolverPool(ROBOT, chain=("able", "unable"), on_demand=asked.append)
    pool.prepare("able")

    def waits(*given: object, **options: object) -> None:
        raise PreparingSceneError("the scene is being prepared")

    monkeypatch.setattr(Able, "_solve_ik", waits)
    with pytest.raises(PreparingSceneError, match="the scene is being prepared"):
        pool.solve_ik(PROBLEM, "able")
    assert not asked


def test_a_solver_that_cannot_be_configured_says_so_from_then_on() -> None:
    class Broken(Able):
        name = "broken"

        def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
            raise RuntimeError("no such device")

    pool = ready_pool()
    with pytest.MonkeyPatch.context() as patch:
        known = solver_pool.solver_class
        patch.setattr(solver_pool, "solver_class", lambda name: Broken if name == "broken" else known(name))
        with pytest.raises(SolverUnavailableError, match="no such device"):
            pool.prepare("broken")
        with pytest.raises(SolverUnavailableError, match="no such device"):
            pool.get("broken")
        pooled = pool.solve_ik(PROBLEM, "broken")
    assert pooled.result.solver == "able"
    assert "no such device" in pooled.fallback_reason


class Panic(BaseException):
    """What a plugin written in Rust raises is no Exception, nor is CancelledError of asyncio."""


@pytest.mark.parametrize("ending", [SystemExit(3), Panic("3")])
def test_a_plugin_that_wants_to_end_the_process_is_a_solver_that_failed(ending: BaseException) -> None:
    """It would end the thread that asked, and nobody would answer the request, or any other one."""
    pool = ready_pool()
    leaving = pool.get("unable")

    def leave(problem: IkProblem) -> IkCandidates:
        raise ending

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(leaving), "_solve_ik", lambda self, problem: leave(problem))
        patch.setattr(type(leaving), "check_supported", lambda self, problem: None)
        with pytest.raises(SolverFailedError, match=f"{type(ending).__name__}: 3"):
            pool.solve_ik(PROBLEM, "unable", allow_fallback=False)


def test_a_plugin_that_panics_while_it_is_prepared_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(self: Solver, robot: RobotModel, options: Mapping[str, Any]) -> None:
        raise Panic("no licence")

    monkeypatch.setattr(Unable, "_configure", panic)
    pool = SolverPool(ROBOT)
    with pytest.raises(SolverUnavailableError, match="no licence"):
        pool.prepare("unable")


def test_what_one_plugin_raises_keeps_no_other_from_warming_up_and_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything that is prepared after it would stay unprepared for good, and nobody would say why."""
    done: list[str] = []

    def panic(self: Solver) -> None:
        raise Panic("out of memory")

    pool = SolverPool(ROBOT)
    pool.prepare("unable")  # comes first
    pool.prepare("able")
    for name in ("warm_up", "close"):
        monkeypatch.setattr(Able, name, lambda self, name=name: done.append(name))
        monkeypatch.setattr(Unable, name, panic)
    with pytest.raises(SolverFailedError, match="out of memory"):
        pool.warm_up()
    pool.close()
    assert done == ["warm_up", "close"]


def test_straight_lines_are_timed_where_no_solver_optimizes_trajectories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the plugin cpu had it compiled: with others every request for straight lines was NOT_READY for ever."""
    done: list[str] = []
    monkeypatch.setattr(path_timing, "warm_up", lambda: done.append("timing"))
    pool = SolverPool(ROBOT)
    pool.prepare("able")
    pool.warm_up_trajectories()
    assert done == ["timing"]


class Moving(Able):
    """Optimizes trajectories alone."""

    name = "moving"
    capabilities = Capabilities(frozenset(JointType), frozenset({Feature.TRAJECTORIES}))
    _solve_ik = Solver._solve_ik


def test_a_solver_of_trajectories_alone_leaves_poses_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    solvers = {"able": Able, "moving": Moving}
    monkeypatch.setattr(solver_pool, "solver_class", lambda name: solvers[name])
    monkeypatch.setattr(solver_pool, "solver_names", lambda: ("able", "moving"))
    pool = SolverPool(ROBOT)
    moving = pool.prepare("moving")
    assert pool._for_poses(moving) is None
    able = pool.prepare("able")
    assert pool._for_poses(moving) is able
    assert pool._for_poses(able) is None
    pooled = pool.solve_ik(PROBLEM, "moving")
    assert pooled.result.solver == "able"
    assert "moving does not solve inverse kinematics" in pooled.fallback_reason
    with pytest.raises(UnsupportedFeatureError, match="trajectories alone"):
        pool.solve_ik(PROBLEM, "moving", allow_fallback=False)
    pool.close()
