"""What answers say, what does not move, and what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from support.cost_cases import every_joint

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.center_of_mass import CenterOfMass
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.relative_pose import RelativePose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.self_collision import SelfCollision
from kinopt_ros.errors import NotReadyError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.tangent import difference, directions
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.planning.objectives import solve_objective
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.cpu.objectives import solve
from kinopt_ros.status import Status

PLANE = (1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
JOINTS = ("j0", "j1", "j2", "j3")
SharedMaker = Callable[[RobotModel], Solver]


def place(x: float, y: float) -> np.ndarray:
    T = np.eye(4)
    T[:2, 3] = x, y
    return T


def at(x: float, y: float, tolerance: float | None = 1e-6, rest: float = 0.3) -> Objective:
    return Objective(
        [
            LinkPose(link="hand", T_base_target=place(x, y), weight=PLANE, tolerance=tolerance),
            Rest(weight=rest),
        ]
    )


def test_several_link_poses(shared: SharedMaker, arm: RobotModel) -> None:
    found = 0
    for q in random_configurations(arm, 6, 1):
        poses = forward_kinematics(arm, q[None], ["hand", "other_hand"])[0]
        costs = [
            LinkPose(link=link, T_base_target=T, weight=PLANE, tolerance=1e-6)
            for link, T in zip(("hand", "other_hand"), poses, strict=True)
        ]
        result = shared(arm).solve_objective(
            objective_problem(arm, Objective([*costs, Rest(weight=0.1)]), joints=JOINTS)
        )
        if result.success[0]:
            found += 1
            there = forward_kinematics(arm, result.q[0], ["hand", "other_hand"])[0]
            np.testing.assert_allclose(there[:, :2, 3], poses[:, :2, 3], atol=1.5e-6)
    assert found >= 5


def test_a_pose_of_one_hand_in_the_other(shared: SharedMaker, arm: RobotModel) -> None:
    wanted = place(0.1, 0.05)
    cost = RelativePose(link_a="hand", link_b="other_hand", T_a_b=wanted, weight=PLANE, tolerance=1e-6)
    result = shared(arm).solve_objective(
        objective_problem(arm, Objective([cost, Rest(weight=0.3)]), joints=JOINTS)
    )
    assert result.success[0], result.messages
    hand, other = forward_kinematics(arm, result.q[0], ["hand", "other_hand"])[0]
    np.testing.assert_allclose((np.linalg.inv(hand) @ other)[:2, 3], wanted[:2, 3], atol=1.5e-6)


def test_what_cannot_be_reached_is_no_success_and_named(shared: SharedMaker, arm: RobotModel) -> None:
    for k, (x, y) in enumerate([(2.0, 0.0), (-0.9, 0.7), (0.0, 1.001)]):
        objective = Objective([at(x, y).costs[0].replace(label="reach"), Rest(weight=0.3)])
        result = shared(arm).solve_objective(objective_problem(arm, objective, joints=JOINTS, random_seed=k))
        assert result.status[0] == Status.NO_IK_SOLUTION
        assert "'reach'" in result.messages[0]
        assert np.isnan(result.q).all()
        assert np.isfinite(result.best).all()
        distance = np.hypot(x, y) - 1.0
        assert result.term("reach").magnitude[0] == pytest.approx(distance, abs=0.02 + 0.2 * distance)


def test_without_a_tolerance_nothing_is_a_success(shared: SharedMaker, arm: RobotModel) -> None:
    result = shared(arm).solve_objective(objective_problem(arm, at(0.5, 0.4, None, 1e-3), joints=JOINTS))
    assert result.status.tolist() == [Status.NEAREST]
    assert not result.success.any()
    assert np.isnan(result.q).all()
    assert np.isfinite(result.best).all()
    assert result.value() < 1e-5
    assert "no cost has a tolerance" in result.messages[0]


def test_a_batch_is_as_good_as_one_by_one(shared: SharedMaker, arm: RobotModel) -> None:
    """To 1e-9, whether they need many starts or not, reachable or not."""
    objectives = [at(0.5, 0.4), at(-0.6, 0.3), at(1.7, 0.0)]
    states = random_configurations(arm, 3, 2)
    solver = shared(arm)
    both = solver.solve_objective(objective_problem(arm, objectives, joints=JOINTS, state=states))
    for b in range(3):
        one = solver.solve_objective(objective_problem(arm, objectives[b], joints=JOINTS, state=states[b]))
        assert one.status[0] == both.status[b]
        if one.success[0]:
            np.testing.assert_allclose(both.best[b], one.best[0], atol=1e-9)
            assert both.value(b) == pytest.approx(one.value(), abs=1e-9)
    assert both.status[2] == Status.NO_IK_SOLUTION


def test_equal_problems_get_equal_answers(shared: SharedMaker, arm: RobotModel) -> None:
    solver = shared(arm)
    first, second = (
        solver.solve_objective(objective_problem(arm, at(-0.6, 0.3), joints=JOINTS)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.best, second.best)


def test_held_joints_do_not_move(shared: SharedMaker, arm: RobotModel) -> None:
    state = np.array([0.2, -0.4, 0.3, 2.9])  # the last one is beyond its limit, where nobody may move it to
    seeds = np.array([1.0, 1.0, 1.0, 1.0])[None, None]
    problem = objective_problem(arm, at(0.5, 0.4), joints=JOINTS[:3], state=state, seeds=seeds)
    result = shared(arm).solve_objective(problem)
    assert result.success[0], result.messages
    assert result.q[0, 0, 3] == 2.9
    problem = objective_problem(arm, at(0.3, 0.4), joints=JOINTS, locked=["j1", "j3"], state=state)
    result = shared(arm).solve_objective(problem)
    assert result.best[0, 0, [1, 3]].tolist() == [-0.4, 2.9]


def test_a_floating_base(shared: SharedMaker) -> None:
    """With the base free, any pose is reached; with rotations locked, they stay."""
    robot = every_joint()
    known, solver = directions(robot), shared(robot)
    state, other = random_configurations(robot, 2, 6)
    T = forward_kinematics(robot, other[None], ["tip"])[0, 0]
    objective = Objective([LinkPose(link="tip", T_base_target=T, tolerance=1e-6), Rest(q=state, weight=0.3)])
    joints = ("fly", "a", "c", "p")
    result = solver.solve_objective(objective_problem(robot, objective, joints=joints, state=state))
    assert result.success[0], result.messages
    assert np.linalg.norm(result.q[0, 0, 3:7]) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(forward_kinematics(robot, result.q[0], ["tip"])[0, 0], T, atol=3e-6)

    locked = ("fly/rot_x", "fly/rot_y", "p")
    problem = objective_problem(robot, objective, joints=joints, locked=locked, state=state)
    result = solver.solve_objective(problem)
    assert result.status[0] != Status.VERIFICATION_FAILED, result.messages
    step = difference(known, state, result.best[0, 0])
    np.testing.assert_allclose(step[[known.index(name) for name in locked]], 0.0, atol=1e-9)
    np.testing.assert_allclose(step[~problem.free], 0.0, atol=1e-9)


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
