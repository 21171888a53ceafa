"""Defects that a node has told of in what it printed."""

from typing import Any

_SIGNS = ("internal error", "Traceback")
_LINES = 40
"""Lines of each that are kept: the sentence, and the traceback after it."""
_KEPT = 5
"""Number of those that are kept."""


def defects_in(log: str) -> dict[str, Any]:
    """Return the number of ``internal_errors``, and the first of them as the node told them (``defects``)."""
    lines = log.splitlines()
    at = [k for k, line in enumerate(lines) if any(sign in line for sign in _SIGNS)]
    kept: list[int] = []
    for k in at:
        if len(kept) < _KEPT and (not kept or k >= kept[-1] + _LINES):
            kept.append(k)
    return {"internal_errors": len(at), "defects": ["\n".join(lines[k : k + _LINES]) for k in kept]}
