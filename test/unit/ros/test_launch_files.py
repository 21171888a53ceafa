"""Tests of what the launch files ask of launch, read by stand-ins for it: ROS launch is no part of the ROS wheels."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
import yaml

from kinopt_ros.robot.sources import find_robot

LAUNCH = Path(__file__).resolve().parents[3] / "launch"


class Said:
    """Anything of launch: keeps what it was made with."""

    def __init__(self, *words: Any, **options: Any) -> None:
        self.words = words
        self.options = options


class Argument(Said):
    pass


class Function(Said):
    pass


class Node(Said):
    pass


class Info(Said):
    pass


class Configuration(Said):
    def perform(self, context: dict[str, str]) -> str:
        return context[self.words[0]]


class Typed(Said):
    """A parameter: launch_ros refuses a plain value of another type, and converts what a substitution gives."""

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        (value,) = words
        assert isinstance(value, Configuration | options.get("value_type", object))


class Configured(Said):
    """The configuration of the bundled Panda, as MoveIt's builder gives it; its words are kept."""

    more: ClassVar[dict[str, dict[str, Any]]] = {}
    """Further controllers."""

    def trajectory_execution(self, file_path: str) -> Configured:
        return Configured(*self.words, **self.options, controllers=file_path)

    def to_moveit_configs(self) -> SimpleNamespace:
        urdf, srdf = find_robot("panda")
        assert srdf is not None
        joints = [f"panda_joint{k}" for k in range(1, 8)]
        arm = {"type": "FollowJointTrajectory", "action_ns": "follow_joint_trajectory", "joints": joints}
        hand = {
            "type": "GripperCommand",
            "action_ns": "gripper_cmd",
            "joints": ["panda_finger_joint1"],
            "default": True,
        }
        controllers = {"arm_controller": arm, "hand": hand, **self.more}
        manager = {"controller_names": list(controllers), **controllers}
        return SimpleNamespace(
            robot_description={"robot_description": urdf.read_text()},
            robot_description_semantic={"robot_description_semantic": srdf.read_text()},
            robot_description_kinematics={
                "robot_description_kinematics": {"words": self.words, **self.options}
            },
            joint_limits={"robot_description_planning": {"joint_limits": {}}},
            trajectory_execution={"moveit_simple_controller_manager": manager},
        )


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads a launch file; gives its arguments, their defaults, and what it starts with given ones."""
    for name, members in {
        "launch": {"LaunchDescription": Said, "LaunchContext": dict},
        "launch.actions": {"DeclareLaunchArgument": Argument, "OpaqueFunction": Function, "LogInfo": Info},
        "launch.conditions": {"IfCondition": Said},
        "launch.substitutions": {"LaunchConfiguration": Configuration, "PathJoinSubstitution": Said},
        "launch_ros": {},
        "launch_ros.actions": {"Node": Node},
        "launch_ros.parameter_descriptions": {"ParameterValue": Typed},
        "launch_ros.substitutions": {"FindPackageShare": Said},
        "moveit_configs_utils": {"MoveItConfigsBuilder": Configured},
    }.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)

    def read(file: str, **given: str) -> tuple[dict[str, str], list[Any]]:
        spec = importlib.util.spec_from_file_location("described", LAUNCH / file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        (actions,) = module.generate_launch_description().words
        arguments = {
            each.words[0]: each.options["default_value"] for each in actions if isinstance(each, Argument)
        }
        started = [each for each in actions if isinstance(each, Node)]
        for each in actions:
            if isinstance(each, Function):
                started += each.options["function"](arguments | given)
        return arguments, started

    return read


def parameter(node: Any, name: str) -> Any:
    """The last one counts."""
    for source in reversed(node.options["parameters"]):
        if isinstance(source, dict) and name in source:
            return source[name]
    return None


@pytest.mark.parametrize("file", sorted(path.name for path in LAUNCH.glob("*.launch.py")))
def test_each_has_an_argument_for_simulated_time(described: Any, file: str) -> None:
    arguments, nodes = described(file, use_sim_time="true")
    assert "use_sim_time" in arguments
    time = parameter(next(node for node in nodes if isinstance(node, Node)), "use_sim_time")
    assert time.options["value_type"] is bool


def test_rviz_shows_what_the_node_offers(described: Any) -> None:
    _, nodes = described("rviz.launch.py", tips="panda_link8=rz camera", rviz="true", simulated="true")
    node, robot, state, rviz = nodes
    assert parameter(node, "markers.interactive") is True
    assert parameter(node, "markers.tips") == ["panda_link8=rz", "camera"]
    assert robot.options["executable"] == "kinopt_simulated_robot"
    assert "<robot" in parameter(state, "robot_description").words[0]
    config = LAUNCH.parent.joinpath(*rviz.options["arguments"][1].words[0][1:])
    shown = yaml.safe_load(config.read_text())["Visualization Manager"]
    assert shown["Global Options"]["Fixed Frame"] == "panda_link0"
    displays = {each["Class"].split("/")[1]: each for each in shown["Displays"]}
    assert displays["InteractiveMarkers"]["Interactive Markers Namespace"] == "/kinopt/interactive_markers"
    assert displays["MarkerArray"]["Topic"]["Value"] == "/kinopt/markers"
    assert displays["RobotModel"]["Description Topic"]["Durability Policy"] == "Transient Local"


def test_what_is_not_given_is_left_to_the_config(described: Any) -> None:
    _, (node,) = described("kinopt.launch.py")
    assert parameter(node, "default_group") is None
    assert parameter(node, "use_sim_time") is None


@pytest.mark.parametrize("word", ["true", "false"])
def test_simulated_time_beside_a_robot_that_runs(described: Any, word: str) -> None:
    _, (node,) = described("kinopt.launch.py", use_sim_time=word)
    assert parameter(node, "use_sim_time").words[0].perform({"use_sim_time": word}) == word


@pytest.mark.parametrize(
    ("file", "given"), [("kinopt.launch.py", {"simulated": "true"}), ("panda.launch.py", {})]
)
def test_a_simulated_robot_has_the_clock_of_the_node(
    described: Any, file: str, given: dict[str, str]
) -> None:
    """With another clock its joint states would be stale, or of the future."""
    _, nodes = described(file, use_sim_time="true", **given)
    (robot,) = (node for node in nodes if node.options["executable"] == "kinopt_simulated_robot")
    assert parameter(robot, "use_sim_time").options["value_type"] is bool


def test_a_group_may_be_called_1(described: Any) -> None:
    _, (node,) = described("kinopt.launch.py", default_group="1")
    assert parameter(node, "default_group").options["value_type"] is str


def test_a_moveit_configuration_is_taken_as_it_is(described: Any) -> None:
    _, (node, robot) = described("moveit.launch.py", robot="arm", simulated="true")
    assert parameter(node, "robot_description_kinematics") == {
        "words": ("arm",),
        "package_name": "arm_moveit_config",
    }
    assert parameter(node, "robot_description_planning") == {"joint_limits": {}}
    assert "<robot" in parameter(node, "robot_description_semantic").words[0]
    for each in (node, robot):
        assert parameter(each, "controllers") == ["arm_controller=panda_arm", "hand=hand"]
        assert parameter(each, "moveit_simple_controller_manager") == {
            "hand": {
                "type": "GripperCommand",
                "action_ns": "gripper_cmd",
                "joints": ["panda_finger_joint1"],
            }
        }
        assert "<robot" in parameter(each, "robot_description").words[0]
    _, (alone,) = described("moveit.launch.py", package="other")
    assert parameter(alone, "robot_description_kinematics")["package_name"] == "other"
    _, (alone,) = described("moveit.launch.py", controllers="config/gripper_moveit_controllers.yaml")
    assert parameter(alone, "robot_description_kinematics")["controllers"].endswith(
        "gripper_moveit_controllers.yaml"
    )


def test_controllers_that_are_handed_no_motions_are_named(
    described: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Configured, "more", {"base": {"type": "Other", "joints": []}})
    _, (info, _) = described("moveit.launch.py")
    assert info.options["msg"].startswith("controller base is left out: it is of type 'Other'")


@pytest.mark.parametrize("installed", [False, True])
def test_four_robots_run_with_what_is_there(
    described: Any, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    known = ["panda", "ur5", "iiwa"] if installed else ["panda"]
    monkeypatch.setattr("kinopt_ros.ros.client.circles.robot_names", lambda: known)
    if installed:
        monkeypatch.setattr("kinopt_ros.ros.client.circles.find_robot", lambda robot: None)
        monkeypatch.setattr("kinopt_ros.ros.client.circles.parameters_of", lambda robots: {})
    arguments, started = described("four_robots.launch.py")
    third = "ur5" if installed else "panda"
    assert arguments["robots"].split() == [
        "robot_1=panda", "robot_2=panda", f"robot_3={third}", f"robot_4={'iiwa' if installed else 'panda'}"
    ]  # fmt: skip
    said = [each.options["msg"] for each in started if isinstance(each, Info)]
    assert bool(said) is not installed
    assert all("iiwa and ur5" in sentence and "pip install" in sentence for sentence in said)
