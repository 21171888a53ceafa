"""A device that is lost for this process, and the child process that goes on; Warp's CPU device has the part of a GPU.

Children are real. Where they shall not answer they are stopped, so that no test depends on who is faster.
"""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

wp = pytest.importorskip("warp")

from kinopt_ros.conformance.robots import continuous_and_prismatic, six_revolute
from kinopt_ros.errors import NotReadyError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.planning import solver_pool
from kinopt_ros.planning.solver_pool import PooledResult, SolverPool
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.hjcd import child as child_module
from kinopt_ros.solvers.hjcd.child import Child, ChildError
from kinopt_ros.solvers.hjcd.plugin import HjcdSolver
from kinopt_ros.solvers.hjcd.stand_in import StandIn
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.status import Status

slow = pytest.mark.slow  # kernels take seconds to compile, and a child a second to start

PATIENCE = 240.0
"""Seconds for what takes one or two, on a machine that has much else to do."""
STICKY = (
    "Failed to synchronize device cuda:0: Warp CUDA error 719: unspecified launch failure (in function "
    "wp_cuda_context_synchronize, warp.cu:2869)"
)


def failing(sentence: str) -> Callable[..., None]:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError(sentence)

    return fail


def alive(pid: int) -> bool:
    """Check whether a process runs, or could; one that only waits to be asked for its status does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def eventually(what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def problem_of(robot: RobotModel, count: int, seed: int, **options: object) -> IkProblem:
    tip = robot.link_names[-1]
    T = forward_kinematics(robot, random_configurations(robot, count, seed), links=(tip,))[:, 0]
    return ik_problem(robot, T, tip_link=tip, **options)


def same_package() -> dict[str, str]:
    """Environment of programs that shall find the package where this one did."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def soon(problem: IkProblem, seconds: float = PATIENCE) -> IkProblem:
    return replace(problem, deadline=time.monotonic() + seconds)


@pytest.fixture(scope="module")
def arm() -> RobotModel:
    return continuous_and_prismatic()


@pytest.fixture
def served(
    request: pytest.FixtureRequest, arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[SolverPool, HjcdSolver]]:
    """A pool whose first solver is hjcd, with kernels loaded."""
    monkeypatch.setattr(solver_pool, "COOL_DOWN", 0.0)
    options = {"device": "cpu", "groups": "", "algorithm": getattr(request, "param", "screened_lm")}
    pool = SolverPool(arm, {"hjcd": options}, chain=("cpu",))
    solver = pool.prepare("hjcd")
    pool.prepare("cpu")
    assert isinstance(solver, HjcdSolver)
    assert solver.solve_ik(problem_of(arm, 1, 0)).success.all()
    yield pool, solver
    pool.close()
    if solver._stand_in is not None:
        assert solver._stand_in.pid is None


@pytest.fixture
def lost(
    served: tuple[SolverPool, HjcdSolver], arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> tuple[SolverPool, HjcdSolver, int]:
    """A pool whose device was lost, so that a child process answers; comes with the solver and the child's pid."""
    pool, solver = served
    monkeypatch.setattr(wp, "synchronize_device", failing(STICKY))
    assert solver.solve_ik(problem_of(arm, 1, 0)).success.all()
    return pool, solver, pid_of(solver)


def pid_of(solver: HjcdSolver) -> int:
    assert solver._stand_in is not None
    pid = solver._stand_in.pid
    assert pid is not None
    assert pid != os.getpid()
    assert alive(pid)
    return pid


@slow
@pytest.mark.parametrize("served", ["screened_lm", "hjcd_ik"], indirect=True)
def test_the_child_answers_what_this_process_would_have(
    served: tuple[SolverPool, HjcdSolver], arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, solver = served
    problem = problem_of(arm, 5, 1, random_seed=7)
    several = problem_of(arm, 2, 2, num_solutions=5)
    expected, expected_several = solver.solve_ik(problem), solver.solve_ik(several)
    assert solver._stand_in is None  # nothing is started before it is needed
    assert pool.remark("hjcd") == ""
    monkeypatch.setattr(wp, "synchronize_device", failing(STICKY))
    pooled = pool.solve_ik(problem, "hjcd")
    assert (pooled.result.solver, pooled.fallback_reason) == ("hjcd", "")
    found = pooled.result
    assert found.success.all()
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.iterations, expected.iterations)
    assert (found.checks, found.algorithm) == (expected.checks, expected.algorithm)
    T = forward_kinematics(arm, found.q[:, 0], links=(arm.link_names[-1],))[:, 0]
    for error in pose_error(problem.targets[0].T_base_target, T):
        assert error.max() < 1e-4
    np.testing.assert_array_equal(solver.solve_ik(several).q, expected_several.q)
    pid = pid_of(solver)
    assert "child process" in pool.remark("hjcd")
    assert "719" in pool.remark("hjcd")
    loaded = Path(f"/proc/{pid}/maps").read_text()
    assert "warp" in loaded
    assert "rclpy" not in loaded
    # Kernels that were loaded here are loaded there: who has a deadline is served.
    np.testing.assert_array_equal(solver.solve_ik(soon(problem)).q, expected.q)
    assert pid_of(solver) == pid
    pool.close()
    assert not alive(pid)


@slow
def test_what_the_child_claims_is_verified_here(
    lost: tuple[SolverPool, HjcdSolver, int], arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, solver, _ = lost
    solve = Child.solve

    def off(self: Child, problem: IkProblem, every_lane: bool) -> IkCandidates:
        candidates = solve(self, problem, every_lane)
        return replace(candidates, q=candidates.q + 0.01)

    monkeypatch.setattr(Child, "solve", off)
    result = solver.solve_ik(problem_of(arm, 3, 3))
    assert not result.success.any()
    assert Status.VERIFICATION_FAILED in result.status


@slow
def test_who_has_a_deadline_does_not_wait_for_the_child(
    served: tuple[SolverPool, HjcdSolver], arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next solver answers, with the reason, until the child is ready, and nobody is refused."""
    pool, solver = served
    problem = problem_of(arm, 2, 4)
    expected = solver.solve_ik(problem).q
    monkeypatch.setattr(wp, "synchronize_device", failing(STICKY))
    begin = StandIn.begin

    def begin_stopped(self: StandIn) -> None:
        begin(self)
        assert self.pid is not None
        os.kill(self.pid, signal.SIGSTOP)  # so that it cannot be ready

    monkeypatch.setattr(StandIn, "begin", begin_stopped)
    pooled = pool.solve_ik(soon(problem), "hjcd")
    assert pooled.result.success.all()
    assert pooled.result.solver == "cpu"
    assert "719" in pooled.fallback_reason
    assert "child process" in pooled.fallback_reason
    assert pool.trouble("hjcd") == pooled.fallback_reason
    assert solver._stand_in is not None
    pid = solver._stand_in.pid
    assert pid is not None
    pooled = pool.solve_ik(soon(problem), "hjcd")
    assert pooled.result.success.all()
    assert (pooled.result.solver, "starts a child process" in pooled.fallback_reason) == ("cpu", True)
    with pytest.raises(NotReadyError, match="719"):
        solver.solve_ik(soon(problem))
    os.kill(pid, signal.SIGCONT)

    def answered() -> bool:
        pooled = pool.solve_ik(soon(problem), "hjcd")
        assert pooled.result.success.all()
        if pooled.result.solver == "hjcd":
            np.testing.assert_array_equal(pooled.result.q, expected)
        return pooled.result.solver == "hjcd"

    eventually(answered)
    assert pid_of(solver) == pid
    assert pool.trouble("hjcd") is None


@slow
def test_the_child_keeps_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets some of which cannot be reached, and rounds for hours."""
    robot = six_revolute()
    solver = HjcdSolver()
    solver.configure(robot, {"device": "cpu", "groups": "", "rounds": 10_000})
    assert solver.solve_ik(problem_of(robot, 1, 9)).success.all()
    monkeypatch.setattr(wp, "synchronize_device", failing(STICKY))
    assert solver.solve_ik(problem_of(robot, 1, 9)).success.all()
    pid = pid_of(solver)
    problem = problem_of(robot, 40, 9)
    T = problem.targets[0].T_base_target.copy()
    T[::2, :3, 3] *= 1.25
    hard = replace(problem, targets=(replace(problem.targets[0], T_base_target=T),))
    result = solver.solve_ik(soon(hard, 2.0))
    assert result.success.any()
    assert Status.TIMED_OUT in result.status
    assert (result.iterations > 0).all()
    assert pid_of(solver) == pid
    solver.close()
    assert not alive(pid)


@slow
def test_an_error_that_is_known_to_stay_is_not_tried_again(
    served: tuple[SolverPool, HjcdSolver], arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the device says when it is waited for."""
    _, solver = served
    monkeypatch.setattr(
        wp.Launch, "launch", failing("Error launching kernel: Warp CUDA error 700: an illegal")
    )
    assert solver.solve_ik(problem_of(arm, 1, 12)).success.all()
    pid_of(solver)


@slow
def test_a_child_that_is_killed_in_the_middle_of_a_request(
    lost: tuple[SolverPool, HjcdSolver, int], arm: RobotModel
) -> None:
    pool, solver, pid = lost
    problem = problem_of(arm, 2, 5)
    with ThreadPoolExecutor(1) as client:
        asked = asked_while_stopped(client, pool, solver, problem)
        os.kill(pid, signal.SIGKILL)
        pooled = asked.result(PATIENCE)
    assert pooled.result.success.all()
    assert pooled.result.solver == "cpu"
    assert f"{pid} was killed by SIGKILL" in pooled.fallback_reason
    assert pool.trouble("hjcd") == pooled.fallback_reason
    assert not alive(pid)
    again = pool.solve_ik(problem, "hjcd")
    assert (again.result.solver, again.fallback_reason) == ("hjcd", "")
    assert pid_of(solver) != pid


def asked_while_stopped(
    client: ThreadPoolExecutor, pool: SolverPool, solver: HjcdSolver, problem: IkProblem
) -> Future[PooledResult]:
    """A request that a child has, which will not answer."""
    assert solver._stand_in is not None
    child = solver._stand_in._child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    asked = client.submit(pool.solve_ik, problem, "hjcd")
    eventually(child._lock.locked)
    return asked


@slow
@pytest.mark.parametrize("count", [1, 5000])  # of which the socket holds one
def test_a_child_that_hangs_is_ended_when_the_deadline_comes(
    lost: tuple[SolverPool, HjcdSolver, int], arm: RobotModel, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    _, solver, pid = lost
    problem = problem_of(arm, count, 6)
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(ChildError, match=f"{pid} hung"):
        solver.solve_ik(replace(problem, deadline=begin + 2.0))
    assert 2.0 + child_module.GRACE <= time.monotonic() - begin < 30.0  # it would hang for ever
    assert not alive(pid)


@slow
def test_the_next_solver_takes_over_from_a_child_that_hangs(
    lost: tuple[SolverPool, HjcdSolver, int], arm: RobotModel
) -> None:
    pool, solver, pid = lost
    problem = problem_of(arm, 1, 6)
    os.kill(pid, signal.SIGSTOP)
    pooled = pool.solve_ik(soon(problem, 2.0), "hjcd")
    assert pooled.result.solver == "cpu"
    assert "hung and was ended" in pooled.fallback_reason
    assert pool.solve_ik(problem, "hjcd").result.solver == "hjcd"
    assert pid_of(solver) != pid


@slow
def test_close_ends_a_child_that_somebody_waits_for(
    lost: tuple[SolverPool, HjcdSolver, int], arm: RobotModel
) -> None:
    _, solver, pid = lost
    pool = SolverPool(arm)
    pool._solvers["hjcd"] = solver
    with ThreadPoolExecutor(1) as client:
        asked = asked_while_stopped(client, pool, solver, problem_of(arm, 1, 7))
        solver.close()
        assert not alive(pid)
        assert isinstance(asked.exception(PATIENCE), Exception)


@slow
def test_a_solver_that_nobody_has_any_more_leaves_no_child(
    arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A robot was replaced: its solvers are not closed, as requests may be running."""
    solver = HjcdSolver()
    solver.configure(arm, {"device": "cpu", "groups": ""})
    monkeypatch.setattr(wp, "synchronize_device", failing(STICKY))
    assert solver.solve_ik(problem_of(arm, 1, 8)).success.all()
    pid = pid_of(solver)
    del solver

    def gone() -> bool:
        gc.collect()
        return not alive(pid)

    eventually(gone)


@slow
def test_many_clients(lost: tuple[SolverPool, HjcdSolver, int], arm: RobotModel) -> None:
    pool, solver, pid = lost
    problems = [problem_of(arm, 2, seed) for seed in range(8)]
    expected = [solver.solve_ik(problem).q for problem in problems]
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda i: pool.solve_ik(soon(problems[i % 8]), "hjcd"), range(40)))
    for i, pooled in enumerate(answers):
        assert (pooled.result.solver, pooled.fallback_reason) == ("hjcd", "")
        np.testing.assert_array_equal(pooled.result.q, expected[i % 8])
    assert pid_of(solver) == pid


@slow
def test_who_waits_for_others_ends_in_time_and_costs_no_child(
    lost: tuple[SolverPool, HjcdSolver, int], arm: RobotModel
) -> None:
    pool, solver, pid = lost
    problem = problem_of(arm, 1, 9)
    with ThreadPoolExecutor(1) as client:
        asked = asked_while_stopped(client, pool, solver, problem)
        assert solver.solve_ik(soon(problem, 0.1)).status[0] == Status.TIMED_OUT
        os.kill(pid, signal.SIGCONT)
        assert asked.result(PATIENCE).result.solver == "hjcd"
    assert solver.solve_ik(soon(problem, -1.0)).status[0] == Status.TIMED_OUT
    assert pid_of(solver) == pid


@slow
def test_a_failure_of_no_name_is_tried_again_here_once(
    served: tuple[SolverPool, HjcdSolver], arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is made anew; if that fails, too, and the device is not merely full, a child goes on."""
    pool, solver = served
    problem = problem_of(arm, 2, 10)
    expected = solver.solve_ik(problem).q
    full, failed = "Failed to allocate 1024 bytes on device 'cuda:0'", "Warp CUDA error 400: invalid handle"

    def answered_by(sentence: str) -> str:
        with monkeypatch.context() as still:
            still.setattr(wp, "launch", failing(sentence))
            still.setattr(wp.Launch, "launch", failing(sentence))
            pooled = pool.solve_ik(problem, "hjcd")
        assert pooled.result.success.all()
        if pooled.result.solver == "hjcd":
            np.testing.assert_array_equal(pooled.result.q, expected)
        return pooled.result.solver

    for sentences in ((full, full, full), (failed,), (failed,)):
        assert [answered_by(sentence) for sentence in sentences] == ["cpu"] * len(sentences)
        np.testing.assert_array_equal(pool.solve_ik(problem, "hjcd").result.q, expected)
        assert solver._stand_in is None
    assert [answered_by(failed) for _ in range(3)] == ["cpu", "hjcd", "hjcd"]
    pid_of(solver)


@slow
def test_a_device_that_does_not_answer_after_a_failure_of_no_name_is_lost(
    served: tuple[SolverPool, HjcdSolver], arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an allocation that fails because of an earlier launch, of which Warp says nothing."""
    _, solver = served
    solver._engine.algorithm.forget()
    monkeypatch.setattr(wp, "empty", failing("Failed to allocate 1024 bytes on device 'cuda:0'"))
    monkeypatch.setattr(wp, "synchronize_device", failing("Failed to synchronize device cuda:0"))
    assert solver.solve_ik(problem_of(arm, 1, 11)).success.all()
    pid_of(solver)


def test_a_child_that_says_no_is_ended(arm: RobotModel) -> None:
    options = {option.name: option.default for option in HjcdSolver.options}
    child = Child(arm, {**options, "device": "cuda:99"}, ())
    with pytest.raises(ChildError, match="cuda:99"):
        child.started.result(PATIENCE)
    eventually(lambda: not alive(child.pid))
    child.end()


def test_a_child_that_does_not_start_in_time_is_ended(
    arm: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "START_SECONDS", 0.0)
    child = Child(arm, {}, ())
    with pytest.raises(ChildError):
        child.started.result(PATIENCE)
    assert not alive(child.pid)


def test_where_no_process_can_be_started_that_is_said(
    arm: RobotModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(ChildError, match="no child process can be started"):
        Child(arm, {}, ())


def test_the_child_ends_with_a_parent_that_is_killed() -> None:
    program = (
        "import time; from kinopt_ros.conformance.robots import six_revolute;"
        "from kinopt_ros.solvers.hjcd.child import Child; from kinopt_ros.solvers.hjcd.plugin import HjcdSolver;"
        "options = {option.name: option.default for option in HjcdSolver.options};"
        "child = Child(six_revolute(), {**options, 'device': 'cpu'}, ()); child.started.result();"
        "print(child.pid, flush=True); time.sleep(1000)"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=same_package()) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    eventually(lambda: not alive(pid))


def test_the_main_program_is_not_run_again(tmp_path: Path) -> None:
    """A script without a guard, which a child must not repeat: it may move a robot."""
    script = tmp_path / "script.py"
    script.write_text(
        "print('moves')\n"
        "from kinopt_ros.conformance.robots import six_revolute\n"
        "from kinopt_ros.solvers.hjcd.child import Child\n"
        "from kinopt_ros.solvers.hjcd.plugin import HjcdSolver\n"
        "options = {option.name: option.default for option in HjcdSolver.options}\n"
        "child = Child(six_revolute(), {**options, 'device': 'cpu'}, ())\n"
        "child.started.result()\n"
        "child.end()\n"
        "print('done')\n"
    )
    result = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, env=same_package()
    )
    assert result.stdout.split() == ["moves", "done"]
