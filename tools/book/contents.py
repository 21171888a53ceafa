"""The contents: docs/README.md lists all pages in sections of tables; Sphinx gets the same list."""

import re

from book.repository import DOCS

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| \[[^\]]+\]\(([^)#]+)\)", re.MULTILINE)


def sections() -> dict[str, list[str]]:
    """Return pages by the titles of their sections, as docs/README.md lists them."""
    parts = _SECTION.split((DOCS / "README.md").read_text(encoding="utf-8"))
    return {title: _ROW.findall(text) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def contents() -> str:
    """Return the sections with their tables, as readers see them, and as Sphinx's navigation."""
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    shown = text[text.index("\n## ") :]
    for title, pages in sections().items():
        listed = "\n".join(pages)
        shown += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```\n"
    return shown
