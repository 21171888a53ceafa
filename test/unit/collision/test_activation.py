"""The cost of being near (requirement P25)."""

import numpy as np
import pytest

from kinopt_ros.collision.activation import activation
from kinopt_ros.errors import InvalidRequestError


def test_values_of_the_requirement():
    cost, _ = activation(np.array([-0.02, 0.0, 0.025, 0.05]), 0.05)
    assert cost == pytest.approx([0.045, 0.025, 0.00625, 0.0], abs=1e-15)
    assert activation(1.0, 0.05)[0] == 0.0


def test_slopes_are_those_of_the_cost_and_meet():
    d = np.random.default_rng(0).uniform(-0.1, 0.2, 500)
    step = 1e-7
    differences = (activation(d + step, 0.05)[0] - activation(d - step, 0.05)[0]) / (2.0 * step)
    assert activation(d, 0.05)[1] == pytest.approx(differences, abs=1e-5)
    ends = activation(np.array([-1e-12, 0.0, 1e-12, 0.05 - 1e-12, 0.05, 0.05 + 1e-12]), 0.05)[1]
    assert ends == pytest.approx([-1.0, -1.0, -1.0, 0.0, 0.0, 0.0], abs=1e-9)


def test_no_margin_leaves_a_hinge():
    cost, slope = activation(np.array([[-0.3, 0.0], [0.3, np.inf]]), 0.0)
    assert cost.tolist() == [[0.3, 0.0], [0.0, 0.0]]
    assert slope.tolist() == [[-1.0, 0.0], [0.0, 0.0]]


def test_tiny_margins_and_endless_distances_are_finite():
    for margin in (5e-324, 1e-300, 1e300):
        cost, slope = activation(np.array([-1.0, 0.0, 1.0, np.inf]), margin)
        assert np.isfinite(cost).all()
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("margin", [-1e-9, np.nan, np.inf])
def test_other_margins_are_refused(margin):
    with pytest.raises(InvalidRequestError, match="margin of the activation is"):
        activation(0.0, margin)


def test_a_distance_that_is_no_number_is_refused():
    with pytest.raises(InvalidRequestError, match="a distance is nan"):
        activation(np.array([0.0, np.nan]), 0.1)
