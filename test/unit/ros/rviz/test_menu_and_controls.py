"""Menus and handles of interactive markers."""

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from visualization_msgs.msg import InteractiveMarkerControl, Marker

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.se3 import quaternion_to_matrix
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.robot.marker_tips import Mode, chosen_tips, read_tips
from kinopt_ros.ros.rviz.controls import object_marker, tip_marker
from kinopt_ros.ros.rviz.menu import Action, Entry, menu_of


def test_a_menu_is_numbered_in_the_order_of_its_tree() -> None:
    messages, asked = menu_of(
        [
            Entry("plan", Action.PLAN),
            Entry(
                "state", below=(Entry("home", Action.STATE, "home"), Entry("ready", Action.STATE, "ready"))
            ),
            Entry("avoid", Action.AVOID, checked=True),
            Entry("other", Action.AVOID, checked=False),
        ]
    )
    assert [(m.id, m.parent_id, m.title) for m in messages] == [
        (1, 0, "plan"),
        (2, 0, "state"),
        (3, 2, "home"),
        (4, 2, "ready"),
        (5, 0, "[x] avoid"),
        (6, 0, "[ ] other"),
    ]
    assert all(m.command_type == m.FEEDBACK and not m.command for m in messages)
    assert asked[4] == (Action.STATE, "ready")
    assert 2 not in asked  # a heading asks for nothing


@pytest.mark.parametrize(
    ("mode", "rings"),
    [
        (Mode.POSE, "xyz"),
        (Mode.POSITION, ""),
        (Mode.FREE_X, "yz"),
        (Mode.FREE_Y, "xz"),
        (Mode.FREE_Z, "xy"),
    ],
)
def test_there_are_rings_about_the_axes_that_count(mode: Mode, rings: str) -> None:
    made = tip_marker("tip/hand", "hand", "base", Pose(), mode, 0.2, [], [])
    names = [control.name for control in made.controls]
    assert sorted(names) == sorted(
        ["body", "move_x", "move_y", "move_z", *(f"rotate_{axis}" for axis in rings)]
    )
    assert len(set(names)) == len(names)  # else clients rename them
    assert made.controls[0].markers  # what has none cannot be seen
    for control in made.controls:
        q = control.orientation
        R = quaternion_to_matrix(np.array([q.w, q.x, q.y, q.z]))
        if control.name != "body":
            np.testing.assert_allclose(np.abs(R[:, 0]), np.eye(3)["xyz".index(control.name[-1])], atol=1e-12)
    kinds = {control.name: control.interaction_mode for control in made.controls}
    assert kinds["move_x"] == InteractiveMarkerControl.MOVE_AXIS
    assert kinds["body"] == InteractiveMarkerControl.MOVE_3D
    assert all(kinds[f"rotate_{axis}"] == InteractiveMarkerControl.ROTATE_AXIS for axis in rings)


def test_an_object_is_its_own_handle() -> None:
    shape = Marker(type=Marker.CUBE)
    plain = object_marker("object/box", "box", "base", Pose(), 0.2, [shape], [], handles=False)
    assert [control.name for control in plain.controls] == ["body"]
    assert plain.controls[0].interaction_mode == InteractiveMarkerControl.MOVE_ROTATE_3D
    with_handles = object_marker("object/box", "box", "base", Pose(), 0.2, [shape], [], handles=True)
    assert len(with_handles.controls) == 7


def test_tips_of_words() -> None:
    assert read_tips(["hand", "camera=position", "tool=rz"]) == [
        ("hand", Mode.POSE),
        ("camera", Mode.POSITION),
        ("tool", Mode.FREE_Z),
    ]
    for words, said in (
        (["hand=sideways"], "unknown mode 'sideways'"),
        (["=rz"], "allowed are names"),
        (["hand", "hand=rz"], "'hand' more than once"),
        ([f"t{k}" for k in range(17)], "17 tips"),
    ):
        with pytest.raises(InvalidRequestError, match=said):
            read_tips(words)


def test_the_tips_of_a_robot() -> None:
    panda = load_robot("panda")
    tips = chosen_tips(panda, (), "panda_arm")
    assert tips[0] == ("panda_link8", "panda_arm", Mode.POSE)
    assert len({name for name, _, _ in tips}) == len(tips)
    assert chosen_tips(panda, ("panda_link8=rz", "camera")) == [
        ("panda_link8", "panda_arm", Mode.FREE_Z),
        ("camera", "", Mode.POSE),
    ]
