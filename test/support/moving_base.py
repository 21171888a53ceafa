"""An arm on a base that moves, and a judge of it that shares no code with the library: Pinocchio and coal."""

from collections.abc import Sequence
from typing import Annotated

import coal
import numpy as np
import pinocchio as pin

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


class BaseJudge:
    """Places the robot by Pinocchio, and measures distances by coal."""

    def __init__(
        self,
        kind: str,
        boxes: Sequence[tuple[tuple[float, float, float], tuple[float, float, float]]] = (),
    ) -> None:
        text = base_urdf(kind)
        self._model = pin.buildModelFromXML(text)
        self._data = self._model.createData()
        things = pin.buildGeomFromUrdfString(self._model, text, pin.GeometryType.COLLISION)
        names = [thing.name for thing in things.geometryObjects]
        links = {link: names.index(f"{link}_0") for link in ("base", "upper", "lower")}
        pairs = [(links["base"], links["lower"])]
        for k, (size, place) in enumerate(boxes):
            placed = pin.SE3(np.eye(3), np.array(place))
            box = pin.GeometryObject(f"box{k}", 0, placed, coal.Box(*size))
            number = things.addGeometryObject(box)
            pairs += [(link, number) for link in links.values()]
        for a, b in pairs:
            things.addCollisionPair(pin.CollisionPair(a, b))
        self._things, self._placed = things, things.createData()

    def configuration(self, values: dict[str, float]) -> Float64:
        """Return Pinocchio's configuration of values by name of the variable, rad or m."""
        q = pin.neutral(self._model)
        for number in range(1, self._model.njoints):
            name, at = self._model.names[number], self._model.joints[number].idx_q
            if f"{name}/theta" in values:
                theta = values[f"{name}/theta"]
                q[at : at + 4] = values[f"{name}/x"], values[f"{name}/y"], np.cos(theta), np.sin(theta)
            elif f"{name}/trans_x" in values:
                parts = ("trans_x", "trans_y", "trans_z", "rot_x", "rot_y", "rot_z", "rot_w")
                q[at : at + 7] = [values[f"{name}/{part}"] for part in parts]
            else:
                q[at] = values[name]
        return q

    def place(self, values: dict[str, float], link: str) -> Annotated[Float64, "4 4"]:
        """Return where a link is."""
        pin.framesForwardKinematics(self._model, self._data, self.configuration(values))
        return np.array(self._data.oMf[self._model.getFrameId(link, pin.FrameType.BODY)].homogeneous)

    def distance(self, values: dict[str, float]) -> float:
        """Return the least distance of two things that must not touch, m; less than 0 in contact."""
        q = self.configuration(values)
        pin.computeDistances(self._model, self._data, self._things, self._placed, q)
        return min(result.min_distance for result in self._placed.distanceResults)


def values_along(
    names: Sequence[str], state: Annotated[Float64, "nq"], trajectory: JointTrajectory, step: float = 5e-3
) -> list[dict[str, float]]:
    """Return values by name of the variable at every ``step`` (s), as a controller interpolates them."""
    rows = commands(trajectory, step).states[0]
    rest = dict(zip(names, state.tolist(), strict=True))
    return [rest | dict(zip(trajectory.joint_names, row.tolist(), strict=True)) for row in rows]
