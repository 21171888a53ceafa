"""examples/moveit_parameters.py, as a user runs it."""

import runpy
from pathlib import Path

import pytest
import yaml
from support.pages import ROOT

from kinopt_ros.robot.sources import find_robot

EXAMPLE = ROOT / "examples" / "moveit_parameters.py"
LIMIT = {"has_acceleration_limits": True, "max_acceleration": 3.75}
LIMITS = {"joint_limits": {"panda_joint1": LIMIT, "panda_joint2": LIMIT}}
ARM = {"type": "FollowJointTrajectory", "joints": [f"panda_joint{i}" for i in range(1, 8)]}
HAND = {
    "type": "GripperCommand",
    "joints": ["panda_finger_joint1"],
    "max_effort": 20.0,
    "allow_failure": True,
}
CONTROLLERS = {
    "moveit_simple_controller_manager": {
        "controller_names": ["arm_controller", "gripper", "elbow", "other"],
        "arm_controller": ARM,
        "gripper": HAND,
        "elbow": {**ARM, "joints": ["panda_joint4"]},
        "other": {**ARM, "type": "Other"},
    }
}


def configuration(folder: Path) -> tuple[Path, Path, Path]:
    """The Panda's URDF, its SRDF, and where a package of MoveIt's has its files, the SRDF among them."""
    urdf, srdf = find_robot("panda")
    assert srdf is not None
    config = folder / "config"
    config.mkdir()
    (config / "panda.srdf").write_text(srdf.read_text(encoding="utf-8"), encoding="utf-8")
    return urdf, srdf, config


def test_a_configuration_becomes_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    urdf, srdf, config = configuration(tmp_path)
    (config / "joint_limits.yaml").write_text(yaml.safe_dump(LIMITS), encoding="utf-8")
    (config / "moveit_controllers.yaml").write_text(yaml.safe_dump(CONTROLLERS), encoding="utf-8")
    file = tmp_path / "kinopt.yaml"
    assert runpy.run_path(str(EXAMPLE))["main"](str(urdf), str(tmp_path), str(file)) == 0
    assert not [
        event for event in yaml.parse(file.read_text()) if isinstance(event, yaml.AliasEvent)
    ]  # ROS reads none
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert written["/**"]["ros__parameters"] == {
        "robot_description": urdf.read_text(encoding="utf-8"),
        "robot_description_semantic": srdf.read_text(encoding="utf-8"),
    }
    controllers = {
        "controllers": ["arm_controller=panda_arm", "gripper=hand"],
        "moveit_simple_controller_manager": {"gripper": HAND},
    }
    assert written["/kinopt"]["ros__parameters"] == {
        "robot_description_planning": LIMITS,
        **controllers,
    }
    assert written["/simulated_robot"]["ros__parameters"] == controllers
    assert capsys.readouterr().err.splitlines() == [
        "controller elbow is left out: no group of the SRDF has exactly its joints",
        "controller other is left out: it is of type 'Other'; allowed are FollowJointTrajectory, GripperCommand, "
        "ParallelGripperCommand",
    ]


def test_another_file_of_controllers_counts_if_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As moveit_resources' Panda has one with its gripper."""
    urdf, _, config = configuration(tmp_path)
    (config / "gripper_moveit_controllers.yaml").write_text(yaml.safe_dump(CONTROLLERS), encoding="utf-8")
    file, main = tmp_path / "kinopt.yaml", runpy.run_path(str(EXAMPLE))["main"]
    assert main(str(urdf), str(tmp_path), str(file), "gripper_moveit_controllers.yaml") == 0
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert written["/kinopt"]["ros__parameters"]["controllers"] == [
        "arm_controller=panda_arm",
        "gripper=hand",
    ]
    assert main(str(urdf), str(tmp_path), str(file), "others.yaml") == 1
    assert "has no others.yaml" in capsys.readouterr().err


def test_no_configuration_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    urdf, _ = find_robot("panda")
    assert runpy.run_path(str(EXAMPLE))["main"](str(urdf), str(tmp_path), str(tmp_path / "kinopt.yaml")) == 1
    assert "0 SRDF files" in capsys.readouterr().err
