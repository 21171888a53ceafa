"""Tests of a plugin's ``solve_ik``. Subclass IkConformance in a test module (see the package)."""

import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from kinopt_ros.array import Float64, Int64
from kinopt_ros.conformance.ik_features import FeatureConformance
from kinopt_ros.conformance.robots import ROBOTS, seven_revolute
from kinopt_ros.conformance.trajectories import TrajectoryConformance
from kinopt_ros.errors import InvalidGoalError, KinoptError, NotReadyError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import create_solver, solver_class
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.status import Status


def reachable_problem(robot: RobotModel, targets: int, seed: int = 0) -> IkProblem:
    """Return a problem with targets that some configuration inside the limits reaches."""
    q = random_configurations(robot, targets, seed)
    tip = robot.link_names[-1]
    return ik_problem(robot, forward_kinematics(robot, q, links=(tip,))[:, 0], tip_link=tip, random_seed=seed)


def full_configurations(problem: IkProblem, q: Float64, requests: Int64) -> Float64:
    """Put solved variables (N, n), answers to N of the requests, into the state of these: (N, nq)."""
    full = problem.state[requests]
    full[:, problem.variables] = q
    return full


class IkConformance(FeatureConformance, TrajectoryConformance):
    """Tests of one plugin. Set ``solver`` to its registered name."""

    solver: ClassVar[str]
    minimum_success: ClassVar[float] = 0.95
    """Share of reachable random targets that the plugin must solve."""
    targets: ClassVar[int] = 50
    """Number of random targets that are tried per robot; at least 4."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Settings of the plugin that the tests shall use."""
    patience: ClassVar[float | None] = None
    """Time for a search among obstacles, s, of a plugin that would look for minutes; one with a compiler needs none."""
    robots: ClassVar[Collection[str]] = tuple(sorted(ROBOTS))
    """Names of the suite's robots that are used; fewer for a plugin that compiles for each."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Let pytest make a test for each of ``robots``, where a test has a robot."""
        if "robot" in metafunc.fixturenames:
            metafunc.parametrize("robot", sorted(self.robots), indirect=True)

    @pytest.fixture
    def robot(self, request: pytest.FixtureRequest) -> RobotModel:
        """Each of the robots whose joints the plugin says that it can move."""
        build, joint_types = ROBOTS[request.param]
        missing = joint_types - solver_class(self.solver).capabilities.joint_types
        if missing:
            pytest.skip(f"{self.solver} does not move {', '.join(sorted(t.value for t in missing))} joints")
        return build()

    @pytest.fixture
    def plugin(self, robot: RobotModel) -> Iterator[Solver]:
        """The plugin, configured for the robot."""
        solver = create_solver(self.solver, robot, self.options)
        solver.warm_up()
        yield solver
        solver.close()

    def assert_verified(self, robot: RobotModel, problem: IkProblem, result: IkResult) -> None:
        """Judge every success by forward kinematics and limits, apart from the core's own check."""
        solved = np.flatnonzero(result.success)
        q = result.q[solved, 0]
        tip = problem.targets[0]
        full = full_configurations(problem, q, solved)
        T = forward_kinematics(robot, full, links=(problem.base_link, tip.link))
        distance, angle = pose_error(tip.T_base_target[solved], np.linalg.inv(T[:, 0]) @ T[:, 1])
        assert (distance <= tip.position_tolerance).all()
        assert (angle <= tip.orientation_tolerance).all()
        assert (q >= robot.limits.lower[problem.variables]).all()
        assert (q <= robot.limits.upper[problem.variables]).all()

    def test_registered_under_its_own_name(self) -> None:
        solver = solver_class(self.solver)
        assert solver.name == self.solver
        assert solver.version
        assert solver.unavailable_reason() is None
        assert all(option.description for option in solver.options)

    def test_solves_reachable_targets(self, robot: RobotModel, plugin: Solver) -> None:
        problem = reachable_problem(robot, self.targets)
        result = plugin.solve_ik(problem)
        assert result.success.mean() >= self.minimum_success, result.messages
        self.assert_verified(robot, problem, result)

    def test_answer_has_the_agreed_form(self, robot: RobotModel, plugin: Solver) -> None:
        problem = reachable_problem(robot, 3)
        result = plugin.solve_ik(problem)
        n = len(problem.variables)
        assert result.joint_names == tuple(robot.variable_names[i] for i in problem.variables)
        assert result.q.shape == (3, 1, n) and result.attempt.shape == (3, n)
        assert result.status.shape == (3,) and len(result.messages) == 3
        assert result.solver == self.solver
        assert result.checks and result.not_checked
        assert result.solve_time > 0.0

    def test_unreachable_targets_fail_with_a_reason_and_an_attempt(
        self, robot: RobotModel, plugin: Solver
    ) -> None:
        T = np.eye(4)
        T[:3, 3] = 10.0, 10.0, 10.0
        problem = ik_problem(robot, T, tip_link=robot.link_names[-1])
        result = plugin.solve_ik(problem)
        assert result.status.tolist() == [Status.NO_IK_SOLUTION]
        assert "reach" in result.messages[0]
        assert np.isnan(result.q).all()
        attempt = result.attempt[0]
        assert np.isfinite(attempt).all()
        assert (attempt >= robot.limits.lower[problem.variables]).all()
        assert (attempt <= robot.limits.upper[problem.variables]).all()
        tip = problem.targets[0].link
        distance, _ = pose_error(
            T,
            forward_kinematics(
                robot, full_configurations(problem, attempt[None], np.zeros(1, np.int64)), (tip,)
            )[0, 0],
        )
        assert result.attempt_position_error[0] == pytest.approx(float(distance), abs=1e-9)

    def test_one_failure_does_not_touch_its_neighbours(self, robot: RobotModel, plugin: Solver) -> None:
        problem = reachable_problem(robot, 5)
        T = problem.targets[0].T_base_target.copy()
        T[2, :3, 3] += 50.0
        mixed = plugin.solve_ik(replace(problem, targets=(replace(problem.targets[0], T_base_target=T),)))
        assert not mixed.success[2]
        alone = plugin.solve_ik(problem)
        np.testing.assert_array_equal(np.delete(mixed.q, 2, axis=0), np.delete(alone.q, 2, axis=0))

    def test_batch_keeps_the_order(self, robot: RobotModel, plugin: Solver) -> None:
        problem = reachable_problem(robot, 6)
        target = problem.targets[0]
        order = np.array([3, 0, 5, 1, 4, 2])
        shuffled = replace(problem, targets=(replace(target, T_base_target=target.T_base_target[order]),))
        self.assert_verified(robot, shuffled, plugin.solve_ik(shuffled))
        assert plugin.solve_ik(shuffled).success.sum() == plugin.solve_ik(problem).success.sum()

    def test_empty_batch_gives_an_empty_answer(self, robot: RobotModel, plugin: Solver) -> None:
        problem = ik_problem(robot, np.empty((0, 4, 4)), tip_link=robot.link_names[-1])
        result = plugin.solve_ik(problem)
        assert result.q.shape == (0, 1, len(problem.variables))
        assert result.messages == ()

    def test_same_request_gives_the_same_answer(self, robot: RobotModel, plugin: Solver) -> None:
        first, other = (reachable_problem(robot, self.targets // 2, seed=seed) for seed in (1, 2))
        a = plugin.solve_ik(first)
        plugin.solve_ik(other)
        b = plugin.solve_ik(first)
        fresh = create_solver(self.solver, robot, self.options).solve_ik(first)
        np.testing.assert_array_equal(a.q, b.q)
        np.testing.assert_array_equal(a.q, fresh.q)

    def test_concurrent_calls_equal_serial_ones(self, robot: RobotModel, plugin: Solver) -> None:
        problems = [reachable_problem(robot, self.targets // 4, seed=seed) for seed in range(4)]
        serial = [plugin.solve_ik(problem).q for problem in problems]
        with ThreadPoolExecutor(4) as pool:
            parallel = list(pool.map(lambda problem: plugin.solve_ik(problem).q, problems))
        for a, b in zip(serial, parallel, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_a_perfect_seed_is_kept(self, robot: RobotModel, plugin: Solver) -> None:
        q = random_configurations(robot, 1, 3)
        tip = robot.link_names[-1]
        T = forward_kinematics(robot, q, links=(tip,))[0, 0]
        result = plugin.solve_ik(ik_problem(robot, T, tip_link=tip, state=q[0]))
        assert result.success[0]
        np.testing.assert_allclose(result.q[0, 0], q[0], atol=1e-3)

    def test_held_joints_stay(self, robot: RobotModel, plugin: Solver) -> None:
        count = self.targets
        problem = reachable_problem(robot, count, seed=4)
        full = random_configurations(robot, count, 6)
        state = random_configurations(robot, count, 5)
        full[: count // 2, 0] = full[0, 0]  # some have the same value to hold, some have their own
        state[:, 0] = full[:, 0]
        tip = problem.targets[0]
        T = forward_kinematics(robot, full, links=(tip.link,))[:, 0]
        held = replace(
            problem,
            targets=(replace(tip, T_base_target=T),),
            joints=problem.joints[1:],
            variables=problem.variables[1:],
            seeds=problem.seeds[:, :, 1:],
            state=state,
        )
        result = plugin.solve_ik(held)
        assert result.joint_names == problem.joints[1:]
        self.assert_verified(robot, held, result)
        # Fewer than six joints reach exactly these poses, so a plugin may miss some; never all.
        assert result.success.any()

    def test_targets_in_another_base(self, robot: RobotModel, plugin: Solver) -> None:
        base, tip = robot.link_names[1], robot.link_names[-1]
        q = random_configurations(robot, self.targets, 7)
        T = forward_kinematics(robot, q, links=(base, tip))
        problem = ik_problem(robot, np.linalg.inv(T[:, 0]) @ T[:, 1], base_link=base, tip_link=tip)
        assert robot.variable_names[0] not in problem.joints
        result = plugin.solve_ik(problem)
        self.assert_verified(robot, problem, result)
        assert result.success.any()

    def test_a_past_deadline_ends_soon(self, robot: RobotModel, plugin: Solver) -> None:
        problem = replace(reachable_problem(robot, 200), deadline=time.monotonic() - 1.0)
        T = problem.targets[0].T_base_target.copy()
        T[:, :3, 3] *= (
            0.9 / np.linalg.norm(T[:, :3, 3], axis=1, keepdims=True) + 1.0
        )  # reachable or not: hard
        plugin.solve_ik(reachable_problem(robot, 1))
        start = time.monotonic()
        try:
            result = plugin.solve_ik(
                replace(problem, targets=(replace(problem.targets[0], T_base_target=T),))
            )
        except NotReadyError:  # a compiler would have to be waited for
            assert time.monotonic() - start < 5.0
            return
        assert time.monotonic() - start < 5.0
        assert set(result.status.tolist()) <= {Status.SUCCESS, Status.TIMED_OUT, Status.NO_IK_SOLUTION}

    def test_input_is_not_modified(self, robot: RobotModel, plugin: Solver) -> None:
        problem = reachable_problem(robot, 4)
        before = problem.targets[0].T_base_target.copy(), problem.state.copy()
        plugin.solve_ik(problem)
        np.testing.assert_array_equal(problem.targets[0].T_base_target, before[0])
        np.testing.assert_array_equal(problem.state, before[1])

    def test_malformed_problems_are_refused(self, robot: RobotModel, plugin: Solver) -> None:
        problem = reachable_problem(robot, 2)
        target = problem.targets[0]
        nan, mirrored = target.T_base_target.copy(), target.T_base_target.copy()
        nan[1, 0, 3] = np.nan
        mirrored[0, :3, 0] *= -1.0
        for T in (nan, mirrored):
            with pytest.raises(InvalidGoalError):
                plugin.solve_ik(replace(problem, targets=(replace(target, T_base_target=T),)))
        for broken in (
            replace(problem, targets=()),
            replace(problem, base_link="nowhere"),
            replace(problem, joints=("nobody",)),
            replace(problem, state=problem.state[:, :-1].copy()),
            replace(problem, seeds=np.zeros((2, 1, 99))),
            replace(problem, num_solutions=0),
            replace(problem, targets=(replace(target, position_tolerance=-1.0),)),
        ):
            with pytest.raises(KinoptError):
                plugin.solve_ik(broken)

    def test_unknown_options_are_refused(self) -> None:
        with pytest.raises(KinoptError, match="no_such_option"):
            create_solver(self.solver, seven_revolute(), {"no_such_option": 1})

    def test_options_out_of_range_are_refused(self) -> None:
        for option in solver_class(self.solver).options:
            if option.maximum is not None:
                with pytest.raises(KinoptError, match=option.name):
                    create_solver(
                        self.solver,
                        seven_revolute(),
                        {option.name: type(option.default)(option.maximum * 2 + 1)},
                    )

    def test_not_configured_or_closed_says_so(self) -> None:
        problem = reachable_problem(seven_revolute(), 1)
        with pytest.raises(NotReadyError):
            solver_class(self.solver)().solve_ik(problem)
        solver = create_solver(self.solver, seven_revolute(), self.options)
        solver.close()
        with pytest.raises(NotReadyError):
            solver.solve_ik(problem)
