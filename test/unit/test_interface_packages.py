"""Packages of interfaces that the wheels lack: processes find them, and no more is built than is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import interface_packages
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

USE = """
from control_msgs.action import FollowJointTrajectory, ParallelGripperCommand
from moveit_msgs.action import ExecuteTrajectory, MoveGroup, MoveGroupSequence
from moveit_msgs.msg import PlanningScene
from octomap_msgs.msg import OctomapWithPose
from rclpy.serialization import deserialize_message, serialize_message
from tf2_msgs.msg import TFMessage

scene = PlanningScene(name="kitchen")
scene.world.octomap.octomap.data = [-128, 127]
read = deserialize_message(serialize_message(scene), PlanningScene)
assert read == scene, read
"""


@pytest.mark.timeout(1200)
def test_other_processes_find_them(moveit: ModuleType, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_is_installed_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface_packages, "find_spec", lambda name: name)
    assert interface_packages.build() is None


def test_packages_are_built_before_those_that_need_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    order: list[str] = []

    def build(name: str, prefix: Path) -> None:
        (prefix / "build").mkdir(exist_ok=True)
        order.append(name)

    monkeypatch.setattr(interface_packages, "_build", build)
    interface_packages._build_all(list(interface_packages.PACKAGES), tmp_path)
    assert sorted(order) == list(interface_packages.PACKAGES)
    assert order[-1] == "moveit_msgs"


def test_other_interfaces_are_another_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = interface_packages._digest(["tf2_msgs"])
    assert before == interface_packages._digest(["tf2_msgs"]) != interface_packages._digest(["moveit_msgs"])
    monkeypatch.setattr(sys, "version", "another Python")
    assert interface_packages._digest(["tf2_msgs"]) != before
