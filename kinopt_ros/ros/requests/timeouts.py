"""Time that a request may take: what it asks for, as far as parameters allow it."""

from kinopt_ros.errors import InvalidRequestError, KinoptError
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import nonnegative
from kinopt_ros.status import Status


class DeadlinePassedError(KinoptError):
    """The time of a request was up before work on it could begin."""

    status = Status.TIMED_OUT


def timeout_of(context: Context, given: float, kind: str) -> float:
    """Return the seconds that a request may take.

    Args:
        context: of the node.
        given: what the request says, s; 0: the parameter's value.
        kind: what the parameters ``<kind>.timeout`` and ``<kind>.max_timeout`` belong to.

    Raises:
        InvalidRequestError: it asks for more than is allowed.
    """
    most = context.parameter(f"{kind}.max_timeout")
    default = min(context.parameter(f"{kind}.timeout"), most)
    timeout = nonnegative(given, "timeout", InvalidRequestError, default)
    if timeout > most:
        raise InvalidRequestError(
            f"timeout is {given:g} s; allowed is up to {most:g} s (parameter {kind}.max_timeout)"
        )
    return timeout


def check_in_time(waited: float, timeout: float) -> None:
    """Raise DeadlinePassedError if a request waited longer than it may take (s)."""
    if waited >= timeout:
        raise DeadlinePassedError(
            f"the request waited {waited:.3f} s for its turn; its timeout is {timeout:g} s"
        )
