"""Tutorials do what they say: blocks of a page run in order, in one process, in a folder of their own."""

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from support.book_blocks import Block, as_the_page_says, blocks
from support.kept_compilations import kept_compilations
from support.pages import ROOT

from kinopt_ros.cli import main

PAGES = [
    page
    for room in ("tutorials", "coming_from", "explain")
    for page in sorted((ROOT / "docs").glob(f"{room}/*.md"))
]
NEEDS = {"gradients": ("jax",), "jax_batches": ("jax", "jaxlie"), "moveit": ("coal",)}
"""Packages that pages need beside those that all need."""
KEPT = ("gradients",)
"""Pages of formulas that XLA compiles; solvers keep their programs themselves."""


def commands(block: Block) -> list[str]:
    """Lines of a block of commands; those that go on are put together."""
    return [
        line for line in block.code.replace("\\\n", " ").splitlines() if line and not line.startswith("#")
    ]


def test_a_page_is_compared_with_what_is_printed() -> None:
    assert as_the_page_says("it is 3\nand 4\n", "it is 3\nand ...")
    assert as_the_page_says("True", "True")
    assert not as_the_page_says("it is 3", "it is 4")
    assert not as_the_page_says("it is 3, and more", "it is 3")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_a_page(
    page: Path,
    tmp_path: Path,
    kept_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for package in ("numba", "coal", *NEEDS.get(page.stem, ())):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": f"tutorial_{page.stem}"}
    with kept_compilations(kept_folder / "xla") if page.stem in KEPT else nullcontext():
        _follow(page, names, capsys)


def _follow(page: Path, names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Run what a page has the reader run, and compare what is printed."""
    for block in blocks(page):
        if block.language == "python":
            # Lines of errors are those of the page.
            exec(compile("\n" * block.line + block.code, str(page), "exec"), names)
        else:
            for line in commands(block):
                program, *arguments = shlex.split(line, comments=True)
                if program == "kinopt":
                    assert main(arguments) == 0, line
                else:  # pasted by test/ros/test_pages.py, or no command of ours
                    assert program in ("ros2", "pip", "make", "source", "cp"), line
        printed = capsys.readouterr().out
        if block.printed is not None and "ros2" not in block.code:
            assert as_the_page_says(printed, block.printed), f"{page}:{block.line} printed:\n{printed}"
