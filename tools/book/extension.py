"""Sphinx's side: generated text, links, and pages that show files of the repository."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring
from sphinx.highlighting import PygmentsBridge

from book.generated import GENERATORS
from book.links import SHOWN, in_the_book
from book.repository import ROOT

_GENERATED = re.compile(
    r"^<!-- generated: (\w+) -->$(?:\n\n\*The list itself is only in the book.*\*$)?", re.MULTILINE
)
_FILE = re.compile(r"^<!-- file: (\S+) -->$", re.MULTILINE)
_LANGUAGES = {
    ".py": "python",
    ".yaml": "yaml",
    ".json": "json",
    ".xml": "xml",
    ".urdf": "xml",
    ".srdf": "xml",
}
_FULL_NAME = re.compile(r"~(?:\w+\.)+")
_LONGEST = 200_000
"""Longest file that is shown, bytes."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect what is here with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    shown: set[str] = set()
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _sections)
    app.connect("autodoc-process-signature", _signature)
    app.connect("doctree-resolved", lambda app, doctree, page: _lead_to_shown(app, doctree, page, shown))
    app.connect("html-collect-pages", lambda app: _pages(app, shown))
    return {"parallel_read_safe": False, "parallel_write_safe": False}


def _sections(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make sections of a docstring (Args, Returns, Raises) what Sphinx shows.

    Napoleon as it is would take what stands before the first colon of an attribute's docstring for its type.
    """
    if what not in ("attribute", "data", "property"):
        lines[:] = GoogleDocstring(lines, Config(), app, what, name, thing, options).lines()


def _signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Shorten what Sphinx cannot read of a signature: it would show full names, and marks of its own."""
    return signature and _FULL_NAME.sub("", signature).replace("<factory>", "..."), returned


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(page))
    if path.suffix != ".md":
        return
    text = in_the_book(source[0], path, path)
    text = _GENERATED.sub(lambda found: in_the_book(GENERATORS[found[1]](), path, path), text)

    def included(found: re.Match[str]) -> str:
        file = ROOT / found[1]
        app.env.note_dependency(str(file))
        return in_the_book(file.read_text(encoding="utf-8"), file, path)

    source[0] = _FILE.sub(included, text)


def _lead_to_shown(app: Sphinx, doctree: nodes.document, page: str, shown: set[str]) -> None:
    for link in doctree.findall(nodes.reference):
        if link.get("refuri", "").startswith(SHOWN):
            inside = link["refuri"].removeprefix(SHOWN)
            shown.add(inside)
            link["refuri"] = app.builder.get_relative_uri(page, _shown_at(inside))
            link["classes"].append("internal")


def _shown_at(inside: str) -> str:
    return f"files/{inside.replace('.', '_')}"


def _pages(app: Sphinx, shown: set[str]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Give a page for each file and folder that is linked to, and for what is in these folders."""
    highlighter = PygmentsBridge("html", app.config.pygments_style or "default")
    todo, done = sorted(shown), set[str]()
    while todo:
        inside = todo.pop()
        if inside in done:
            continue
        done.add(inside)
        path, name = ROOT / inside, _shown_at(inside)
        if path.is_dir():
            below = sorted(
                file.relative_to(ROOT).as_posix()
                for file in path.rglob("*")
                if file.is_file() and "__pycache__" not in file.parts and not file.name.endswith(".pyc")
            )
            todo += below
            rows = (
                f'<li><a href="{escape(app.builder.get_relative_uri(name, _shown_at(file)))}">'
                f"{escape(file.removeprefix(inside + '/'))}</a></li>"
                for file in below
            )
            body = f"<ul>{''.join(rows)}</ul>"
        else:
            if path.stat().st_size > _LONGEST:
                raise ValueError(f"{inside} is longer than a page shows: {_LONGEST} bytes")
            text = path.read_text(encoding="utf-8")
            body = highlighter.highlight_block(text, _LANGUAGES.get(path.suffix, "text"))
        context = {"title": inside, "body": f"<h1><code>{escape(inside)}</code></h1>{body}"}
        yield name, context, "page.html"
