"""Which tips of a robot have interactive markers, as parameter markers.tips names them. Pure functions."""

from collections.abc import Sequence
from enum import Enum

from kinopt_ros.errors import InvalidRequestError, quoted
from kinopt_ros.problems.chains import default_group
from kinopt_ros.robot.model import RobotModel

PARAMETER = "markers.tips"
MOST = 16
"""Most tips that have a marker."""
_LONGEST = 200
"""Longest name, characters."""


class Mode(Enum):
    """What of a tip's pose counts."""

    POSE = "pose"
    POSITION = "position"
    FREE_X = "rx"
    FREE_Y = "ry"
    FREE_Z = "rz"

    @property
    def title(self) -> str:
        """What the menu calls it."""
        return _TITLES[self]

    @property
    def free_axes(self) -> list[str]:
        """Axes of the target that do not matter, as requests name them."""
        if self is Mode.POSITION:
            return ["rx", "ry", "rz"]
        return [] if self is Mode.POSE else [self.value]

    @staticmethod
    def named(word: str) -> "Mode":
        """Return the mode of a name; InvalidRequestError if there is none."""
        try:
            return Mode(word)
        except ValueError:
            raise InvalidRequestError(
                f"unknown mode {quoted(word)}; allowed are {', '.join(mode.value for mode in Mode)}"
            ) from None


_TITLES = {
    Mode.POSE: "position and orientation (6-DoF)",
    Mode.POSITION: "position only (3-DoF)",
    Mode.FREE_X: "free about x",
    Mode.FREE_Y: "free about y",
    Mode.FREE_Z: "free about z",
}


def read_tips(words: Sequence[str]) -> list[tuple[str, Mode]]:
    """Return tips and modes of words such as ``hand`` and ``camera=position``.

    Raises:
        InvalidRequestError: there are too many, one is named twice, or there is no such mode.
    """
    if len(words) > MOST:
        raise InvalidRequestError(f"{PARAMETER} has {len(words)} tips; allowed are at most {MOST}")
    tips: dict[str, Mode] = {}
    for word in words:
        name, _, mode = word.partition("=")
        if not 1 <= len(name) <= _LONGEST:
            raise InvalidRequestError(
                f"{PARAMETER} has {quoted(word)}; allowed are names of 1 to {_LONGEST} characters, with or without a "
                "mode: hand, camera=position"
            )
        if name in tips:
            raise InvalidRequestError(f"{PARAMETER} names {quoted(name)} more than once")
        tips[name] = Mode.named(mode) if mode else Mode.POSE
    return list(tips.items())


def chosen_tips(robot: RobotModel, words: Sequence[str], group: str = "") -> list[tuple[str, str, Mode]]:
    """Return the tips that have markers: name, group, and what of the pose counts.

    Args:
        robot: the robot.
        words: parameter markers.tips; none: the tips of all groups that have one.
        group: of requests that name none, which comes first; empty: the robot's.

    Raises:
        KinoptError: a word that means nothing, or an unknown group.
    """
    groups = {
        one.tip_link: name for name, one in reversed(list(robot.groups.items())) if one.tip_link is not None
    }
    try:
        first = robot.group(group) if group else default_group(robot)
    except InvalidRequestError:  # none has a tip
        first = None
    if first is not None and first.tip_link is not None:
        groups = {first.tip_link: first.name} | {tip: groups[tip] for tip in groups if tip != first.tip_link}
    if not words:
        return [(tip, name, Mode.POSE) for tip, name in list(groups.items())[:MOST]]
    return [(name, groups.get(name, ""), mode) for name, mode in read_tips(words)]
