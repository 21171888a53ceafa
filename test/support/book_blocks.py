"""Code blocks of a page, and what the page says that they print."""

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(python|bash|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Code in the order of the page. ``printed`` is None if the page does not say what it prints."""

    language: str
    code: str
    printed: str | None
    line: int
    """Line of the page before its first one."""


def blocks(page: Path) -> list[Block]:
    """Return the ``python`` and ``bash`` blocks of a page; a ``text`` block right after one says what it prints."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(text):
        language, code = match[1], match[2]
        line = text[: match.start()].count("\n") + 1
        if language != "text":
            found.append(Block(language, code, None, line))
        elif found and not text[end : match.start()].strip():
            before = found.pop()
            found.append(Block(before.language, before.code, code, before.line))
        end = match.end()
    return found


def as_the_page_says(printed: str, said: str) -> bool:
    """Compare what was printed with what a page says: ``...`` stands for anything, and spaces for line ends."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in said.split("..."))
    return (
        re.fullmatch(pattern.replace(r"\ .*", ".*").replace(r".*\ ", ".*"), " ".join(printed.split()))
        is not None
    )
