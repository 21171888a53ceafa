"""Check for long work whether anybody still wants its result."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kinopt_ros.errors import KinoptError


class AbandonedError(KinoptError):
    """Work was given up, as nobody wants its result any more."""


_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("wanted", default=None)


@contextmanager
def as_long_as(wanted: Callable[[], bool]) -> Iterator[None]:
    """Let ``check_wanted`` ask a function whether the work is still wanted, within this context and on this thread."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def check_wanted() -> None:
    """Raise AbandonedError if the work is not wanted any more; long work calls this every few milliseconds if possible.

    Raises:
        AbandonedError: the work is not wanted any more.
    """
    wanted = _wanted.get()
    if wanted is not None and not wanted():
        raise AbandonedError("given up: nobody wants it any more")
