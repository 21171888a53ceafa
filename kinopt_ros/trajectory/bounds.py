"""Upper bounds of polynomials in Bernstein form: rigorous, and tight where it matters."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64

_MOST_HALVINGS = 40


def upper_bounds(
    control: Annotated[Float64, "d+1 K n"],
    floor: Annotated[Float64, "K n"],
    relative_gap: float = 1e-10,
) -> tuple[Annotated[Float64, "K n"], Annotated[Float64, "K n"]]:
    """Compute an upper bound of each polynomial on its segment, and where in it (0-1) the largest known value is.

    The bound is never below the true maximum. Below ``floor`` it may be loose (the largest control point);
    above, it is at most ``relative_gap`` times the polynomial's magnitude too high: such polynomials are
    halved until the hull of their control points is that close to a value that they really take.
    The minimum is ``-upper_bounds(-control, -floor)``.
    """
    hull = control.max(axis=0)
    first, last = control[0], control[-1]
    ends = np.maximum(first, last)
    where = np.where(first >= last, 0.0, 1.0)
    unsure = (hull > floor) & (hull > ends)
    if not unsure.any():
        return hull, where
    index = np.flatnonzero(unsure)
    bound, place = _refine(control[:, unsure], floor[unsure], relative_gap)
    hull.flat[index] = bound
    where.flat[index] = place
    return hull, where


def halve(
    control: Annotated[Float64, "d+1 m"],
) -> tuple[Annotated[Float64, "d+1 m"], Annotated[Float64, "d+1 m"]]:
    """Compute control points of the first and of the second half (de Casteljau)."""
    left, right = np.empty_like(control), np.empty_like(control)
    row = control
    for i in range(len(control)):
        left[i], right[-1 - i] = row[0], row[-1]
        row = (row[1:] + row[:-1]) / 2.0
    return left, right


def _refine(
    control: Annotated[Float64, "d+1 m"], floor: Annotated[Float64, "m"], relative_gap: float
) -> tuple[Annotated[Float64, "m"], Annotated[Float64, "m"]]:
    """Refine bounds by branch and bound over pieces: ``owner`` says which polynomial a piece belongs to."""
    gap = relative_gap * np.abs(control).max(axis=0)
    best = np.maximum(control[0], control[-1])
    place = np.where(control[0] >= control[-1], 0.0, 1.0)
    settled = best.copy()
    owner, start, width = np.arange(len(best)), np.zeros(len(best)), 1.0
    for _ in range(_MOST_HALVINGS):
        left, right = halve(control)
        width /= 2.0
        middle, middle_at = right[0], start + width
        np.maximum.at(best, owner, middle)
        reached = middle >= best[owner]
        place[owner[reached]] = middle_at[reached]
        start, owner = np.concatenate([start, middle_at]), np.concatenate([owner, owner])
        control = np.concatenate([left, right], axis=1)
        hull = control.max(axis=0)
        live = hull > np.maximum(floor, best + gap)[owner]
        # A piece that is let go still counts, by its hull: the bound stays rigorous.
        np.maximum.at(settled, owner[~live], hull[~live])
        control, owner, start = control[:, live], owner[live], start[live]
        if not owner.size:
            break
    np.maximum.at(settled, owner, control.max(axis=0, initial=-np.inf))
    return settled, place
