"""What answers say, what does not move, and what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from support.cost_cases import every_joint

from kinopt_ros.conformance.objectives import JOINTS, PLANE, ObjectiveConformance, at, place
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.center_of_mass import CenterOfMass
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.self_collision import SelfCollision
from kinopt_ros.errors import NotReadyError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.planning.objectives import solve_objective
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.cpu.objectives import solve
from kinopt_ros.status import Status

SharedMaker = Callable[[RobotModel], Solver]


class TestAnswers(ObjectiveConformance):
    solver = "cpu"


def test_joints_that_drive_others(shared: SharedMaker) -> None:
    """Of the robot with every joint, a drives another one behind it."""
    robot = every_joint()
    joints = ("drive", "a", "c", "p", "b")
    met = 0
    for state, other in random_configurations(robot, 12, 7).reshape(6, 2, -1):
        q = state.copy()
        own = [i for name in joints for i in robot.variables_of(name)]
        q[own] = other[own]
        T = forward_kinematics(robot, q[None], ["tip"])[0, 0]
        objective = Objective([LinkPose(link="tip", T_base_target=T, tolerance=1e-6), Rest(weight=0.1)])
        result = shared(robot).solve_objective(
            objective_problem(robot, objective, joints=joints, state=state)
        )
        if result.success[0]:
            met += 1
            there = forward_kinematics(robot, result.q[0], ["tip"])[0, 0]
            np.testing.assert_allclose(there, T, atol=3e-6)
    assert met >= 5


def test_every_request_of_a_batch_is_as_if_alone(shared: SharedMaker, panda: RobotModel) -> None:
    """To the last bit, also where states hold other values, and where one is out of reach."""
    qs = random_configurations(panda, 40, 3)
    T = forward_kinematics(panda, qs, ["panda_hand"])[:, 0]
    T[5, :3, 3] = 3.0
    objectives = [
        Objective(
            [
                LinkPose(link="panda_hand", T_base_target=target, tolerance=(1e-4, 1e-3)),
                Rest(weight=0.1),
                Manipulability(link="panda_hand", weight=0.01),
            ]
        )
        for target in T
    ]
    states = random_configurations(panda, 40, 4)
    joints = [f"panda_joint{k}" for k in (1, 2, 3, 4, 5, 6, 7)]
    solver = shared(panda)
    together = solver.solve_objective(
        objective_problem(panda, objectives, joints=joints, state=states, num_starts=2)
    )
    assert together.status[5] == Status.NO_IK_SOLUTION
    assert together.success.sum() == 39
    for b in (0, 5, 17, 39):
        alone = solver.solve_objective(
            objective_problem(panda, objectives[b], joints=joints, state=states[b], num_starts=2)
        )
        np.testing.assert_array_equal(alone.best[0], together.best[b])
        for mine, own in zip(alone.multipliers, together.multipliers, strict=True):
            np.testing.assert_array_equal(mine[0], own[b])


def test_poses_with_tools_in_other_links(shared: SharedMaker, panda: RobotModel) -> None:
    """The start is led to the pose of the tool, in a base link other than the root."""
    T_tool = np.eye(4)
    T_tool[:3, 3] = 0.0, 0.05, 0.2
    for q in random_configurations(panda, 5, 9):
        T_root = forward_kinematics(panda, q[None], ["panda_link1", "panda_hand"])[0]
        T = np.linalg.inv(T_root[0]) @ T_root[1] @ T_tool
        cost = LinkPose(
            link="panda_hand",
            base_link="panda_link1",
            T_base_target=T,
            T_link_tool=T_tool,
            frame="base",
            tolerance=1e-6,
        )
        problem = objective_problem(panda, Objective([cost, Rest(weight=0.1)]), num_starts=0)
        result = shared(panda).solve_objective(problem)
        assert result.success[0], result.messages
        assert result.terms[0][0].magnitude.max() < 1e-6


def test_what_is_weighed_gets_as_near_as_it_can(shared: SharedMaker, arm: RobotModel) -> None:
    """Nothing has to hold, and weights per component count."""
    cost = LinkPose(
        link="hand", T_base_target=place(3.0, 0.0), weight=(1.0, 1.0, 0.0, 0.0, 0.0, 0.0), frame="base"
    )
    result = shared(arm).solve_objective(objective_problem(arm, Objective([cost]), joints=JOINTS))
    assert result.status[0] == Status.NEAREST
    assert result.terms[0][0].value == pytest.approx(4.0)


def test_a_center_of_mass_that_has_to_hold(shared: SharedMaker) -> None:
    robot = every_joint()
    q = random_configurations(robot, 1, 3)[0]
    costs = [CenterOfMass(place=(0.2, 0.1, 0.0), weight=(1.0, 1.0, 0.0), tolerance=1e-6), Rest(weight=0.1)]
    problem = objective_problem(robot, Objective(costs), joints=("drive", "a", "b"), state=q)
    result = shared(robot).solve_objective(problem)
    assert result.success[0], result.messages


def test_what_is_not_compiled_is_refused_by_name(shared: SharedMaker, arm: RobotModel) -> None:
    """Trajectories, other kinds, and kinds of others whose class is one of ours."""

    @dataclass(frozen=True, eq=False, kw_only=True)
    class Restless(Rest):
        name = "restless"

    solver = shared(arm)
    path = objective_problem(arm, Objective([Rest()]), joints=JOINTS, num_points=5)
    with pytest.raises(UnsupportedFeatureError, match="1 point, not of 5"):
        solver.solve_objective(path)
    others: list[tuple[RobotModel, Cost]] = [(every_joint(), SelfCollision()), (arm, Restless())]
    for robot, other in others:
        solver = shared(robot)
        problem = objective_problem(robot, Objective([Rest(), other]), joints=robot.active_joints)
        with pytest.raises(UnsupportedFeatureError, match=other.name):
            solver.solve_objective(problem)
        with pytest.raises(UnsupportedFeatureError, match=other.name):
            solver.prepare_objective(problem)


def test_deadlines(shared: SharedMaker, arm: RobotModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has passed is said; none waits for the compiler."""
    solver = shared(arm)
    late = solver.solve_objective(objective_problem(arm, at(0.5, 0.4), joints=JOINTS, deadline=0.0))
    assert late.status[0] == Status.TIMED_OUT
    assert np.isfinite(late.best).all()
    soon = time.monotonic() + 1000.0
    in_time = solver.solve_objective(objective_problem(arm, at(0.5, 0.4), joints=JOINTS, deadline=soon))
    assert in_time.success[0]
    monkeypatch.setattr(
        "kinopt_ros.solvers.cpu.plugin.load_or_compile_objectives", lambda may_compile: may_compile
    )
    with pytest.raises(NotReadyError, match="compiled"):
        solver.solve_objective(objective_problem(arm, at(0.5, 0.4), joints=JOINTS, deadline=soon))


def test_long_searches_look_at_the_clock(
    shared: SharedMaker, arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go on where they stopped: the answer is the same in pieces."""
    problem = objective_problem(arm, at(-0.6, 0.3), joints=JOINTS, num_starts=30)
    solver = shared(arm)
    at_once = solver.solve_objective(problem)
    monkeypatch.setattr(solve, "_WORK", 1)
    in_pieces = solver.solve_objective(problem)
    np.testing.assert_array_equal(in_pieces.best, at_once.best)
    assert in_pieces.iterations[0] == at_once.iterations[0]


@pytest.mark.parametrize("weight", [0.0, 1e-6, 1e6])
@pytest.mark.parametrize("far", [1e-300, 1.0, 1e8])
def test_hostile_numbers(shared: SharedMaker, arm: RobotModel, weight: float, far: float) -> None:
    """Answers are numbers, inside the limits, and claim nothing that does not hold."""
    costs = [
        LinkPose(link="hand", T_base_target=place(far, -far), weight=PLANE, tolerance=0.0),
        LinkPose(link="other_hand", T_base_target=place(-far, far), weight=weight),
        Rest(q=np.full(4, far), weight=weight),
        Manipulability(link="hand", part="full", weight=weight),
    ]
    result = shared(arm).solve_objective(
        objective_problem(arm, Objective(costs), joints=JOINTS, state=np.full(4, 1e8))
    )
    assert np.isfinite(result.best).all()
    assert (np.abs(result.best) <= 2.5).all()
    assert result.status[0] != Status.VERIFICATION_FAILED


def test_a_failed_request_gets_starts_from_elsewhere(shared: SharedMaker, arm: RobotModel) -> None:
    """Both hands hang on one joint: no start can be led to both, but inverse kinematics finds some."""
    solver, q = shared(arm), random_configurations(arm, 30, 5)
    T = forward_kinematics(arm, q, ["hand", "other_hand"])
    objectives = [
        Objective(
            [
                LinkPose(link=link, T_base_target=T[b, k], tolerance=1e-6)
                for k, link in enumerate(("hand", "other_hand"))
            ]
        )
        for b in range(30)
    ]
    problem = objective_problem(arm, objectives, joints=JOINTS, num_starts=0)
    alone = solver.solve_objective(problem)
    helped = solve_objective(solver, problem, solver)
    assert not alone.success.all()
    assert helped.success.all()
    assert (helped.success >= alone.success).all()
    np.testing.assert_array_equal(helped.best[alone.success], alone.best[alone.success])
    assert all(term.met for terms in helped.terms for term in terms)
    assert not any(helped.messages)
