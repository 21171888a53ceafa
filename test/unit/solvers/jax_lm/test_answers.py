"""Tests of which lane answers, against a loop over lanes."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

LOWER, UPPER, PERIOD = (
    np.array([-7.0, -2.0, -np.inf]),
    np.array([7.0, 2.0, np.inf]),
    np.array([2 * np.pi, 0.0, 2 * np.pi]),
)
KEEP, B = 4, 50


def _turned(value: float, state: float, k: int) -> float:
    if PERIOD[k] == 0.0:
        return value
    other = value + PERIOD[k] * np.rint((state - value) / PERIOD[k])
    return float(other) if LOWER[k] <= other <= UPPER[k] and abs(other) < 1e6 else value


def test_the_nearest_exact_lane_answers_else_the_one_of_least_error() -> None:
    from kinopt_ros.solvers.jax_lm.answers import answers

    rng = np.random.default_rng(3)
    q = rng.uniform(-2.0, 2.0, (3, KEEP, B))
    error = rng.uniform(0.0, 2.0, (KEEP, B))
    error[1, :5] = np.nan
    exact = rng.random((KEEP, B)) < 0.3
    state = rng.uniform(-9.0, 9.0, (B, 3))
    with jax.enable_x64(True):
        found, errors = answers(  # type: ignore[call-arg]  # two tuples are unpacked
            tuple(jax.numpy.asarray(q[k].reshape(-1)) for k in range(3)),
            jax.numpy.asarray(error),
            jax.numpy.asarray(exact),
            jax.numpy.asarray(state),
            *(tuple(jax.numpy.asarray(v) for v in values) for values in (LOWER, UPPER)),
            tuple(PERIOD > 0.0),
        )
        found, errors = np.asarray(found), np.asarray(errors)
    for b in range(B):
        lanes = [np.array([_turned(q[k, i, b], state[b, k], k) for k in range(3)]) for i in range(KEEP)]
        if exact[:, b].any():
            best = min(np.flatnonzero(exact[:, b]), key=lambda i: np.sum((lanes[i] - state[b]) ** 2))
        else:
            best = int(np.nanargmin(error[:, b]))
        np.testing.assert_allclose(found[:, b], lanes[best], atol=1e-12)
        expected = error[best, b]
        assert errors[b] == (expected if np.isfinite(expected) else np.inf)
