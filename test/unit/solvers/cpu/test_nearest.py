"""What is as near as possible: the kernel's cost is that of kinematics.pose_errors and its derivatives are exact; what
is found is as near as what scipy's bounded least squares find from many starts."""

import time
from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.thorough import times

pytest.importorskip("numba")
from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import ROBOTS, seven_revolute, six_revolute, two_arms
from kinopt_ros.errors import NotReadyError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import chain_pose, forward_kinematics
from kinopt_ros.kinematics.free_joint import with_free_joint
from kinopt_ros.kinematics.pose_errors import axis_errors
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import so3_exp
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.rows import rows_of
from kinopt_ros.robot.chain import build_chain, chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.cpu import nearest
from kinopt_ros.solvers.cpu.kernels import nearest_cost, nearest_descent, pose_rows
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.cpu.tree import pack_tree
from kinopt_ros.solvers.kernels import forward
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status

WEIGHTS = {
    "one each": PoseWeights(1.0, 0.3),
    "per axis": PoseWeights((1.0, 2.0, 3.0), (1.0, 0.5, 0.2)),
    "turn about z free": PoseWeights(1.0, (0.5, 1.0, 0.0)),
    "turn about x free": PoseWeights(1.0, (0.0, 1.0, 1.0)),
    "turn about y free": PoseWeights((0.0, 1.0, 1.0), (1.0, 0.0, 0.3)),
    "only about z": PoseWeights((1.0, 1.0, 0.0), (0.0, 0.0, 0.7)),
    "only about x": PoseWeights(0.0, (1.0, 0.0, 0.0)),
    "only about y": PoseWeights(1.0, (0.0, 2.0, 0.0)),
    "position": PoseWeights(1.0, 0.0),
    "orientation": PoseWeights(0.0, 1.0),
}


def interpreted() -> dict[str, Any]:
    """The kernels' functions as Python runs them."""
    modules = forward, pose_rows, nearest_cost, nearest_descent
    names = {name: value for module in modules for name, value in vars(module).items()}
    for name, value in list(names.items()):
        if hasattr(value, "py_func"):
            names[name] = FunctionType(value.py_func.__code__, names)
    return names


PYTHON = interpreted()


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    CpuSolver().warm_up()


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("name", [*ROBOTS, "two_arms"])
def test_cost_and_derivatives(name: str, weights: PoseWeights) -> None:
    robot = two_arms() if name == "two_arms" else ROBOTS[name][0]()
    links = ("l7", "l13") if name == "two_arms" else (robot.link_names[-1],)
    chains = tuple(build_chain(robot, robot.root_link, link) for link in links)
    packed = pack_tree(chains, robot.limits.lower, robot.limits.upper, table_size=2)
    T, M, n = len(chains), len(packed.motions), len(packed.variables)
    tree = nearest_cost.Tree(packed.base, packed.tip, packed.motions, packed.kinds, packed.starts)
    q, other = random_configurations(robot, 2, 3)
    targets = np.array([chain_pose(chain, other[None, chain.variables]) for chain in chains])
    w = np.array(weights.all)
    wanted = nearest_cost.Wanted(np.empty((T, 12)), np.tile(w * w, (T, 1)))
    PYTHON["set_goals"](packed.base, targets, 0, wanted.goals)
    tips = PYTHON["new_room"](T, M, n).tips

    def cost(x: Float64) -> float:
        full = q.copy()
        full[packed.variables] = x
        total = 0.0
        for target, chain in zip(targets, chains, strict=True):
            errors = axis_errors(
                target[0],
                chain_pose(chain, full[chain.variables]),
                weights.free_position,
                weights.free_orientation,
            )
            total += 0.5 * float(((w * np.concatenate(errors)) ** 2).sum())
        return total

    def derivatives(x: Float64) -> tuple[Float64, Float64]:
        gradient, hessian = np.empty(n), np.empty((n, n))
        PYTHON["place_tips"](tree, wanted, x, tips)
        PYTHON["differentiate"](tree, wanted, tips, gradient, hessian)
        return gradient, hessian

    x = q[packed.variables]
    assert PYTHON["place_tips"](tree, wanted, x, tips) == pytest.approx(cost(x), rel=1e-12)
    gradient, hessian = derivatives(x)
    steps = 1e-5 * np.eye(n)
    slopes = np.array([cost(x + step) - cost(x - step) for step in steps]) / 2e-5
    bends = np.array([derivatives(x + step)[0] - derivatives(x - step)[0] for step in steps]) / 2e-5
    np.testing.assert_allclose(gradient, slopes, atol=1e-7 * (1.0 + np.abs(slopes).max()))
    np.testing.assert_allclose(hessian, bends, atol=1e-6 * (1.0 + np.abs(bends).max()))


def test_costs_where_directions_vanish() -> None:
    """At the target, and half a turn away from it."""
    for squares in ((1.0, 1.0, 1.0), (1.0, 2.0, 3.0), (1.0, 2.0, 0.0), (0.0, 0.0, 2.0)):
        assert PYTHON["turn_cost"](1.0, 0.0, 0.0, 0.0, *squares) == (0.0, 0.0, 0.0, 0.0)
        cost, *torque = PYTHON["turn_cost"](0.0, 1.0, 0.0, 0.0, *squares)
        assert np.isfinite(torque).all()
        assert cost == pytest.approx(0.5 * np.pi**2 * (squares[0] or squares[2]))


def five_joints(count: int, seed: int, weights: PoseWeights, **options: Any) -> IkProblem:
    """An arm of five joints (of six, the fourth is locked) and targets that are hardly ever reached: other
    orientations than in a configuration, places beyond the reach, small errors."""
    return hard_targets(six_revolute(), count, seed, weights, locked_joints=["j4"], **options)


def hard_targets(robot: RobotModel, count: int, seed: int, weights: PoseWeights, **options: Any) -> IkProblem:
    rng = np.random.default_rng(seed)
    tip = robot.link_names[-1]
    q = random_configurations(robot, count, seed)
    T = forward_kinematics(robot, q, links=(tip,))[:, 0]
    for k in range(count):
        turn = so3_exp(rng.normal(size=3))
        if k % 3 == 0:
            T[k, :3, :3] = turn
        elif k % 3 == 1:
            T[k, :3, :3], T[k, :3, 3] = turn, T[k, :3, 3] * rng.uniform(1.0, 2.0)
        else:
            T[k, :3, 3] += rng.normal(size=3) * 0.05
    return ik_problem(robot, T, tip_link=tip, nearest=weights, **options)


def cost_of(robot: RobotModel, problem: IkProblem, b: int, q: Float64) -> float:
    """Sum of the squares of the weighted errors of request b, by numpy's kinematics."""
    full = problem.state[b].copy()
    full[problem.variables] = q
    total = 0.0
    for target in problem.targets:
        chain = chain_between(robot, problem.base_link, target.link)
        tool = np.eye(4) if target.T_link_tool is None else target.T_link_tool
        errors = axis_errors(
            target.T_base_target[b],
            chain_pose(chain, full[chain.variables]) @ tool,
            target.free_position,
            target.free_orientation,
        )
        assert target.weights is not None
        total += float(((np.array(target.weights.all) * np.concatenate(errors)) ** 2).sum())
    return total


def by_scipy(robot: RobotModel, problem: IkProblem, b: int, starts: int) -> float:
    """Least cost of scipy's bounded least squares from random starts."""
    optimize = pytest.importorskip("scipy.optimize")
    target, chain = problem.targets[0], chain_between(robot, problem.base_link, problem.targets[0].link)
    w = np.array(target.weights.all if target.weights is not None else ())
    column = [chain.variables.tolist().index(v) for v in problem.variables]
    held = problem.state[b][chain.variables]

    def residuals(x: Float64) -> Float64:
        values = held.copy()
        values[column] = x
        return w * np.concatenate(axis_errors(
            target.T_base_target[b], chain_pose(chain, values), target.free_position, target.free_orientation
        ))  # fmt: skip

    lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
    low, high = np.maximum(lower, -np.pi), np.minimum(upper, np.pi)
    options = {"bounds": (lower, upper), "xtol": 1e-10, "ftol": 1e-10}
    ends = np.random.default_rng(b).uniform(low, high, (starts, len(low)))
    return min(2.0 * optimize.least_squares(residuals, x, **options).cost for x in ends)


@pytest.mark.parametrize("name", ["one each", "per axis", "turn about z free", "position", "orientation"])
def test_five_joints_come_as_near_as_scipy(name: str) -> None:
    robot, count = six_revolute(), times(4, 8)
    problem = five_joints(count, 5, WEIGHTS[name])
    solver = create_solver("cpu", robot)
    result = solver.solve_ik(problem)
    solver.close()
    _check_answers(robot, problem, result)
    costs = np.array([cost_of(robot, problem, b, result.attempt[b]) for b in range(count)])
    best = np.array([by_scipy(robot, problem, b, 6) for b in range(count)])
    assert (costs <= best * (1.0 + 1e-6) + 1e-12).sum() >= count - 1, (costs, best)


def test_seven_joints_come_as_near_as_scipy() -> None:
    robot, count = seven_revolute(), times(3, 6)
    problem = hard_targets(robot, count, 6, PoseWeights(1.0, 0.2))
    solver = create_solver("cpu", robot)
    result = solver.solve_ik(problem)
    solver.close()
    _check_answers(robot, problem, result)
    costs = np.array([cost_of(robot, problem, b, result.attempt[b]) for b in range(count)])
    best = np.array([by_scipy(robot, problem, b, 5) for b in range(count)])
    assert (costs <= best * (1.0 + 1e-6) + 1e-12).sum() >= count - 1, (costs, best)


def _check_answers(robot: RobotModel, problem: IkProblem, result: Any) -> None:
    assert (result.status == Status.NEAREST).all(), result.messages
    assert not result.success.any()
    assert result.nearest.all()
    assert not result.failed.any()
    assert np.isnan(result.q).all()
    assert (result.attempt >= robot.limits.lower[problem.variables]).all()
    assert (result.attempt <= robot.limits.upper[problem.variables]).all()


@pytest.fixture(scope="module")
def solver() -> Iterator[Solver]:
    made = create_solver("cpu", six_revolute())
    yield made
    made.close()


def test_no_small_move_inside_the_limits_is_nearer() -> None:
    robot = seven_revolute()
    problem = hard_targets(robot, 30, 7, PoseWeights(1.0, 0.1), locked_joints=["j3", "j5"])
    solver = create_solver("cpu", robot)
    result = solver.solve_ik(problem)
    solver.close()
    lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
    rng = np.random.default_rng(0)
    at_limits = 0
    for b, q in enumerate(result.attempt):
        at_limits += int(((q == lower) | (q == upper)).any())
        cost = cost_of(robot, problem, b, q)
        for size in (1e-5, 1e-4, 1e-3):
            for _ in range(20):
                moved = np.clip(q + rng.normal(size=len(q)) * size, lower, upper)
                assert cost_of(robot, problem, b, moved) >= cost * (1.0 - 1e-9) - 1e-15
    assert at_limits >= 3  # some joints were held by their limits, exactly


@pytest.mark.parametrize("weights", [PoseWeights(100.0, 0.1), PoseWeights(0.05, 10.0)])
def test_errors_of_small_weights_are_made_small_too(weights: PoseWeights) -> None:
    """Where one weight is much greater, the way to the least cost is a narrow valley: it is followed to its end."""
    robot = seven_revolute()
    problem = hard_targets(robot, 40, 17, weights, locked_joints=["j3"])
    solver = create_solver("cpu", robot)
    result = solver.solve_ik(problem)
    solver.close()
    lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
    rng = np.random.default_rng(0)
    ended = 0
    for b, q in enumerate(result.attempt):
        cost = cost_of(robot, problem, b, q)
        around = np.clip(
            q + rng.normal(size=(40, len(q))) * 10.0 ** rng.uniform(-6, -3, (40, 1)), lower, upper
        )
        least = min(cost_of(robot, problem, b, moved) for moved in around)
        ended += least >= cost * (1.0 - 1e-7) - 1e-14
    assert ended >= 39


def test_position_before_orientation(solver: Solver) -> None:
    """The heavier the position, the nearer it comes; a place inside the reach is met to a micrometre in the end."""
    robot = solver.robot
    free = five_joints(30, 8, PoseWeights(1.0, 0.0))
    reachable = np.flatnonzero(solver.solve_ik(free).attempt_position_error < 1e-9)
    assert len(reachable) > 10
    before = np.full(len(reachable), np.inf)
    for weight in (0.1, 1.0, 10.0, 1000.0):
        target = replace(free.targets[0], weights=PoseWeights(weight, 0.1))
        result = solver.solve_ik(rows_of(replace(free, targets=(target,)), reachable))
        _check_answers(robot, free, result)
        off = result.attempt_position_error
        assert np.median(off) < np.median(before)
        before = off
    assert (before < 1e-5).mean() > 0.9
    other = solver.solve_ik(replace(free, targets=(replace(free.targets[0], weights=PoseWeights(0.0, 1.0)),)))
    assert (other.attempt_orientation_error < 1e-9).mean() > 0.5


def test_what_is_reached_is_no_success_but_said_to_be_met(solver: Solver) -> None:
    robot = solver.robot
    q = random_configurations(robot, 20, 9)
    T = forward_kinematics(robot, q, links=("l6",))[:, 0]
    result = solver.solve_ik(ik_problem(robot, T, tip_link="l6", nearest=PoseWeights(1.0, 1.0)))
    assert (result.status == Status.NEAREST).all()
    reached = (result.attempt_position_error < 1e-8) & (result.attempt_orientation_error < 1e-8)
    assert reached.mean() >= 0.9
    for b in np.flatnonzero(reached):
        assert result.messages[b].startswith("position met (off by ")
        assert ", orientation met (off by " in result.messages[b]


def test_the_state_is_kept_where_nothing_is_nearer(solver: Solver) -> None:
    robot = solver.robot
    q = random_configurations(robot, 5, 10)
    T = forward_kinematics(robot, q, links=("l6",))[:, 0]
    result = solver.solve_ik(ik_problem(robot, T, tip_link="l6", state=q, nearest=PoseWeights()))
    np.testing.assert_allclose(result.attempt, q, atol=1e-9)


def test_answers_do_not_depend_on_the_batch_or_the_threads(solver: Solver) -> None:
    problem = five_joints(70, 11, PoseWeights(1.0, 0.1))
    together = solver.solve_ik(problem)
    alone = [solver.solve_ik(rows_of(problem, np.array([b]))) for b in range(70)]
    np.testing.assert_array_equal(together.attempt, np.concatenate([one.attempt for one in alone]))
    assert together.messages == tuple(one.messages[0] for one in alone)
    single = create_solver("cpu", solver.robot, {"threads": 1})
    np.testing.assert_array_equal(single.solve_ik(problem).attempt, together.attempt)
    single.close()


def test_more_starts_never_end_farther(solver: Solver) -> None:
    problem = five_joints(40, 12, PoseWeights(1.0, 0.3))
    few, many = (create_solver("cpu", solver.robot, {"nearest_starts": n}) for n in (4, 400))
    ends = []
    for each in (few, many):
        q = each.solve_ik(problem).attempt
        ends.append(np.array([cost_of(solver.robot, problem, b, q[b]) for b in range(40)]))
        each.close()
    assert (ends[1] <= ends[0] * (1.0 + 1e-6) + 1e-12).all()
    assert ends[1].sum() < ends[0].sum()


def test_a_deadline_that_has_passed(solver: Solver) -> None:
    problem = replace(five_joints(200, 13, PoseWeights()), deadline=time.monotonic() - 1.0)
    result = solver.solve_ik(problem)
    assert (result.status == Status.TIMED_OUT).all()
    assert result.cut_short.all()
    assert "deadline" in result.messages[0]
    assert np.isfinite(result.attempt).all()


def test_a_search_that_pauses_goes_on_where_it_was(solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = five_joints(8, 16, PoseWeights())
    whole = solver.solve_ik(problem)
    monkeypatch.setattr(nearest, "STEPS", 1)
    np.testing.assert_array_equal(solver.solve_ik(problem).attempt, whole.attempt)


def test_a_deadline_in_the_middle_leaves_what_was_found(
    solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "STEPS", 1)
    problem = replace(five_joints(1, 16, PoseWeights()), deadline=time.monotonic() + 1000.0)
    whole = solver.solve_ik(problem)
    real, looks = time.monotonic, iter([0.0] * 3 + [2000.0] * 1000)
    # Of this module alone: other threads may look at the clock of all.
    monkeypatch.setattr(nearest, "time", SimpleNamespace(monotonic=lambda: real() + next(looks)))
    cut = solver.solve_ik(problem)
    assert cut.cut_short[0]
    assert cut.nearest[0]
    assert "deadline" in cut.messages[0]
    far, near = (cost_of(solver.robot, problem, 0, each.attempt[0]) for each in (cut, whole))
    assert far >= near
    assert cut.iterations[0] < whole.iterations[0]


def test_several_links_share_their_joints() -> None:
    robot, tips = two_arms(), ("l7", "l13")
    T = forward_kinematics(robot, random_configurations(robot, 4, 14), links=tips)
    T[:, 0, :3, 3] += 2.0
    weights = [PoseWeights(1.0, 0.1), PoseWeights(1.0, (0.1, 0.1, 0.0))]
    solver = create_solver("cpu", robot)
    problem = ik_problem(robot, T, tip_link=tips, nearest=weights)
    result = solver.solve_ik(problem)
    _check_answers(robot, problem, result)
    assert "'l7': position off by" in result.messages[0]
    assert "'l13': position" in result.messages[0]
    lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
    rng = np.random.default_rng(0)
    for b, q in enumerate(result.attempt):
        cost = cost_of(robot, problem, b, q)
        for _ in range(50):
            moved = np.clip(q + rng.normal(size=len(q)) * 1e-4, lower, upper)
            assert cost_of(robot, problem, b, moved) >= cost * (1.0 - 1e-9) - 1e-15
    solver.close()


def test_no_request_with_a_deadline_waits_for_the_compiler(
    solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nearest.load_or_compile(may_compile=False)
    monkeypatch.setattr(nearest, "load_or_compile", lambda may_compile: may_compile)
    problem = five_joints(1, 18, PoseWeights())
    with pytest.raises(NotReadyError, match="warm_up"):
        solver.solve_ik(replace(problem, deadline=time.monotonic() + 10.0))
    assert solver.solve_ik(problem).nearest[0]


def test_joints_that_move_no_target_stay_where_they_are() -> None:
    robot = two_arms()
    solver = create_solver("cpu", robot)
    problem = ik_problem(robot, np.eye(4), tip_link="l7", nearest=PoseWeights())
    other = tuple(
        joint.name for joint in robot.joints if joint.is_active and joint.name not in problem.joints
    )
    still = replace(
        problem,
        joints=other,
        variables=np.array([robot.variable_index[name] for name in other]),
        seeds=np.empty((1, 0, len(other))),
    )
    result = solver.solve_ik(still)
    assert result.nearest[0]
    np.testing.assert_array_equal(result.attempt[0], still.state[0, still.variables])
    solver.close()


def test_floating_joints_are_refused_by_name() -> None:
    robot = with_free_joint(seven_revolute(), "l0")
    solver = create_solver("cpu", robot)
    problem = ik_problem(robot, np.eye(4), tip_link="l7", nearest=PoseWeights())
    with pytest.raises(UnsupportedFeatureError, match=r"l0_free.*weights"):
        solver.solve_ik(problem)
    solver.close()
