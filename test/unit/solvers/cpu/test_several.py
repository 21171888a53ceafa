"""Tests of what the cpu plugin promises for several solutions, postures, whole turns and deadlines."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.array import Float64
from kinopt_ros.errors import KinoptError, NotReadyError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.se3 import pose, so3_exp
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.chain import KinematicChain, build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.cpu import plugin, several
from kinopt_ros.solvers.cpu.plugin import CpuSolver

ENDS = {
    "panda": ("panda_link0", "panda_link8"),
    "ur5": ("base_link", "tool0"),
    "like iiwa": ("l0", "l7"),
}


def revolute_arm(rows: list[tuple[str, str, float]]) -> RobotModel:
    """Joints by origin, axis and limit, links l0, l1, ..."""
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="{xyz}"/>'
        f'<axis xyz="{axis}"/><limit lower="{-limit}" upper="{limit}" velocity="1" effort="1"/></joint>'
        for i, (xyz, axis, limit) in enumerate(rows)
    )
    links = "".join(f'<link name="l{i}"/>' for i in range(len(rows) + 1))
    return robot_from_urdf(f'<robot name="arm">{links}{joints}</robot>')


def like_iiwa() -> RobotModel:
    """Shoulder, elbow and wrist with the lengths and limits of a KUKA LBR iiwa 14."""
    rows = [("0 0 0.16", "0 0 1", 2.97), ("0 0 0.2", "0 1 0", 2.09), ("0 0 0.2", "0 0 1", 2.97)]
    rows += [("0 0 0.22", "0 -1 0", 2.09), ("0 0 0.18", "0 0 1", 2.97), ("0 0 0.22", "0 1 0", 2.09)]
    return revolute_arm([*rows, ("0 0 0.126", "0 0 1", 3.05)])


def turning_arm(joints: int) -> RobotModel:
    """Every joint can make nearly three turns."""
    axes = ["0 0 1", "0 1 0", "0 1 0", "0 0 1", "0 1 0", "0 0 1", "0 1 0"]
    return revolute_arm([("0 0.02 0.2", axis, 9.0) for axis in axes[:joints]])


class Arm:
    """A robot, its chain from base to tool, and a solver."""

    def __init__(self, name: str) -> None:
        self.robot: RobotModel = like_iiwa() if name == "like iiwa" else load_robot(name)
        self.base, self.tip = ENDS[name]
        self.chain: KinematicChain = build_chain(self.robot, self.base, self.tip)
        limits = self.robot.limits
        self.lower, self.upper = limits.lower[self.chain.variables], limits.upper[self.chain.variables]
        self.solver = CpuSolver()
        self.solver.configure(self.robot)
        self.solver.warm_up()

    def targets(self, count: int, seed: int = 0) -> Float64:
        q = np.random.default_rng(seed).uniform(self.lower, self.upper, (count, len(self.lower)))
        return chain_pose(self.chain, q)

    def problem(self, T: Float64, **options: Any) -> IkProblem:
        return ik_problem(self.robot, T, base_link=self.base, tip_link=self.tip, **options)

    def anywhere(self, T: Float64, count: int) -> Float64:
        """Solutions of one target from random seeds by the plain kernel, (N, n)."""
        q = np.random.default_rng(3).uniform(self.lower, self.upper, (count, 1, len(self.lower)))
        problem = self.problem(np.repeat(T[None], count, axis=0))
        state = problem.state.copy()
        state[:, problem.variables] = q[:, 0]
        result = self.solver.solve_ik(replace(problem, state=state))
        return result.q[result.success, 0]


_arms: dict[str, Arm] = {}


def arm(name: str) -> Arm:
    """Each is built once."""
    if name not in _arms:
        _arms[name] = Arm(name)
    return _arms[name]


def same_modulo_turns(a: Float64, b: Float64, tolerance: float) -> np.ndarray:
    difference = a - b
    return np.abs(difference - 2 * np.pi * np.rint(difference / (2 * np.pi))).max(axis=-1) <= tolerance


def test_all_branches_of_a_six_axis_arm() -> None:
    ur5 = arm("ur5")
    T = ur5.targets(20)
    result = ur5.solver.solve_ik(ur5.problem(T, num_solutions=16))
    found = total = 0
    for b in range(len(T)):
        q = result.q[b, : result.num_found[b]]
        for other in ur5.anywhere(T[b], 200):
            total += 1
            found += same_modulo_turns(q, other, 0.05).any()
    assert found / total > 0.995


@pytest.mark.parametrize("prefer", ["any", "mid_range"])
def test_as_many_solutions_as_wanted(prefer: str) -> None:
    # A redundant arm has no end of solutions: what is claimed must not turn out to be the same.
    panda = arm("panda")
    problem = panda.problem(panda.targets(20), num_solutions=8, prefer=prefer)
    assert (panda.solver.solve_ik(problem).num_found == 8).all()


@pytest.mark.parametrize("prefer", ["closest", "mid_range", "rest"])
def test_a_preferred_solution_cannot_be_improved_nearby(prefer: str) -> None:
    panda = arm("panda")
    rest = {"rest": panda.robot.default_q} if prefer == "rest" else {}
    problem = panda.problem(panda.targets(30), prefer=prefer, **rest)
    result = panda.solver.solve_ik(problem)
    assert result.success.all()
    posture = problem.posture
    assert posture is not None
    settled = 0
    for q, reference in zip(result.q[:, 0], posture.reference, strict=True):
        free = (q > panda.lower + 1e-9) & (q < panda.upper - 1e-9)
        # Every motion of the joints off their limits that leaves the tool where it is.
        _, size, motions = np.linalg.svd(geometric_jacobian(panda.chain, q)[:, free])
        motions = motions[np.count_nonzero(size > 1e-3) :]
        slope = motions @ (posture.weight * (q - reference))[free]
        scale = np.linalg.norm(posture.weight * (q - reference)) + 1e-9
        settled += bool(np.abs(slope).max(initial=0.0) < 0.02 * scale)
    assert settled >= 28


def test_a_preferred_solution_beats_random_ones() -> None:
    panda = arm("panda")
    T = panda.targets(10, seed=4)
    problem = panda.problem(T, prefer="mid_range")
    result = panda.solver.solve_ik(problem)
    assert problem.posture is not None
    weight = problem.posture.weight
    for b in range(len(T)):
        others = panda.anywhere(T[b], 300)
        cost = (weight * (others - problem.posture.reference[b]) ** 2).sum(axis=1)
        assert result.distance[b, 0] <= np.sqrt(cost.min()) + 1e-6


CIRCLES = {
    "panda": ((0.40, 0.10, 0.35), (1, 2)),
    "ur5": ((0.45, 0.0, 0.25), (1, 2)),
    "like iiwa": ((0.5, 0.0, 0.40), (1, 2)),
}


@pytest.mark.parametrize("prefer", ["closest", "mid_range"])
def test_also_from_afar_the_preferred_branch_is_found(prefer: str) -> None:
    own = Arm("ur5")
    T = own.targets(100, seed=11)
    states = np.repeat(own.robot.default_q[None], len(T), axis=0)
    states[:, own.chain.variables] = np.random.default_rng(12).uniform(-np.pi, np.pi, (len(T), 6))
    one = own.solver.solve_ik(own.problem(T, state=states, prefer=prefer))
    every = own.solver.solve_ik(own.problem(T, state=states, prefer=prefer, num_solutions=8))
    worse = one.distance[:, 0] > every.distance[:, 0] + 1e-3
    assert worse.sum() <= 1  # 4 and 3 with as few attempts as near postures get


@pytest.mark.parametrize("name", CIRCLES)
def test_the_closest_solution_follows_a_circle_without_jumps(name: str) -> None:
    own, (center, (i, j)) = arm(name), CIRCLES[name]
    count = 100
    radius = 0.01 * count / (2 * np.pi)  # steps of a centimetre
    angles = 2 * np.pi * np.arange(count + 1) / count
    T = np.repeat(np.diag([1.0, -1.0, -1.0, 1.0])[None], count + 1, axis=0)
    T[:, :3, 3] = center
    T[:, i, 3] += radius * np.cos(angles)
    T[:, j, 3] += radius * np.sin(angles)
    problem = own.problem(T[0], prefer="mid_range")
    state = problem.state[0].copy()
    state[problem.variables] = own.solver.solve_ik(problem).q[0, 0]
    largest = 0.0
    for target in T[1:]:
        result = own.solver.solve_ik(own.problem(target, prefer="closest", state=state))
        assert result.success[0]
        largest = max(largest, float(np.abs(result.q[0, 0] - state[problem.variables]).max()))
        state[problem.variables] = result.q[0, 0]
    assert largest <= 0.3


KINDS: dict[str, dict[str, Any]] = {
    "posture": {"prefer": "mid_range"},
    "solutions": {"num_solutions": 3},
    "free axis": {"free_axes": ["rz"]},
    "position only": {"free_axes": ["rx", "ry", "rz"]},
    "per axis": {"position_tolerance": (1e-3, 1e-4, 1e-2), "orientation_tolerance": (0.1, 1e-3, 0.01)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_batches_threads_pace_and_company_do_not_change_answers(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    panda = arm("panda")
    T = panda.targets(33, seed=6)
    T[5, 2, 3] = 0.0  # hard, or out of reach
    options = KINDS[kind]
    together = panda.solver.solve_ik(panda.problem(T, **options)).q
    for b in (0, 5, 17, 32):
        np.testing.assert_array_equal(panda.solver.solve_ik(panda.problem(T[b], **options)).q[0], together[b])
    threads = CpuSolver()
    threads.configure(panda.robot, {"threads": 3})
    np.testing.assert_array_equal(threads.solve_ik(panda.problem(T, **options)).q, together)
    threads.close()
    monkeypatch.setattr(several, "STEPS", 1)  # stops after every attempt, and goes on
    dated = panda.problem(T, deadline=time.monotonic() + 100.0, **options)
    np.testing.assert_array_equal(panda.solver.solve_ik(dated).q, together)


def test_work_is_stopped_by_the_deadline() -> None:
    panda = arm("panda")
    options: dict[str, Any] = {"num_solutions": 500, "prefer": "mid_range"}  # takes seconds
    T = panda.targets(1)
    start = time.process_time()
    late = panda.solver.solve_ik(panda.problem(T, deadline=time.monotonic() + 0.002, **options))
    dated = time.process_time() - start
    assert late.cut_short[0]
    start = time.process_time()
    panda.solver.solve_ik(panda.problem(T, deadline=time.monotonic() + 0.5, **options))
    assert dated < 0.2 * (time.process_time() - start)


def test_whole_turns_are_all_there_and_the_nearest_come_first() -> None:
    robot = turning_arm(6)
    solver = CpuSolver()
    solver.configure(robot)
    q = np.array([0.3, 0.5, -0.4, 1.0, 0.8, -0.2])
    T = chain_pose(build_chain(robot, "l0", "l6"), q)
    result = solver.solve_ik(ik_problem(robot, T, tip_link="l6", state=q, num_solutions=100, turns=True))
    assert result.num_found[0] == 100
    assert (np.diff(result.distance[0]) >= 0.0).all()
    np.testing.assert_allclose(result.q[0, 0], q, atol=1e-3)
    # One joint turned once, either way: nearer than most of what a hundred hold.
    for turned in q + 2 * np.pi * np.concatenate([np.eye(6), -np.eye(6)]):
        assert np.abs(result.q[0] - turned).max(axis=1).min() < 1e-3
    assert result.distance[0, -1] > 2 * np.pi


def test_very_many_whole_turns_take_no_time() -> None:
    robot = turning_arm(7)
    solver = CpuSolver()
    solver.configure(robot, {"branch_attempts": 20})
    T = chain_pose(build_chain(robot, "l0", "l7"), robot.default_q + 0.4)
    start = time.process_time()
    result = solver.solve_ik(ik_problem(robot, T, tip_link="l7", num_solutions=1000, turns=True))
    assert result.num_found[0] == 1000
    assert (
        time.process_time() - start < 5.0
    )  # some 0.3 s on a quiet machine; minutes if all are compared with all


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Nothing compiled and nothing on disk. Lists the calls, and whether they allowed to compile."""
    from kinopt_ros.solvers.cpu.kernels import general

    asked: list[bool] = []

    def load_or_compile(may_compile: bool) -> bool:
        asked.append(may_compile)
        return may_compile

    monkeypatch.setattr(general, "load_or_compile", load_or_compile)
    monkeypatch.setattr(plugin, "_ready", False)
    return asked


def test_no_request_with_a_deadline_waits_for_the_compiler(cold: list[bool]) -> None:
    panda = arm("panda")
    solver = CpuSolver()
    solver.configure(panda.robot)
    assert cold == [False]  # configuring looks on the disk, and compiles nothing
    T = panda.targets(1)
    with pytest.raises(NotReadyError, match="warm_up"):
        solver.solve_ik(panda.problem(T, prefer="closest", deadline=time.monotonic() + 10.0))
    assert cold == [False]
    assert solver.solve_ik(panda.problem(T, deadline=time.monotonic() + 10.0)).success[0]
    solver.warm_up()
    assert cold == [False, True]
    assert solver.solve_ik(panda.problem(T, prefer="closest", deadline=time.monotonic() + 10.0)).success[0]


def test_a_request_without_a_deadline_compiles(cold: list[bool]) -> None:
    panda = arm("panda")
    solver = CpuSolver()
    solver.configure(panda.robot)
    assert solver.solve_ik(panda.problem(panda.targets(1), num_solutions=2)).success[0]
    assert cold == [False, True]


def test_what_lies_on_disk_is_loaded_when_the_solver_is_configured() -> None:
    arm("panda")  # compiled, if it was not
    from kinopt_ros.solvers.cpu.kernels.general import load_or_compile

    assert load_or_compile(may_compile=False)


def test_closing_while_solving_neither_hangs_nor_starts_threads_again() -> None:
    panda = arm("panda")
    solver = CpuSolver()
    solver.configure(panda.robot, {"threads": 4})
    T = panda.targets(400)
    outcomes: list[str] = []

    def solve() -> None:
        try:
            while True:
                assert solver.solve_ik(panda.problem(T)).success.all()
        except KinoptError as error:
            outcomes.append(str(error))

    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(solve) for _ in range(2)]
        time.sleep(0.1)
        solver.close()
        for future in waiting:
            future.result(timeout=20.0)
    assert len(outcomes) == 2
    assert all("not configured" in outcome for outcome in outcomes)
    left = time.monotonic() + 10.0
    while any(thread.name.startswith("kinopt_cpu") for thread in _own_threads(solver)):
        assert time.monotonic() < left
        time.sleep(0.01)


def _own_threads(solver: CpuSolver) -> list[threading.Thread]:
    pool = solver._cores._pool
    return [] if pool is None else list(pool._threads)


@pytest.mark.parametrize("options", [{}, {"prefer": "mid_range"}, {"num_solutions": 2}])
def test_several_seeds_for_each_of_several_requests(options: dict[str, Any]) -> None:
    panda = arm("panda")
    T = panda.targets(5)
    seeds = np.random.default_rng(8).uniform(panda.lower, panda.upper, (5, 3, 7))
    together = panda.solver.solve_ik(panda.problem(T, seeds=seeds, **options))
    assert together.success.all()
    for b in range(5):
        alone = panda.solver.solve_ik(panda.problem(T[b], seeds=seeds[b], **options))
        np.testing.assert_array_equal(alone.q[0], together.q[b])


@pytest.mark.parametrize("prefer", ["any", "closest"])  # the quick kernel, and the general one
@pytest.mark.parametrize("distance", [1.0, 30.0, 1000.0])
def test_a_planar_base_reaches_what_is_far_away(distance: float, prefer: str) -> None:
    robot = robot_from_urdf(
        '<robot name="base"><link name="map"/><link name="base"/><link name="lift"/>'
        '<joint name="drive" type="planar"><parent link="map"/><child link="base"/><axis xyz="0 0 1"/></joint>'
        '<joint name="up" type="prismatic"><parent link="base"/><child link="lift"/><axis xyz="0 0 1"/>'
        '<limit lower="0" upper="1" velocity="1" effort="1"/></joint></robot>'
    )
    solver = CpuSolver()
    solver.configure(robot)
    target = pose(so3_exp(np.array([0.0, 0.0, 2.5])), np.array([distance, -0.5 * distance, 0.3]))
    result = solver.solve_ik(ik_problem(robot, target, tip_link="lift", prefer=prefer))
    assert result.success[0], result.messages
    np.testing.assert_allclose(result.q[0, 0], [distance, -0.5 * distance, 2.5, 0.3], atol=1e-3)


def test_the_closest_turn_is_one_inside_the_limits() -> None:
    """The turn nearest to a reference may lie outside; then the next one inside counts, not the one that was found."""
    robot = robot_from_urdf(
        '<robot name="turns"><link name="a"/><link name="b"/><joint name="j" type="revolute"><parent link="a"/>'
        '<child link="b"/><axis xyz="0 0 1"/><limit lower="-6.28" upper="6.28" velocity="1" effort="1"/></joint>'
        "</robot>"
    )
    solver = CpuSolver()
    solver.configure(robot)
    target = pose(so3_exp(np.array([0.0, 0.0, 0.608])), np.zeros(3))
    below = 0.608 - 2.0 * np.pi
    for state, expected in ((-9.64, below), (-6.2, below), (-2.0, 0.608), (6.2, 0.608)):
        for prefer in ("any", "closest"):
            problem = ik_problem(robot, target, tip_link="b", state=np.array([state]), prefer=prefer)
            result = solver.solve_ik(problem)
            assert result.success[0], result.messages
            assert result.q[0, 0, 0] == pytest.approx(expected, abs=1e-3), (state, prefer)


def test_joints_that_move_no_target_have_an_answer() -> None:
    """Built by hand, as the builder refuses them: a division by zero ended such a request."""
    robot = load_robot("panda")
    solver = CpuSolver()
    solver.configure(robot)
    T = chain_pose(build_chain(robot, *ENDS["panda"]), robot.default_q[:7])
    problem = ik_problem(robot, np.stack([T, np.eye(4)]), tip_link="panda_link8", num_solutions=2)
    finger = robot.variable_index["panda_finger_joint1"]
    still = replace(
        problem,
        joints=("panda_finger_joint1",),
        variables=np.array([finger]),
        seeds=np.empty((2, 0, 1)),
    )
    result = solver.solve_ik(still)
    solver.close()
    assert result.success.tolist() == [True, False]
    assert result.q[0, 0] == robot.default_q[finger]
