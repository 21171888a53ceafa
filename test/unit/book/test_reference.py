"""The reference is made from the sources, whole, and status codes have all been explained."""

import re

import pytest
from book.contents import sections
from book.links import SHOWN, in_the_book
from book.reference.command_line import command_line
from book.reference.interfaces import interfaces
from book.reference.python_api import ROOMS, python_api, python_modules
from support.pages import ROOT, page

from kinopt_ros import public
from kinopt_ros.cli import COMMANDS
from kinopt_ros.status import Status

DOCS = ROOT / "docs"


def test_every_command_is_described() -> None:
    text = command_line()
    assert set(re.findall(r"^## kinopt (\w+)$", text, re.MULTILINE)) == set(COMMANDS)
    assert "`--random-seed N`" in text
    assert "### kinopt bench ik" in text
    assert "| `--random-seed N` | `0` |" in text
    assert not re.findall(r"^\| .* \|  \|$", text, re.MULTILINE)  # arguments that nobody described


def test_every_interface_is_there() -> None:
    titles = re.findall(r"^### (\w+)$", interfaces(), re.MULTILINE)
    files = [
        file.stem for kind in ("srv", "action", "msg") for file in (ROOT / "kinopt_msgs" / kind).iterdir()
    ]
    assert sorted(titles) == sorted(files)


def test_every_public_name_is_there() -> None:
    text = python_api()
    for name in public.__all__:
        assert f"kinopt_ros.public.{name}\n" in text, name
    for title in ROOMS.values():
        assert f"## {title}\n" in text


def test_what_tutorials_and_examples_import_is_there() -> None:
    text = python_modules()
    pages = [*DOCS.glob("tutorials/*.md"), *DOCS.glob("*.md"), *ROOT.glob("examples/**/*.py")]
    imports = {
        (module, name)
        for page in pages
        for module, names in re.findall(
            r"^ *from (kinopt_ros(?:\.\w+)+) import ([\w, ]+)$",
            page.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
        if not module.startswith("kinopt_ros.ros.")  # in docs/lifecycle.md
        for name in names.split(", ")
    }
    assert ("kinopt_ros.trajectory.interpolation", "evaluate") in imports
    missing = {
        (module, name)
        for module, name in imports
        if f"{module}.{name}\n" not in text and name not in public.__all__
    }
    assert not missing


def test_every_parameter_is_there() -> None:
    pytest.importorskip("rclpy")
    from book.reference.parameters import parameters

    from kinopt_ros.ros.robot.parameters import SPECS

    text = parameters()
    for spec in SPECS:
        assert f"| `{spec.name}` |" in text, spec.name
    for option in ("jax_lm.beam.num_seeds", "hjcd.algorithm"):
        assert f"| `{option}` |" in text


def test_every_status_code_is_explained() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (-?\d+) \| (.+) \| (.+) \|$", page("reference/status_codes"), re.MULTILINE
    )
    assert {name: int(number) for name, number, *_ in rows} == {code.name: int(code) for code in Status}


def test_pages_are_listed_once() -> None:
    listed = [page for pages in sections().values() for page in pages]
    assert len(listed) == len(set(listed))


def test_links_that_leave_the_pages() -> None:
    text = (
        "[a](../../examples/plot_motion.py) [b](../ros.md#parameters) [c](../../kinopt_msgs/srv/SolveIK.srv)"
    )
    text += " [d](../../CONTRIBUTING.md#style)\n```\n[e](../x)\n```\n"
    source = DOCS / "howto" / "choose_a_solver.md"
    changed = in_the_book(text, source, source)
    assert f"({SHOWN}examples/plot_motion.py)" in changed
    assert "(../ros.md#parameters)" in changed
    assert "(../reference/interfaces.md#solveik)" in changed
    assert "(../project/contributing.md#style)" in changed
    assert "[e](../x)" in changed  # code stays as it is
    with pytest.raises(ValueError, match="leaves the repository"):
        in_the_book("[x](../../../elsewhere)", source, source)
