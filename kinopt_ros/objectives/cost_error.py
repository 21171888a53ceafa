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
def blamed(cost: Cost, title: str) -> Iterator[None]:
    """Make a CostError of whatever a cost's code raises, exits included; what it refuses by a KinoptError stays."""
    try:
        yield
    except (KinoptError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise CostError(f"{where(cost, title)} failed: {said_by(error)}") from error
