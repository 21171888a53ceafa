"""Tests of what goes to the device, and what comes back."""

import numpy as np
import pytest

wp = pytest.importorskip("warp")

from kinopt_ros.robot.chain import build_chain
from kinopt_ros.solvers.hjcd.chain import LOWER, UPPER, kernel_chain
from kinopt_ros.solvers.hjcd.device_chain import device_chain
from kinopt_ros.solvers.hjcd.portion import capacity_for, outcome_of, put, put_lanes

from .arms import ROBOTS


@pytest.mark.parametrize(("count", "capacity"), [(1, 1), (2, 16), (16, 16), (17, 128), (1024, 1024)])
def test_capacities(count: int, capacity: int) -> None:
    assert capacity_for(count) == capacity


def test_limits_are_not_rounded_outwards() -> None:
    robot = ROBOTS["seven_revolute"]()
    packed = kernel_chain(robot, build_chain(robot, "l0", "l7"))
    chain = device_chain(packed, wp.get_device("cpu"))
    single = chain.single.ranges.numpy().astype(np.float64)
    assert (single[LOWER] >= packed.ranges[LOWER]).all()
    assert (single[UPPER] <= packed.ranges[UPPER]).all()
    np.testing.assert_allclose(single, packed.ranges, atol=1e-6)
    np.testing.assert_array_equal(chain.double.ranges.numpy(), packed.ranges)


def test_rows_and_lanes_are_where_kernels_look_for_them() -> None:
    buffer = wp.zeros((4, 3), dtype=wp.float32, device="cpu")
    put(buffer, np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(buffer.numpy()[:2], np.arange(6.0).reshape(2, 3))

    q = wp.zeros((2, 4 * 5), dtype=wp.float32, device="cpu")  # room for 4 targets of 5 lanes
    own = np.arange(12.0).reshape(3, 2, 2) + 1.0  # 3 targets, 2 starts, 2 variables
    put_lanes(q, own, 5)
    for target in range(3):
        for start in range(2):
            np.testing.assert_array_equal(q.numpy()[:, 5 * target + start], own[target, start])


def test_an_outcome_is_a_copy_by_target() -> None:
    q, errors = np.arange(12.0).reshape(2, 6), np.arange(12.0).reshape(2, 6) + 100.0
    outcome = outcome_of(q, errors, np.arange(6), 3)
    assert outcome.q.shape == (3, 2, 2)
    np.testing.assert_array_equal(outcome.q[1, 0], q[:, 2])
    np.testing.assert_array_equal(outcome.errors[2, 1], errors[:, 5])
    assert outcome.steps.tolist() == [1, 5, 9]
    q[:] = 0.0
    assert outcome.q.any()
