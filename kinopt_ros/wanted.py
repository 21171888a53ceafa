"""Long work that nobody may want any more: it asks between two steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kinopt_ros.errors import KinoptError


class AbandonedError(KinoptError):
    """Work that was given up, as nobody wants its result any more."""


_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("wanted", default=None)


@contextmanager
def as_long_as(wanted: Callable[[], bool]) -> Iterator[None]:
    """Within this context and on this thread ``check_wanted`` asks a function whether the work is still wanted."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def check_wanted() -> None:
    """To be called by whatever takes long, every few milliseconds if possible.

    Raises:
        AbandonedError: the work is not wanted any more.
    """
    wanted = _wanted.get()
    if wanted is not None and not wanted():
        raise AbandonedError("given up: nobody wants it any more")
