"""Tests of what a plugin that solves objectives must do with them; every other plugin must refuse them.

In a plugin's own test suite::

    class TestObjectives(ObjectiveConformance):
        solver = "my_solver"

The plugin must know the costs ``LinkPose``, ``RelativePose`` and ``Rest``. Judged by forward kinematics alone.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import flying, two_hands
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.relative_pose import RelativePose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.tangent import difference, directions
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status

PLANE = (1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
"""Weights of errors in the plane of ``two_hands``."""
JOINTS = ("j0", "j1", "j2", "j3")
SharedMaker = Callable[[RobotModel], Solver]


class ObjectiveConformance:
    """Tests of objectives, of one configuration each."""

    solver: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture(scope="class")
    def shared(self) -> Iterator[SharedMaker]:
        """Makes one plugin for each robot."""
        made: dict[int, Solver] = {}

        def make(robot: RobotModel) -> Solver:
            if id(robot) not in made:
                made[id(robot)] = create_solver(self.solver, robot, self.options)
            return made[id(robot)]

        yield make
        for solver in made.values():
            solver.close()

    def test_poses_of_several_links(self, shared: SharedMaker) -> None:
        """A hand in the base, and the other one in it. From nearby: other starts are searched by tests of one pose."""
        arm = two_hands()
        found = 0
        for q, away in zip(random_configurations(arm, 6, 1), random_configurations(arm, 6, 2), strict=True):
            hand, other = forward_kinematics(arm, q[None], ["hand", "other_hand"])[0]
            T_hand_other = np.linalg.inv(hand) @ other
            relative = RelativePose(
                link_a="hand", link_b="other_hand", T_a_b=T_hand_other, weight=PLANE, tolerance=1e-6
            )
            costs = [
                LinkPose(link="hand", T_base_target=hand, weight=PLANE, tolerance=1e-6),
                relative,
                Rest(weight=0.1),
            ]
            seeds = (q + 0.1 * (away - q))[None, None]
            result = shared(arm).solve_objective(
                objective_problem(arm, Objective(costs), joints=JOINTS, seeds=seeds, num_starts=0)
            )
            if result.success[0]:
                found += 1
                hand_there, other_there = forward_kinematics(arm, result.q[0], ["hand", "other_hand"])[0]
                np.testing.assert_allclose(hand_there[:2, 3], hand[:2, 3], atol=1.5e-6)
                there = np.linalg.inv(hand_there) @ other_there
                np.testing.assert_allclose(there[:2, 3], T_hand_other[:2, 3], atol=1.5e-6)
        assert found >= 5

    def test_what_cannot_be_reached_is_no_success_and_named(self, shared: SharedMaker) -> None:
        arm = two_hands()
        for k, (x, y) in enumerate([(2.0, 0.0), (-0.9, 0.7), (0.0, 1.001)]):
            objective = Objective([at(x, y).costs[0].replace(label="reach"), Rest(weight=0.3)])
            result = shared(arm).solve_objective(
                objective_problem(arm, objective, joints=JOINTS, random_seed=k)
            )
            assert result.status[0] == Status.NO_IK_SOLUTION
            assert "'reach'" in result.messages[0]
            assert np.isnan(result.q).all()
            assert np.isfinite(result.best).all()
            distance = np.hypot(x, y) - 1.0
            assert result.term("reach").magnitude[0] == pytest.approx(distance, abs=0.02 + 0.2 * distance)

    def test_without_a_tolerance_nothing_is_a_success(self, shared: SharedMaker) -> None:
        arm = two_hands()
        objective = Objective([Rest(q=np.array([0.3, -0.2, 0.4, 0.1]), weight=(1.0, 2.0, 3.0, 4.0))])
        # From the state alone: other starts are searched by tests of what has to hold.
        result = shared(arm).solve_objective(objective_problem(arm, objective, joints=JOINTS, num_starts=0))
        assert result.status.tolist() == [Status.NEAREST]
        assert not result.success.any()
        assert np.isnan(result.q).all()
        assert np.isfinite(result.best).all()
        assert result.value() < 1e-5
        assert "no cost has a tolerance" in result.messages[0]

    def test_a_batch_is_as_good_as_one_by_one(self, shared: SharedMaker) -> None:
        """To 1e-9, whether they need many starts or not, reachable or not."""
        arm = two_hands()
        objectives = [at(0.5, 0.4), at(-0.6, 0.3), at(1.7, 0.0)]
        states = random_configurations(arm, 3, 2)
        solver = shared(arm)
        both = solver.solve_objective(objective_problem(arm, objectives, joints=JOINTS, state=states))
        for b in range(3):
            one = solver.solve_objective(
                objective_problem(arm, objectives[b], joints=JOINTS, state=states[b])
            )
            assert one.status[0] == both.status[b]
            if one.success[0]:
                np.testing.assert_allclose(both.best[b], one.best[0], atol=1e-9)
                assert both.value(b) == pytest.approx(one.value(), abs=1e-9)
        assert both.status[2] == Status.NO_IK_SOLUTION

    def test_equal_problems_get_equal_answers(self, shared: SharedMaker) -> None:
        arm = two_hands()
        solver = shared(arm)
        first, second = (
            solver.solve_objective(objective_problem(arm, at(-0.6, 0.3), joints=JOINTS)) for _ in range(2)
        )
        np.testing.assert_array_equal(first.best, second.best)

    def test_held_joints_do_not_move(self, shared: SharedMaker) -> None:
        """However much they would gain. (A posture is asked for: programs of poses take long to compile.)"""
        arm = two_hands()
        # The last one, which is not asked for, is beyond its limit, where nobody may move it to.
        state, wanted = np.array([[0.2, -0.4, 0.3, 2.9], [0.9, 0.6, -0.7, 1.0]])
        seeds = np.array([1.0, 1.0, 1.0, 1.0])[None, None]
        objective = Objective([Rest(q=wanted, weight=(1.0, 2.0, 3.0, 4.0))])
        problem = objective_problem(
            arm, objective, joints=JOINTS[:3], locked=["j1"], state=state, seeds=seeds, num_starts=0
        )
        result = shared(arm).solve_objective(problem)
        assert result.status[0] == Status.NEAREST, result.messages
        assert result.best[0, 0, [1, 3]].tolist() == [-0.4, 2.9]
        np.testing.assert_allclose(result.best[0, 0, [0, 2]], [0.9, -0.7], atol=1e-6)

    def test_a_floating_base(self, shared: SharedMaker) -> None:
        """With the base free, any pose is reached."""
        robot = flying()
        state, other = random_configurations(robot, 2, 6)
        T = forward_kinematics(robot, other[None], ["l5"])[0, 0]
        objective = Objective(
            [LinkPose(link="l5", T_base_target=T, tolerance=1e-6), Rest(q=state, weight=0.3)]
        )
        joints = ("fly", "a", "c", "p")
        result = shared(robot).solve_objective(
            objective_problem(robot, objective, joints=joints, state=state)
        )
        assert result.success[0], result.messages
        assert np.linalg.norm(result.q[0, 0, 3:7]) == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(forward_kinematics(robot, result.q[0], ["l5"])[0, 0], T, atol=3e-6)

    def test_locked_directions_of_a_floating_base_stay(self, shared: SharedMaker) -> None:
        """However much they would gain. (A posture is asked for: programs of poses take long to compile.)"""
        robot = flying()
        known = directions(robot)
        state, other = random_configurations(robot, 2, 6)
        joints, locked = ("fly", "a", "c", "p"), ("fly/rot_x", "fly/rot_y", "p")
        problem = objective_problem(
            robot, Objective([Rest(q=other)]), joints=joints, locked=locked, state=state, num_starts=0
        )
        result = shared(robot).solve_objective(problem)
        assert result.status[0] == Status.NEAREST, result.messages
        step, wanted = (difference(known, state, q) for q in (result.best[0, 0], other))
        held = [known.index(name) for name in locked]
        assert np.abs(wanted[held]).min() > 0.02
        np.testing.assert_allclose(step[held], 0.0, atol=1e-9)
        np.testing.assert_allclose(step[~problem.free], 0.0, atol=1e-9)
        assert abs(step[known.index("fly/rot_z")]) > 0.01
        free = known.scalar_directions[problem.free[known.scalar_directions]]
        np.testing.assert_allclose(step[free], wanted[free], atol=1e-6)


def place(x: float, y: float) -> Annotated[Float64, "4 4"]:
    """Return a pose in the plane of ``two_hands``, m."""
    T = np.eye(4)
    T[:2, 3] = x, y
    return T


def at(x: float, y: float, tolerance: float | None = 1e-6, rest: float = 0.3) -> Objective:
    """Return the objective of a hand that shall be somewhere (m), to a tolerance; ``rest``: weight of the posture."""
    return Objective(
        [
            LinkPose(link="hand", T_base_target=place(x, y), weight=PLANE, tolerance=tolerance),
            Rest(weight=rest),
        ]
    )
