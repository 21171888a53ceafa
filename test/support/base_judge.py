"""A judge of an arm on a base that moves, which shares no code with the library: Pinocchio and coal."""

from collections.abc import Sequence
from typing import Annotated

import coal
import numpy as np
import pinocchio as pin
from support.moving_base import base_urdf

from kinopt_ros.array import Float64


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
