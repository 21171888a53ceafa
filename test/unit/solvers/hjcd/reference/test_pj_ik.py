"""Algorithm 4."""

from dataclasses import replace

import numpy as np
import pytest

from kinopt_ros.solvers.hjcd.reference.pj_ik import (
    RefineSettings,
    coordinate_step,
    damped_step,
    dogleg_step,
    linearized,
    pj_ik,
)
from kinopt_ros.solvers.hjcd.reference.residual import norms, residual, score

from ..arms import ROBOTS, arm_named, between, planar_robot, random_q

SETTINGS = RefineSettings()


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("damping", [1e-6, 5e-3, 1.0])
def test_the_damped_step_solves_its_least_squares(name: str, damping: float) -> None:
    """Oracle: lstsq of the stacked system [W J; sqrt(lambda D)] step = [W r; 0]."""
    arm = arm_named(name)
    goal, q = random_q(arm, 2, 0)
    r = residual(arm.poses(goal), arm.poses(q))
    linear = linearized(arm, q, r)
    stacked = np.vstack([linear.A, np.diag(np.sqrt(damping * linear.D))])
    wanted = np.linalg.lstsq(stacked, np.concatenate([linear.e, np.zeros(len(q))]), rcond=None)[0]
    np.testing.assert_allclose(damped_step(linear, damping), wanted, atol=1e-9)


def test_rows_are_weighted_alike() -> None:
    arm = arm_named("seven_revolute")
    q = random_q(arm, 1, 1)[0]
    linear = linearized(arm, q, np.ones(6))
    np.testing.assert_allclose(np.linalg.norm(linear.A, axis=1), 1.0)
    np.testing.assert_allclose(linear.D, np.diag(arm.jacobian(q).T @ arm.jacobian(q)), atol=2e-6)


def test_the_gradient_is_that_of_the_cost() -> None:
    arm = arm_named("continuous_and_prismatic")
    goal, q = random_q(arm, 2, 2)
    q = goal + 1e-3 * (q - goal)  # J is the derivative of the rotation vector near the target only
    T = arm.poses(goal)
    linear = linearized(arm, q, residual(T, arm.poses(q)))
    slopes = [
        (
            linear.cost(residual(T, arm.poses(q - 1e-6 * e)))
            - linear.cost(residual(T, arm.poses(q + 1e-6 * e)))
        )
        / 2e-6
        for e in np.eye(len(q))
    ]
    np.testing.assert_allclose(slopes, linear.gradient, rtol=5e-3, atol=1e-6)


@pytest.mark.parametrize("radius", [1e-3, 0.05, 0.3, 1e3])
def test_the_dogleg_stays_within_its_radius_and_helps(radius: float) -> None:
    arm = arm_named("six_revolute")
    goal, q = random_q(arm, 2, 3)
    linear = linearized(arm, q, residual(arm.poses(goal), arm.poses(q)))
    step = dogleg_step(linear, radius)
    assert np.linalg.norm(step) <= radius * (1.0 + 1e-12)
    assert linear.expected_gain(step) > 0.0


def test_a_wide_dogleg_is_gauss_newton_and_a_narrow_one_steepest_descent() -> None:
    arm = arm_named("six_revolute")
    goal, q = random_q(arm, 2, 4)
    linear = linearized(arm, q, residual(arm.poses(goal), arm.poses(q)))
    newton = np.linalg.lstsq(linear.A, linear.e, rcond=None)[0]
    np.testing.assert_allclose(dogleg_step(linear, 1e6), newton, rtol=1e-3)
    narrow = dogleg_step(linear, 1e-4)
    cosine = narrow @ linear.gradient / np.linalg.norm(narrow) / np.linalg.norm(linear.gradient)
    assert cosine == pytest.approx(1.0)


def test_the_single_step_moves_the_steepest_variable() -> None:
    arm = arm_named("with_mimic")
    goal, q = random_q(arm, 2, 5)
    linear = linearized(arm, q, residual(arm.poses(goal), arm.poses(q)))
    step = coordinate_step(linear, 0.1)
    (moved,) = np.flatnonzero(step)
    assert moved == np.argmax(np.abs(linear.gradient))
    assert 0.0 < abs(step[moved]) <= 0.1
    assert linear.expected_gain(step) > 0.0


@pytest.mark.parametrize("name", ROBOTS)
def test_near_candidates_end_exactly_on_the_target(name: str) -> None:
    arm = arm_named(name)
    for goal in random_q(arm, 6, 6):
        start = arm.clamped(goal + 0.05)
        q, iterations = pj_ik(arm, arm.poses(goal), start, SETTINGS)
        assert max(norms(residual(arm.poses(goal), arm.poses(q)))) < 1e-8
        assert iterations < 40


def test_it_never_gets_worse_and_never_leaves_the_limits() -> None:
    arm = arm_named("seven_revolute")
    goal, start = random_q(arm, 2, 7)
    T = arm.poses(goal)
    T[:3, 3] *= 1.8  # out of reach
    scores = []
    for iterations in range(0, 60, 6):
        q, made = pj_ik(arm, T, start, replace(SETTINGS, iterations=iterations), 1)
        assert made == iterations
        assert ((arm.lower <= q) & (q <= arm.upper)).all()
        scores.append(float(score(residual(T, arm.poses(q)))))
    assert (np.diff(scores) <= 0.0).all()
    assert scores[-1] < scores[0]


def test_fewer_joints_than_rows() -> None:
    arm = between(planar_robot(), "l0", "l4")
    goal = np.array([0.4, -0.9, 1.3])
    q, _ = pj_ik(arm, arm.poses(goal), goal + 0.1, SETTINGS)
    assert max(norms(residual(arm.poses(goal), arm.poses(q)))) < 1e-8


def test_a_perturbation_leads_out_of_where_no_step_helps() -> None:
    """A straight arm whose target is nearer on the same line: the gradient is zero. Either side is a solution."""
    arm = between(planar_robot(), "l0", "l4")
    T = np.eye(4)
    T[0, 3] = 0.7
    assert np.abs(linearized(arm, np.zeros(3), residual(T, arm.poses(np.zeros(3)))).gradient).max() < 1e-12
    found = [pj_ik(arm, T, np.zeros(3), SETTINGS, seed)[0] for seed in (0, *range(8))]
    for q in found:
        assert max(norms(residual(T, arm.poses(q)))) < 1e-8
    np.testing.assert_array_equal(found[0], found[1])  # the same seed
    assert len({bool(q[0] > 0.0) for q in found}) == 2
