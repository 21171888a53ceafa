"""Frames on links by name."""

import time

import numpy as np
import pytest

from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.errors import InvalidRequestError, UnknownLinkError
from kinopt_ros.geometry.shapes import PlacedShape, Sphere
from kinopt_ros.kinematics.se3 import pose, rpy_to_matrix
from kinopt_ros.scene.changes import add, attach_new
from kinopt_ros.scene.scene import EMPTY_SCENE, SceneObject
from kinopt_ros.scene.tool_frames import Tip, check_tool_frames, find_tip, object_frame, tool_frames

ROBOT = seven_revolute()
TEXT = "{camera: {link: l7, pose: {xyz: [0, 0.05, 0.02], rpy: [0, 0, 1.5]}}, flange: {link: l6}}"
CAMERA = pose(rpy_to_matrix(np.array([0.0, 0.0, 1.5])), np.array([0.0, 0.05, 0.02]))


def carrying():
    return attach_new(EMPTY_SCENE, ROBOT, "mug", (PlacedShape(Sphere(0.1), np.eye(4)),), "l5", CAMERA.copy())


def test_names_stand_for_links_tool_frames_and_attached_objects():
    frames = tool_frames(TEXT)
    assert find_tip(ROBOT, frames, EMPTY_SCENE, "l3").T_link_tip is None
    assert find_tip(ROBOT, frames, EMPTY_SCENE, "l3").link == "l3"
    camera = find_tip(ROBOT, frames, EMPTY_SCENE, "camera")
    assert camera.link == "l7"
    np.testing.assert_allclose(camera.T_link_tip, CAMERA, atol=1e-15)
    np.testing.assert_array_equal(find_tip(ROBOT, frames, EMPTY_SCENE, "flange").T_link_tip, np.eye(4))
    mug = find_tip(ROBOT, frames, carrying(), "mug")
    assert mug.link == "l5"
    np.testing.assert_array_equal(mug.T_link_tip, carrying().attached["mug"].T_link_object)


def test_a_name_of_many_slashes_is_not_looked_at_slash_by_slash():
    """A frame_id of 2 MB kept the node busy for ten minutes."""

    class Name(str):
        looks = 0

        def rfind(self, *given):
            Name.looks += 1
            return super().rfind(*given)

    assert object_frame(ROBOT, carrying(), Name("/" * 10_000)) is None
    assert Name.looks < 500


def test_objects_and_their_subframes_are_frames():
    sub, turned = pose(np.eye(3), np.array([0.0, 0.0, 0.1])), CAMERA.copy()
    shapes = (PlacedShape(Sphere(0.1), np.eye(4)),)
    scene = attach_new(EMPTY_SCENE, ROBOT, "mug", shapes, "l5", turned, (), {"a/b": sub, "rim": sub})
    scene = add(scene, ROBOT, SceneObject("a", shapes, turned, {"b": sub}))
    scene = add(scene, ROBOT, SceneObject("mug/rim/x", shapes, np.eye(4)))
    rim = object_frame(ROBOT, scene, "mug/rim")
    assert (rim.link, rim.carried) == ("l5", True)
    np.testing.assert_allclose(rim.T_link_frame, CAMERA @ sub)
    found = object_frame(ROBOT, scene, "a/b")
    assert (found.link, found.carried) == (ROBOT.root_link, False)
    np.testing.assert_allclose(found.T_link_frame, CAMERA @ sub)
    np.testing.assert_array_equal(object_frame(ROBOT, scene, "mug/rim/x").T_link_frame, np.eye(4))
    assert object_frame(ROBOT, scene, "mug/a/b").link == "l5"
    for name in ("", "/", "mug/", "mug/rim/", "a/c", "cup", "mug//rim"):
        assert object_frame(ROBOT, scene, name) is None
    assert find_tip(ROBOT, {}, scene, "mug/rim").link == "l5"
    with pytest.raises(UnknownLinkError):  # which no link carries
        find_tip(ROBOT, {}, scene, "a/b")


def test_an_unknown_name_is_refused_with_what_would_do():
    with pytest.raises(
        UnknownLinkError, match=r"unknown link, tool frame or attached object 'camra'.*camera"
    ):
        find_tip(ROBOT, tool_frames(TEXT), carrying(), "camra")


def test_a_tool_in_a_frame():
    tool = pose(np.eye(3), np.array([0.0, 0.0, 0.3]))
    assert Tip("l7").with_tool(None) is None
    np.testing.assert_array_equal(Tip("l7").with_tool(tool), tool)
    np.testing.assert_array_equal(Tip("l7", CAMERA.copy()).with_tool(None), CAMERA)
    np.testing.assert_allclose(Tip("l7", CAMERA.copy()).with_tool(tool), CAMERA @ tool)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[camera]", "the text is .* mapping"),
        ("{camera: {pose: {}}}", "'camera' has no link"),
        ("{camera: {link: 3}}", "link of tool frame 'camera' is 3; allowed is text"),
        ("{camera: {link: l7, at: 3}}", "has 'at'; allowed are link, pose"),
        ("{camera: {link: l7, pose: {xyz: [0, 1]}}}", "xyz of the pose of tool frame 'camera'"),
        ("{camera: {link: l7, pose: {xyz: [0, 0, .nan]}}}", "pose of tool frame 'camera' is no rigid"),
        ("{camera: {link: l7}, camera: {link: l6}}", "'camera' twice|camera.*twice|twice"),
        ("{camera: ", "YAML"),
    ],
)
def test_a_text_that_describes_no_frames_is_refused(text, words):
    with pytest.raises(InvalidRequestError, match=words):
        tool_frames(text)


HOSTILE = {
    "digits": f"a: 0x{'f' * 10_000}",
    "decimal digits": f"a: {'9' * 10_000}",
    "base 60": f"a: {':'.join(['1'] * 2000)}.5",
    "a date": "a: 0001-01-01T00:00:00+23:00",
    "brackets": "[" * 16_000,
    "braces": "{" * 16_000,
    "lists in lists": "- " * 8_000,
    "keys in keys": "? " * 8_000,
    "many frames": "a: {link: l7}\n" * 20_000,
    "half a character": '"\\ud800": {link: l7}',
    "aliases": "a: &a [x, x]\nb: [*a, *a]",
    "a long name": f"{'n' * 16_000}: 1",
    "a long word": "x" * 16_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_text_is_refused_soon_and_in_few_words(kind):
    begin = time.process_time()
    with pytest.raises(InvalidRequestError, match="tool frames") as raised:
        tool_frames(HOSTILE[kind])
    assert len(str(raised.value)) < 500
    assert time.process_time() - begin < 8.0  # brackets took 20 s and more


def test_frames_must_fit_the_robot():
    check_tool_frames(ROBOT, tool_frames(TEXT))
    assert tool_frames("") == {}
    with pytest.raises(InvalidRequestError, match="tool frame 'camera': unknown link 'l77'"):
        check_tool_frames(ROBOT, tool_frames("{camera: {link: l77}}"))
    with pytest.raises(InvalidRequestError, match="'l3' is called like a link"):
        check_tool_frames(ROBOT, tool_frames("{l3: {link: l7}}"))
    with pytest.raises(InvalidRequestError, match="unknown link 'l77'"):
        find_tip(ROBOT, tool_frames("{camera: {link: l77}}"), EMPTY_SCENE, "camera")
