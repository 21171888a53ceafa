"""What numba and JAX compile in a process: code that is loaded from disk does not count."""

from collections.abc import Callable
from typing import Any

import jax
from numba.core import event as numba_event

_BACKEND = "/jax/core/compile/backend_compile_duration"


class _Heard(numba_event.Listener):  # type: ignore[misc]
    def __init__(self, said: Callable[[str], None]) -> None:
        self._said = said

    def on_start(self, event: Any) -> None:
        self._said(f"numba: {event.data['dispatcher'].py_func.__qualname__}")

    def on_end(self, event: Any) -> None:
        del event


def hear_compilations(said: Callable[[str], None]) -> None:
    """Call a function with what is compiled, each time, until the process ends."""
    numba_event.register("numba:compile", _Heard(said))

    def heard(name: str, seconds: float, **about: Any) -> None:
        del seconds
        if name == _BACKEND:
            said(f"JAX: {about}")

    jax.monitoring.register_event_duration_secs_listener(heard)
