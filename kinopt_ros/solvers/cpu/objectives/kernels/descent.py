"""From one start to a point that meets the conditions of optimality, compiled.

Minimised is f(q) = sum |w r|^2 / 2 subject to h(q) = 0 and g(q) <= 0 within position limits. Each step is the solution
of

    (H + rho C^T C + mu D) step = -(grad f + rho C^T (c + y)),

with c and C the constraints that count (all of h; of g those with g + y > 0) and their derivatives, and lambda = rho y
the multipliers: an augmented Lagrangian, or, as y moves with every step that is near, sequential quadratic programming
(J. Nocedal, S. Wright, "Numerical Optimization", 2006, chapters 17.4 and 18.3). Far from the constraints H is that of
Gauss and Newton; near to them H learns the curvature of the Lagrangian by damped BFGS updates. A step along them is led
back to where they bend. Directions that stand at a limit and would go beyond it are held (D. Bertsekas, "Projected
Newton methods", 1982). A step counts if it lowers f + rho |c + y|^2 / 2.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.compiler_options import FAST_ALLOCATING, FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.objectives.kernels.linear import (
    add_gram,
    factorize,
    learn,
    pulled,
    row_times,
    solve_downhill,
)
from kinopt_ros.solvers.cpu.objectives.kernels.manipulability import IndexRoom
from kinopt_ros.solvers.cpu.objectives.kernels.places import Places
from kinopt_ros.solvers.cpu.objectives.kernels.rows import RowRoom, evaluate
from kinopt_ros.solvers.cpu.objectives.kernels.terms import (
    gauss_newton,
    merit,
    shifted,
    square,
    value_of,
    violation_of,
)

STEPS = 80
"""Most steps, and length of the history."""
_STIFFNESS = 3e2
"""How much more curved rho |c|^2 is than f at the start. More keeps steps short where constraints bend; less lets them
be left."""
_NEAR = 1e-2
"""Violation below which multipliers move, and curvature is learnt."""
_EXACT = 1e-8
"""Violation that is as good as none."""
_STILL = 1e-6
"""Step, rad or m, that is the last one if constraints are met."""
_SLOW = 0.2
"""Share of a violation that is left by a step that is too little: rho grows."""
_STIFFER, _STIFFEST = 10.0, 1e4
"""By how much, and how much larger it becomes at most."""
_LONGEST = 0.3
"""Longest step, rad or m, near the constraints: farther off they are others."""
_SETTLED = 1e-9
"""Change of the sum, as its share, below which there is nothing more to gain if constraints are met."""
_MET = 1e-7
"""Violation that is small enough for that."""
_FAR = 1e3
"""How much larger rho is before violations have once been below ``_NEAR``."""
_HOPELESS = 1e-5
"""Gain of a step, as a share of the sum, below which constraints that are far will not be met from here."""
_ROUNDING = 1e-11
"""Share of the sum that rounding may hide."""
_LARGEST_DAMPING = 1e8
_AT_LIMIT = 1e-12
"""Distance from a limit, rad or m, that counts as standing there."""


class Point(NamedTuple):
    """A configuration, its residuals and their derivatives."""

    q: Annotated[Float64, "nq"]
    r: Annotated[Float64, "R"]
    J: Annotated[Float64, "R d"]


class Room(NamedTuple):
    """Memory of a descent."""

    rows: RowRoom
    here: Point
    there: Point
    y: Annotated[Float64, "R"]
    """Multipliers by rho."""
    next_y: Annotated[Float64, "R"]
    force: Annotated[Float64, "R"]
    scale: Annotated[Float64, "R"]
    H: Annotated[Float64, "d d"]
    factor: Annotated[Float64, "d d"]
    gradient: Annotated[Float64, "d"]
    step: Annotated[Float64, "d"]
    other: Annotated[Float64, "d"]
    held: Annotated[Bool, "d"]
    history: Annotated[Float64, "H"]


@njit(**FAST_ALLOCATING)
def new_room(model, nq, d):
    """Return memory for a model, nq variables and d directions that move."""
    tree = model.tree
    N, F, R, nv = (
        tree.parent.shape[0],
        tree.frame_motion.shape[0],
        model.costs.holds.shape[0],
        tree.column.shape[0],
    )
    M = 3 * N
    places = Places(
        np.empty((N, 12)), np.empty((N, 3)), np.empty((F, 12)), np.empty((F, 6, d)), np.empty((N, 4))
    )
    index = IndexRoom(
        np.empty((M, 6)), np.empty(M, np.int64), np.empty(M, np.int64), np.empty((6, nv)), np.empty((6, nv)),
        np.empty((6, 6)),
    )  # fmt: skip
    rows = RowRoom(places, index, np.empty((1, 12)), np.empty((2, 12)), np.empty(21), np.empty((3, d)))
    return Room(
        rows, Point(np.empty(nq), np.empty(R), np.empty((R, d))), Point(np.empty(nq), np.empty(R), np.empty((R, d))),
        np.empty(R), np.empty(R), np.empty(R), np.empty(R), np.empty((d, d)), np.empty((d, d)), np.empty(d),
        np.empty(d), np.empty(d), np.empty(d, np.bool_), np.empty(STEPS),
    )  # fmt: skip


@njit(**FAST_INNER)
def moved(moving, q, step, after):
    """Write a configuration after a step (d,), within the limits."""
    for k in range(q.shape[0]):
        after[k] = q[k]
    for k in range(moving.scalar.shape[0]):
        v = moving.variable[k]
        after[v] = min(max(q[v] + step[moving.scalar[k]], moving.lower[k]), moving.upper[k])
    for k in range(moving.quaternion.shape[0]):
        v = moving.quaternion[k, 0]
        x = step[moving.quaternion[k, 1]] if moving.quaternion[k, 1] >= 0 else 0.0
        y = step[moving.quaternion[k, 2]] if moving.quaternion[k, 2] >= 0 else 0.0
        z = step[moving.quaternion[k, 3]] if moving.quaternion[k, 3] >= 0 else 0.0
        angle = np.sqrt(x * x + y * y + z * z)
        half = 0.5 * angle
        f = 0.5 - angle * angle / 48.0 if angle < 1e-4 else np.sin(half) / angle
        c, x, y, z = np.cos(half), f * x, f * y, f * z
        w, a, b, e = q[v], q[v + 1], q[v + 2], q[v + 3]
        nw, na, nb, ne = (
            w * c - a * x - b * y - e * z,
            w * x + a * c + b * z - e * y,
            w * y - a * z + b * c + e * x,
            w * z + a * y - b * x + e * c,
        )
        f = 1.0 / np.sqrt(nw * nw + na * na + nb * nb + ne * ne)
        after[v], after[v + 1], after[v + 2], after[v + 3] = f * nw, f * na, f * nb, f * ne


@njit(**FAST_INNER)
def _stiffness(costs, weights, room):
    """Return rho by the curvatures at a start, of which H is that of f."""
    d, J = room.H.shape[0], room.here.J
    f = c = 0.0
    for a in range(d):
        f += room.H[a, a]
    for i in range(J.shape[0]):
        if costs.holds[i] and weights[i] != 0.0:
            for a in range(d):
                c += J[i, a] * J[i, a]
    return min(max(_STIFFNESS * (f / d) / (c / d + 1e-9), 1e-9), 1e18)


@njit(**FAST_INNER)
def _hold(moving, q, gradient, held):
    """Write which directions stand at a limit, and would go beyond it against the gradient."""
    for a in range(held.shape[0]):
        held[a] = False
    for k in range(moving.scalar.shape[0]):
        a, value = moving.scalar[k], q[moving.variable[k]]
        if (value <= moving.lower[k] + _AT_LIMIT and gradient[a] > 0.0) or (
            value >= moving.upper[k] - _AT_LIMIT and gradient[a] < 0.0
        ):
            held[a] = True


@njit(**FAST_INNER)
def _factorized(room, rho, mu, near):
    """Factorize H + rho C^T C + mu D, of which ``room.scale`` says which rows of C count; return whether it can be.

    D is the diagonal of all of it far from the constraints, of H near to them, so that steps along them are not damped
    by how stiff they are across.
    """
    A, H, held = room.factor, room.H, room.held
    d = H.shape[0]
    largest = 0.0
    for a in range(d):
        for b in range(a + 1):
            A[a, b] = 0.0
    add_gram(room.here.J, room.scale, A)
    for a in range(d):
        for b in range(a + 1):
            A[a, b] = H[a, b] + rho * A[a, b]
        largest = max(largest, H[a, a] if near else A[a, a])
    for a in range(d):
        own = H[a, a] + 1e-3 * largest if near else A[a, a] + 1e-6 * largest
        if held[a]:
            for b in range(a):
                A[a, b] = 0.0
            A[a, a] = 1.0
        else:
            A[a, a] += mu * own + 1e-12
            for b in range(a):
                if held[b]:
                    A[a, b] = 0.0
    return factorize(A)


@njit(**FAST_INNER)
def _gradient(costs, weights, room, y, rho, at_constraints, out):
    """Write the gradient of f + rho |c + y|^2 / 2, or of f + rho y^T c unless ``at_constraints``."""
    r = room.here.r
    for i in range(r.shape[0]):
        room.force[i] = square(costs, weights, r, i) * r[i]
        if at_constraints:
            room.force[i] += rho * room.scale[i] * shifted(costs, weights, r[i] + y[i], i)
        else:
            room.force[i] += rho * y[i]
    pulled(room.here.J, room.force, out)


@njit(**FAST_INNER)
def _lead_along(model, weights, numbers, room, rho):
    """Move the multipliers as they would if constraints were linear, and the step with them; then lead it back to where
    they bend, else steps along them could only be short."""
    costs, here = model.costs, room.here
    for i in range(here.r.shape[0]):
        if costs.holds[i]:
            value = here.r[i] + row_times(here.J, i, room.step)
            room.next_y[i] = shifted(costs, weights, value + room.y[i], i)
    _gradient(costs, weights, room, room.next_y, rho, True, room.gradient)
    solve_downhill(room.factor, room.held, room.gradient, room.step)
    longest = 0.0
    for a in range(room.step.shape[0]):
        longest = max(longest, abs(room.step[a]))
    if longest > _LONGEST:
        for a in range(room.step.shape[0]):
            room.step[a] *= _LONGEST / longest
    moved(model.moving, here.q, room.step, room.there.q)
    evaluate(model, numbers, room.there.q, room.rows, room.there.r, room.there.J[:0])
    for i in range(here.r.shape[0]):
        room.force[i] = 0.0
        if room.scale[i] > 0.0:
            bent = room.there.r[i] - here.r[i] - row_times(here.J, i, room.step)
            room.force[i] = rho * bent
    pulled(here.J, room.force, room.gradient)
    solve_downhill(room.factor, room.held, room.gradient, room.other)
    for a in range(room.step.shape[0]):
        room.step[a] += room.other[a]


@njit(**FAST_INNER)
def _take_over(room, there):
    """Make a point the one that is stood at."""
    for k in range(there.q.shape[0]):
        room.here.q[k] = there.q[k]
    for i in range(there.r.shape[0]):
        room.here.r[i] = there.r[i]
        for a in range(there.J.shape[1]):
            room.here.J[i, a] = there.J[i, a]


@njit(**FAST_INNER)
def stand(model, numbers, q, room):
    """Make a configuration (nq,), brought within the limits, the one that is stood at, without multipliers."""
    for a in range(room.step.shape[0]):
        room.step[a] = 0.0
    for i in range(room.y.shape[0]):
        room.y[i] = room.next_y[i] = 0.0
    moved(model.moving, q, room.step, room.here.q)
    evaluate(model, numbers, room.here.q, room.rows, room.here.r, room.here.J)


@njit(**FAST_INNER)
def descend(model, weights, numbers, start, room):
    """Improve a start (nq,); where it ends is ``room.here``, with ``room.y`` and ``room.history``.

    Returns:
        Steps made, rho, and the violation at the start.
    """
    costs, moving, here, there, y = model.costs, model.moving, room.here, room.there, room.y
    d, R = room.step.shape[0], y.shape[0]
    stand(model, numbers, start, room)
    gauss_newton(costs, weights, here, room.scale, room.H)
    first_rho = _stiffness(costs, weights, room)
    constrained = False
    for i in range(R):
        constrained = constrained or (costs.holds[i] and weights[i] != 0.0)
    for k in range(STEPS):
        room.history[k] = np.nan
    near, mu, level = False, 0.1, violation_of(costs, weights, here.r)
    at_start = level
    near_rho = first_rho
    for iteration in range(STEPS):
        close = level < _NEAR
        near = near or close
        rho = near_rho if near else _FAR * first_rho
        for i in range(R):
            pull = shifted(costs, weights, here.r[i] + y[i], i)
            counts = costs.holds[i] and weights[i] != 0.0 and (pull > 0.0 or not costs.one_sided[i])
            room.scale[i] = 1.0 if counts else 0.0
            room.next_y[i] = y[i]
        _gradient(costs, weights, room, y, rho, True, room.gradient)
        _hold(moving, here.q, room.gradient, room.held)
        if not _factorized(room, rho, mu, close):
            mu *= 8.0
            if not mu < _LARGEST_DAMPING:
                return iteration, near_rho, at_start
            continue
        solve_downhill(room.factor, room.held, room.gradient, room.step)
        if close and constrained:
            _lead_along(model, weights, numbers, room, rho)
        moved(moving, here.q, room.step, there.q)
        evaluate(model, numbers, there.q, room.rows, there.r, there.J)
        before = merit(costs, weights, here.r, room.next_y, rho)
        after = merit(costs, weights, there.r, room.next_y, rho)
        found = violation_of(costs, weights, there.r)
        # Near the end the sum cannot tell steps apart any more, where violations still can.
        better = after < before or (after <= before + _ROUNDING * abs(before) and found < 0.5 * level)
        length = 0.0
        for a in range(d):
            length = max(length, abs(room.step[a]))
        if not better:
            room.history[iteration] = 2.0 * value_of(costs, weights, here.r)
            if length < 0.1 * _STILL or mu >= _LARGEST_DAMPING or not length < np.inf:
                return iteration + 1, near_rho, at_start
            mu = min(8.0 * mu, _LARGEST_DAMPING)
            continue
        for i in range(R):
            y[i] = room.next_y[i]
        if near:
            _gradient(costs, weights, room, y, rho, False, room.other)
        _take_over(room, there)
        if near:
            _gradient(costs, weights, room, y, rho, False, room.gradient)
            for a in range(d):
                room.gradient[a] -= room.other[a]
            learn(room.H, room.step, room.gradient, room.other)
        else:
            gauss_newton(costs, weights, here, room.scale, room.H)
        if (
            close
            and constrained
            and found > _SLOW * level
            and found > _EXACT
            and near_rho < _STIFFEST * first_rho
        ):
            near_rho *= _STIFFER
            for i in range(R):
                y[i] /= _STIFFER
        level = found
        room.history[iteration] = 2.0 * value_of(costs, weights, here.r)
        mu = max(0.2 * mu, 1e-12)
        change = abs(after - before)
        if (level < _EXACT and length < _STILL) or (level < _MET and change <= _SETTLED * before):
            return iteration + 1, near_rho, at_start
        if not close and before - after < _HOPELESS * before:
            return iteration + 1, near_rho, at_start
    return STEPS, near_rho, at_start
