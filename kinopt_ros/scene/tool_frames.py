"""Frames by name: tool frames on links, and those of objects, whose subframes are called ``object/subframe``.

Tool frames are written in YAML as scenes are::

    camera: {link: hand, pose: {xyz: [0, 0.05, 0.02], rpy: [0, 0, 1.57]}}
    probe: {link: hand, pose: {xyz: [0, 0, 0.2]}}
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Immutable, taken_over
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, UnknownLinkError, quoted, shown
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import yaml_text as read
from kinopt_ros.scene.parts import MAX_ID_LENGTH, check_transform
from kinopt_ros.scene.scene import AttachedObject, Scene
from kinopt_ros.scene.shape_text import pose_of

MAX_FRAMES = 1_000
"""Most tool frames."""
_LONGEST = 2 * MAX_ID_LENGTH + 1
"""Longest name of a frame of an object: ``object/subframe``."""


class UnknownTipError(UnknownLinkError):
    """A tip that is neither a link of the robot nor a frame on one."""

    kind = "link, tool frame or attached object"


@dataclass(frozen=True, eq=False)
class Tip(Immutable):
    """A frame that is fixed to a link."""

    link: str
    T_link_tip: Annotated[Float64, "4 4"] | None = None
    """Pose of the tip in the link; None for the link's own frame."""

    def __post_init__(self) -> None:
        taken_over(self, "T_link_tip")

    def with_tool(self, T_tip_tool: Annotated[Float64, "4 4"] | None) -> Annotated[Float64, "4 4"] | None:
        """Return the pose in the link of a tool that is fixed to this frame; None for the link's own frame without a
        tool."""
        if self.T_link_tip is None or T_tip_tool is None:
            return T_tip_tool if self.T_link_tip is None else self.T_link_tip
        return np.asarray(self.T_link_tip @ T_tip_tool)


MOST_TEXT = 65_536
"""Longest text, characters, enough for as many tool frames; reading them takes a tenth of a second."""


def tool_frames(text: str) -> Mapping[str, Tip]:
    """Read the tool frames of a YAML text; an empty text has none.

    Raises:
        InvalidRequestError: the text is too long, or no mapping from names to links and poses.
    """
    if not isinstance(text, str):
        raise InvalidRequestError(f"tool frames are {shown(text)}; allowed is YAML text")
    if len(text) > MOST_TEXT:
        raise InvalidRequestError(f"tool frames: {len(text)} characters; allowed are at most {MOST_TEXT}")
    return _read(text)


@lru_cache(maxsize=16)
def _read(text: str) -> Mapping[str, Tip]:
    try:
        frames = {}
        given = read.mapping(read.parsed(text), "the text")
        if len(given) > MAX_FRAMES:
            raise InvalidShapeError(f"there are {len(given)} of them; allowed are {MAX_FRAMES}")
        for name, said in given.items():
            if not 1 <= len(name) <= MAX_ID_LENGTH:
                raise InvalidShapeError(
                    f"the name {quoted(name)} is not usable; allowed are 1 to {MAX_ID_LENGTH} characters"
                )
            said = read.mapping(said, f"tool frame {quoted(name)}", ("link", "pose"), ("link",))
            link = read.text(said["link"], f"link of tool frame {quoted(name)}")
            T_link_tip = pose_of(said.get("pose"), f"the pose of tool frame {quoted(name)}")
            check_transform(T_link_tip, f"the pose of tool frame {quoted(name)}")
            frames[name] = Tip(link, T_link_tip)
        return frames
    except InvalidShapeError as error:
        raise InvalidRequestError(f"tool frames: {error}") from None


def check_tool_frames(robot: RobotModel, frames: Mapping[str, Tip]) -> None:
    """Raise KinoptError if a tool frame is on no link of the robot, or is called like one."""
    for name, frame in frames.items():
        if name in robot.link_index:
            raise InvalidRequestError(
                f"tool frame {quoted(name)} is called like a link of robot {robot.name!r}"
            )
        try:
            robot.link(frame.link)
        except UnknownLinkError as error:
            raise InvalidRequestError(f"tool frame {quoted(name)}: {error}") from None


def find_tip(robot: RobotModel, frames: Mapping[str, Tip], scene: Scene, name: str) -> Tip:
    """Return the tip of a name: a link before a tool frame before an attached object or a subframe of one.

    Raises:
        UnknownTipError: there is none.
        InvalidRequestError: the tool frame is on a link that the robot does not have.
    """
    if not isinstance(name, str):
        raise UnknownTipError(name, (*robot.link_names, *frames, *scene.attached))
    if name in robot.link_index:
        return Tip(name)
    if name in frames:
        check_tool_frames(robot, {name: frames[name]})
        return frames[name]
    frame = object_frame(robot, scene, name)
    if frame is not None and frame.carried:
        return Tip(frame.link, frame.T_link_frame)
    raise UnknownTipError(name, (*robot.link_names, *frames, *scene.attached))


@dataclass(frozen=True, eq=False)
class ObjectFrame(Immutable):
    """A frame of an object."""

    link: str
    """Link that carries the object; for one of the world the robot's root link."""
    T_link_frame: Annotated[Float64, "4 4"]
    carried: bool
    """Whether a link carries the object."""

    def __post_init__(self) -> None:
        taken_over(self, "T_link_frame")


def object_frame(robot: RobotModel, scene: Scene, name: str) -> ObjectFrame | None:
    """Return the frame of an object, or a subframe ``object/subframe``; None if there is no such one.

    An object whose id is the whole name comes first.
    """
    if len(name) > _LONGEST:  # names come in messages, and each slash of a long one is a look
        return None
    end = len(name)
    while end > 0:
        id, subframe = name[:end], name[end + 1 :]
        body = scene.objects.get(id) or scene.attached.get(id)
        if body is not None and (end == len(name) or subframe in body.subframes):
            if isinstance(body, AttachedObject):
                link, T, carried = body.link, body.T_link_object, True
            else:
                link, T, carried = robot.root_link, body.T_root_object, False
            T_link_frame = T if end == len(name) else np.asarray(T @ body.subframes[subframe])
            return ObjectFrame(link, T_link_frame, carried)
        end = name.rfind("/", 0, end)
    return None
