"""What tests of compilers hear (``support/compilations.py``)."""

import pytest

pytest.importorskip("jax")
pytest.importorskip("numba")


def test_compilations_are_heard_and_calls_are_not() -> None:
    import jax
    import numba
    from support.compilations import hear_compilations

    heard: list[str] = []
    hear_compilations(heard.append)

    def doubled(x: float) -> float:
        return 2.0 * x

    by_numba, by_jax = numba.njit(doubled), jax.jit(doubled)
    assert (by_numba(1.0), float(by_jax(1.0))) == (2.0, 2.0)
    assert any(what.startswith("numba: ") for what in heard), heard
    assert any(what.startswith("JAX: ") for what in heard), heard
    known = len(heard)
    assert (by_numba(3.0), float(by_jax(3.0))) == (6.0, 6.0)
    assert len(heard) == known
