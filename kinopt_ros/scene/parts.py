"""Checks of what scenes are made of, wherever it comes from. Every refusal is a sentence that names what was given."""

import math
from collections.abc import Mapping

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidShapeError, quoted, shown
from kinopt_ros.geometry.shapes import LARGEST, PlacedShape
from kinopt_ros.kinematics.se3 import is_pose, pose_defect

ANY = "*"
"""Name that stands for every link and every object in an allowed pair."""
MAX_SHAPES = 1_000
"""Most shapes of an object. (Use a point cloud or an octomap for more.)"""
MAX_SUBFRAMES = 1_000
"""Most subframes of an object."""
LARGEST_PADDING = 1.0
"""Largest padding, m."""
MAX_ID_LENGTH = 200
_ROTATION_ERROR = 1e-6
"""Largest accepted deviation of R Rᵀ from the identity."""


def check_name(given: str) -> None:
    """Raise unless ``given`` may be the id of an object of some robot."""
    if not _is_name(given):
        raise InvalidShapeError(
            f"the id of an object is {quoted(given)}; allowed are 1 to {MAX_ID_LENGTH} printable characters without "
            "spaces around them"
        )
    if given == ANY:
        raise InvalidShapeError(
            f"the id of an object is {ANY!r}, which stands for everything in allowed pairs"
        )


def _is_name(given: object) -> bool:
    """Check whether something may be the name of an object or of a frame on one."""
    if not isinstance(given, str) or not given or len(given) > MAX_ID_LENGTH:
        return False
    return given.isprintable() and given == given.strip()


def check_transform(T: Float64, what: str) -> None:
    """Raise unless T is a rigid transform of usable size."""
    if not (isinstance(T, np.ndarray) and T.dtype == np.float64 and T.shape == (4, 4)):
        given = f"{T.dtype} {T.shape}" if isinstance(T, np.ndarray) else type(T).__name__
        raise InvalidShapeError(f"{what} is {given}; allowed is float64 (4, 4)")
    if not is_pose(T, _ROTATION_ERROR) or np.abs(T[:3, 3]).max() > LARGEST:
        raise InvalidShapeError(f"{what} is no rigid transform: {pose_defect(T, _ROTATION_ERROR, LARGEST)}")


def check_subframes(given: str, subframes: Mapping[str, Float64]) -> None:
    """Raise unless these may be the subframes of object ``given``."""
    if not isinstance(subframes, Mapping):
        raise InvalidShapeError(
            f"the subframes of object {quoted(given)} are {shown(subframes)}; allowed are poses by name"
        )
    if len(subframes) > MAX_SUBFRAMES:
        raise InvalidShapeError(
            f"object {quoted(given)} has {len(subframes)} subframes; allowed are {MAX_SUBFRAMES}"
        )
    for name, T in subframes.items():
        if not _is_name(name):
            raise InvalidShapeError(
                f"a subframe of object {quoted(given)} is called {quoted(name)}; allowed are 1 to {MAX_ID_LENGTH} "
                "printable characters without spaces around them"
            )
        check_transform(T, f"subframe {quoted(name)} of object {quoted(given)}")


def check_shapes(given: str, shapes: tuple[PlacedShape, ...]) -> None:
    """Raise unless these may be the shapes of object ``given``."""
    if not isinstance(shapes, tuple) or not all(isinstance(one, PlacedShape) for one in shapes):
        raise InvalidShapeError(
            f"the shapes of object {quoted(given)} are {shown(shapes)}; allowed is a tuple of PlacedShape"
        )
    if not 1 <= len(shapes) <= MAX_SHAPES:
        raise InvalidShapeError(
            f"object {quoted(given)} has {len(shapes)} shapes; allowed are 1 to {MAX_SHAPES}"
        )
    for index, placed in enumerate(shapes):
        check_transform(placed.T_frame_shape, f"the pose of shape {index} of object {quoted(given)}")


def check_padding(value: float, what: str) -> None:
    """Raise unless ``value`` is a padding."""
    number = isinstance(value, float | int) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and 0.0 <= value <= LARGEST_PADDING):
        shown = f"{value:g}" if number else repr(value)
        raise InvalidShapeError(f"{what} is {shown}; allowed is 0 to {LARGEST_PADDING:g} m")
