"""Findings in a robot description: their severity, line, text and remedy."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum


class Severity(Enum):
    """How bad a finding is."""

    ERROR = "error"
    """The robot, or the part that is named, cannot be used."""
    WARNING = "warning"
    """It is used, but hardly as meant."""
    NOTE = "note"
    """The description is fine, but this is worth knowing."""


@dataclass(frozen=True)
class Finding:
    """One finding, and what to do about it."""

    severity: Severity
    line: int
    """Line in the text, from 1; 0 where no line is to blame."""
    what: str
    remedy: str


MOST = 500
"""Most findings about one file: nobody reads more."""
_LONGEST = 600
_RANKS = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by line. Long texts are cut, and of too many findings the worst are kept and the rest counted."""
    found = sorted(findings, key=lambda finding: _RANKS.index(finding.severity))
    more = len(found) - MOST
    kept = [
        finding if len(finding.what) <= _LONGEST else replace(finding, what=f"{finding.what[:_LONGEST]}...")
        for finding in sorted(found[:MOST], key=lambda finding: finding.line)
    ]
    if more > 0:
        kept.append(Finding(Severity.NOTE, 0, f"there are {more} more findings", "mend these first"))
    return kept
