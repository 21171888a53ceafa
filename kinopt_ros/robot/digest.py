"""What a robot's motion follows from, as a number that tells robots apart."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from typing import Any

import numpy as np

from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel


@remembered
def kinematics_digest(robot: RobotModel) -> bytes:
    """Return a hash of links, joints, variables, limits, default configuration and masses: of all but names of groups,
    shapes, and what may touch."""
    stamp = sha256()
    for part in (
        robot.link_names,
        robot.joints,
        robot.variable_names,
        robot.limits,
        robot.default_q,
        robot.inertials,
    ):
        stamp.update(_told(part))
    return stamp.digest()


def _told(value: Any) -> bytes:
    """Return bytes that differ where values do."""
    if isinstance(value, np.ndarray):
        told = f"{value.dtype}{value.shape}".encode() + value.tobytes()
    elif is_dataclass(value) and not isinstance(value, type):
        told = b"".join(_told(getattr(value, field.name)) for field in fields(value))
    elif isinstance(value, Mapping):
        told = b"".join(_told(key) + _told(one) for key, one in value.items())
    elif isinstance(value, tuple):
        told = b"".join(map(_told, value))
    elif value is None or isinstance(value, str | float | int | Enum):
        told = repr(value).encode()
    else:
        raise TypeError(f"{type(value).__name__} has no bytes of its own")
    return f"{type(value).__name__} {len(told)} ".encode() + told
