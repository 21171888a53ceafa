"""Errors of costs' own code."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

from kinopt_ros.costs.base import Cost
from kinopt_ros.errors import InvalidRequestError, KinoptError, quoted, said_by


class CostError(InvalidRequestError):
    """A cost whose code failed, or whose residual is unusable; names the cost and its file."""


def where(cost: Cost, title: str) -> str:
    """Return the name of a cost and of its file, for sentences."""
    try:
        file = inspect.getfile(type(cost))
    except (OSError, TypeError):
        file = type(cost).__module__
    return f"cost {quoted(title)} ({file})"


@contextmanager
def blamed(cost: Cost, title: str, failed: str = "failed", refusals: bool = False) -> Iterator[None]:
    """Make a CostError of whatever a cost's code raises, exits included.

    Args:
        cost: the cost whose code is called.
        title: its title in the objective.
        failed: what it did, in words that follow its name.
        refusals: whether what it refuses by a KinoptError stays as it is.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if refusals and isinstance(error, KinoptError):
            raise
        raise CostError(f"{where(cost, title)} {failed}: {said_by(error)}") from error
