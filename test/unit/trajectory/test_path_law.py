"""Time laws: scipy's B-splines, and grids that change under a law that does not."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

from kinopt_ros.trajectory.path_geometry import smooth_curve
from kinopt_ros.trajectory.path_law import TimeLaw, first_law, graded, prolonged, refined, slowed, time_grid

RNG = np.random.default_rng(1)
WIDTHS = RNG.uniform(0.5, 2.0, 30)
U = np.linspace(0.0, 1.0, 40)[:, None]
CURVE = smooth_curve(np.concatenate([np.sin(2.0 * U), np.cos(3.0 * U), U * U], axis=1))
LIMITS = np.stack([np.full(3, 1.0), np.full(3, 4.0), np.full(3, 80.0)])


def law(speed: float = 0.0, cells: int = 60) -> TimeLaw:
    result = first_law(CURVE, LIMITS, speed, np.ones(cells))
    assert result.improve()
    return result


def spline(of: TimeLaw) -> BSpline:
    return BSpline(of.unit * of.grid.extended, of.control, 3)


def test_grids_are_those_of_cubic_b_splines() -> None:
    grid = time_grid(WIDTHS)
    control = RNG.normal(size=33)
    expected = BSpline(grid.extended, control, 3)
    windows = np.lib.stride_tricks.sliding_window_view(control, 3)
    for order in range(3):
        found = np.einsum("ij,ij->i", grid.at_knot[:, order], windows)
        np.testing.assert_allclose(found, expected(grid.knots, order), atol=1e-12)
    cells = np.lib.stride_tricks.sliding_window_view(control, 4)
    middle = grid.knots[:-1] + WIDTHS / 2.0
    np.testing.assert_allclose(
        np.einsum("ij,ij->i", grid.in_cell[:, 1], cells), expected(middle, 3), atol=1e-10
    )
    # The control value of the derivative bounds it, between its neighbours.
    slope = np.einsum("ij,ij->i", grid.in_cell[:, 0], cells)
    np.testing.assert_allclose(slope, expected.derivative().c[1 : len(slope) + 1], atol=1e-12)
    np.testing.assert_allclose(BSpline(grid.extended, grid.times, 3)(middle), middle, atol=1e-12)


@pytest.mark.parametrize("speed", [0.0, 0.2])
def test_laws_start_and_end_as_they_must(speed: float) -> None:
    state = law(speed).at_times(law(speed).unit * law(speed).grid.knots)
    np.testing.assert_allclose(state[0], [0.0, speed, 0.0], atol=1e-9)
    np.testing.assert_allclose(state[-1], [1.0, 0.0, 0.0], atol=1e-9)
    assert (np.diff(state[:, 0]) > 0.0).all()


def test_states_next_to_knots_are_those_of_the_spline() -> None:
    found = law()
    exact = found.unit * found.grid.knots
    times = exact + RNG.uniform(-1e-3, 1e-3, len(exact)) * found.unit
    times[0], times[-1] = exact[0], exact[-1]
    state = found.at_times(times)
    for order in range(3):
        expected = spline(found)(times, order)
        np.testing.assert_allclose(state[:, order], expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


def test_a_refined_law_is_the_same_function() -> None:
    coarse = law(0.2)
    split = RNG.random(60) < 0.4
    fine = refined(coarse, split)
    assert len(fine.share) == 60 + split.sum()
    times = np.linspace(0.0, coarse.duration, 300)
    assert fine.duration == pytest.approx(coarse.duration, rel=1e-12)
    np.testing.assert_allclose(spline(fine)(times), spline(coarse)(times), atol=1e-12)


def test_a_slowed_law_takes_longer_where_told_and_starts_alike() -> None:
    before = law(0.2)
    stretch = np.ones(60)
    stretch[30] = 1.2
    after = slowed(before, stretch)
    widths = np.diff(after.grid.knots) / np.diff(before.grid.knots)
    np.testing.assert_allclose(widths[30], 1.2, rtol=1e-9)
    np.testing.assert_array_equal(widths[:15], 1.0)
    np.testing.assert_array_equal(widths[45:], 1.0)
    np.testing.assert_array_equal(after.control, before.control)


def test_a_prolonged_law_takes_the_time_given() -> None:
    before = law(0.2)
    after = prolonged(before, 1.4 * before.duration)
    assert after.duration == pytest.approx(1.4 * before.duration, rel=1e-12)
    assert after.unit == pytest.approx(before.unit, rel=1e-12)
    assert np.diff(after.grid.knots)[0] == np.diff(before.grid.knots)[0]


def test_restrained_cells_get_less_of_the_limits() -> None:
    found = law()
    ratio = np.zeros((3, 60))
    ratio[1, 20] = 2.0
    found.restrain(ratio)
    np.testing.assert_allclose(found.share[20:22, 1], 0.5, rtol=1e-3)
    assert (np.delete(found.share[:, 1], [20, 21]) == 1.0).all()
    assert (found.share[:, [0, 2]] == 1.0).all()


@pytest.mark.parametrize("first", [1e-4, 1e-2, 0.05, 1.0])
def test_graded_widths_have_twelve_cells_where_it_matters(first: float) -> None:
    widths = graded(100, first)
    assert 100 <= len(widths) <= 200
    assert widths[-1] == 1.0
    assert (np.diff(widths) >= 0.0).all()
    assert widths[1:] / widths[:-1] == pytest.approx(1.0, abs=0.13)
    inside = int((np.cumsum(widths) <= first * widths.sum()).sum())
    assert inside >= 5


@pytest.mark.parametrize("speed", [0.0, 0.2])
def test_a_slow_start_of_the_search_and_a_fast_one_find_the_same(speed: float) -> None:
    reference = law(speed).duration
    for cells in (80, 120):
        assert law(speed, cells).duration == pytest.approx(reference, rel=0.02)
    again = law(speed)
    again.improve()
    assert again.duration == pytest.approx(reference, rel=1e-3)
