"""Many solutions of a target."""

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.bench.hjcd import solution_sets
from kinopt_ros.bench.hjcd.arms import Arm, arm
from kinopt_ros.bench.hjcd.solution_sets import (
    beam_solutions,
    hjcd_solutions,
    least,
    reference_solutions,
)
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.se3 import pose_error


def check(here: Arm, found: list[np.ndarray]) -> None:
    """All are solutions inside the limits."""
    lower, upper = (
        here.robot.limits.lower[here.chain.variables],
        here.robot.limits.upper[here.chain.variables],
    )
    assert len(found) == len(here.T_base_target)
    for T, q in zip(here.T_base_target, found, strict=True):
        assert ((lower <= q) & (q <= upper)).all()
        for error in pose_error(np.repeat(T[None], len(q), axis=0), chain_pose(here.chain, q)):
            assert error.max() < 1e-6


def test_every_solution_of_the_reference_comes_from_a_start_of_its_own() -> None:
    """Requests that fail from their state must not all get what the same other start leads to."""
    here = arm("panda", 4, 0)
    first, second = reference_solutions(here, 20, 1), reference_solutions(here, 20, 2)
    check(here, first)
    for a, b in zip(first, second, strict=True):
        assert len(a) == len(b) == 20  # equal ones would count once
        assert len(np.unique(np.concatenate([a, b]), axis=0)) == 40


def test_the_reference_has_only_what_its_own_starts_lead_to_and_one_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With two starts for every solution some fail; the plugin's own starts give the same to all of these."""
    monkeypatch.setattr(solution_sets, "RESTARTS", 2)
    here = arm("panda", 4, 0)
    found = reference_solutions(here, 40, 1)
    check(here, found)
    assert min(map(len, found)) < 40


def test_errors_below_what_algorithms_end_at_are_equal() -> None:
    error = np.array([1e-12, 2e-7, 9e-9, 1e-5, 3e-8, 1e-16])
    assert least(error, 6).tolist() == [0, 2, 5, 4, 1]
    assert least(error, 2).tolist() == [0, 2]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["screened_lm", "hjcd_ik"])
def test_of_hjcd_each_target_has_starts_of_its_own(algorithm: str) -> None:
    pytest.importorskip("warp")
    here = arm("panda", 1, 0)
    twice = Arm(here.name, here.robot, here.chain, np.repeat(here.T_base_target, 2, axis=0))
    found = hjcd_solutions(twice, algorithm, 200, 10, "cpu")
    check(twice, found)
    assert all(0 < len(q) <= 10 for q in found)
    assert not np.isin(found[0][:, 0], found[1][:, 0]).any()


@pytest.mark.slow
def test_of_beams_there_is_one_solution_each() -> None:
    pytest.importorskip("jax")
    here = arm("panda", 2, 0)
    found = beam_solutions(here, 64, 4, "cpu")
    check(here, found)
    for q in found:
        assert 1 <= len(q) <= 4
        assert len(np.unique(q, axis=0)) == len(q)
