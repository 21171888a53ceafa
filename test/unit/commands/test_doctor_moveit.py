"""`kinopt doctor --moveit`: what it says about a MoveIt configuration."""

import json
from pathlib import Path

import pytest

from kinopt_ros.cli import main
from kinopt_ros.robot.sources import find_robot

ARM = [f"panda_joint{k}" for k in range(1, 8)]
CONTROLLERS = f"""
moveit_controller_manager: moveit_simple_controller_manager/MoveItSimpleControllerManager
moveit_simple_controller_manager:
  controller_names: [panda_arm_controller, hand_controller]
  panda_arm_controller:
    {{type: FollowJointTrajectory, action_ns: follow_joint_trajectory, joints: [{", ".join(ARM)}]}}
  hand_controller: {{type: ParallelGripperCommand, action_ns: gripper_cmd, joints: [panda_finger_joint1]}}
"""
LIMITS = "joint_limits:\n" + "".join(
    f"  {name}: {{has_acceleration_limits: true, max_acceleration: 2.0, has_jerk_limits: true, max_jerk: 90.0}}\n"
    for name in [*ARM, "panda_finger_joint1"]
)
KINEMATICS = "panda_arm: {kinematics_solver_timeout: 0.05}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration with which nothing is wrong."""
    config = tmp_path / "panda_moveit_config" / "config"
    config.mkdir(parents=True)
    _, srdf = find_robot("panda")
    assert srdf is not None
    (config / "panda.srdf").write_text(srdf.read_text())
    for name, text in (
        ("moveit_controllers", CONTROLLERS),
        ("joint_limits", LIMITS),
        ("kinematics", KINEMATICS),
    ):
        (config / f"{name}.yaml").write_text(text)
    return config.parent


def found(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    """Status, and the report."""
    status = main(["doctor", "--json", "--moveit", str(folder)])
    return status, json.loads(capsys.readouterr().out)


def in_yaml(report: dict) -> list[dict]:
    return [finding for finding in report["findings"] if not finding["file"].endswith((".srdf", ".urdf"))]


def test_a_good_configuration_says_which_controllers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = found(folder, capsys)
    assert status == 0
    assert report["controllers"] == ["panda_arm_controller=panda_arm", "hand_controller=hand"]
    (gripper,) = in_yaml(report)
    assert gripper["severity"] == "note"
    assert (
        "'hand_controller' is of type ParallelGripperCommand: it is told where a motion ends"
        in gripper["what"]
    )


def test_limits_that_nobody_has_written_down_are_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "config" / "joint_limits.yaml").unlink()
    _, report = found(folder, capsys)
    said = [one for one in in_yaml(report) if "no limit of acceleration" in one["what"]]
    assert [one["severity"] for one in said] == ["warning"]


WRONG = {
    "limits: no mapping": ("joint_limits", "joint_limits: 3", "error", "no mapping joint_limits"),
    "limits: unknown joint": ("joint_limits", "joint_limits: {leg: {max_velocity: 1.0}}", "error", "'leg'"),
    "limits: negative": (
        "joint_limits",
        "joint_limits: {panda_joint1: {max_velocity: -1.0}}",
        "error",
        "max_velocity of 'panda_joint1'",
    ),
    "limits: twice": (
        "joint_limits",
        "joint_limits: {}\njoint_limits: {}",
        "error",
        "cannot be read as YAML",
    ),
    "limits: none": ("joint_limits", "joint_limits: {}", "warning", "no limit of acceleration"),
    "limits: unused": (
        "joint_limits",
        LIMITS + "  panda_finger_joint2: {max_effort: 1.0}\n",
        "note",
        "max_effort of",
    ),
    "kinematics: group": ("kinematics", "leg: {}", "warning", "'leg' is no group"),
    "kinematics: solver": ("kinematics", "panda_arm: {kinematics_solver: kdl}", "note", "are not used"),
    "controllers: none": ("moveit_controllers", "a: 1", "warning", "names no controller"),
    "controllers: text": (
        "moveit_controllers",
        "moveit_simple_controller_manager: {controller_names: arm}",
        "warning",
        "names no controller",
    ),
    "controllers: entry": (
        "moveit_controllers",
        CONTROLLERS.replace("hand_controller]", "other]"),
        "error",
        "'other' has no entry",
    ),
    "controllers: joint": (
        "moveit_controllers",
        CONTROLLERS.replace("panda_joint7", "panda_joint9"),
        "error",
        "panda_joint9, which the robot lacks",
    ),
    "controllers: type": (
        "moveit_controllers",
        CONTROLLERS.replace("Parallel", "Some"),
        "warning",
        "of type",
    ),
    "controllers: action": (
        "moveit_controllers",
        CONTROLLERS.replace("action_ns: follow_joint_trajectory", "action_ns: 3"),
        "error",
        "panda_arm_controller.action_ns is 3; allowed: a text",
    ),
    "controllers: effort": (
        "moveit_controllers",
        CONTROLLERS.replace("action_ns: gripper_cmd", "max_effort: -1.0"),
        "error",
        "hand_controller.max_effort is -1.0; allowed: a number, 0 or more",
    ),
    "controllers: a key of another type": (
        "moveit_controllers",
        CONTROLLERS.replace("action_ns: gripper_cmd", "allow_failure: true"),
        "note",
        "allow_failure of 'hand_controller' are not used",
    ),
    "controllers: command_joint": (
        "moveit_controllers",
        CONTROLLERS.replace("ParallelGripperCommand", "GripperCommand, command_joint: finger"),
        "warning",
        "command_joint of 'hand_controller' is 'finger', which is none of its joints",
    ),
    "controllers: parallel": (
        "moveit_controllers",
        CONTROLLERS.replace("ParallelGripperCommand", "GripperCommand, parallel: true").replace(
            "[panda_finger_joint1]", "[panda_finger_joint1, panda_finger_joint2]"
        ),
        "warning",
        "'hand_controller' is parallel, but panda_finger_joint2 follows another joint",
    ),
    "controllers: group": (
        "moveit_controllers",
        CONTROLLERS.replace(", panda_joint7", ""),
        "warning",
        "no group has exactly the joints",
    ),
    "limits: scaling": (
        "joint_limits",
        "default_velocity_scaling_factor: 1.0\n" + LIMITS,
        "note",
        "default_velocity_scaling_factor (1.0) is for MoveGroupInterface",
    ),
    "planner": ("pilz_industrial_motion_planner_planning", "a: 1", "note", "not used"),
    "other controllers": ("gripper_moveit_controllers", CONTROLLERS, "note", "not used"),
    "sensors": ("sensors_kinect_depthmap", "sensors: []", "note", "not used"),
    "another": ("trac_ik_kinematics", "a: 1", "note", "not used"),
    "pilz": ("pilz_cartesian_limits", "cartesian_limits: {}", "note", "not used"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_said(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    name, text, severity, words = WRONG[kind]
    (folder / "config" / f"{name}.yaml").write_text(text)
    status, report = found(folder, capsys)
    [finding] = [one for one in in_yaml(report) if words in one["what"]]
    assert finding["severity"] == severity
    assert finding["file"].endswith(f"{name}.yaml")
    assert status == (severity == "error")


def test_a_folder_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given in (tmp_path / "gone", tmp_path):
        assert main(["doctor", "--moveit", str(given)]) == 1
        assert "--srdf" in capsys.readouterr().err if given == tmp_path else True


@pytest.mark.parametrize("desired", [False, True])
def test_a_controller_that_sets_its_commands_back(
    desired: bool, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manager = "controller_manager: {ros__parameters: {arm_controller: {type: a/JointTrajectoryController}}}\n"
    own = f"arm_controller: {{ros__parameters: {{interpolate_from_desired_state: {str(desired).lower()}}}}}\n"
    (folder / "config" / "ros2_controllers.yaml").write_text(manager + own)
    _, report = found(folder, capsys)
    said = [one for one in in_yaml(report) if one["file"].endswith("ros2_controllers.yaml")]
    if desired:
        assert said == []
    else:
        (one,) = said
        assert one["severity"] == "warning"
        assert "'arm_controller' begins what replaces a motion where the robot is measured" in one["what"]
        assert "interpolate_from_desired_state: true" in one["remedy"]


GRIPPER = """<robot name="one"><link name="a"/><link name="b"/><link name="c"/><link name="d"/>
<joint name="arm" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
<joint name="finger" type="revolute"><parent link="b"/><child link="c"/><axis xyz="0 0 1"/>
<limit lower="0" upper="{upper}" velocity="1" effort="1"/></joint>
<joint name="other" type="revolute"><parent link="b"/><child link="d"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1" velocity="1" effort="1"/><mimic joint="finger"/></joint></robot>"""
TOOL = '<end_effector name="tool" parent_link="b" group="hand"/>'
OF_TWO = """moveit_simple_controller_manager:
  controller_names: [arm_controller, hand_controller]
  arm_controller: {type: FollowJointTrajectory, joints: [arm]}
  hand_controller: {type: FollowJointTrajectory, joints: [finger]}
"""


@pytest.mark.parametrize(("upper", "tool", "named"), [(0.8, "", True), (0.8, TOOL, False), (0.05, "", False)])
def test_a_gripper_that_the_srdf_does_not_declare(
    upper: float, tool: str, named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.urdf").write_text(GRIPPER.format(upper=upper))
    groups = '<group name="arm"><joint name="arm"/></group><group name="hand"><joint name="finger"/></group>'
    (tmp_path / "one.srdf").write_text(f'<robot name="one">{groups}{tool}</robot>')
    (tmp_path / "moveit_controllers.yaml").write_text(OF_TWO)
    main(["doctor", "--json", "--robot", str(tmp_path / "one.urdf"), "--moveit", str(tmp_path)])
    said = [one["what"] for one in json.loads(capsys.readouterr().out)["findings"]]
    assert any("no end_effector of the SRDF has finger: if" in what for what in said) == named, said
