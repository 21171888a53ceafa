"""Kinds of costs by name, by the entry-point group ``kinopt_ros.costs``: those of this package, and anybody's.

A kind is loaded when it is used, as solvers are.
"""

from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract

from kinopt_ros.costs.base import Cost
from kinopt_ros.errors import InvalidRequestError, UnknownNameError, quoted, said_by, shown

GROUP = "kinopt_ros.costs"


class UnknownCostError(UnknownNameError):
    """A cost that nobody has registered."""

    kind = "cost"
    status = InvalidRequestError.status


def cost_names() -> tuple[str, ...]:
    """Return the names of all registered kinds, without loading any."""
    return tuple(sorted(entry.name for entry in entry_points(group=GROUP)))


def cost_kind(name: str) -> type[Cost]:
    """Return the class of a kind of costs.

    Raises:
        UnknownCostError: nobody has registered that name.
        InvalidRequestError: the package that did is broken; the message says how.
    """
    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found:
        raise UnknownCostError(name, cost_names())
    return _load(found[0])


def _load(entry: EntryPoint) -> type[Cost]:
    try:
        kind = entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InvalidRequestError(
            f"cost {quoted(entry.name)} ({entry.value}) cannot be loaded: {said_by(error)}"
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, Cost)) or isabstract(kind):
        raise InvalidRequestError(
            f"cost {quoted(entry.name)} ({entry.value}) is no class that completes kinopt_ros.costs.base.Cost"
        )
    if getattr(kind, "name", None) != entry.name:
        raise InvalidRequestError(
            f"cost {quoted(entry.name)} ({entry.value}) calls itself {shown(getattr(kind, 'name', None))}"
        )
    return kind
