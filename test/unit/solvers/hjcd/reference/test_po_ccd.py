"""Algorithm 3."""

from dataclasses import replace

import numpy as np
import pytest

from kinopt_ros.solvers.hjcd.reference.po_ccd import CoarseSettings, po_ccd
from kinopt_ros.solvers.hjcd.reference.residual import norms, residual, score

from ..arms import ROBOTS, arm_named, random_q

SETTINGS = CoarseSettings()


@pytest.mark.parametrize("name", ROBOTS)
def test_limits_are_kept_and_starts_come_nearer(name: str) -> None:
    arm = arm_named(name)
    before, after = [], []
    for lane, (goal, start) in enumerate(zip(random_q(arm, 12, 0), random_q(arm, 12, 1), strict=True)):
        T = arm.poses(goal)
        q, iterations = po_ccd(arm, T, start, SETTINGS, 3, lane)
        assert ((arm.lower <= q) & (q <= arm.upper)).all()
        r = residual(T, arm.poses(q))
        distance, angle = norms(r)
        assert (distance < SETTINGS.position and angle < SETTINGS.orientation) or iterations == 20
        before.append(score(residual(T, arm.poses(start))))
        after.append(score(r))
    assert np.median(after) < 0.6 * np.median(before)


def test_an_iteration_gains_or_perturbs() -> None:
    """Without noise nothing but steps that gain is left, so one of both errors falls in every iteration."""
    arm = arm_named("seven_revolute")
    goal, start = random_q(arm, 2, 2)
    T = arm.poses(goal)
    quiet = replace(SETTINGS, noise=0.0, iterations=1)
    for _ in range(15):
        before = norms(residual(T, arm.poses(start)))
        moved, _ = po_ccd(arm, T, start, quiet)
        after = norms(residual(T, arm.poses(moved)))
        gains = [b - a for b, a in zip(before, after, strict=True)]
        assert np.array_equal(moved, start) or max(gains) > SETTINGS.gain
        assert (np.abs(moved - start) <= SETTINGS.turn + 1e-12).all()
        assert (moved != start).sum() <= 2
        start = moved


def test_where_nothing_gains_it_perturbs_by_the_given_noise() -> None:
    arm = arm_named("seven_revolute")
    goal = random_q(arm, 1, 3)[0]
    T = arm.poses(goal)
    nothing_is_enough = replace(SETTINGS, gain=np.inf, iterations=1, position=0.0)
    moved = np.array([po_ccd(arm, T, goal, nothing_is_enough, 1, lane)[0] - goal for lane in range(200)])
    np.testing.assert_allclose((moved / arm.span).std(), SETTINGS.noise, rtol=0.15)


def test_a_start_that_is_good_enough_stays() -> None:
    arm = arm_named("six_revolute")
    q = random_q(arm, 1, 4)[0]
    stayed, iterations = po_ccd(arm, arm.poses(q), q, SETTINGS)
    assert iterations == 0
    np.testing.assert_array_equal(stayed, q)


def test_same_seed_same_answer() -> None:
    arm = arm_named("six_revolute")
    goal, start = random_q(arm, 2, 5)
    T = arm.poses(goal)
    T[:3, 3] = 3.0, 0.0, 0.0  # out of reach: perturbations for sure
    first, again, other = (
        po_ccd(arm, T, start, replace(SETTINGS, iterations=40), seed)[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
