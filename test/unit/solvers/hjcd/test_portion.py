"""Tests of what goes to the device, and what comes back."""

from typing import Any

import numpy as np
import pytest

wp = pytest.importorskip("warp")

from kinopt_ros.robot.chain import build_chain
from kinopt_ros.solvers.hjcd.chain import LOWER, PERIOD, UPPER, kernel_chain
from kinopt_ros.solvers.hjcd.device_chain import device_chain
from kinopt_ros.solvers.hjcd.kernels.transfer import choose, spread
from kinopt_ros.solvers.hjcd.portion import Answers, Given, Portion, capacity_for, most_targets, outcome_of
from kinopt_ros.solvers.turns import less_turns

from .arms import ROBOTS


@pytest.mark.parametrize(
    ("count", "capacity"), [(1, 1), (2, 16), (16, 16), (17, 128), (1024, 1024), (1025, 8192)]
)
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


@pytest.mark.parametrize(
    ("lanes", "targets"), [(16, 8192), (512, 8192), (513, 1024), (8192, 128), (10**7, 1)]
)
def test_no_more_lanes_at_once_than_there_is_memory_for(lanes: int, targets: int) -> None:
    assert most_targets(lanes) == targets


@pytest.mark.slow
@pytest.mark.parametrize("room", [3, 5])
def test_what_is_given_is_spread_over_targets_and_lanes(room: int) -> None:
    rng = np.random.default_rng(0)
    portion = Portion(
        rng.normal(size=(3, 12)),
        rng.normal(size=(3, 2)),
        rng.normal(size=(3, 4, 2)),
        0,
        0,
        False,
        (1.0, 1.0),
        1.0,
    )
    given = Given(5, 2, wp.get_device("cpu"))
    for _ in range(2):  # the second time over what is there
        given.put(portion, room)
    idle = wp.zeros(5, dtype=wp.int32, device="cpu")
    single, double = (wp.zeros((5, 12), dtype=kind, device="cpu") for kind in (wp.float32, wp.float64))
    q = wp.zeros((2, 5 * 6), dtype=wp.float32, device="cpu")
    wp.launch(spread, room, [given.rows(room, 4), 4, 6, idle, single, double, q], device="cpu")
    assert idle.numpy()[:room].tolist() == [0, 0, 0, 1, 1][:room]
    np.testing.assert_array_equal(double.numpy()[:3], portion.targets)
    np.testing.assert_array_equal(single.numpy()[:3], portion.targets.astype(np.float32))
    lanes = q.numpy().T.reshape(5, 6, 2)
    np.testing.assert_array_equal(lanes[:3, :4], portion.own.astype(np.float32))
    assert not lanes[:3, 4:].any()


@pytest.mark.slow
def test_the_lane_is_chosen_that_reached_and_is_nearest() -> None:
    """Against the same in numpy."""
    rng = np.random.default_rng(1)
    targets, lanes, n, accept = 400, 8, 3, (1e-3, 1e-2)
    ranges = np.zeros((7, n))
    ranges[LOWER], ranges[UPPER], ranges[PERIOD] = (
        [-9.0, -4.0, -1e9],
        [9.0, 4.0, 1e9],
        [2 * np.pi, 0.0, 2 * np.pi],
    )
    state = rng.uniform(-3.0, 3.0, (targets, n)) * [1.0, 1.0, 10.0]
    q = rng.uniform(ranges[LOWER].clip(-9), ranges[UPPER].clip(None, 9), (targets, lanes, n))
    errors = rng.exponential(3.0, (targets, lanes, 2)) * accept
    errors[rng.random((targets, lanes, 2)) < 0.05] = np.nan
    errors[0] = np.nan
    steps, before = rng.integers(0, 9, (targets, lanes)), rng.integers(0, 9, (targets, 2))

    turned = state[:, None] + less_turns(q - state[:, None], ranges[PERIOD])
    allowed = (ranges[LOWER] <= turned) & (turned <= ranges[UPPER]) & (ranges[PERIOD] > 0.0)
    turned = np.where(allowed, turned, q)
    parts = np.where(np.isnan(errors), np.inf, errors / accept).max(axis=2)
    away = np.where(parts <= 1.0, ((turned - state[:, None]) ** 2).sum(axis=2), np.inf)
    expected = np.where((parts <= 1.0).any(axis=1), away.argmin(axis=1), parts.argmin(axis=1))

    answers = Answers(targets, n, wp.get_device("cpu"))
    none = np.empty((targets, 0, n))
    portion = Portion(np.zeros((targets, 12)), state, none, 0, 0, False, accept, 1.0)
    given = Given(targets, n, wp.get_device("cpu"))
    given.put(portion, targets)

    def flat(values: np.ndarray, kind: Any) -> Any:
        return wp.array(np.ascontiguousarray(values.reshape(targets * lanes, -1).T), dtype=kind, device="cpu")

    counts = [wp.array(array.ravel(), dtype=wp.int32, device="cpu") for array in (steps, before)]
    wp.launch(
        choose,
        targets,
        [
            given.rows(targets, 0), wp.array(ranges, dtype=wp.float64, device="cpu"), flat(q, wp.float64),
            flat(errors, wp.float64), counts[0], lanes, counts[1], 2, *accept, answers.rows(targets),
        ],
        device="cpu",
    )  # fmt: skip
    outcome = answers.outcome(targets)
    each = np.arange(targets)
    np.testing.assert_allclose(outcome.q[:, 0], turned[each, expected], rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(outcome.errors[:, 0], errors[each, expected])
    np.testing.assert_array_equal(outcome.steps, steps.sum(axis=1) + before.sum(axis=1))
    reached = (parts <= 1.0).any(axis=1)
    assert 50 < reached.sum() < 380


def test_an_outcome_is_a_copy_by_target() -> None:
    q, errors = np.arange(12.0).reshape(2, 6), np.arange(12.0).reshape(2, 6) + 100.0
    outcome = outcome_of(q, errors, np.arange(6), 3)
    assert outcome.q.shape == (3, 2, 2)
    np.testing.assert_array_equal(outcome.q[1, 0], q[:, 2])
    np.testing.assert_array_equal(outcome.errors[2, 1], errors[:, 5])
    assert outcome.steps.tolist() == [1, 5, 9]
    q[:] = 0.0
    assert outcome.q.any()
