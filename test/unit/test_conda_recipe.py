"""The conda recipe names what setup.py and package.xml name, in the channels' terms."""

import re
from importlib.metadata import entry_points, requires
from typing import Any
from xml.etree import ElementTree

import yaml
from support.pages import ROOT

RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
LIBRARY, MESSAGES = RECIPE["outputs"]
CHANNEL_NAMES = {"urdf-parser-py": "urdfdom-py"}
NOT_IN_CHANNELS = {"ruckig"}


def test_the_library_needs_what_setup_names() -> None:
    needed = {
        re.split(r"[<>=\[; ]", text)[0] for text in requires("kinopt_ros") or () if "extra ==" not in text
    }
    named = {text.split()[0] for text in LIBRARY["requirements"]["run"]} - {"python"}
    assert needed >= NOT_IN_CHANNELS
    assert named == {CHANNEL_NAMES.get(name, name) for name in needed - NOT_IN_CHANNELS}


def test_the_commands_are_those_of_setup() -> None:
    commands = {
        f"{point.name} = {point.value}"
        for point in entry_points(group="console_scripts")
        if point.value.startswith("kinopt_ros.")
    }
    assert set(LIBRARY["build"]["python"]["entry_points"]) == commands


def test_the_interfaces_need_what_package_xml_names() -> None:
    package = ElementTree.parse(ROOT / "kinopt_msgs" / "package.xml").getroot()

    def conda(*tags: str) -> set[str]:
        names = [element.text or "" for tag in tags for element in package.findall(tag)]
        return {"ros-${{ distro }}-" + name.replace("_", "-") for name in names}

    requirements = MESSAGES["requirements"]
    assert set(requirements["host"]) - {"python", "numpy"} == conda("buildtool_depend", "depend")
    assert set(requirements["run"]) - {"python", "numpy"} == conda("depend", "exec_depend")
