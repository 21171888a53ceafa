"""What plugins may offer: inverse kinematics, trajectories or both; the rest is refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.trajectory import CostWeights, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers import registry
from kinopt_ros.solvers.base import Capabilities, Feature, Solver
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.paths import PathCandidates, PathRequest, Report
from kinopt_ros.solvers.registry import create_solver

ROBOT = seven_revolute()
GOAL = np.array([0.4, 0.3, 0.0, -0.6, 0.2, 0.5, 0.0])


class Mover(Solver):
    """Leaves paths as they are."""

    name = "mover"
    version = "0"
    capabilities = Capabilities(frozenset(JointType), frozenset({Feature.TRAJECTORIES}))

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        pass

    def _optimize_trajectory(
        self, problem: TrajectoryProblem, request: PathRequest, report: Report | None
    ) -> PathCandidates:
        zeros = np.zeros(len(request.paths))
        return PathCandidates(
            request.paths,
            zeros,
            zeros + np.inf,
            zeros,
            zeros.astype(np.int64),
            zeros.astype(np.bool_),
        )


class Nothing(Solver):
    """Offers nothing at all."""

    name = "nothing"
    version = "0"
    capabilities = Capabilities(frozenset(JointType))

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        pass


@pytest.fixture
def mover() -> Solver:
    solver = Mover()
    solver.configure(ROBOT)
    return solver


def test_a_solver_may_offer_trajectories_alone(mover: Solver) -> None:
    assert not mover.solves_ik()
    result = plan_trajectory(mover, trajectory_problem(ROBOT, GOAL, joints=ROBOT.variable_names))
    assert result.success, result.message
    with pytest.raises(UnsupportedFeatureError, match="mover does not solve inverse kinematics"):
        mover.solve_ik(ik_problem(ROBOT, np.eye(4), tip_link="l7"))


def test_plans_without_a_deadline_wait_for_what_motions_need(
    mover: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(Mover, "warm_up", lambda self: done.append("all"))
    problem = trajectory_problem(ROBOT, GOAL, joints=ROBOT.variable_names)
    assert plan_trajectory(mover, problem).success
    assert done == ["all"]  # unless a plugin knows better
    monkeypatch.setattr(Mover, "warm_up_motions", lambda self: done.append("motions"), raising=False)
    assert plan_trajectory(mover, problem).success
    assert done == ["all", "motions"]


def test_another_solver_finds_configurations_at_poses_for_it(mover: Solver) -> None:
    T = forward_kinematics(ROBOT, GOAL, links=("l7",))[0]
    problem = trajectory_problem(ROBOT, T, tip_link="l7")
    with pytest.raises(UnsupportedFeatureError, match="trajectories alone"):
        plan_trajectory(mover, problem)
    cpu = create_solver("cpu", ROBOT)
    result = plan_trajectory(mover, problem, ik_solver=cpu)
    assert result.success, result.message
    assert result.solver == "mover"
    cpu.close()


def test_a_solver_must_offer_something() -> None:
    with pytest.raises(TypeError, match=r"Nothing must implement _solve_ik, or have Feature\.TRAJECTORIES"):
        Nothing().configure(ROBOT)


def test_lists_say_so_and_auto_takes_one_that_solves_poses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_PREFERENCE", ())
    values = {"a_mover": f"{__name__}:Mover", "cpu": "kinopt_ros.solvers.cpu.plugin:CpuSolver"}
    points = {name: EntryPoint(name, value, registry.GROUP) for name, value in values.items()}
    loaded = {"a_mover": Mover}
    load = registry._load
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    monkeypatch.setattr(registry, "_load", lambda point: loaded.get(point.name) or load(point))
    alone, both = registry.list_solvers()
    assert (alone.solves_ik, both.solves_ik) == (False, True)
    assert alone.features == ("trajectories alone",)
    assert both.features == tuple(sorted(feature.value for feature in CpuSolver.capabilities.features))
    assert registry.solver_class("auto").name == "cpu"
    del points["cpu"]
    assert registry.solver_class("auto") is Mover


@dataclass(frozen=True)
class MoreWeights(CostWeights):
    """Weights with a cost that nobody knew before."""

    effort: float = 0.0


def test_a_cost_that_a_solver_does_not_know_is_refused_by_name(mover: Solver) -> None:
    problem = trajectory_problem(ROBOT, GOAL, joints=ROBOT.variable_names, weights=MoreWeights())
    assert plan_trajectory(mover, problem).success
    with pytest.raises(UnsupportedFeatureError, match="solver mover does not support the cost 'effort'"):
        plan_trajectory(mover, replace(problem, weights=MoreWeights(effort=1.0)))


def test_the_search_takes_no_line_where_a_new_cost_may_want_another_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[TrajectoryProblem] = []

    class Careful(Mover):
        capabilities = replace(Mover.capabilities, costs=frozenset({*Mover.capabilities.costs, "effort"}))

        def _optimize_trajectory(
            self, problem: TrajectoryProblem, request: PathRequest, report: Report | None
        ) -> PathCandidates:
            asked.append(problem)
            return super()._optimize_trajectory(problem, request, report)

    solver = Careful()
    solver.configure(ROBOT)
    problem = trajectory_problem(ROBOT, GOAL, joints=ROBOT.variable_names)
    for weights, straight in (
        (CostWeights(), True),
        (CostWeights(velocity=1.0), True),
        (MoreWeights(), True),
        (MoreWeights(effort=1.0), False),
    ):
        asked.clear()
        assert plan_trajectory(solver, replace(problem, weights=weights)).success
        assert (not asked) is straight
    rested = replace(problem, weights=CostWeights(rest=1.0), rest=np.zeros(7))
    assert plan_trajectory(solver, rested).success
    assert asked
