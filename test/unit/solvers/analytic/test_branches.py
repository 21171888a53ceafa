"""The kernel: claims become solutions, or are dropped."""

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import three_parallel
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.refold import refold
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.kinematics.search_ranges import variable_rows
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.solvers.analytic.kernels.branches import solve_branches
from kinopt_ros.solvers.registry import create_solver

ROBOT = three_parallel()
CHAIN = chain_between(ROBOT, "l0", "l6")
Q = np.array([0.3, -1.1, 1.4, -0.6, 0.9, 0.2])
T = chain_pose(CHAIN, Q)
TOLERANCE = 1e-6


def solved(
    claims: Float64,
    starts: Float64 | None = None,
    lower: float = -6.28,
    upper: float = 6.28,
    reference: Float64 | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[Float64, Float64, int, Float64]:
    """Return solutions, their costs, steps and the attempt for claims (N, 6) in the chain's variables."""
    limits = variable_rows(CHAIN, np.full(6, lower), np.full(6, upper))
    numbers = np.concatenate([part.reshape(-1) for part in (*refold(CHAIN), limits, np.ones(6), np.zeros(6))])
    shape = np.array([[0, column, 0] for column in CHAIN.column], dtype=np.int64).reshape(-1)
    effort = np.array([1e-9, 1e-9, tolerance, tolerance])
    starts = np.full((1, 6), 0.01) if starts is None else starts
    reference = starts[0].copy() if reference is None else reference
    rows = len(starts) + len(claims)
    q, costs, attempt = np.empty((rows, 6)), np.empty(rows), np.empty(6)
    count, steps = solve_branches(
        T, np.ascontiguousarray(claims.T), starts, numbers, shape, effort, reference, np.ones(6), 0.01, q, costs,
        attempt,
    )  # fmt: skip
    return q[:count], costs[:count], steps, attempt


def test_an_exact_claim_is_taken_as_it_is() -> None:
    q, costs, steps, attempt = solved(Q[None])
    np.testing.assert_allclose(q, Q[None], atol=1e-12)
    assert costs[0] == pytest.approx(((Q - 0.01) ** 2).sum())
    assert steps == 0
    np.testing.assert_allclose(attempt, Q, atol=1e-12)


def test_claims_that_are_a_little_off_are_polished() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, _, steps, _ = solved((Q + 2e-3 * rng.normal(size=6))[None])
        distance, angle = pose_error(T, chain_pose(CHAIN, q[0]))
        assert len(q) == 1
        assert steps > 0
        assert max(distance, angle) <= 2e-9


def test_what_is_no_solution_is_dropped() -> None:
    wrong = np.array([Q + 0.5, np.full(6, np.nan), [*Q[:5], np.inf], -Q])
    q, _, steps, attempt = solved(wrong)
    assert len(q) == 0
    assert steps == 0
    assert np.isfinite(attempt).all()
    assert np.abs(attempt).max() <= 6.28
    assert solved(np.empty((0, 6)))[0].shape == (0, 6)


def test_equal_claims_are_one_solution_and_the_nearest_is_first() -> None:
    problem = ik_problem(ROBOT, T, base_link="l0", tip_link="l6", num_solutions=2)
    known = create_solver("cpu", ROBOT).solve_ik(problem)
    other = next(row for row in known.q[0] if np.abs(row - Q).max() > 0.1)
    claims = np.array([other, Q, Q + 1e-8, Q + 2 * np.pi, other - 1e-7, Q])
    q, costs, _, _ = solved(claims, reference=Q)
    np.testing.assert_allclose(q, [Q, other], atol=1e-4)
    assert costs[0] < costs[1]
    q, _, _, _ = solved(claims, reference=other.copy())
    np.testing.assert_allclose(q, [other, Q], atol=1e-4)


def test_claims_take_the_turn_nearest_to_the_reference_inside_the_limits() -> None:
    turn = 2.0 * np.pi * np.array([1, -1, 0, 0, -1, 1])
    q, _, _, _ = solved(Q[None], reference=Q + turn)
    np.testing.assert_allclose(
        q[0, [0, 2, 3]], Q[[0, 2, 3]] + turn[[0, 2, 3]] * [0, 1, 1], atol=1e-9
    )  # 6.58 > 6.28
    np.testing.assert_allclose(q[0, 1], Q[1], atol=1e-9)  # -7.4 is outside
    np.testing.assert_allclose(q[0, 4], Q[4] - 2 * np.pi, atol=1e-9)
    np.testing.assert_allclose(q[0, 5], Q[5], atol=1e-9)  # 6.48 is outside
    assert len(solved(Q[None], lower=-0.5, upper=0.5)[0]) == 0


def test_what_rounding_puts_beyond_a_limit_is_held_inside() -> None:
    upper = Q.max() - 1e-7
    q, _, _, _ = solved(Q[None], lower=-1.2, upper=upper)
    assert len(q) == 1
    assert q.max() <= upper
    upper = Q.max() - 1e-3  # more than the tolerance of the pose makes up for
    assert len(solved(Q[None], lower=-1.2, upper=upper)[0]) == 0


def test_the_state_is_a_claim_where_it_is_near_the_target() -> None:
    near, far = Q + 1e-3, Q + 0.5
    q, _, _, _ = solved(np.empty((0, 6)), starts=np.array([near]))
    np.testing.assert_allclose(q, Q[None], atol=1e-6)
    assert len(solved(np.empty((0, 6)), starts=np.array([far]))[0]) == 0
    q, _, _, _ = solved(np.empty((0, 6)), starts=np.array([far, near]))  # a seed
    assert len(q) == 1
