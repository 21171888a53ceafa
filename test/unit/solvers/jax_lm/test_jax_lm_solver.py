"""The plugin as a whole, beside what the conformance suite asks of all."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clock import late_after

from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError, UnknownNameError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.problems.builder import default_group, ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status

from .conftest import SolverMaker

pytestmark = pytest.mark.slow  # compilers take seconds

FREE = {"position_tolerance": (1e-5, 1e-5, np.inf), "orientation_tolerance": np.inf}
"""Tolerances that three joints in a plane can meet."""


def targets_of(robot: RobotModel, count: int, seed: int, stretched: float = 1.0) -> IkProblem:
    q = random_configurations(robot, count, seed)
    T = forward_kinematics(robot, q, links=("l4",))[:, 0]
    T[:, :3, 3] *= stretched
    return ik_problem(robot, T, tip_link="l4", **FREE)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"device": "tpu"}, "tpu"),
        ({"device": "cuda:x"}, "cuda:x"),
        ({"device": "cpu:1"}, "cpu:1"),
        ({"jacobian": "numeric"}, "numeric"),
        ({"batch_sizes": "1,,4"}, "1,,4"),
        ({"batch_sizes": "0"}, "0"),
        ({"beam.keep": 65}, "65"),
        ({"beam.init_steps": 20}, "20"),
        ({"escalation.keep": 300}, "300"),
        ({"groups": "left_leg"}, "left_leg"),
        ({"beam.num_seeds": 0}, "num_seeds"),
    ],
)
def test_bad_options_are_refused_by_name(
    planar_arm: RobotModel, options: dict[str, object], named: str
) -> None:
    with pytest.raises((InvalidRequestError, UnknownNameError), match=named):
        JaxLmSolver().configure(planar_arm, options)


@pytest.mark.parametrize("named", [True, False])
def test_it_is_prepared_for_the_groups_that_it_compiles_for(
    planar_arm: RobotModel, solver_for: SolverMaker, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(JaxLmSolver, "_compile_for", lambda solver, robot, group: compiled.append(group))
    solver = solver_for(planar_arm, groups="default" if named else "")
    group = default_group(planar_arm).name
    assert solver.is_prepared_for(group) == named
    assert compiled == [group] * named


def test_a_device_that_is_not_there_is_named(planar_arm: RobotModel) -> None:
    import jax

    if jax.default_backend() != "cpu":
        pytest.skip(f"JAX has a {jax.default_backend()} here")
    with pytest.raises(SolverUnavailableError, match="cuda"):
        JaxLmSolver().configure(planar_arm, {"device": "cuda"})


def test_statuses_are_those_of_the_cpu_plugin(planar_arm: RobotModel, solver_for: SolverMaker) -> None:
    problem = targets_of(planar_arm, 40, 2, stretched=1.15)  # some of them beyond reach, or the limits
    ours = solver_for(planar_arm).solve_ik(problem)
    theirs = create_solver("cpu", planar_arm).solve_ik(problem)
    assert 0 < ours.success.sum() < 40
    np.testing.assert_array_equal(ours.status, theirs.status)


def test_the_beam_solves_nearly_all_and_says_how_much(
    planar_arm: RobotModel, solver_for: SolverMaker
) -> None:
    solver = solver_for(planar_arm)
    assert np.isnan(solver.share_solved_by_beam)
    assert solver.solve_ik(targets_of(planar_arm, 100, 3)).success.all()
    assert solver.share_solved_by_beam >= 0.97


def test_the_answer_does_not_depend_on_the_batch(planar_arm: RobotModel, solver_for: SolverMaker) -> None:
    solver = solver_for(planar_arm)
    problem = targets_of(planar_arm, 11, 4)
    together = solver.solve_ik(problem).q
    for i in range(11):
        target = problem.targets[0]
        alone = replace(
            problem,
            targets=(replace(target, T_base_target=target.T_base_target[i : i + 1].copy()),),
            state=problem.state[i : i + 1].copy(),
            seeds=problem.seeds[i : i + 1].copy(),
        )
        np.testing.assert_array_equal(solver.solve_ik(alone).q[0], together[i])


@pytest.mark.parametrize("own", [0, 1, 5, 40])
@pytest.mark.parametrize(("num_seeds", "rounds"), [(2, 0), (3, 2), (64, 0)])
@pytest.mark.parametrize("batch_sizes", ["", "4"])
def test_all_starts_of_the_problem_are_given_to_beams_the_state_first(
    own: int, num_seeds: int, rounds: int, batch_sizes: str, planar_arm: RobotModel, solver_for: SolverMaker
) -> None:
    """Programs are replaced by one that notes what it is given, and finds nothing."""
    options = {
        "beam.num_seeds": num_seeds,
        "beam.keep": 1,
        "escalation.rounds": rounds,
        "batch_sizes": batch_sizes,
    }
    solver = solver_for(planar_arm, **options)
    n, B = 3, 5
    given: list[tuple[np.ndarray, np.ndarray]] = []

    def get(key: Any) -> Callable[..., np.ndarray]:
        S, targets = key.size.num_seeds, key.targets

        def program(_: Any, ranges: Any, requests: np.ndarray, starts: Any) -> np.ndarray:
            assert requests.shape == (targets, 12 + 2 * n)
            lanes = np.array(starts).reshape(n, S, targets)
            lanes[:, 0] = requests[:, 12 + n :].T
            given.append((requests[:, :12].copy(), lanes))
            found = np.zeros((n + 2, targets))
            found[-2] = np.inf
            return found

        return program

    solver._programs.get = get  # type: ignore[method-assign,assignment]
    q = random_configurations(planar_arm, 60, 1)
    T = forward_kinematics(planar_arm, q[:B], links=("l4",))[:, 0]
    seeds = np.stack([np.roll(q, -k - 1, 0)[:own] for k in range(B)])
    state = q[20 : 20 + B]
    solver._solve_ik(
        ik_problem(planar_arm, T, tip_link="l4", state=state, seeds=seeds if own else None, **FREE)
    )
    for b in range(B):
        mine = [
            lanes[:, :, j].T
            for poses, lanes in given
            for j in range(len(poses))
            if np.array_equal(poses[j], T[b, :3].reshape(12))
        ]
        np.testing.assert_allclose(mine[0][0], state[b], atol=1e-6)
        everything = np.concatenate(mine)
        for seed in seeds[b]:
            assert np.abs(everything - seed).max(axis=1).min() < 1e-6


def test_steps_of_all_beams_count(planar_arm: RobotModel, solver_for: SolverMaker) -> None:
    weak = {
        "beam.num_seeds": 2,
        "beam.keep": 1,
        "beam.init_steps": 0,
        "beam.total_steps": 1,
        "batch_sizes": "1",
    }
    solver = solver_for(planar_arm, **weak)
    problems = [targets_of(planar_arm, 1, seed) for seed in range(40)]
    results = [solver.solve_ik(problem) for problem in problems]
    assert all(result.success.all() for result in results)
    assert 0.0 < solver.share_solved_by_beam < 1.0
    strong = solver_for(planar_arm)
    for result, problem in zip(results, problems, strict=True):
        if result.iterations[0] > 1 + 8:  # those of the weak beam, and so more were made
            assert result.iterations[0] >= 1 + 8 + strong.solve_ik(problem).iterations[0] - 6 - 10
    assert max(int(result.iterations[0]) for result in results) > 1 + 8


ONE_LANE = """
import sys
import numpy as np
from kinopt_ros import create_solver, ik_problem, load_robot
robot = load_robot(sys.argv[1])
options = {"groups": "", "beam.num_seeds": 1, "beam.keep": 1}
solver = create_solver("jax_lm", robot, options)
problem = ik_problem(robot, np.eye(4), tip_link="l4", free_axes=("x", "y", "z", "rx", "ry"))
print(solver.solve_ik(problem).status.tolist())
"""


def test_a_single_start_is_enough_for_a_beam(planar_arm_file: Path, tmp_path: Path) -> None:
    """In a process of its own: XLA aborts processes where it meets what it does not expect."""
    command = [sys.executable, "-c", ONE_LANE, str(planar_arm_file)]
    own = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[1]"), done.stderr[-2000:]


def test_autodiff_solves_the_same(planar_arm: RobotModel, solver_for: SolverMaker) -> None:
    assert solver_for(planar_arm, jacobian="autodiff").solve_ik(targets_of(planar_arm, 20, 6)).success.all()


def test_a_deadline_ends_the_search_between_beams(
    planar_arm: RobotModel, solver_for: SolverMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    solver = solver_for(planar_arm, **{"escalation.rounds": 10})
    T = np.eye(4)
    T[:3, 3] = 0.6, 0.2, 0.01  # within reach, but not in the plane
    hard = ik_problem(planar_arm, T, tip_link="l4", orientation_tolerance=np.inf)
    whole = solver.solve_ik(hard)
    assert whole.status[0] == Status.NO_IK_SOLUTION  # compiled now
    looks = late_after(4, monkeypatch)
    result = solver.solve_ik(replace(hard, deadline=time.monotonic() + 3600.0))
    assert len(looks) > 4
    assert result.status[0] == Status.TIMED_OUT
    assert 0 < result.iterations[0] < whole.iterations[0]


@pytest.mark.parametrize(("found", "usable"), [("0.7.2", False), ("0.8.0", True), ("1.0.0rc1", True)])
def test_a_jax_that_is_too_old_is_said(found: str, usable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from kinopt_ros.solvers.jax_lm import plugin

    monkeypatch.setattr(plugin, "version", lambda package: found)
    reason = plugin.JaxLmSolver.unavailable_reason()
    assert (reason is None) == usable
    assert usable or (found in str(reason) and "0.8" in str(reason))
