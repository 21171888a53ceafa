"""Starts of objectives from inverse kinematics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.cost_cases import every_joint

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.look_at import LookAt
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.self_collision import SelfCollision
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose
from kinopt_ros.objectives.evaluation import evaluate
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import (
    DEFAULT_STARTS,
    MORE_STARTS,
    ObjectiveProblem,
    objective_problem,
)
from kinopt_ros.objectives.result import ObjectiveCandidates
from kinopt_ros.planning.objectives import STARTS, solve_objective, solver_for, with_starts
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.base import Capabilities, Solver
from kinopt_ros.solvers.registry import create_solver, solver_class
from kinopt_ros.status import Status

pytest.importorskip("numba")


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


@pytest.fixture(scope="module")
def cpu(panda: RobotModel) -> Iterator[Solver]:
    solver = create_solver("cpu", panda)
    yield solver
    solver.close()


def hand(robot: RobotModel, seed: int, **changes: Any) -> LinkPose:
    q = random_configurations(robot, 1, seed)
    T = forward_kinematics(robot, q, ["panda_hand"])[0, 0]
    return LinkPose(link="panda_hand", T_base_target=T, **({"tolerance": 1e-4} | changes))


def asked(robot: RobotModel, *costs: Cost, **options: Any) -> ObjectiveProblem:
    return objective_problem(robot, Objective(costs), **options)


def held(robot: RobotModel, problem: ObjectiveProblem, request: int, start: int) -> list[bool]:
    q = problem.seeds[request, start]
    return [term.met for term in evaluate(robot, problem.objectives[request], q, problem.dt)]


def test_starts_are_at_the_pose(panda: RobotModel, cpu: Solver) -> None:
    problem = with_starts(asked(panda, hand(panda, 1), Rest(weight=0.1)), cpu)
    assert problem.seeds.shape == (1, STARTS, 1, panda.nq)
    for k in range(STARTS):
        assert all(held(panda, problem, 0, k))
    np.testing.assert_array_equal(problem.seeds[0, :, 0, 7], panda.default_q[7])  # held


def test_own_seeds_come_first(panda: RobotModel, cpu: Solver) -> None:
    seed = panda.default_q[None, None] + 0.01
    problem = with_starts(asked(panda, hand(panda, 1), seeds=seed), cpu)
    assert problem.seeds.shape == (1, 1 + STARTS, 1, panda.nq)
    np.testing.assert_allclose(problem.seeds[0, 0, 0, :7], seed[0, 0, :7], atol=1e-12)


@pytest.mark.parametrize(
    "costs",
    [
        (Rest(),),
        (LinkPose(link="panda_hand", T_base_target=np.eye(4)),),
        (LinkPose(link="panda_hand", T_base_target=np.eye(4), frame="base", tolerance=1e-3),),
    ],
    ids=["no pose", "no tolerance", "another frame"],
)
def test_nothing_is_added_where_no_pose_has_to_hold(
    panda: RobotModel, cpu: Solver, costs: tuple[Cost, ...]
) -> None:
    problem = asked(panda, *costs)
    assert with_starts(problem, cpu) is problem


def test_tools_bases_and_free_axes(panda: RobotModel, cpu: Solver) -> None:
    tool = np.eye(4)
    tool[:3, 3] = 0.0, 0.1, 0.1
    q = random_configurations(panda, 1, 4)
    base, end = forward_kinematics(panda, q, ["panda_link1", "panda_hand"])[0]
    costs = [
        LinkPose(link="panda_hand", T_base_target=end @ tool, T_link_tool=tool, tolerance=1e-4),
        LinkPose(
            link="panda_hand",
            T_base_target=np.linalg.inv(base) @ end,
            base_link="panda_link1",
            tolerance=1e-4,
        ),
        LinkPose(link="panda_hand", T_base_target=end, weight=(1.0, 1.0, 1.0, 1.0, 1.0, 0.0), tolerance=1e-3),
        LinkPose(link="panda_hand", T_base_target=end, tolerance=(1e-4, 10.0)),
    ]
    for cost in costs:
        problem = with_starts(asked(panda, cost), cpu)
        assert all(held(panda, problem, 0, 0)), cost


def test_every_request_has_its_own(panda: RobotModel, cpu: Solver) -> None:
    objectives = [Objective([hand(panda, k)]) for k in range(3)]
    problem = with_starts(objective_problem(panda, objectives), cpu)
    for b in range(3):
        assert held(panda, problem, b, 0) == [True]


def test_what_cannot_be_reached_still_has_starts(panda: RobotModel, cpu: Solver) -> None:
    far = np.eye(4)
    far[:3, 3] = 5.0, 0.0, 0.0
    cost = LinkPose(link="panda_hand", T_base_target=far, tolerance=1e-4)
    problem = with_starts(asked(panda, cost), cpu)
    assert np.isfinite(problem.seeds).all()


def test_paths_go_through_the_poses(panda: RobotModel, cpu: Solver) -> None:
    costs = (hand(panda, 1, points=(2,)), hand(panda, 2, points=(-2,)), Rest())
    problem = with_starts(asked(panda, *costs, num_points=9), cpu)
    path = problem.seeds[0, 0]
    assert path.shape == (9, panda.nq)
    assert held(panda, problem, 0, 0)[:2] == [True, True]
    np.testing.assert_array_equal(path[:3], np.repeat(path[2:3], 3, axis=0))
    np.testing.assert_allclose(path[7:], np.repeat(path[7:8], 2, axis=0), atol=1e-12)
    steps = np.diff(path[2:8], axis=0)
    np.testing.assert_allclose(steps, np.repeat(steps[:1], 5, axis=0), atol=1e-12)


def test_different_bases_at_one_point_are_left_alone(panda: RobotModel, cpu: Solver) -> None:
    costs = (hand(panda, 1), hand(panda, 1, base_link="panda_link1"))
    problem = with_starts(asked(panda, *costs), cpu)
    np.testing.assert_array_equal(problem.seeds, np.broadcast_to(panda.default_q, problem.seeds.shape))


def test_partly_locked_joints_are_not_asked_of_inverse_kinematics() -> None:
    robot = every_joint()
    solver = create_solver("cpu", robot)
    state, other = random_configurations(robot, 2, 1)
    T = forward_kinematics(robot, other[None], ["tip"])[0, 0]
    cost = LinkPose(link="tip", T_base_target=T, tolerance=1e-4)
    joints = ("fly", "a", "c", "p")
    problem = objective_problem(
        robot, Objective([cost]), joints=joints, locked=["fly/rot_x", "fly/rot_y"], state=state
    )
    found = with_starts(problem, solver)
    np.testing.assert_allclose(found.seeds[0, :, 0, :7], np.broadcast_to(state[:7], (STARTS, 7)), atol=1e-12)
    solver.close()


class Refusing(Solver):
    """Takes nothing."""

    name = "refusing"
    version = "1"

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot

    def _configure(self, robot: RobotModel, options: Any) -> None:
        pass

    def _solve_ik(self, problem: Any) -> Any:
        raise UnsupportedFeatureError("not here")


def test_a_solver_that_takes_nothing_costs_nothing(panda: RobotModel, cpu: Solver) -> None:
    refusing = Refusing.__new__(Refusing)
    refusing._robot = panda
    refusing.capabilities = cpu.capabilities  # type: ignore[misc]
    problem = with_starts(asked(panda, hand(panda, 1)), refusing)
    np.testing.assert_array_equal(problem.seeds, np.broadcast_to(panda.default_q, problem.seeds.shape))


def test_solve_objective_hands_the_starts_on(panda: RobotModel, cpu: Solver) -> None:
    handed = []

    class Seen:
        finds_poses = False

        def solve_objective(self, problem: ObjectiveProblem) -> ObjectiveProblem:
            handed.append(problem)
            return problem

    problem = asked(panda, hand(panda, 1))
    solve_objective(Seen(), problem)  # type: ignore[arg-type]
    solve_objective(Seen(), problem, cpu)  # type: ignore[arg-type]
    assert handed[0] is problem
    assert handed[1].seeds.shape[1] == STARTS
    assert replace(handed[1], seeds=problem.seeds).objectives == problem.objectives


def test_a_configuration_that_does_not_hold_gets_more_starts_unless_their_number_is_given(
    panda: RobotModel, cpu: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    solve = cpu._solve_objective

    def solved(problem: ObjectiveProblem) -> ObjectiveCandidates:
        seen.append((problem.num_starts, problem.random_seed))
        return solve(problem)

    monkeypatch.setattr(cpu, "_solve_objective", solved)
    far = hand(panda, 1).replace(T_base_target=pose(np.eye(3), np.array([3.0, 0.0, 0.5])))
    for options in ({}, {"num_starts": DEFAULT_STARTS}):
        result = solve_objective(cpu, asked(panda, far, random_seed=5, **options), cpu)
        assert result.status[0] == Status.NO_IK_SOLUTION
    assert seen == [(DEFAULT_STARTS, 5), (MORE_STARTS, 6), (DEFAULT_STARTS, 5), (0, 5)]


def test_what_few_starts_lead_to_is_met(panda: RobotModel, cpu: Solver) -> None:
    """A place and a line of sight, met from one of ten random starts: one of a thousand mixed requests."""
    place, seen = np.array([0.00441, 0.013254, 0.19115]), (-0.471939, 0.164285, 0.207929)
    costs = [
        hand(panda, 1).replace(
            T_base_target=pose(np.eye(3), place),
            weight=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0),
            tolerance=(1e-4, 1e-3),
        ),
        LookAt(link="panda_hand", axis=(0.0, 0.0, 1.0), place=seen, tolerance=1e-3),
        Rest(weight=0.05),
    ]
    for seed in range(10):
        result = solve_objective(cpu, asked(panda, *costs, random_seed=seed), cpu)
        assert result.success[0], result.messages


def test_the_first_solver_that_can_is_chosen_by_the_costs(panda: RobotModel) -> None:
    """Only those that can run here are; what none knows is refused by the last one's words."""
    assert solver_for([Rest()], 1) == "cpu"
    assert solver_for([Rest()], 1, ("nobody", "cpu")) == "cpu"
    with pytest.raises(UnsupportedFeatureError, match="self_collision"):
        solver_for([Rest(), SelfCollision()], 1, ("cpu",))
    with pytest.raises(UnsupportedFeatureError, match="1 point, not of 2"):
        solver_for([Rest()], 2, ("cpu",))
    with pytest.raises(UnsupportedFeatureError, match=r"no solver.*; nobody: "):
        solver_for([Rest()], 1, ("nobody",))


def test_a_solver_without_objectives_says_nothing_of_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's plugin for poses, the last one by name, had the last word: that it solves no objectives."""

    class Poses(Solver):
        name = "poses"
        capabilities = Capabilities(frozenset())

    def class_of(name: str) -> type[Solver]:
        return Poses if name == "poses" else solver_class(name)

    monkeypatch.setattr("kinopt_ros.planning.objectives.solver_class", class_of)
    with pytest.raises(UnsupportedFeatureError, match=r"solver cpu .*self_collision"):
        solver_for([SelfCollision()], 1, ("cpu", "poses"))


def test_a_pool_asks_who_can(panda: RobotModel) -> None:
    """A solver that cannot is left out where another may answer, and says so where none may."""
    pool = SolverPool(panda, chain=("cpu",))
    try:
        pool.prepare("cpu")
        weighed = objective_problem(panda, Objective([Rest()]))
        pooled = pool.solve_objective(weighed)
        assert (pooled.result.solver, pooled.fallback_reason) == ("cpu", "")
        path = objective_problem(panda, Objective([Rest()]), num_points=2)
        with pytest.raises(UnsupportedFeatureError, match="not of 2"):
            pool.solve_objective(path, "cpu", allow_fallback=False)
        assert pool._for_objectives([Rest()], 1, "cpu", True) == ("cpu", "")
        assert pool._for_objectives([SelfCollision()], 1, "cpu", True) == ("cpu", "")
    finally:
        pool.close()


def test_a_pool_takes_starts_from_who_answers_at_once(panda: RobotModel, cpu: Solver) -> None:
    """The first of the chain compiled programs of plain poses for them, though ``cpu`` was there."""
    pool = SolverPool(panda, chain=("refusing", "cpu"))
    refusing = Refusing.__new__(Refusing)
    refusing.capabilities = cpu.capabilities  # type: ignore[misc]
    pool._solvers["refusing"] = refusing
    assert pool._for_starts() is refusing
    pool._solvers["cpu"] = cpu
    assert pool._for_starts() is cpu


@pytest.mark.slow
def test_a_pool_goes_on_to_who_solves_trajectories(panda: RobotModel) -> None:
    pytest.importorskip("jaxls")
    pool = SolverPool(panda)
    chosen, reason = pool._for_objectives([Rest()], 2, "cpu", True)
    assert chosen == "jax_lm"
    assert "not of 2" in reason
