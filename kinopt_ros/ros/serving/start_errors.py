"""Error messages for what rclpy raises about the arguments that a process was started with."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from kinopt_ros.errors import InvalidRequestError, cut

_HINTS = {
    "log level": "allowed are debug, info, warn, error and fatal",
    "remap rule": "a rule is FROM:=TO, both names of letters, digits, _ and /, no part of which begins with a digit",
    "parameter override": "a parameter is given as -p NAME:=VALUE, the value as YAML",
    "params file": "a file has the node's name or /**, below it ros__parameters, below that names and values",
    "Enclave": "an enclave is a name such as /left/kinopt",
}


@contextmanager
def naming_arguments() -> Iterator[None]:
    """Raise InvalidRequestError with a sentence in place of rclpy's errors, around what reads arguments."""
    try:
        yield
    except RuntimeError as error:  # RCLError and UnknownROSArgsError are among them
        raise argument_error(error) from error


def argument_error(error: Exception) -> InvalidRequestError:
    """Return rclpy's error in terms of who gave the arguments."""
    said = re.sub(r", at [^\s,]+:\d+", "", str(error))
    for prefix in ("failed to initialize rcl: ", "Failed to parse ROS arguments: "):
        said = said.removeprefix(prefix)
    said = re.sub(r"\.? ?Error: error not set", "", " ".join(said.split())).rstrip(".")
    if said.startswith("["):  # all that UnknownROSArgsError says
        said = f"unknown arguments {said} after --ros-args"
    hints = [hint for words, hint in _HINTS.items() if words in said]
    return InvalidRequestError("; ".join((cut(said, 500), *hints)))
