"""What plugins claim is never a success unless float64 code finds it to hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from support.cost_cases import every_joint

from kinopt_ros.costs.rest import Rest
from kinopt_ros.errors import KinoptError
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.objectives.result import ObjectiveCandidates, ObjectiveResult
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.base import Capabilities, Feature, Solver
from kinopt_ros.solvers.judgement import PluginError
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import check_collisions


class Liar(Solver):
    """Claims what it is told to."""

    name = "liar"
    version = "1"
    capabilities = Capabilities(joint_types=frozenset(), features=frozenset({Feature.OBJECTIVES}))
    q: Any = None
    timed_out = False

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        pass

    def _solve_objective(self, problem: ObjectiveProblem) -> ObjectiveCandidates:
        B = problem.batch_size
        return ObjectiveCandidates(
            np.asarray(self.q),
            tuple(np.zeros((B, 1, 1)) for _ in problem.objective),
            np.ones(B, dtype=np.int64),
            np.zeros((B, 1)),
            np.full(B, self.timed_out),
        )


class Other(Solver):
    """Solves no objectives."""

    name = "other"
    version = "1"
    capabilities = Capabilities(joint_types=frozenset(), features=frozenset({Feature.TRAJECTORIES}))

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        pass


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


def claimed(
    robot: RobotModel, q: Any, *costs: Rest, timed_out: bool = False, **options: Any
) -> ObjectiveResult:
    liar = Liar()
    liar.configure(robot)
    liar.q, liar.timed_out = q, timed_out
    return liar.solve_objective(objective_problem(robot, Objective(costs), **options))


LOOSE = Rest(tolerance=100.0)


def test_the_truth_is_a_success(panda: RobotModel) -> None:
    result = claimed(panda, panda.default_q[None, None], Rest(tolerance=1e-9))
    assert result.success.all()
    np.testing.assert_array_equal(result.q[0, 0], panda.default_q)
    assert result.messages == ("",)
    assert result.value() == 0.0
    assert result.term("rest").met
    assert "every cost with a tolerance" in result.checks
    assert "self-collision" in " ".join(result.not_checked) or result.not_checked
    with pytest.raises(KeyError, match="there are rest"):
        result.term("nose")
    assert not result.q.flags.writeable


def lie(panda: RobotModel, **changes: float) -> np.ndarray:
    q = panda.default_q.copy()
    for name, value in changes.items():
        q[panda.variable_index[name]] = value
    return q[None, None]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"panda_joint1": 3.5}, "left the joint limits by 0.6"),
        ({"panda_joint1": np.nan}, "not finite"),
        ({"panda_joint1": np.inf}, "not finite"),
        ({"panda_finger_joint1": 0.03}, "moved what was held: panda_finger_joint1"),
    ],
)
def test_what_no_solver_may_claim(panda: RobotModel, changes: dict[str, float], said: str) -> None:
    result = claimed(panda, lie(panda, **changes), LOOSE)
    assert result.status.tolist() == [Status.VERIFICATION_FAILED]
    assert not result.success.any()
    assert said in result.messages[0]
    assert "liar" in result.messages[0]
    assert np.isnan(result.q).all()
    np.testing.assert_array_equal(result.best[0, 0], panda.default_q)


def test_one_lie_of_a_batch_leaves_the_others(panda: RobotModel) -> None:
    liar = Liar()
    liar.configure(panda)
    liar.q = np.stack([lie(panda, panda_joint1=value)[0] for value in (0.1, 9.0, np.nan)])
    objectives = [Objective([LOOSE])] * 3
    result = liar.solve_objective(objective_problem(panda, objectives))
    assert result.success.tolist() == [True, False, False]
    assert np.isfinite(result.q[0]).all()


def test_unmet_tolerances(panda: RobotModel) -> None:
    q = lie(panda, panda_joint1=panda.default_q[0] + 0.2)
    costs = (Rest(tolerance=0.1, label="tight"), Rest(tolerance=0.19, label="less so"), Rest())
    result = claimed(panda, q, *costs)
    assert result.status[0] == Status.NO_IK_SOLUTION
    assert result.messages[0] == "cost 'tight' is off by 0.2; allowed is 0.1 (2 costs do not hold)"
    assert np.isnan(result.q).all()
    np.testing.assert_array_equal(result.best, q)
    assert claimed(panda, q, *costs, timed_out=True).status[0] == Status.TIMED_OUT
    assert claimed(panda, q, LOOSE, timed_out=True).success[0]
    several = np.repeat(q, 3, axis=1)
    assert claimed(panda, several, *costs, num_points=3).status[0] == Status.PLANNING_FAILED


def test_without_a_tolerance_it_is_the_nearest(panda: RobotModel) -> None:
    result = claimed(panda, panda.default_q[None, None], Rest())
    assert result.status[0] == Status.NEAREST
    assert np.isnan(result.q).all()
    assert not result.success.any()


@pytest.mark.parametrize("shape", [(8,), (1, 8), (1, 2, 8), (2, 1, 8), (1, 1, 7), (0,)])
def test_wrong_shapes_are_errors(panda: RobotModel, shape: tuple[int, ...]) -> None:
    with pytest.raises(PluginError, match=r"liar claims q of shape"):
        claimed(panda, np.zeros(shape), LOOSE)


def test_quaternions(panda: RobotModel) -> None:
    del panda
    robot = every_joint()
    q = robot.default_q.copy()
    assert claimed(robot, q[None, None], LOOSE, joints=["fly", "a"]).success[0]
    q[3:7] *= 2.0
    result = claimed(robot, q[None, None], LOOSE, joints=["fly", "a"])
    assert result.status[0] == Status.VERIFICATION_FAILED
    assert "quaternion whose length is not 1" in result.messages[0]
    turned = robot.default_q.copy()
    turned[3:7] = np.cos(0.05), np.sin(0.05), 0.0, 0.0
    result = claimed(robot, turned[None, None], LOOSE, joints=["fly"], locked=["fly/rot_x", "fly/rot_y"])
    assert result.status[0] == Status.VERIFICATION_FAILED
    assert "fly/rot_x" in result.messages[0]


@pytest.mark.slow
def test_collisions_are_looked_for_at_every_point(panda: RobotModel) -> None:
    pytest.importorskip("coal")
    prepare_collisions(panda)
    drawn = random_configurations(panda, 200, 0)
    drawn[:, 7] = panda.default_q[7]
    report = check_collisions(panda, Scene(), drawn)
    touching, free = drawn[~report.free][0][None, None], drawn[report.free][0][None, None]
    options = {"state": free[0, 0]}
    plain = claimed(panda, touching, LOOSE, **options)
    assert plain.success[0]
    assert any("collision" in text for text in plain.not_checked)
    assert claimed(panda, free, LOOSE, scene=Scene(), **options).success[0]
    for q, points in ((touching, 1), (np.concatenate([free, touching, free], axis=1), 3)):
        result = claimed(panda, q, LOOSE, scene=Scene(), num_points=points, **options)
        assert result.status[0] == Status.GOAL_IN_COLLISION
        assert "in collision" in result.messages[0]
        assert "Contact(" not in result.messages[0]
        assert ("at point 1" in result.messages[0]) == (points == 3)
        assert np.isnan(result.q).all()


def test_who_solves_no_objectives_is_told(panda: RobotModel) -> None:
    other = Other()
    other.configure(panda)
    with pytest.raises(KinoptError, match="does not solve objectives"):
        other.solve_objective(objective_problem(panda, Objective([LOOSE])))
    liar = Liar()
    liar.configure(panda)
    with pytest.raises(KinoptError, match="another robot"):
        liar.solve_objective(objective_problem(every_joint(), Objective([LOOSE]), joints=["a"]))


def test_the_gate_cannot_be_replaced() -> None:
    with pytest.raises(TypeError, match="solve_objective"):
        type("Sly", (Solver,), {"name": "sly", "solve_objective": lambda self, problem: None})
