"""Tests of what a controller commands, written down a second time."""

import numpy as np

from kinopt_ros.bench.trajectory.interpolation import commands
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory


def random_trajectory(seed, points=6):
    rng = np.random.default_rng(seed)
    time = np.concatenate([[0.0], np.cumsum(np.round(rng.uniform(0.003, 0.3, points - 1), 9))])
    numbers = rng.normal(size=(3, points, 2))
    return JointTrajectory(("a", "b"), time, *numbers)


def test_it_agrees_with_the_library():
    for seed in range(5):
        trajectory = random_trajectory(seed)
        found = commands(trajectory, 1e-3)
        inside = ~np.isin(found.time, trajectory.time)
        for mine, theirs in zip(found.states, evaluate(trajectory, found.time[inside]), strict=False):
            scale = 1.0 + np.abs(theirs).max()
            np.testing.assert_allclose(mine[inside], theirs, atol=1e-8 * scale)


def test_points_are_met_from_both_sides():
    trajectory = random_trajectory(7)
    found = commands(trajectory, 1e-3)
    given = np.stack([trajectory.position, trajectory.velocity, trajectory.acceleration])
    for k, time in enumerate(trajectory.time):
        at = np.flatnonzero(np.abs(found.time - time) < 1e-9)
        sides = {int(found.segment[i]) for i in at}
        assert sides == {k - 1, k} & set(range(len(trajectory.time) - 1))
        for i in at:
            np.testing.assert_allclose(found.states[:3, i], given[:, k], rtol=1e-6, atol=1e-6)


def test_jerk_is_the_derivative_of_acceleration():
    trajectory = random_trajectory(3)
    found = commands(trajectory, 1e-5)
    same = (np.diff(found.segment) == 0) & (np.diff(found.time) > 5e-6)
    rate = np.diff(found.states[2], axis=0)[same] / np.diff(found.time)[same, None]
    middle = 0.5 * (found.states[3, 1:] + found.states[3, :-1])[same]
    scale = np.abs(found.states[3]).max()
    np.testing.assert_allclose(rate, middle, atol=1e-4 * scale)


def test_steps_are_as_asked():
    found = commands(random_trajectory(1), 1e-3)
    assert (np.diff(found.time) >= 0.0).all()
    assert np.diff(found.time).max() <= 1e-3 + 1e-12
    assert found.time[0] == 0.0
