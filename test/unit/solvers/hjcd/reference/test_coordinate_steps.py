"""Eqs. (8) to (11)."""

import numpy as np
import pytest

from kinopt_ros.solvers.hjcd.reference.arm import Arm
from kinopt_ros.solvers.hjcd.reference.coordinate_steps import annealed, orientation_steps, position_steps
from kinopt_ros.solvers.hjcd.reference.residual import norms, residual

from ..arms import ROBOTS, arm_named, random_poses, random_q


def one_motion_each(arm: Arm) -> list[int]:
    """Variables that drive one motion, for which the steps are exact."""
    return [j for j in range(len(arm.lower)) if (arm.chain.column == j).sum() == 1]


@pytest.mark.parametrize("name", ROBOTS)
def test_a_position_step_ends_nearest_to_the_target(name: str) -> None:
    """Nearer than any other angle of a fine grid."""
    arm = arm_named(name)
    targets = random_poses(5, 1)[:, :3, 3]
    for q, p in zip(random_q(arm, 5, 0), targets, strict=True):
        steps = position_steps(arm, q, p)
        for j in one_motion_each(arm):
            grid = np.tile(q, (721, 1))
            grid[:, j] += np.linspace(-np.pi, np.pi, 721)
            stepped = q.copy()
            stepped[j] += steps[j]
            distance = np.linalg.norm(p - arm.poses(stepped)[:3, 3])
            assert distance <= np.linalg.norm(p - arm.poses(grid)[:, :3, 3], axis=1).min() + 1e-12


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("part", [0.05, 0.5, 1.0])
def test_no_part_of_a_position_step_leads_away(name: str, part: float) -> None:
    arm = arm_named(name)
    for q, p in zip(random_q(arm, 5, 2), random_poses(5, 3)[:, :3, 3], strict=True):
        before = np.linalg.norm(p - arm.poses(q)[:3, 3])
        for j in one_motion_each(arm):
            stepped = q.copy()
            stepped[j] += part * position_steps(arm, q, p)[j]
            assert np.linalg.norm(p - arm.poses(arm.clamped(stepped))[:3, 3]) <= before + 1e-12


def test_the_derivative_is_zero_where_a_position_step_ends() -> None:
    arm = arm_named("six_revolute")
    q, p = random_q(arm, 1, 4)[0], random_poses(1, 5)[0, :3, 3]
    for j, step in enumerate(position_steps(arm, q, p)):
        around = np.tile(q, (2, 1))
        around[:, j] += step + np.array([-1e-6, 1e-6])
        squared = np.sum((p - arm.poses(around)[:, :3, 3]) ** 2, axis=1)
        assert abs(squared[1] - squared[0]) / 2e-6 < 1e-8


def test_a_target_on_the_axis_asks_for_nothing() -> None:
    arm = arm_named("six_revolute")  # its first axis is z through the origin
    steps = position_steps(arm, random_q(arm, 1, 6)[0], np.array([0.0, 0.0, 0.7]))
    assert steps[0] == 0.0
    assert np.isfinite(steps).all()


def test_a_mimic_pair_goes_downhill() -> None:
    """The direction is checked by finite differences of the squared distance."""
    arm = arm_named("with_mimic")
    (shared,) = [j for j in range(len(arm.lower)) if (arm.chain.column == j).sum() == 2]
    for q, p in zip(random_q(arm, 5, 7), random_poses(5, 8)[:, :3, 3], strict=True):
        around = np.tile(q, (2, 1))
        around[:, shared] += [-1e-6, 1e-6]
        squared = np.sum((p - arm.poses(around)[:, :3, 3]) ** 2, axis=1)
        assert position_steps(arm, q, p)[shared] * (squared[1] - squared[0]) < 0.0


@pytest.mark.parametrize("name", ROBOTS)
def test_an_orientation_step_is_the_whole_angle_in_the_direction_that_helps(name: str) -> None:
    """A small part of it lessens the angle; that is all that eq. (11) promises."""
    arm = arm_named(name)
    for q, T_target in zip(random_q(arm, 5, 9), random_poses(5, 10), strict=True):
        r = residual(T_target, arm.poses(q))
        phi = norms(r)[1]
        steps = orientation_steps(arm, q, r[3:], 0.8)
        for j in one_motion_each(arm):
            if not arm.turns[j]:
                assert steps[j] == 0.0
                continue
            assert abs(steps[j]) == pytest.approx(0.8 * phi)
            stepped = q.copy()
            stepped[j] += 1e-4 * steps[j]
            assert norms(residual(T_target, arm.poses(stepped)))[1] < phi


def test_an_axis_across_the_rotation_is_left_alone() -> None:
    arm = arm_named("six_revolute")  # its first axis is z
    steps = orientation_steps(arm, random_q(arm, 1, 11)[0], np.array([0.5, 0.0, 0.0]), 1.0)
    assert steps[0] == 0.0
    assert (np.abs(steps[1:]) > 0.0).any()


def test_the_factor_anneals() -> None:
    factors = [annealed(k, 20) for k in range(21)]
    assert (factors[0], factors[-1]) == (1.0, 0.75)
    assert (np.diff(factors) < 0.0).all()
