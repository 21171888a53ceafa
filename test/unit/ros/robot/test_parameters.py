"""Tests of which parameters may be set when."""

import re

import pytest
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterValue
from rclpy.parameter import Parameter

from kinopt_ros.ros.robot import joint_limits, parameters
from kinopt_ros.ros.robot.parameters import SPECS, _from_option
from kinopt_ros.solvers.base import Option
from kinopt_ros.solvers.registry import RESERVED, list_solvers

_NAMES_A_FILE = re.compile(r"folder|\bfile\b|directory|\bpath\b", re.IGNORECASE)


def test_names_of_folders_and_files_are_chosen_at_start_only() -> None:
    options = [_from_option(info.name, option) for info in list_solvers() for option in info.options]
    found = {
        spec.name
        for spec in (*SPECS, *options)
        if isinstance(spec.default, str) and _NAMES_A_FILE.search(spec.name + " " + spec.description)
    }
    assert {"record_failures", "scene_file"} <= found
    changeable = {spec.name for spec in (*SPECS, *options) if not spec.read_only}
    assert not found & changeable


def test_a_plugin_says_which_options_are() -> None:
    for read_only in (False, True):
        spec = _from_option("mine", Option("table", "", "File of the table", read_only=read_only))
        assert spec.name == "mine.table"
        assert spec.read_only is read_only
        assert spec.descriptor().read_only is read_only


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["cpu", "cpu"], "'cpu' more than once"),
        (["x"] * 1001, "1001 names"),
        (["a" * 60_000, "b" * 60_000], "120000 characters"),
    ],
)
@pytest.mark.parametrize("name", ["fallback_chain", "controller_joints"])
def test_long_lists_of_names_are_refused(name: str, names: list[str], words: str) -> None:
    answer = parameters.check([Parameter(name, value=names)])
    assert not answer.successful
    assert words in answer.reason


def test_no_plugin_can_have_the_first_word_of_a_parameter() -> None:
    assert {spec.name.partition(".")[0] for spec in SPECS if "." in spec.name} <= RESERVED


@pytest.mark.parametrize("kind", range(5, 10))
def test_an_empty_array_is_no_limit_of_a_joint(kind: int) -> None:
    message = ParameterMessage(name=f"{joint_limits.PREFIX}j1.max_velocity", value=ParameterValue(type=kind))
    given = joint_limits.converted([Parameter.from_parameter_msg(message)])
    result = joint_limits.check(given)
    assert not result.successful
    assert "max_velocity takes a number" in result.reason
