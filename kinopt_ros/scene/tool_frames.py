"""Frames on links by name, which serve as tips: tool frames, and those of attached objects.

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
from kinopt_ros.scene.checks import MAX_ID_LENGTH, check_transform
from kinopt_ros.scene.scene import Scene
from kinopt_ros.scene.shape_text import pose_of

MAX_FRAMES = 1_000
"""Most tool frames."""


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
    """Return the link, tool frame or attached object of a name; a link before a tool frame before an object.

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
    if name in scene.attached:
        return Tip(scene.attached[name].link, scene.attached[name].T_link_object)
    raise UnknownTipError(name, (*robot.link_names, *frames, *scene.attached))
