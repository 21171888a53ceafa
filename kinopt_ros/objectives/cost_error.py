"""Errors of costs' own code."""

import inspect

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


class blamed:
    """Make a CostError of whatever a cost's code raises, exits included.

    Args:
        cost: the cost whose code is called.
        title: its title in the objective.
        failed: what it did, in words that follow its name.
        refusals: whether what it refuses by a KinoptError stays as it is.
    """

    __slots__ = ("_cost", "_failed", "_refusals", "_title")

    def __init__(self, cost: Cost, title: str, failed: str = "failed", refusals: bool = False) -> None:
        self._cost, self._title, self._failed, self._refusals = cost, title, failed, refusals

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, KeyboardInterrupt):
            return
        if self._refusals and isinstance(error, KinoptError):
            return
        raise CostError(f"{where(self._cost, self._title)} {self._failed}: {said_by(error)}") from error
