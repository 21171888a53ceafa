"""What users read before they run: short at the door, and no link leads nowhere."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.pages import README, ROOT

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("benchmarks/*.md"),
    ]
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings as a browser shows them."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_door_is_short() -> None:
    assert len(README.split()) <= 1200


def test_the_python_of_the_readme_runs() -> None:
    pytest.importorskip("numba")
    block = README[README.index("## In Python") : README.index("## In ROS")]
    code = "\n".join(line[4:] for line in block.splitlines() if line.startswith("    "))
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["result"].success[0]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there.read_text(encoding="utf-8")), f"{target}#{anchor}"


def test_every_page_is_in_the_list_of_pages() -> None:
    docs = ROOT / "docs"
    listed = {target for target, _ in LINK.findall((docs / "README.md").read_text(encoding="utf-8"))}
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} | {"project/changelog.rst"}
    assert listed == pages - {"README.md", "index.md"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_is_named_is_there(path: Path) -> None:
    """Files are named by the last parts of their paths."""
    files = {
        str(file.relative_to(ROOT))
        for part in ("kinopt_ros", "test", "examples", "tools")
        for file in (ROOT / part).rglob("*.py")
    }
    for name in re.findall(r"`([\w/]+\.py)`", path.read_text(encoding="utf-8")):
        assert any(f"/{file}".endswith(f"/{name}") for file in (*files, "setup.py")), name
