"""Points of a configuration or trajectory by numpy, in float64: for verdicts, and to read costs with."""

from collections.abc import Callable
from types import ModuleType
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.stencils import window_of
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.se3 import so3_log
from kinopt_ros.kinematics.tangent import difference, directions
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel


class NumpyPath:
    """A trajectory of T points; ``path[t]`` is a point (``costs.point.Point``)."""

    def __init__(
        self,
        robot: RobotModel,
        q: Annotated[Float64, "T nq"],
        dt: float,
        poses: Callable[[str], Annotated[Float64, "T 4 4"]] | None = None,
    ) -> None:
        """``poses``: gives ``T_root_link`` at every point, where these were computed for several paths together."""
        self.robot = robot
        self.q = np.array(q, dtype=np.float64)
        # What costs are shown is what is judged: none of them may change it.
        self.q.setflags(write=False)
        self.dt = dt
        self._given = poses
        self._points: dict[int, NumpyPoint] = {}
        self._poses: dict[str, Float64] = {}

    def __len__(self) -> int:
        return len(self.q)

    def __getitem__(self, t: int) -> "NumpyPoint":
        if t not in self._points:
            self._points[t] = NumpyPoint(self, t)
        return self._points[t]

    def poses(self, link: str) -> Annotated[Float64, "T 4 4"]:
        """Compute ``T_root_link`` at every point, once."""
        if link not in self._poses:
            if self._given is not None:
                poses = self._given(link).copy()
            else:
                poses = forward_kinematics(self.robot, self.q, [link])[:, 0].copy()
            poses.setflags(write=False)
            self._poses[link] = poses
        return self._poses[link]


def numpy_paths(robot: RobotModel, q: Annotated[Float64, "B T nq"], dt: float) -> tuple[NumpyPath, ...]:
    """Return several trajectories, whose poses of a link are computed together."""
    B, T = q.shape[:2]
    if B == 1:
        return (NumpyPath(robot, q[0], dt),)
    known: dict[str, Float64] = {}

    def poses(link: str) -> Annotated[Float64, "B T 4 4"]:
        if link not in known:
            known[link] = forward_kinematics(robot, q.reshape(B * T, -1), [link])[:, 0].reshape(B, T, 4, 4)
        return known[link]

    return tuple(NumpyPath(robot, q[b], dt, lambda link, b=b: poses(link)[b]) for b in range(B))  # type: ignore[misc]


class NumpyPoint:
    """One point. See ``costs.point.Point`` for what its members are."""

    def __init__(self, path: NumpyPath, index: int) -> None:
        self._path = path
        self.index = index
        self.q = path.q[index]
        self.robot = path.robot

    @property
    def xp(self) -> ModuleType:
        """numpy."""
        return np

    def pose(self, link: str) -> Annotated[Float64, "4 4"]:
        """Compute ``T_root_link``, m."""
        T: Float64 = self._path.poses(link)[self.index]
        return T

    def jacobian(self, link: str) -> Annotated[Float64, "6 nv"]:
        """Compute the geometric Jacobian in the root link; columns are the robot's directions."""
        robot, known = self.robot, directions(self.robot)
        chain = chain_between(robot, robot.root_link, link)
        J = np.zeros((6, known.nv))
        # Columns of a chain come in the order of its variables, three for the four of a quaternion, as directions do.
        J[:, known.of_variables(chain.variables.tolist())] = geometric_jacobian(
            chain, self.q[chain.variables]
        )
        J.setflags(write=False)
        return J

    def rotation_vector(self, R: Annotated[Float64, "3 3"]) -> Annotated[Float64, "3"]:
        """Compute axis times angle of a rotation, rad."""
        return so3_log(R)

    def difference(
        self, a: Annotated[Float64, "nq"], b: Annotated[Float64, "nq"]
    ) -> Annotated[Float64, "nv"]:
        """Compute the step from configuration a to b along the robot's directions."""
        return difference(directions(self.robot), a, b)

    def derivative(self, order: int) -> Annotated[Float64, "nv"]:
        """Compute a derivative of the configuration by time."""
        path = self._path
        if not 1 <= order < len(path):
            raise InvalidRequestError(
                f"derivative({order}) needs more than {order} points; there are {len(path)}"
            )
        first, weights = window_of(order, len(path), self.index)
        steps = difference(directions(self.robot), self.q, path.q[first : first + len(weights)])
        found: Float64 = np.array(weights) @ steps / ((len(path) - 1) * path.dt) ** order
        return found

    def next(self, k: int = 1) -> "NumpyPoint":
        """Return the k-th point after this one."""
        if not 0 <= self.index + k < len(self._path):
            raise InvalidRequestError(
                f"point {self.index + k} does not exist: a cost that looks at k points after its own has span k + 1"
            )
        return self._path[self.index + k]
