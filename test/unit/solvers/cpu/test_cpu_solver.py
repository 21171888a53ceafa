"""Tests of what the cpu plugin promises beyond the conformance suite."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.kinematics.forward import chain_pose, forward_kinematics
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers import locked_joints
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.status import Status

BASE, TIP = "panda_link0", "panda_link8"


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


@pytest.fixture(scope="module")
def solver(panda: RobotModel) -> CpuSolver:
    return configured(panda)


def configured(robot: RobotModel, **options: object) -> CpuSolver:
    solver = CpuSolver()
    solver.configure(robot, options)
    return solver


def reachable(robot: RobotModel, base: str, tip: str, count: int, seed: int = 0) -> np.ndarray:
    chain = build_chain(robot, base, tip)
    low = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -2.0)[chain.variables]
    high = np.where(np.isfinite(robot.limits.upper), robot.limits.upper, 2.0)[chain.variables]
    return chain_pose(chain, np.random.default_rng(seed).uniform(low, high, (count, len(low))))


def panda_problem(panda: RobotModel, count: int, **rest: object) -> IkProblem:
    return ik_problem(panda, reachable(panda, BASE, TIP, count), base_link=BASE, tip_link=TIP, **rest)


def test_importing_the_plugin_does_not_import_numba() -> None:
    code = "import sys, kinopt_ros.solvers.cpu.plugin; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_two_thousand_random_targets_to_a_micrometre(panda: RobotModel, solver: CpuSolver) -> None:
    problem = panda_problem(panda, 2000, position_tolerance=1e-6, orientation_tolerance=1e-6)
    result = solver.solve_ik(problem)
    assert result.success.all()
    assert result.position_error.max() <= 1e-6
    assert result.orientation_error.max() <= 1e-6


def test_default_tolerances_still_aim_for_a_micrometre(panda: RobotModel, solver: CpuSolver) -> None:
    result = solver.solve_ik(panda_problem(panda, 500))
    assert np.percentile(result.position_error, 99) <= 1e-6


def test_very_tight_tolerances(panda: RobotModel, solver: CpuSolver) -> None:
    problem = panda_problem(panda, 200, position_tolerance=1e-11, orientation_tolerance=1e-11)
    assert solver.solve_ik(problem).success.mean() > 0.99


def test_answers_never_pass_a_limit(panda: RobotModel, solver: CpuSolver) -> None:
    # Targets at limits: the answer may lie on a limit, but not one bit beyond.
    chain = build_chain(panda, BASE, TIP)
    lower, upper = panda.limits.lower[chain.variables], panda.limits.upper[chain.variables]
    corners = np.random.default_rng(0).choice([0.0, 1.0], (200, 7))
    T = chain_pose(chain, lower + corners * (upper - lower))
    result = solver.solve_ik(ik_problem(panda, T, base_link=BASE, tip_link=TIP))
    found = np.where(result.success[:, None], result.q[:, 0], result.attempt)
    assert (found >= lower).all()
    assert (found <= upper).all()
    assert result.success.mean() > 0.95


def test_batch_equals_singles(panda: RobotModel, solver: CpuSolver) -> None:
    T = reachable(panda, BASE, TIP, 100)
    together = solver.solve_ik(ik_problem(panda, T, base_link=BASE, tip_link=TIP)).q
    for i in range(len(T)):
        alone = solver.solve_ik(ik_problem(panda, T[i], base_link=BASE, tip_link=TIP)).q
        np.testing.assert_array_equal(alone[0], together[i])


def test_a_deadline_that_is_far_away_changes_nothing(panda: RobotModel, solver: CpuSolver) -> None:
    plain = solver.solve_ik(panda_problem(panda, 100))
    dated = solver.solve_ik(panda_problem(panda, 100, deadline=time.monotonic() + 60.0))
    np.testing.assert_array_equal(plain.q, dated.q)
    assert dated.success.all()


def test_a_deadline_in_the_past_is_reported(panda: RobotModel, solver: CpuSolver) -> None:
    result = solver.solve_ik(panda_problem(panda, 3, deadline=time.monotonic() - 1.0))
    assert result.status.tolist() == [Status.TIMED_OUT] * 3
    assert np.isfinite(result.attempt).all()


def test_what_a_deadline_cuts_short_is_never_called_unsolvable(panda: RobotModel) -> None:
    # Without its table and its restarts a request may fail that has a solution.
    problem = panda_problem(panda, 5000, position_tolerance=1e-6, orientation_tolerance=1e-6)
    solver = configured(panda)
    assert solver.solve_ik(problem).success.all()
    cut_between = 0
    for milliseconds in (5, 10, 20, 40, 80, 160, 320):
        result = solver.solve_ik(replace(problem, deadline=time.monotonic() + 1e-3 * milliseconds))
        assert set(result.status[~result.success]) <= {int(Status.TIMED_OUT)}
        cut_between += bool(result.success.any() and not result.success.all())
    assert cut_between


def test_a_deadline_stops_a_long_search(panda: RobotModel) -> None:
    patient = configured(panda, max_restarts=1_000_000)
    T = reachable(panda, BASE, TIP, 1)
    T[0, :3, 3] = 0.0, 0.0, 0.34  # inside the robot: near, but the limits do not allow it
    T[0, :3, :3] = np.eye(3)
    start = time.monotonic()
    result = patient.solve_ik(ik_problem(panda, T, base_link=BASE, tip_link=TIP, deadline=start + 0.05))
    assert result.status[0] == Status.TIMED_OUT
    assert time.monotonic() - start < 5.0


def test_unreachable_targets_come_back_soon_with_a_near_attempt(panda: RobotModel, solver: CpuSolver) -> None:
    T = np.eye(4)
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    T[:3, 3] = 1.5, 0.0, 0.3
    problem = ik_problem(panda, T, base_link=BASE, tip_link=TIP)
    start = time.process_time()
    result = solver.solve_ik(problem)
    assert time.process_time() - start < 0.2  # some 5 ms on a quiet machine
    assert result.status[0] == Status.NO_IK_SOLUTION
    assert 0.5 < result.attempt_position_error[0] < 0.95


def test_the_random_seed_decides(panda: RobotModel) -> None:
    # Seven joints that do not start where a solution is: some of these targets need random restarts.
    solver = configured(panda)
    seeds = [0, 1, 2**63, 2**64 - 1]

    def answer(seed: int) -> IkResult:
        return solver.solve_ik(panda_problem(panda, 1000, random_seed=seed))

    answers = [answer(seed) for seed in seeds]
    for i, seed in enumerate(seeds):
        assert answers[i].success.all()
        np.testing.assert_array_equal(answers[i].q, answer(seed).q)
        for other in answers[:i]:
            assert (answers[i].q != other.q).any()


def test_threads_agree_with_one_thread(panda: RobotModel, solver: CpuSolver) -> None:
    T = reachable(panda, BASE, TIP, 64)

    def solve(i: int) -> np.ndarray:
        return solver.solve_ik(ik_problem(panda, T[i], base_link=BASE, tip_link=TIP)).q

    serial = [solve(i) for i in range(len(T))]
    with ThreadPoolExecutor(8) as pool:
        for a, b in zip(serial, pool.map(solve, range(len(T))), strict=True):
            np.testing.assert_array_equal(a, b)


def test_state_and_then_seeds_come_first(panda: RobotModel, solver: CpuSolver) -> None:
    chain = build_chain(panda, BASE, TIP)
    q = np.array([0.3, 0.4, -0.3, -1.9, 0.3, 2.1, 0.9])
    T = chain_pose(chain, q)
    state = panda.default_q.copy()
    state[chain.variables] = q + 0.05
    near = solver.solve_ik(ik_problem(panda, T, base_link=BASE, tip_link=TIP, state=state))
    assert abs(near.q[0, 0] - q).max() < 0.2
    far = panda.default_q.copy()
    far[chain.variables] = panda.limits.upper[chain.variables]
    unhinted = solver.solve_ik(ik_problem(panda, T, base_link=BASE, tip_link=TIP, state=far))
    hinted = solver.solve_ik(ik_problem(panda, T, base_link=BASE, tip_link=TIP, state=far, seeds=q + 0.01))
    assert abs(unhinted.q[0, 0] - q).max() > 0.2
    assert abs(hinted.q[0, 0] - q).max() < 0.05


def test_joints_that_are_not_asked_for_are_held(panda: RobotModel, solver: CpuSolver) -> None:
    chain = build_chain(panda, BASE, TIP)
    q = np.array([0.3, 0.4, -0.3, -1.9, 0.3, 2.1, 0.9])
    state = panda.default_q.copy()
    state[chain.variables] = q
    whole = ik_problem(panda, chain_pose(chain, q), base_link=BASE, tip_link=TIP, state=state)
    joints = tuple(name for name in whole.joints if name != "panda_joint3")
    held = IkProblem(
        targets=whole.targets,
        base_link=BASE,
        joints=joints,
        variables=np.array([panda.variable_index[name] for name in joints]),
        state=state[None].copy(),
        seeds=np.empty((1, 0, 6)),
    )
    result = solver.solve_ik(held)
    assert result.success[0]
    assert result.joint_names == joints


@pytest.mark.parametrize("name", ["panda_joint1", "panda_joint4", "panda_joint7"])
def test_every_held_value_counts(panda: RobotModel, solver: CpuSolver, name: str) -> None:
    # The structure is packed anew for held values that differ by noise, and by more.
    chain = build_chain(panda, BASE, TIP)
    held = panda.variable_index[name]
    for noise in (0.0, 1e-9, 1e-3, 0.4):
        q = np.array([0.3, 0.4, -0.3, -1.9, 0.3, 2.1, 0.9])
        state = panda.default_q.copy()
        state[chain.variables] = q
        state[held] += noise
        whole = ik_problem(
            panda,
            chain_pose(chain, state[chain.variables]),
            base_link=BASE,
            tip_link=TIP,
            state=state,
            position_tolerance=1e-9,
            orientation_tolerance=1e-9,
        )
        joints = tuple(joint for joint in whole.joints if joint != name)
        variables = np.array([panda.variable_index[joint] for joint in joints])
        start = state[None].copy()
        start[:, variables] += 0.02
        problem = replace(
            whole, joints=joints, variables=variables, state=start, seeds=np.empty((1, 0, len(joints)))
        )
        result = solver.solve_ik(problem)
        assert result.success[0]  # verified by the reference kinematics with the same held value
        assert abs(result.q[0, 0] - state[variables]).max() < 1e-4


def test_group_joints_off_the_path_keep_their_state(panda: RobotModel, solver: CpuSolver) -> None:
    chain = build_chain(panda, BASE, "panda_link4")
    joints = tuple(f"panda_joint{i}" for i in range(7, 0, -1))  # in any order
    variables = np.array([panda.variable_index[name] for name in joints])
    q = panda.default_q.copy()
    q[variables] += 0.05
    whole = ik_problem(panda, chain_pose(chain, q[chain.variables]), base_link=BASE, tip_link="panda_link4")
    problem = IkProblem(
        targets=whole.targets,
        base_link=BASE,
        joints=joints,
        variables=variables,
        state=panda.default_q[None].copy(),
        seeds=np.empty((1, 0, 7)),
    )
    result = solver.solve_ik(problem)
    assert result.success[0]
    for name in ("panda_joint5", "panda_joint6", "panda_joint7"):
        assert result.q[0, 0, joints.index(name)] == panda.default_q[panda.variable_index[name]]


def test_prepared_chains_are_bounded(panda: RobotModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locked_joints, "CAPACITY", 3)
    solver = configured(panda)
    for tip in (f"panda_link{i}" for i in range(2, 9)):
        T = chain_pose(
            build_chain(panda, BASE, tip), panda.default_q[build_chain(panda, BASE, tip).variables]
        )
        assert solver.solve_ik(ik_problem(panda, T, base_link=BASE, tip_link=tip)).success[0]
    assert len(solver._chains._prepared) == 3


KINDS = {"R": "revolute", "C": "continuous", "P": "prismatic", "N": "planar"}
AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1", "d": "1 1 0"}
MIMIC = '<mimic joint="j1" multiplier="-0.7" offset="0.2"/>'


def arm(joints: str) -> RobotModel:
    """A chain of joints j0, j1, ... 0.3 m apart, each a letter for its type and one for its axis; ``~`` mimics j1."""
    links, parts = ['<link name="l0"/>'], []
    for i, code in enumerate(joints.split()):
        limit = '<limit lower="-2" upper="2.2" effort="1" velocity="1"/>' if code[0] in "RP" else ""
        parts.append(
            f'<joint name="j{i}" type="{KINDS[code[0]]}"><parent link="l{i}"/><child link="l{i + 1}"/>'
            f'<origin xyz="0.05 0.1 0.3" rpy="0.1 0.2 {0.3 * i}"/><axis xyz="{AXES[code[1]]}"/>{limit}'
            f"{MIMIC if code.endswith('~') else ''}</joint>"
        )
        links.append(f'<link name="l{i + 1}"/>')
    return robot_from_urdf(f'<robot name="arm">{"".join(links)}{"".join(parts)}</robot>')


ARMS = {
    "one joint": "Rz",
    "six revolute": "Rz Ry Ry Rx Ry Rx",
    "continuous": "Cz Ry Cx Ry Cd Rz Ry",
    "gantry": "Px Py Pz Rz Ry Rx",
    "planar base": "Nz Ry Ry Rx Ry",
    "mimic": "Rz Ry Ry~ Rx Ry Pz Rx",
    "sixty-four": " ".join(["Rz Ry Rx Rd"] * 16),
}


@pytest.mark.parametrize("name", ARMS)
def test_kinds_of_joints(name: str) -> None:
    robot = arm(ARMS[name])
    tip = robot.link_names[-1]
    T = reachable(robot, "l0", tip, 200)
    result = configured(robot).solve_ik(
        ik_problem(
            robot, T, base_link="l0", tip_link=tip, position_tolerance=1e-6, orientation_tolerance=1e-6
        )
    )
    assert result.success.mean() >= 0.99


def test_arms_of_fewer_than_six_axes_reach_what_they_can() -> None:
    robot = arm("Rz Ry Ry Rx")
    tip = robot.link_names[-1]
    T = reachable(robot, "l0", tip, 200)
    assert (
        configured(robot).solve_ik(ik_problem(robot, T, base_link="l0", tip_link=tip)).success.mean() > 0.98
    )


def test_loose_orientation_leaves_the_position_to_be_met(panda: RobotModel, solver: CpuSolver) -> None:
    robot = arm("Rz Ry Ry")
    tip = robot.link_names[-1]
    T = reachable(robot, "l0", tip, 100)
    T[:, :3, :3] = np.eye(3)
    free = ik_problem(robot, T, base_link="l0", tip_link=tip, orientation_tolerance=np.pi)
    assert configured(robot).solve_ik(free).success.mean() > 0.98
    assert configured(robot).solve_ik(ik_problem(robot, T, base_link="l0", tip_link=tip)).success.mean() < 0.1


def test_what_a_tight_request_finds_a_loose_one_finds_too(panda: RobotModel, solver: CpuSolver) -> None:
    # Five joints near their limits: the search for what is just good enough ends at a limit in a few of these.
    T = reachable(panda, "panda_link8", "panda_link3", 4000)
    for position, orientation in ((1e-9, 0.06), (1e-6, 1e-6)):
        problem = ik_problem(
            panda,
            T,
            base_link="panda_link8",
            tip_link="panda_link3",
            position_tolerance=position,
            orientation_tolerance=orientation,
        )
        assert solver.solve_ik(problem).success.all()


def test_endless_joints_take_the_turn_nearest_to_the_state() -> None:
    robot = arm(ARMS["continuous"])
    tip = robot.link_names[-1]
    chain = build_chain(robot, "l0", tip)
    q = robot.default_q + 0.3
    state = q.copy()
    state[robot.variable_index["j0"]] += 40 * np.pi
    T = chain_pose(chain, q)
    result = configured(robot).solve_ik(ik_problem(robot, T, base_link="l0", tip_link=tip, state=state))
    assert result.success[0]
    assert abs(result.q[0, 0] - state).max() < 0.01
    plain = configured(robot).solve_ik(ik_problem(robot, T, base_link="l0", tip_link=tip))
    endless = [robot.variable_index[f"j{i}"] for i in (0, 2, 4)]
    assert (abs(plain.q[0, 0, endless] - robot.default_q[endless]) <= np.pi).all()


@pytest.mark.parametrize("turned", [1e5, 3e8, -9e8])
def test_a_joint_turned_very_far_is_no_obstacle(turned: float) -> None:
    # 3e8 + angle is only representable to 6e-8 rad: too coarse to be an answer to 1e-8 m.
    robot = arm(ARMS["continuous"])
    tip = robot.link_names[-1]
    T = reachable(robot, "l0", tip, 50)
    state = robot.default_q.copy()
    state[robot.variable_index["j0"]] = turned
    result = configured(robot).solve_ik(
        ik_problem(
            robot,
            T,
            base_link="l0",
            tip_link=tip,
            state=state,
            position_tolerance=1e-8,
            orientation_tolerance=1e-8,
        )
    )
    assert result.success.all()
    far = abs(result.q[:, 0, 0]) > 50_000
    assert far.all() if turned == 1e5 else not far.any()


AXES_NEAR_MINUS_Z = ("0 0 -1", "1e-6 0 -1", "-5.4e-7 3e-7 -1", "1e-9 1e-9 -1")


@pytest.mark.parametrize("axis", AXES_NEAR_MINUS_Z)
def test_axes_near_minus_z(axis: str) -> None:
    rows = [("0 0 .3", axis), ("0 .1 0", "0 1 0"), ("0 0 .4", "0 1 0"), ("0 -.1 .35", axis)]
    rows += [("0 0 .05", "0 1 0"), ("0 0 .08", axis)]
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="{xyz}"/>'
        f'<axis xyz="{own}"/><limit lower="-2.9" upper="2.9" velocity="1" effort="1"/></joint>'
        for i, (xyz, own) in enumerate(rows)
    )
    robot = robot_from_urdf(
        f'<robot name="r">{"".join(f"""<link name="l{i}"/>""" for i in range(7))}{joints}</robot>'
    )
    T = reachable(robot, "l0", "l6", 200)
    solver = configured(robot)
    problem = ik_problem(
        robot, T, base_link="l0", tip_link="l6", position_tolerance=1e-6, orientation_tolerance=1e-6
    )
    assert solver.solve_ik(problem).success.all()
    quick, chain = solver.chain_ik("l0", "l6"), build_chain(robot, "l0", "l6")
    for target in T:
        q, ok = quick.solve(np.ascontiguousarray(target))
        assert ok
        assert max(pose_error(target, chain_pose(chain, q))) <= 1e-6


def test_half_turn_errors_are_no_dead_end(panda: RobotModel, solver: CpuSolver) -> None:
    # The error's rotation vector vanishes at half a turn unless its axis is taken from the whole matrix.
    robot = arm("Cz")
    T = chain_pose(build_chain(robot, "l0", "l1"), robot.default_q + np.pi)
    result = configured(robot, max_restarts=0).solve_ik(ik_problem(robot, T, base_link="l0", tip_link="l1"))
    assert result.success[0]


def test_quick_path_equals_the_reference_and_takes_any_array(panda: RobotModel, solver: CpuSolver) -> None:
    quick = solver.chain_ik(BASE, TIP)
    chain = build_chain(panda, BASE, TIP)
    T = reachable(panda, BASE, TIP, 500)
    for target in T:
        q, ok = quick.solve(np.ascontiguousarray(target))
        assert ok
        distance, angle = pose_error(target, chain_pose(chain, q))
        assert distance <= 1e-6
        assert angle <= 1e-6
        assert (q >= panda.limits.lower[chain.variables]).all()
        assert (q <= panda.limits.upper[chain.variables]).all()
    frozen = T[0].copy()
    frozen.setflags(write=False)
    expected, _ = quick.solve(T[0].copy())
    for other in (frozen, np.asfortranarray(T[0]), T[0].tolist()):
        np.testing.assert_array_equal(quick.solve(other)[0], expected)


def test_no_numbers_no_crash(solver: CpuSolver) -> None:
    q, ok = solver.chain_ik(BASE, TIP).solve(np.full((4, 4), np.nan))
    assert not ok
    assert len(q) == 7


def test_base_may_move(panda: RobotModel, solver: CpuSolver) -> None:
    # From the hand to the shoulder: the same chain upwards.
    q = panda.default_q.copy()
    T = forward_kinematics(panda, q, links=(TIP, "panda_link1"))
    problem = ik_problem(panda, np.linalg.inv(T[0]) @ T[1], base_link=TIP, tip_link="panda_link1")
    assert solver.solve_ik(problem).success[0]


def test_is_a_solver(solver: CpuSolver) -> None:
    assert isinstance(solver, Solver)
    assert CpuSolver.unavailable_reason() is None
