"""What is found in a description."""

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How bad it is."""

    ERROR = "error"
    """The robot, or the part that is named, cannot be used."""
    WARNING = "warning"
    """It is used, but hardly as meant."""
    NOTE = "note"
    """Worth knowing."""


@dataclass(frozen=True)
class Finding:
    """One thing, and what to do about it."""

    severity: Severity
    line: int
    """In the text, from 1; 0 where no line is to blame."""
    what: str
    remedy: str
