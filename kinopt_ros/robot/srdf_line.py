"""Writing SRDF."""

from xml.sax.saxutils import quoteattr


def disable_collisions(first: str, second: str, reason: str) -> str:
    """Return the line that an SRDF needs so that a pair of links is not checked."""
    return f'<disable_collisions link1={quoteattr(first)} link2={quoteattr(second)} reason="{reason}"/>'
