"""Instants at which motions are looked at."""

import numpy as np
import pytest

from kinopt_ros.trajectory.instants import instants
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory


def motion(times: list[float], positions: list[float]) -> JointTrajectory:
    """A motion of one joint that rests at each of its points."""
    still = np.zeros((len(times), 1))
    return JointTrajectory(("j",), np.array(times), np.array(positions)[:, None], still, still)


def test_a_motion_is_looked_at_evenly_to_its_end() -> None:
    times = instants(motion([0.0, 1.005], [0.0, 1.0]), 0.01, 1000)
    assert (times[0], times[-1]) == (0.0, 1.005)
    assert len(times) == 102
    assert np.diff(times).max() <= 0.01


@pytest.mark.parametrize("duration", [1e3, 1e6, 1e9])
def test_one_of_any_length_is_looked_at_so_often_at_most(duration: float) -> None:
    """A year at 100 Hz took all memory."""
    whole = motion([0.0, duration], [0.0, 3.0])
    times = instants(whole, 0.01, 5000)
    assert (times[0], times[-1]) == (0.0, duration)
    assert len(times) <= 10_001
    assert np.abs(np.diff(evaluate(whole, times)[0][:, 0])).max() < 2e-3


def test_a_quick_second_of_an_hour_is_not_passed_over() -> None:
    whole = motion([0.0, 2000.0, 2000.5, 2001.0, 3600.0], [0.0, 0.0, 1.0, 0.0, 0.1])
    times = instants(whole, 0.01, 1000)
    assert len(times) < 2010
    q = evaluate(whole, times)[0][:, 0]
    assert q.max() > 0.99
    assert np.abs(np.diff(q)).max() < 0.05
