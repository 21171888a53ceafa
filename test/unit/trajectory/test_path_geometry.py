"""Curves of paths: scipy's splines, continuity by differences of pieces, distances by sampling."""

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from kinopt_ros.trajectory.path_geometry import (
    Curve,
    distance_from_edges,
    distinct_points,
    rounded_corners,
    smooth_curve,
    with_detour,
)

RNG = np.random.default_rng(0)
POINTS = np.cumsum(RNG.uniform(0.5, 1.0, (9, 4)) * RNG.choice([-1.0, 1.0], 4), axis=0)
CORNERS = np.cumsum(RNG.uniform(-1.0, 1.0, (6, 4)), axis=0)


def assert_continuous(curve: Curve, orders: int) -> None:
    """Values and derivatives of every piece at its end are those of the next one at its start."""
    widths = np.diff(curve.breaks)
    for k, width in enumerate(widths[:-1]):
        for order in range(orders + 1):
            before = np.array([np.polynomial.polynomial.polyder(row, order) for row in curve.pieces[k].T])
            end = [np.polynomial.polynomial.polyval(width, row) for row in before]
            after = [np.polynomial.polynomial.polyder(row, order)[0] for row in curve.pieces[k + 1].T]
            size = sum(np.abs(row) * width**i for i, row in enumerate(before.T)).max() + np.abs(after).max()
            rounding = 1e-12 * np.abs(curve.pieces[k : k + 2, 0]).max() / widths[k : k + 2].min() ** order
            np.testing.assert_allclose(end, after, atol=1e-9 * size + rounding, err_msg=f"{k} {order}")


@pytest.mark.parametrize("direction", [None, np.array([1.0, 0.2, -0.3, 0.1])])
def test_smooth_curves_are_natural_or_clamped_quintic_splines(direction: np.ndarray | None) -> None:
    curve = smooth_curve(POINTS, direction)
    zero = np.zeros(4)
    start = [(3, zero), (4, zero)]
    if direction is not None:
        start = [(1, curve.at(np.zeros(1))[0, 1]), (2, zero)]
        np.testing.assert_allclose(np.cross(start[0][1][:3], direction[:3]), 0.0, atol=1e-12)
    spline = make_interp_spline(curve.breaks, POINTS, 5, bc_type=(start, [(3, zero), (4, zero)]))
    s = np.linspace(0.0, 1.0, 200)
    found = curve.at(s)
    for order in range(4):
        np.testing.assert_allclose(found[:, order], spline(s, order), rtol=1e-8, atol=1e-8 * 10.0**order)
    assert_continuous(curve, 4)


def test_breaks_go_with_the_distance_of_points() -> None:
    steps = np.linalg.norm(np.diff(POINTS, axis=0), axis=1)
    np.testing.assert_allclose(smooth_curve(POINTS).breaks[1:], np.cumsum(steps) / steps.sum())


def test_a_dense_path_that_turns_back_keeps_a_smooth_parameter() -> None:
    u = np.linspace(0.0, 1.0, 64)[:, None]
    curve = smooth_curve(np.sin(4.0 * u))
    assert np.diff(curve.breaks)[8:-8].min() > 0.4 / 64.0
    np.testing.assert_allclose(curve.at(curve.breaks)[:, 0], np.sin(4.0 * u), atol=1e-12)


def test_two_points_are_joined_by_a_line() -> None:
    found = smooth_curve(POINTS[:2]).at(np.linspace(0.0, 1.0, 5))
    np.testing.assert_allclose(found[:, 0], np.linspace(POINTS[0], POINTS[1], 5), atol=1e-14)
    np.testing.assert_allclose(found[:, 2:], 0.0, atol=1e-9)


def test_distance_from_edges_is_that_of_dense_samples() -> None:
    curve = smooth_curve(CORNERS)
    s = np.linspace(0.0, 1.0, 4000)
    piece = np.clip(np.searchsorted(curve.breaks, s, side="right") - 1, 0, 4)
    q = curve.at(s)[:, 0]
    edge = np.diff(CORNERS, axis=0)[piece]
    along = np.clip(np.sum((q - CORNERS[piece]) * edge, axis=1) / np.sum(edge * edge, axis=1), 0.0, 1.0)
    expected = np.abs(q - CORNERS[piece] - along[:, None] * edge).max()
    assert 0.9 * expected <= distance_from_edges(curve, CORNERS) <= expected + 1e-9


@pytest.mark.parametrize("deviation", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("bent", [False, True])
def test_corners_are_rounded_smoothly_and_within_the_deviation(deviation: float, bent: bool) -> None:
    direction = (CORNERS[1] - CORNERS[0]) + 0.1 if bent else None
    curve = rounded_corners(CORNERS, deviation, direction)
    assert_continuous(curve, 3)
    s = curve.breaks[:-1, None] + np.linspace(0.0, 1.0, 101) * np.diff(curve.breaks)[:, None]
    found = curve.at(s.ravel())
    np.testing.assert_allclose(found[[0, -1], 0], CORNERS[[0, -1]], atol=1e-12)
    if direction is not None:
        first = found[0, 1] / np.linalg.norm(found[0, 1])
        np.testing.assert_allclose(first, direction / np.linalg.norm(direction), atol=1e-12)
        np.testing.assert_allclose(found[0, 2], 0.0, atol=1e-6 * np.abs(found[:, 2]).max())
    edge = np.diff(CORNERS, axis=0)
    along = np.einsum("mkn,kn->mk", found[:, :1] - CORNERS[:-1], edge) / np.einsum("kn,kn->k", edge, edge)
    nearest = CORNERS[:-1] + np.clip(along, 0.0, 1.0)[..., None] * edge
    distance = np.abs(found[:, :1] - nearest).max(axis=2).min(axis=1)
    assert distance.max() <= deviation * (1.0 + 1e-9)
    if deviation < 0.1:
        at_corners = np.abs(found[:, :1] - CORNERS[1:-1]).max(axis=2).min(axis=0)
        np.testing.assert_allclose(at_corners, deviation, rtol=0.1)


@pytest.mark.parametrize("corners", [False, True])
def test_a_detour_starts_as_told_and_joins_the_curve(corners: bool) -> None:
    curve = rounded_corners(CORNERS, 0.05) if corners else smooth_curve(POINTS)
    way = np.array([0.1, -0.05, 0.0, 0.02])
    detour = with_detour(curve, way)
    assert_continuous(detour, 2)
    found = detour.at(np.linspace(0.0, 1.0, 4000))
    first = found[0, 1] / np.linalg.norm(found[0, 1])
    np.testing.assert_allclose(first, way / np.linalg.norm(way), atol=1e-9)
    np.testing.assert_allclose(found[0, 2], 0.0, atol=1e-6 * np.abs(found[:, 2]).max())
    start, end = curve.at(np.array([0.0, 1.0]))[:, 0]
    np.testing.assert_allclose(found[[0, -1], 0], [start, end], atol=1e-9)
    dense = curve.at(np.linspace(0.0, 1.0, 4000))[:, 0]
    distance = np.linalg.norm(found[::20, None, 0] - dense, axis=2).min(axis=1)
    assert 0.5 * np.linalg.norm(way) < distance.max() <= np.linalg.norm(way) + 1e-3
    assert distance[-50:].max() < 3e-3


def test_repeated_and_crowded_points_are_one() -> None:
    path = np.array([[0.0], [0.0], [1e-7], [1.0], [1.0], [2.0], [2.0 - 1e-7], [2.0]])
    np.testing.assert_array_equal(distinct_points(path), [[0.0], [1.0], [2.0]])
    assert distinct_points(POINTS) is POINTS
    assert len(distinct_points(np.ones((4, 2)))) == 1
    # A way back to the start is not a point that stays.
    np.testing.assert_array_equal(distinct_points(np.array([[0.0], [1.0], [0.0]])), [[0.0], [1.0], [0.0]])
