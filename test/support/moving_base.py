"""An arm on a base that moves."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.trajectory.interpolation import commands
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

_LINK = (
    '<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    '<collision><origin xyz="0 0 {1}"/><geometry><box size="{2}"/></geometry></collision></link>'
)
_TURN = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="0 0 {3}"/>'
    '<axis xyz="0 {4} {5}"/><limit lower="-2" upper="2" velocity="1" effort="1"/></joint>'
)
ARM = (
    _LINK.format("base", 0.0, "0.6 0.4 0.2")
    + _LINK.format("upper", 0.25, "0.08 0.08 0.4")
    + _LINK.format("lower", 0.2, "0.06 0.06 0.3")
    + '<link name="tool"/><link name="mast"/>'
    + _TURN.format("shoulder", "base", "upper", 0.12, 1, 0)
    + _TURN.format("elbow", "upper", "lower", 0.5, 1, 0)
    + _TURN.format("wrist", "lower", "tool", 0.4, 0, 1)
    + _TURN.format("pan", "base", "mast", 0.3, 0, 1)
)


def base_urdf(kind: str) -> str:
    """Return an arm of three joints, and a mast beside it, on a base with a planar or floating joint ``drive``."""
    return (
        f'<robot name="rover"><link name="map"/>{ARM}<joint name="drive" type="{kind}"><parent link="map"/>'
        '<child link="base"/><origin xyz="0.1 -0.2 0.15" rpy="0 0 0.3"/><axis xyz="0 0 1"/></joint></robot>'
    )


def box_scene(*boxes: tuple[tuple[float, float, float], tuple[float, float, float]]) -> Scene:
    """Return a scene of boxes, each given by its size and where it is."""
    objects = {}
    for k, (size, place) in enumerate(boxes):
        T = np.eye(4)
        T[:3, 3] = place
        objects[f"box{k}"] = SceneObject(f"box{k}", (PlacedShape(Box(*size), np.eye(4)),), T)
    return Scene(objects=objects, version=1)


def values_along(
    names: Sequence[str], state: Annotated[Float64, "nq"], trajectory: JointTrajectory, step: float = 5e-3
) -> list[dict[str, float]]:
    """Return values by name of the variable at every ``step`` (s), as a controller interpolates them."""
    rows = commands(trajectory, step).states[0]
    rest = dict(zip(names, state.tolist(), strict=True))
    return [rest | dict(zip(trajectory.joint_names, row.tolist(), strict=True)) for row in rows]
