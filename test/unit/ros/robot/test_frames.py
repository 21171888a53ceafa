"""Frames where there is no tf2_ros."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.errors import FrameError
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.robot.frames import Frames

SRDF = '<robot name="panda"><virtual_joint name="v" type="{}" parent_frame="world" child_link="panda_link0"/></robot>'


@pytest.mark.parametrize(("kind", "warned"), [("fixed", 0), ("planar", 1), ("floating", 1)])
def test_the_frame_above_the_robot_is_where_move_group_has_it_without_tf(
    kind: str, warned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MoveIt's clients give their poses in it; of a configuration whose virtual joint floats they were refused."""
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    said: list[str] = []
    log = SimpleNamespace(info=lambda text: None, warning=lambda text, once: said.append(text))
    node: Any = SimpleNamespace(get_logger=lambda: log)
    frames = Frames(node)
    robot = robot_from_urdf(find_robot("panda")[0].read_text(), SRDF.format(kind))
    q = robot.default_q
    np.testing.assert_array_equal(frames.T_root_frame(robot, "world", q), np.eye(4))
    assert len(said) == warned
    assert all("'world' is taken to be 'panda_link0'" in text for text in said)
    with pytest.raises(FrameError, match="'odom' is no link"):
        frames.T_root_frame(robot, "odom", q)
