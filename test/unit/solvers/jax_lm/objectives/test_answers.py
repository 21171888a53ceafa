"""What answers say, and what does not move."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest
from support.cost_cases import every_joint

from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.relative_pose import RelativePose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.tangent import difference, directions
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.status import Status
from kinopt_ros.wanted import AbandonedError, as_long_as

if TYPE_CHECKING:
    from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver

pytestmark = pytest.mark.slow
PLANE = (1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
JOINTS = ("j0", "j1", "j2", "j3")
SharedMaker = Callable[[RobotModel], "JaxLmSolver"]


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


def test_a_deadline_never_waits_for_the_compiler(shared: SharedMaker, arm: RobotModel) -> None:
    """It is refused, compiled beside, and answered when asked again."""
    from kinopt_ros.errors import NotReadyError

    solver = shared(arm)
    objective = Objective([*at(0.5, 0.4), Rest(weight=0.01, label="a structure of this test alone")])

    def asked(seconds: float) -> object:
        deadline = time.monotonic() + seconds
        return solver.solve_objective(objective_problem(arm, objective, joints=JOINTS, deadline=deadline))

    with pytest.raises(NotReadyError, match="compiles"):
        asked(1000.0)
    patience = time.monotonic() + 600.0
    while True:
        try:
            result = asked(1000.0)
        except NotReadyError:
            assert time.monotonic() < patience
            time.sleep(0.2)
        else:
            break
    assert result.success[0]  # type: ignore[attr-defined]
    late = solver.solve_objective(
        objective_problem(
            arm, Objective([at(2.0, 0.0).costs[0], *objective.costs[1:]]), joints=JOINTS, deadline=0.0
        )
    )
    assert late.status[0] == Status.TIMED_OUT
    assert "link_pose" in late.messages[0]


def test_no_compilation_after_preparation(shared: SharedMaker, arm: RobotModel) -> None:
    """Fifty requests of two structures, in turns, with other numbers, states, seeds and random seeds."""
    solver = shared(arm)
    solver.prepare_objective(objective_problem(arm, at(0.5, 0.4), joints=JOINTS))
    pair = [at(0.5, 0.4)] * 2
    solver.prepare_objective(objective_problem(arm, pair, joints=JOINTS))
    programs = solver._objectives[1]  # type: ignore[index]
    before, rng = programs.compiled, np.random.default_rng(0)
    states = random_configurations(arm, 100, 3)
    for k in range(50):
        some = [
            at(*rng.uniform(-0.7, 0.7, 2), float(10.0 ** rng.uniform(-6, -2)), rng.uniform(0, 1))
            for _ in pair
        ]
        objective = some if k % 2 else some[0]
        state = states[2 * k : 2 * k + 2] if k % 2 else states[k]
        problem = objective_problem(
            arm,
            objective,
            joints=JOINTS,
            state=state,
            random_seed=k,
            dt=float(rng.uniform(0.1, 1.0)),
            num_starts=10,
        )
        assert np.isfinite(solver.solve_objective(problem).best).all()
    assert programs.compiled == before


def test_how_the_polish_is_divided_changes_nothing(
    shared: SharedMaker, arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its parts the clock is looked at: as one program, paths took up to 8 s longer than they had."""
    solver = shared(arm)
    asked = objective_problem(arm, at(0.5, 0.4), joints=JOINTS, num_starts=0)
    before = solver.solve_objective(asked)
    from kinopt_ros.solvers.jax_lm.objectives import solver as parts

    for pause in (0.0, 1e3):  # single steps, and all of them at once
        monkeypatch.setattr(parts, "_PAUSE", pause)
        after = solver.solve_objective(asked)
        np.testing.assert_array_equal(after.best, before.best)
        np.testing.assert_array_equal(after.history, before.history)
    assert before.iterations[0] > 2


def test_the_polish_ends_when_the_deadline_comes_or_nobody_wants_it(
    shared: SharedMaker, arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kinopt_ros.solvers.jax_lm.objectives import solver as parts

    monkeypatch.setattr(parts, "_PAUSE", 0.0)
    solver = shared(arm)
    asked = objective_problem(arm, at(0.5, 0.4), joints=JOINTS, num_starts=0)
    steps = int(solver.solve_objective(asked).iterations[0])
    looks = [0]

    def late(problem: ObjectiveProblem) -> bool:
        looks[0] += 1
        return looks[0] > 2

    with monkeypatch.context() as patch:
        patch.setattr(ObjectiveProblem, "late", property(late))
        result = solver.solve_objective(asked)
    assert int(result.iterations[0]) == 3 < steps

    wanted = iter([True, True, False])
    with as_long_as(lambda: next(wanted)), pytest.raises(AbandonedError):
        solver.solve_objective(asked)
    assert not list(wanted)


def test_no_program_of_a_processor_takes_more_starts_than_one_clock_can_wait_for(
    shared: SharedMaker, arm: RobotModel
) -> None:
    """256 starts at a time took 16 times as long as 16, and nobody could look at the clock meanwhile."""
    from kinopt_ros.solvers.jax_lm.objectives.program import SEARCH

    search = shared(arm)._objective_search()
    asked = objective_problem(arm, [at(0.5, 0.4)] * 20, joints=JOINTS)
    assert [key.lanes for key in search.needed(asked) if key.kind == SEARCH] == [16]
