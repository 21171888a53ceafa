"""The plugin as a whole, beside what the conformance suite asks of all."""

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from support.clock import late_after

from kinopt_ros.errors import InvalidRequestError, NotReadyError, SolverUnavailableError, UnknownNameError
from kinopt_ros.geometry.shapes import PlacedShape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import inverse, pose_error
from kinopt_ros.planning import solver_pool
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.problems.builder import default_group, ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.hjcd import plugin
from kinopt_ros.solvers.hjcd.plugin import HjcdSolver
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import check_collisions

from .arms import ROBOTS
from .conftest import SolverMaker

slow = pytest.mark.slow  # kernels take seconds to compile


def reachable(robot: RobotModel, count: int, seed: int, **options: object) -> IkProblem:
    tip = robot.link_names[-1]
    T = forward_kinematics(robot, random_configurations(robot, count, seed), links=(tip,))[:, 0]
    return ik_problem(robot, T, tip_link=tip, **options)


def stretched(robot: RobotModel, count: int, seed: int) -> IkProblem:
    """Every other target may be out of reach, or of the limits."""
    problem = reachable(robot, count, seed)
    T = problem.targets[0].T_base_target.copy()
    T[::2, :3, 3] *= 1.25
    return replace(problem, targets=(replace(problem.targets[0], T_base_target=T),))


def part(problem: IkProblem, rows: slice) -> IkProblem:
    target = problem.targets[0]
    return replace(
        problem,
        targets=(replace(target, T_base_target=target.T_base_target[rows].copy()),),
        state=problem.state[rows].copy(),
        seeds=problem.seeds[rows].copy(),
    )


@pytest.fixture(scope="module")
def arm() -> RobotModel:
    return ROBOTS["continuous_and_prismatic"]()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"algorithm": "ccd"}, "ccd"),
        ({"algorithm": ""}, "algorithm"),
        ({"screen.keep": 32, "screen.num_starts": 31}, "screen.num_starts"),
        ({"screen.keep": 1}, "screen.keep"),
        ({"coarse.num_seeds": 0}, "coarse.num_seeds"),
        ({"coarse.noise": float("nan")}, "coarse.noise"),
        ({"refine.radius": 0.0}, "refine.radius"),
        ({"groups": "left_leg"}, "left_leg"),
    ],
)
def test_bad_options_are_refused_by_name(arm: RobotModel, options: dict[str, object], named: str) -> None:
    with pytest.raises((InvalidRequestError, UnknownNameError), match=named):
        HjcdSolver().configure(arm, options)


def test_without_warp_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "find_spec", lambda name: None if name == "warp" else find_spec(name))
    reason = HjcdSolver.unavailable_reason()
    assert reason is not None
    assert "warp-lang" in reason
    with pytest.raises(SolverUnavailableError, match="warp-lang"):
        create_solver("hjcd", ROBOTS["six_revolute"]())


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cpu:1", ""])
def test_names_of_devices(solver_for: SolverMaker, arm: RobotModel, device: str) -> None:
    with pytest.raises(InvalidRequestError, match="device is"):
        solver_for(arm, device=device)


def test_a_device_that_is_not_there_is_named_and_another_solver_takes_over(
    solver_for: SolverMaker, arm: RobotModel
) -> None:
    wp = pytest.importorskip("warp")
    device = f"cuda:{wp.get_cuda_device_count()}"
    with pytest.raises(SolverUnavailableError, match=device):
        solver_for(arm, device=device)
    pool = SolverPool(arm, {"hjcd": {"device": device}}, chain=("cpu",))
    pool.prepare("cpu")
    with pytest.raises(SolverUnavailableError):
        pool.prepare("hjcd")
    pooled = pool.solve_ik(reachable(arm, 3, 0), "hjcd")
    assert pooled.result.success.all()
    assert pooled.result.solver == "cpu"
    assert device in pooled.fallback_reason
    pool.close()


@slow
@pytest.mark.parametrize("algorithm", ["screened_lm", "hjcd_ik"])
def test_the_answer_names_the_algorithm_and_is_exact(
    solver_for: SolverMaker, arm: RobotModel, algorithm: str
) -> None:
    problem = reachable(arm, 40, 1, position_tolerance=1e-6, orientation_tolerance=1e-6)
    solver = solver_for(arm, algorithm=algorithm)
    result = solver.solve_ik(problem)
    assert result.algorithm == solver.algorithm == algorithm
    assert result.success.all()
    T = forward_kinematics(arm, result.q[:, 0], links=(arm.link_names[-1],))[:, 0]
    for error in pose_error(problem.targets[0].T_base_target, T):
        assert error.max() < 1e-6
    assert np.median(result.position_error) < 1e-8


@slow
@pytest.mark.parametrize("algorithm", ["screened_lm", "hjcd_ik"])
def test_the_answer_does_not_depend_on_the_batch(
    solver_for: SolverMaker, arm: RobotModel, algorithm: str
) -> None:
    solver = solver_for(arm, algorithm=algorithm)
    problem = reachable(arm, 20, 2)
    together = solver.solve_ik(problem)
    for rows in (slice(0, 1), slice(5, 8), slice(3, 20)):
        np.testing.assert_array_equal(solver.solve_ik(part(problem, rows)).q, together.q[rows])


@slow
@pytest.mark.parametrize("algorithm", ["screened_lm", "hjcd_ik"])
def test_another_seed_gives_another_answer_and_the_same_one_the_same(
    solver_for: SolverMaker, arm: RobotModel, algorithm: str
) -> None:
    problem = reachable(arm, 10, 3)
    first = solver_for(arm, algorithm=algorithm).solve_ik(problem).q
    again = solver_for(arm, algorithm=algorithm).solve_ik(problem).q
    other = solver_for(arm, algorithm=algorithm).solve_ik(replace(problem, random_seed=2**64 - 1)).q
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@slow
@pytest.mark.parametrize("algorithm", ["screened_lm", "hjcd_ik"])
def test_many_distinct_solutions(solver_for: SolverMaker, arm: RobotModel, algorithm: str) -> None:
    """Also where every request holds another joint value, so that requests are solved one by one."""
    solver = solver_for(arm, algorithm=algorithm)
    whole = reachable(arm, 3, 4, num_solutions=20)
    assert (solver.solve_ik(whole).num_found == 20).all()
    state = random_configurations(arm, 3, 4)
    locked = reachable(arm, 3, 4, num_solutions=4, state=state, locked_joints=["lift"])
    result = solver.solve_ik(locked)
    assert result.success.all()
    assert result.q.shape == (3, 4, 6)


@slow
def test_one_solution_is_the_nearest_of_its_round(solver_for: SolverMaker, arm: RobotModel) -> None:
    """With all lanes at hand, nothing among many solutions of the same round is nearer to the state."""
    solver = solver_for(arm)
    problem = reachable(arm, 20, 5)
    one = solver.solve_ik(problem)
    state = problem.state[:, problem.variables]
    away = np.linalg.norm(one.q[:, 0] - state, axis=1)
    np.testing.assert_allclose(away, one.distance[:, 0], atol=1e-9)
    random_one = np.linalg.norm(random_configurations(arm, 20, 6) - state, axis=1)
    assert away.mean() < random_one.mean()


@slow
def test_where_the_nearest_solution_is_in_collision_others_of_the_same_round_are_looked_at(
    solver_for: SolverMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    panda = load_robot("panda")
    prepare_collisions(panda)
    solver = solver_for(panda)
    T_ball = np.eye(4)
    T_ball[:3, 3] = 0.45, 0.3, 0.5
    ball = SceneObject("ball", (PlacedShape(Sphere(0.3), np.eye(4)),), T_ball)
    scene = Scene(objects={"ball": ball})
    q = random_configurations(panda, 60, 17)
    q = q[check_collisions(panda, scene, q, contacts=False).free]
    T = forward_kinematics(panda, q, links=("panda_link0", "panda_hand"))
    problems = [
        ik_problem(panda, inverse(root) @ tip, base_link="panda_link0", tip_link="panda_hand", scene=scene)
        for root, tip in T
    ]
    rounds = []
    run = solver._engine.algorithm.run
    monkeypatch.setattr(
        solver._engine.algorithm,
        "run",
        lambda chain, portion: (rounds.append(portion.round), run(chain, portion))[1],
    )
    in_collision = at_once = 0
    for problem in problems:
        plain = solver.solve_ik(replace(problem, scene=None))
        rounds.clear()
        result = solver.solve_ik(problem)
        assert result.success.all()
        assert result.q.shape[1] == 1
        state = np.repeat(problem.state, 2, axis=0)
        state[:, problem.variables] = plain.q[0, 0], result.q[0, 0]
        plain_is_free, free = check_collisions(panda, scene, state, contacts=False).free
        assert free
        if not plain_is_free:
            in_collision += 1
            at_once += len(rounds) == 1
    assert in_collision >= 5
    assert at_once >= 0.8 * in_collision


@slow
def test_seeds_of_the_problem_are_tried_all(solver_for: SolverMaker, arm: RobotModel) -> None:
    """Two lanes, one of them for own starts, and a goal that a lone step does not reach: only the last seed is near."""
    solver = solver_for(arm, **{"screen.num_starts": 2, "screen.keep": 2, "screen.steps": 1, "rounds": 1})
    problem = reachable(arm, 1, 7)
    goal = random_configurations(arm, 1, 7)
    assert not solver.solve_ik(problem).success.any()
    away = np.tile(np.clip(-goal, arm.limits.lower, arm.limits.upper), (7, 1))
    seeded = replace(problem, seeds=np.concatenate([away, goal])[None][:, :, problem.variables])
    assert solver.solve_ik(seeded).success.all()


@slow
@pytest.mark.parametrize("turns", [40, -3000])
def test_states_many_turns_away_do_no_harm(solver_for: SolverMaker, arm: RobotModel, turns: int) -> None:
    """Endless joints answer near to the state, as exactly as from anywhere else."""
    problem = reachable(arm, 5, 8, position_tolerance=1e-6, orientation_tolerance=1e-6)
    state = problem.state.copy()
    roll = arm.variable_index["roll"]
    state[:, roll] += 2.0 * np.pi * turns
    result = solver_for(arm).solve_ik(replace(problem, state=state))
    assert result.success.all()
    assert (
        np.abs(result.q[:, 0, problem.variables.tolist().index(roll)] - state[:, roll]) <= np.pi + 1e-6
    ).all()


@slow
def test_statuses_are_those_of_the_cpu_plugin(solver_for: SolverMaker) -> None:
    robot = ROBOTS["six_revolute"]()
    problem = stretched(robot, 40, 9)
    ours = solver_for(robot).solve_ik(problem)
    theirs = create_solver("cpu", robot).solve_ik(problem)
    assert 0 < ours.success.sum() < 40
    np.testing.assert_array_equal(ours.status, theirs.status)


@slow
def test_a_deadline_ends_the_search_between_rounds(
    solver_for: SolverMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = ROBOTS["six_revolute"]()
    problem = stretched(robot, 40, 9)
    few = solver_for(robot).solve_ik(problem)  # kernels are loaded now
    hard = [
        b
        for b, (code, message) in enumerate(zip(few.status, few.messages, strict=True))
        if code == Status.NO_IK_SOLUTION and not message.startswith("out of reach")
    ]
    solver = solver_for(robot, rounds=10_000)
    solver.solve_ik(reachable(robot, 1, 10))
    hard = part(problem, slice(hard[0], hard[0] + 1))
    looks = late_after(3, monkeypatch)
    result = solver.solve_ik(replace(hard, deadline=time.monotonic() + 3600.0))
    assert 3 < len(looks) < 100  # of 10,000 rounds
    assert result.status[0] == Status.TIMED_OUT
    assert result.iterations[0] > 0


@slow
def test_who_has_a_deadline_does_not_wait_for_the_compiler(solver_for: SolverMaker, arm: RobotModel) -> None:
    solver = solver_for(arm)
    problem = replace(reachable(arm, 1, 11), deadline=time.monotonic() + 60.0)
    with pytest.raises(NotReadyError, match="7 variables"):
        solver.solve_ik(problem)
    end = time.monotonic() + 120.0
    while True:
        try:
            result = solver.solve_ik(replace(problem, deadline=time.monotonic() + 60.0))
            break
        except NotReadyError:
            assert time.monotonic() < end
            time.sleep(0.05)
    assert result.success.all()


@slow
def test_the_default_group_is_ready_when_it_is_configured(solver_for: SolverMaker, arm: RobotModel) -> None:
    solver = solver_for(arm, groups="default")
    assert solver.is_prepared_for(default_group(arm).name)
    assert not solver_for(arm).is_prepared_for(default_group(arm).name)
    problem = replace(reachable(arm, 1, 12), deadline=time.monotonic() + 60.0)
    assert solver.solve_ik(problem).success.all()


@pytest.fixture(params=["screened_lm", "hjcd_ik"])
def served(request: pytest.FixtureRequest, arm: RobotModel) -> Iterator[tuple[SolverPool, HjcdSolver]]:
    """A pool whose first solver is hjcd, on the CPU device."""
    pytest.importorskip("warp")
    options = {"device": "cpu", "groups": "", "algorithm": request.param}
    pool = SolverPool(arm, {"hjcd": options}, chain=("cpu",))
    solver = pool.prepare("hjcd")
    pool.prepare("cpu")
    assert isinstance(solver, HjcdSolver)
    yield pool, solver
    pool.close()


def broken(*args: object, **kwargs: object) -> None:
    raise RuntimeError("CUDA error 400: invalid resource handle")


def full(*args: object, **kwargs: object) -> None:
    raise RuntimeError("Failed to allocate 1048576 bytes on device 'cuda:0'")


@slow
def test_a_device_that_fails_costs_no_request_and_serves_again_when_it_works(
    served: tuple[SolverPool, HjcdSolver], arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a launch, found out when it is waited for, or out of memory: Warp raises. The next solver answers and says
    why; for a while nobody tries, then all that lay on the device is put there again."""
    wp = pytest.importorskip("warp")
    pool, solver = served
    problem = reachable(arm, 3, 13)
    before = pool.solve_ik(problem, "hjcd")
    assert (before.result.solver, before.fallback_reason) == ("hjcd", "")
    chains = solver._engine._chains
    monkeypatch.setattr(solver_pool, "COOL_DOWN", 1000.0)
    with monkeypatch.context() as lost:
        lost.setattr(wp, "launch", broken)
        lost.setattr(wp.Launch, "launch", broken)
        during = pool.solve_ik(problem, "hjcd")
    assert during.result.success.all()
    assert during.result.solver == "cpu"
    assert "invalid resource handle" in during.fallback_reason
    assert pool.trouble("hjcd") == during.fallback_reason
    soon = pool.solve_ik(problem, "hjcd")  # it would work again, but nobody knows yet
    assert (soon.result.solver, soon.fallback_reason) == ("cpu", during.fallback_reason)
    assert solver._engine._chains is not chains

    monkeypatch.setattr(solver_pool, "COOL_DOWN", 0.0)
    for name in (
        "empty",
        "synchronize_device",
    ):  # more than once in a row: memory is nothing that is lost for good
        with monkeypatch.context() as still:
            still.setattr(wp, name, full)
            pooled = pool.solve_ik(problem, "hjcd")
        assert pooled.result.success.all()
        assert (pooled.result.solver, "RuntimeError" in pooled.fallback_reason) == ("cpu", True)
    after = pool.solve_ik(problem, "hjcd")
    assert (after.result.solver, after.fallback_reason) == ("hjcd", "")
    np.testing.assert_array_equal(after.result.q, before.result.q)
    assert pool.trouble("hjcd") is None


@slow
def test_a_device_that_fails_now_and_then_costs_none_of_many_clients_a_request(
    served: tuple[SolverPool, HjcdSolver], arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    wp = pytest.importorskip("warp")
    pool, _ = served
    problem = reachable(arm, 2, 16)
    expected = pool.solve_ik(problem, "hjcd").result.q
    monkeypatch.setattr(solver_pool, "COOL_DOWN", 0.0)
    calls = itertools.count()
    synchronize = wp.synchronize_device

    def sometimes(device: object) -> None:
        if next(calls) % 3 == 1:
            full()
        synchronize(device)

    monkeypatch.setattr(wp, "synchronize_device", sometimes)
    with ThreadPoolExecutor(4) as clients:
        answers = list(clients.map(lambda _: pool.solve_ik(problem, "hjcd"), range(24)))
    assert {pooled.result.solver for pooled in answers} == {"hjcd", "cpu"}
    for pooled in answers:
        assert pooled.result.success.all()
        if pooled.result.solver == "hjcd":
            np.testing.assert_array_equal(pooled.result.q, expected)


@slow
@pytest.mark.parametrize("algorithm", ["screened_lm", "hjcd_ik"])
def test_buffers_are_allocated_once_per_size(
    solver_for: SolverMaker, arm: RobotModel, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wp = pytest.importorskip("warp")
    solver = solver_for(arm, algorithm=algorithm)
    problem = reachable(arm, 40, 14)
    for count in (1, 16, 40):
        solver.solve_ik(part(problem, slice(0, count)))
    made = []
    empty = wp.empty
    monkeypatch.setattr(wp, "empty", lambda *args, **kwargs: (made.append(args), empty(*args, **kwargs))[1])
    for count in np.random.default_rng(15).integers(1, 40, 20):
        assert solver.solve_ik(part(problem, slice(0, int(count)))).success.all()
    assert not made
