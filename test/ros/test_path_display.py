"""`kinopt ik --demo updown --display`: motions for rviz's Trajectory display."""

import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import rclpy
from rclpy.node import Node

from kinopt_ros.cli import main
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.ros.rviz.display import TOPIC

pytest.importorskip("numba")
pytestmark = pytest.mark.ros


def test_motions_are_shown_that_join_up(moveit: ModuleType, ros: None) -> None:
    node = Node("rviz_user")
    shown: list[Any] = []
    node.create_subscription(moveit.msg.DisplayTrajectory, TOPIC, shown.append, 10)
    command = [
        "-m",
        "kinopt_ros.cli",
        "ik",
        "--demo",
        "updown",
        "--cycles",
        "200",
        "--period",
        "0.2",
        "--display",
    ]
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL) as process:
        try:
            while len(shown) < 4:
                rclpy.spin_once(node, timeout_sec=1.0)
                assert process.poll() is None
        finally:
            process.terminate()
    node.destroy_node()
    ends = None
    for message in shown:
        assert message.model_id == "panda"
        motion = trajectory_from_message(message.trajectory[0].joint_trajectory)
        state = dict(
            zip(
                *(getattr(message.trajectory_start.joint_state, of) for of in ("name", "position")),
                strict=True,
            )
        )
        assert [state[name] for name in motion.joint_names] == list(motion.position[0])
        assert np.abs(motion.position[-1] - motion.position[0]).max() > 0.01
        assert ends is None or (ends == motion.position[0]).all()
        ends = motion.position[-1]


def test_without_moveits_messages_the_sentence_says_so(
    ros: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "moveit_msgs.msg", None)
    assert main(["ik", "--demo", "updown", "--display"]) == 1
    assert "moveit_msgs is not installed" in capsys.readouterr().err


def test_it_goes_with_the_demonstration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ik", "--xyz", "0.4", "0", "0.5", "--display"]) == 1
    assert "--display goes with --demo" in capsys.readouterr().err
