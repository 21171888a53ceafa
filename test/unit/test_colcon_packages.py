"""Packages inside the repository: colcon and rosdep find only those that are named, so every command names all."""

import re
from xml.etree import ElementTree

import pytest
import yaml
from support.pages import ROOT

from kinopt_ros.ros.main import _REMEDIES

NESTED = sorted(
    manifest.parent.name
    for manifest in ROOT.glob("*/package.xml")
    if not (manifest.parent / "COLCON_IGNORE").exists() and manifest.parent.name not in ("build", "install")
)
PATHS = ["src", *(f"src/kinopt_ros/{name}" for name in NESTED)]
COMMAND = re.compile(
    r"(?:rosdep install[^\n]* --from-paths|colcon (?:build|test) --base-paths)((?: src\S*)+)"
)
TEXTS = {
    "README.md": 2,
    "docs/install.md": 3,
    "tools/colcon.sh": 1,
    "tools/colcon_ros.sh": 3,
    "kinopt_ros/ros/main.py": 1,
}
"""How many such commands a file has."""


def depends(package: str, *kinds: str) -> set[str]:
    manifest = ElementTree.parse(ROOT / package / "package.xml").getroot()
    return {element.text or "" for kind in kinds for element in manifest.findall(kind)}


def test_there_are_two() -> None:
    assert NESTED == ["kinopt_msgs", "kinopt_ruckig"]


@pytest.mark.parametrize("file", TEXTS)
def test_every_command_names_them(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    commands = [paths.rstrip("`").split() for paths in COMMAND.findall(text)]
    assert commands == [PATHS] * TEXTS[file]
    assert len(commands) == text.count("--from-paths") + text.count("--base-paths")


def test_the_node_says_so_where_its_messages_are_missing() -> None:
    assert " ".join(PATHS) in _REMEDIES["kinopt_msgs.msg"]


def test_colcon_in_the_clone_names_them() -> None:
    verbs = yaml.safe_load((ROOT / "colcon_defaults.yaml").read_text(encoding="utf-8"))
    for verb in ("list", "info", "graph", "build", "test"):
        assert verbs[verb]["base-paths"] == [".", *NESTED], verb


def test_rosdep_brings_what_times_motions() -> None:
    assert depends("kinopt_ruckig", "depend") == {"ruckig"}
    assert depends("kinopt_ruckig", "build_depend") == {"pybind11-dev", "python3-dev"}
    assert depends("kinopt_ruckig", "buildtool_depend") == {"ament_cmake", "ament_cmake_python"}
    assert "kinopt_ruckig" in depends(".", "exec_depend")


def test_what_is_built_is_what_the_library_asks_for() -> None:
    source = (ROOT / "kinopt_ruckig" / "src" / "kinopt_ruckig.cpp").read_text(encoding="utf-8")
    from kinopt_ros.trajectory.ruckig_module import MODULES, NAMES

    module = re.search(r"PYBIND11_MODULE\((\w+),", source)
    assert module is not None
    assert module[1] == MODULES[-1]
    assert set(NAMES) <= set(re.findall(r'\(m, "(\w+)"', source))
