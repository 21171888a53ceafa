"""Links of pages: those that leave docs/ lead to a page of the book, or to one that shows the file."""

import re
from collections.abc import Callable
from os.path import relpath
from pathlib import Path

from book.repository import DOCS, ROOT

SHOWN = "https://repository.invalid/"
"""Beginning of links to files of the repository, until Sphinx knows where their pages are. No such host can exist."""
PAGE_OF = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.rst": "project/changelog.rst",
    "CONTRIBUTING.md": "project/contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "benchmarks": "project/benchmarks.md",
    "docs": "index.md",
    "docs/README.md": "index.md",
    "examples/solver_plugin/README.md": "project/solver_plugin.md",
    "examples/cost_plugin/README.md": "project/cost_plugin.md",
    "interfaces/README.md": "project/interfaces.md",
}
"""Files and folders of the repository that are pages of the book."""
INTERFACE = re.compile(r"kinopt_msgs/(?:msg|srv|action)/(\w+)\.(?:msg|srv|action)")
_INTERFACES = "reference/interfaces.md"
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]+)?\)")
_FENCE = re.compile(r"^( {0,3}```.*?^ {0,3}```[ ]*$)", re.MULTILINE | re.DOTALL)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Change a page's text, but for its fenced blocks."""
    parts = _FENCE.split(text)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def in_the_book(text: str, source: Path, page: Path) -> str:
    """Return a text of ``source`` with its links as they are from ``page`` of the book."""

    def changed(found: re.Match[str]) -> str:
        target = (source.parent / found[1]).resolve()
        return f"]({_led_to(target, found[2] or '', page)})"

    return outside_code(text, lambda part: _LINK.sub(changed, part))


def _led_to(target: Path, anchor: str, page: Path) -> str:
    if not target.is_relative_to(ROOT):
        raise ValueError(f"{page}: a link leaves the repository: {target}")
    inside = target.relative_to(ROOT).as_posix()
    if inside in PAGE_OF:
        return relpath(DOCS / PAGE_OF[inside], page.parent) + anchor
    if interface := INTERFACE.fullmatch(inside):
        return f"{relpath(DOCS / _INTERFACES, page.parent)}#{interface[1].lower()}"
    if inside in ("kinopt_msgs", "kinopt_msgs/msg", "kinopt_msgs/srv", "kinopt_msgs/action"):
        return relpath(DOCS / _INTERFACES, page.parent)
    if target.is_relative_to(DOCS) and target.suffix in (".md", ".png", ".svg", ".gif"):
        return relpath(target, page.parent) + anchor
    return SHOWN + inside
