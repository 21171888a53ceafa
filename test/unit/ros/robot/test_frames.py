"""Frames where there is no tf2_ros."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.errors import FrameError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.robot.frames import Frames

SRDF = '<robot name="panda"><virtual_joint name="v" type="{}" parent_frame="world" child_link="panda_link0"/></robot>'


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> Frames:
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    node: Any = SimpleNamespace(get_logger=lambda: SimpleNamespace(info=lambda text: None))
    return Frames(node)


def panda(kind: str) -> RobotModel:
    return robot_from_urdf(find_robot("panda")[0].read_text(), SRDF.format(kind))


def test_the_frame_above_a_robot_that_stands_is_its_root(frames: Frames) -> None:
    robot = panda("fixed")
    np.testing.assert_array_equal(frames.T_root_frame(robot, "world", robot.default_q), np.eye(4))
    with pytest.raises(FrameError, match="'odom' is no link"):
        frames.T_root_frame(robot, "odom", robot.default_q)


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_where_a_robot_that_may_move_is_nobody_knows_without_tf(frames: Frames, kind: str) -> None:
    robot = panda(kind)
    with pytest.raises(FrameError, match="'panda_link0' is that frame for good, make its type fixed"):
        frames.T_root_frame(robot, "world", robot.default_q)
