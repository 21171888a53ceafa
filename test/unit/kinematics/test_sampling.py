"""Samples inside the limits, the same for the same seed."""

import numpy as np
import pytest

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.sampling import (
    halton,
    halton_configurations,
    random_configurations,
    range_around,
)
from kinopt_ros.robot.urdf import robot_from_urdf

SAMPLERS = [random_configurations, halton_configurations]


@pytest.fixture
def robot(urdf):
    """Bounded, unbounded and absurdly wide variables."""
    return robot_from_urdf(
        urdf(
            "r revolute a b",
            "c continuous b d",
            'wide prismatic d e <limit lower="-1e16" upper="1e16" effort="1" velocity="1"/>',
            'half prismatic e f <limit lower="2" upper="1e16" effort="1" velocity="1"/>',
            'w planar f g <axis xyz="0 0 1"/>',
            "n floating g h",
        )
    )


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_inside_limits_and_spread(robot, sampler):
    q = sampler(robot, 2000, 7)
    assert q.shape == (2000, robot.nq)
    low = np.array([-1, -np.pi, -1, 2, -1, -1, -np.pi, -1, -1, -1])
    high = np.array([1, np.pi, 1, 4, 1, 1, np.pi, 1, 1, 1])
    assert (q[:, :10] >= low).all()
    assert (q[:, :10] <= high).all()
    np.testing.assert_allclose(q[:, :10].min(axis=0), low, atol=0.05)
    np.testing.assert_allclose(q[:, :10].max(axis=0), high, atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(q[:, 10:], axis=1), 1)
    np.testing.assert_allclose(q[:, 10:].mean(axis=0), 0, atol=0.1)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_seed(robot, sampler):
    np.testing.assert_array_equal(sampler(robot, 5, 1), sampler(robot, 5, 1))
    assert (sampler(robot, 5, 1) != sampler(robot, 5, 2)).any()
    assert sampler(robot, 0, 1).shape == (0, robot.nq)
    with pytest.raises(InvalidRequestError):
        sampler(robot, -1, 0)
    with pytest.raises(InvalidRequestError):
        sampler(robot, 1, -1)


def test_halton_is_the_known_sequence():
    np.testing.assert_allclose(
        halton(5, 2), [[1 / 2, 1 / 3], [1 / 4, 2 / 3], [3 / 4, 1 / 9], [1 / 8, 4 / 9], [5 / 8, 7 / 9]]
    )
    assert halton(3, 40).shape == (3, 40)


def test_random_numbers_are_the_same_everywhere(urdf):
    robot = robot_from_urdf(urdf("r revolute a b"))
    np.testing.assert_allclose(random_configurations(robot, 2, 0)[:, 0], [0.27392337, -0.46042657], atol=1e-8)


def test_wide_ranges_are_searched_around_what_is_known(robot):
    """A base that may go a million metres is looked for where the robot and its goals are."""
    known = np.zeros((2, robot.nq))
    known[:, 2] = 5e5, 5e5 + 2.0
    known[:, 3] = 40.0, 50.0
    known[0, 0] = -1.1  # a little outside
    known[1, 1] = 9.0
    low, high = range_around(robot, known)
    np.testing.assert_allclose(low[:4], [-1.1, -np.pi, 5e5 - 3.0, 35.0])
    np.testing.assert_allclose(high[:4], [1.0, 9.0 + np.pi, 5e5 + 5.0, 55.0])
    far = known.copy()
    far[1, 2] = -9e5
    low, high = range_around(robot, far)
    assert (low[2], high[2]) == (-9e5 - 20.0, 5e5 + 20.0)
    low, high = range_around(robot, far, 50.0)
    assert (low[2], high[2]) == (-9e5 - 50.0, 5e5 + 50.0)
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    low, high = range_around(robot, known[:1])
    assert (low[3], high[3]) == (37.0, 43.0)
    edge = known[:1].copy()
    edge[0, 3] = 2.5
    assert range_around(robot, edge)[0][3] == 2.0  # its limit


def test_ordinary_ranges_are_searched_all_over(urdf):
    robot = robot_from_urdf(
        urdf(
            'turns revolute a b <limit lower="-6.2832" upper="6.2832" effort="1" velocity="1"/>',
            'rail prismatic b c <limit lower="-1" upper="4" effort="1" velocity="1"/>',
        )
    )
    low, high = range_around(robot, np.array([[0.3, 0.2]]))
    np.testing.assert_array_equal(low, robot.limits.lower)
    np.testing.assert_array_equal(high, robot.limits.upper)
