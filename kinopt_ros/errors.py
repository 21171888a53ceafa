"""Exceptions. One root; every message names what was given and what is allowed.

Bad input raises; a request that is well-formed but cannot be met does not: that is a status of the result.
Each exception carries the ``Status`` that a ROS answer reports for it.
"""

import difflib
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from kinopt_ros.status import Status


def quoted(given: Any, most: int = 100) -> str:
    """Return a name as messages show it: in quotes and cut if it is long. What is no name is shown as what it is."""
    if not isinstance(given, str):
        return shown(given, most)
    return repr(given) if len(given) <= most else f"{given[:most]!r}... ({len(given)} characters)"


def cut(text: str, most: int = 1000) -> str:
    """Cut a sentence that may hold what somebody sent, if it is too long."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def writable(text: str) -> str:
    """Return a text that UTF-8 can hold, as messages and logs need it; halves of surrogate pairs are written out."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def said_by(error: BaseException) -> str:
    """Return the kind and the sentence of an exception, of our own ones the sentence alone; cut, and never raising,
    whatever others have made of it."""
    try:
        said = writable(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException:  # of some plugins even this exits
        said = "it does not say why"
    return said if isinstance(error, KinoptError) else cut(f"{type(error).__name__}: {said}", _LONGEST)


def shown(given: object, most: int = 100) -> str:
    """Return any value as messages show it: cut if it is long, and never raising (Python writes no integers of
    thousands of digits)."""
    return cut(_SHORT.repr(given), most)


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 100

    def repr_int(self, x: int, level: int) -> str:
        del level
        return f"a whole number of {x.bit_length()} bits" if x.bit_length() > 400 else repr(x)

    def repr_str(self, x: str, level: int) -> str:
        del level
        return quoted(x)


_SHORT = _Short()


def shortened(names: Sequence[str], most: int = 8) -> str:
    """Return a list of names as messages show it, cut if it is long."""
    said = (name if len(name) <= _NAME else f"{name[:_NAME]}..." for name in names[:most])
    return ", ".join(said) + (f", ... ({len(names)} in all)" if len(names) > most else "")


_LONGEST = 4_000
"""Longest message, characters."""
_NAME = 200
"""Longest name in a list, characters."""


class KinoptError(Exception):
    """Root of all exceptions raised by kinopt_ros."""

    status: ClassVar[Status] = Status.FAILURE

    def __str__(self) -> str:
        """Return the sentence. It goes into answers and logs, so its length is bounded, and UTF-8 can hold it, whatever
        was given."""
        said = writable(super().__str__())
        return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}... ({len(said)} characters)"


class InvalidRequestError(KinoptError):
    """A request that contradicts itself or whose arrays do not fit together."""

    status = Status.INVALID_REQUEST


class InvalidGoalError(KinoptError):
    """A target pose, tolerance or goal that is not usable."""

    status = Status.INVALID_GOAL_CONSTRAINTS


class InvalidStateError(KinoptError):
    """Joint values that are not usable: wrong length, not finite, missing."""

    status = Status.INVALID_ROBOT_STATE


class StaleStateError(KinoptError):
    """The newest joint state is missing or too old."""

    status = Status.ROBOT_STATE_STALE


class StartStateError(KinoptError):
    """The robot's state is no valid start of a motion."""

    status = Status.START_STATE_INVALID


class FrameError(KinoptError):
    """A frame that cannot be resolved."""

    status = Status.FRAME_TRANSFORM_FAILURE


class RobotDescriptionError(KinoptError):
    """URDF, SRDF or limits that describe no usable robot."""

    status = Status.INVALID_ROBOT_DESCRIPTION


class InvalidShapeError(KinoptError):
    """A shape, or a scene made of shapes, that is not usable."""

    status = Status.INVALID_SCENE


class EnvironmentChangedError(KinoptError):
    """The robot or the scene that a request was made for has changed meanwhile."""

    status = Status.ENVIRONMENT_CHANGED


class NotReadyError(KinoptError):
    """Nothing can be answered yet."""

    status = Status.NOT_READY


class SolverUnavailableError(KinoptError):
    """A registered solver that cannot run here; the message says why."""

    status = Status.SOLVER_UNAVAILABLE


class MissingPackageError(KinoptError):
    """A request that needs an optional package which is not installed; the message names it."""

    status = Status.UNSUPPORTED_FEATURE


class UnsupportedFeatureError(KinoptError):
    """A request for something that the chosen solver cannot honour."""

    status = Status.UNSUPPORTED_FEATURE


class UnknownNameError(KinoptError):
    """A name that does not exist; the message lists the ones that do."""

    kind: ClassVar[str] = "name"

    def __init__(self, given: Any, known: Iterable[str]) -> None:
        self.given = given
        self.known = tuple(known)
        super().__init__(f"unknown {self.kind} {quoted(given)}{_suggestion(given, self.known)}")


class UnknownLinkError(UnknownNameError):
    """A link that the robot does not have."""

    kind = "link"
    status = Status.INVALID_LINK_NAME


class UnknownJointError(UnknownNameError):
    """A joint or variable that the robot does not have."""

    kind = "joint"
    status = Status.INVALID_JOINT_NAME


class UnknownGroupError(UnknownNameError):
    """A joint group that the robot does not have."""

    kind = "group"
    status = Status.INVALID_GROUP_NAME


class UnknownObjectError(UnknownNameError):
    """An object that the scene does not have."""

    kind = "object"
    status = Status.INVALID_OBJECT_NAME


class UnknownSolverError(UnknownNameError):
    """A solver that is not registered."""

    kind = "solver"
    status = Status.UNKNOWN_SOLVER


_COMPARED = 1_000_000
"""Most pairs of characters that are compared, which takes a tenth of a second."""


def _suggestion(given: Any, known: tuple[str, ...], most: int = 20) -> str:
    if not known:
        return "; there are none"
    if not isinstance(given, str):
        return f"; known: {shortened(known, most)}"
    # Comparing takes time that grows with the square of the length.
    short = [name for name in known[:_COMPARED] if len(name) <= 100]
    longest = max((len(name) for name in short), default=1)
    comparable = short[: _COMPARED // max(1, len(given) * longest)]
    close = difflib.get_close_matches(given, comparable, n=1) if len(given) <= 100 else []
    hint = f"; did you mean {close[0]!r}?" if close else ""
    names = shortened(known, most)
    return f"{hint} known: {names}" if hint else f"; known: {names}"
