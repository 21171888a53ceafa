"""One version, wherever it stands."""

import re
from xml.etree import ElementTree

import pytest
from support.pages import ROOT

from kinopt_ros import __version__

FILES = {
    "package.xml": None,
    "kinopt_msgs/package.xml": None,
    "kinopt_msgs/pyproject.toml": r'^version = "(.+)"$',
    "kinopt_ruckig/package.xml": None,
    "conda/recipe.yaml": r'^  version: "(.+)"$',
    "CHANGELOG.rst": r"^(\d+\.\d+\.\d+) \(",
    "kinopt_msgs/CHANGELOG.rst": r"^(\d+\.\d+\.\d+) \(",
    "kinopt_ruckig/CHANGELOG.rst": r"^(\d+\.\d+\.\d+) \(",
}
"""Patterns of the version by file: the first one that is found counts. None: package manifests."""


@pytest.mark.parametrize("name", FILES)
def test_it_is_that_of_the_package(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    pattern = FILES[name]
    if pattern is None:
        found = ElementTree.fromstring(text).findtext("version")
    else:
        match = re.search(pattern, text, re.MULTILINE)
        assert match is not None, f"{name} names no version"
        found = match[1]
    assert found == __version__


def test_setup_reads_it() -> None:
    assert f'version="{__version__}"' not in (ROOT / "setup.py").read_text(encoding="utf-8")
