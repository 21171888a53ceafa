"""What answers say, and what does not move."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from support.arm_objectives import asked, held
from support.optimality import beside_slsqp

from kinopt_ros.conformance.objectives import JOINTS, ObjectiveConformance, at, place
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.status import Status
from kinopt_ros.wanted import AbandonedError, as_long_as

if TYPE_CHECKING:
    from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver

pytestmark = pytest.mark.slow
SharedMaker = Callable[[RobotModel], "JaxLmSolver"]


class TestAnswers(ObjectiveConformance):
    solver = "jax_lm"
    options: ClassVar[Mapping[str, Any]] = {"groups": ""}

    @pytest.fixture(scope="class")
    def shared(self, shared: SharedMaker) -> SharedMaker:
        """Programs of this module's solvers are compiled once."""
        return shared


def test_a_deadline_never_waits_for_the_compiler(shared: SharedMaker, arm: RobotModel) -> None:
    """It is refused, compiled beside, and answered when asked again."""
    from kinopt_ros.errors import NotReadyError

    solver = shared(arm)
    near = Rest(q=np.array([0.1, 0.2, 0.3, 0.4]), tolerance=0.1)
    objective = Objective([near, Rest(weight=0.01, label="a structure of this test alone")])
    here = {"joints": JOINTS, "num_starts": 0}  # without the program that takes longest to compile

    def after(seconds: float) -> object:
        deadline = time.monotonic() + seconds
        return solver.solve_objective(objective_problem(arm, objective, deadline=deadline, **here))

    with pytest.raises(NotReadyError, match="compiles"):
        after(1000.0)
    patience = time.monotonic() + 600.0
    while True:
        try:
            result = after(1000.0)
        except NotReadyError:
            assert time.monotonic() < patience
            time.sleep(0.2)
        else:
            break
    assert result.success[0]  # type: ignore[attr-defined]
    beyond = near.replace(q=np.array([9.0, 0.2, 0.3, 0.4]))
    late = solver.solve_objective(
        objective_problem(arm, Objective([beyond, *objective.costs[1:]]), deadline=0.0, **here)
    )
    assert late.status[0] == Status.TIMED_OUT
    assert "rest" in late.messages[0]


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
            at(x, y, float(10.0 ** rng.uniform(-6, -2)), rng.uniform(0, 1))
            for x, y in rng.uniform(-0.7, 0.7, (len(pair), 2)).tolist()
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
    posed = objective_problem(arm, at(0.5, 0.4), joints=JOINTS, num_starts=0)
    before = solver.solve_objective(posed)
    from kinopt_ros.solvers.jax_lm.objectives import solver as parts

    for pause in (0.0, 1e3):  # single steps, and all of them at once
        monkeypatch.setattr(parts, "_PAUSE", pause)
        after = solver.solve_objective(posed)
        np.testing.assert_array_equal(after.best, before.best)
        np.testing.assert_array_equal(after.history, before.history)
    assert before.iterations[0] > 2


def test_the_polish_ends_when_the_deadline_comes_or_nobody_wants_it(
    shared: SharedMaker, arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kinopt_ros.solvers.jax_lm.objectives import solver as parts

    monkeypatch.setattr(parts, "_PAUSE", 0.0)
    solver = shared(arm)
    posed = objective_problem(arm, at(0.5, 0.4), joints=JOINTS, num_starts=0)
    steps = int(solver.solve_objective(posed).iterations[0])
    looks = [0]

    def late(problem: ObjectiveProblem) -> bool:
        looks[0] += 1
        return looks[0] > 2

    with monkeypatch.context() as patch:
        patch.setattr(ObjectiveProblem, "late", property(late))
        result = solver.solve_objective(posed)
    assert int(result.iterations[0]) == 3 < steps

    wanted = iter([True, True, False])
    with as_long_as(lambda: next(wanted)), pytest.raises(AbandonedError):
        solver.solve_objective(posed)
    assert not list(wanted)


def test_no_program_of_a_processor_takes_more_starts_than_one_clock_can_wait_for(
    shared: SharedMaker, arm: RobotModel
) -> None:
    """256 starts at a time took 16 times as long as 16, and nobody could look at the clock meanwhile."""
    from kinopt_ros.solvers.jax_lm.objectives.program import SEARCH

    search = shared(arm)._objective_search()
    posed = objective_problem(arm, [at(0.5, 0.4)] * 20, joints=JOINTS)
    assert [key.lanes for key in search.needed(posed) if key.kind == SEARCH] == [16]


def test_what_holds_is_as_good_as_by_slsqp(shared: SharedMaker, arm: RobotModel) -> None:
    """Measured: 9 of ten. (Here, as its programs are those of other tests of this file.)"""
    beside_slsqp(shared(arm), held, 8, 1.0)


def test_multipliers_are_those_of_the_formulas(shared: SharedMaker, arm: RobotModel) -> None:
    """How fast the least value rises with the target: dv/dtarget is minus lambda times the residual's derivative."""
    problem = asked(arm, held, 2)
    solver = shared(arm)

    def least(shift: float) -> float:
        first, rest = problem.objective.costs
        assert isinstance(first, LinkPose)
        moved = first.replace(
            T_base_target=place(first.T_base_target[0, 3] + shift, first.T_base_target[1, 3])
        )
        result = solver.solve_objective(
            objective_problem(arm, Objective([moved, rest]), joints=JOINTS, seeds=start.best[:1])
        )
        assert result.success[0]
        return result.terms[0][1].value

    start = solver.solve_objective(problem)
    assert start.success[0]
    slope = (least(1e-3) - least(-1e-3)) / 2e-3
    assert slope == pytest.approx(-start.multipliers[0][0, 0, 0], rel=1e-3)
