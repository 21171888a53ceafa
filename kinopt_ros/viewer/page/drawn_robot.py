"""A robot in the scene with what it carries, and transparent copies of it."""

import operator
import threading
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.geometry.shapes import Mesh
from kinopt_ros.geometry.triangulation import triangulated
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.visual_elements import Color
from kinopt_ros.scene.scene import AttachedObject
from kinopt_ros.viewer.looks import Looks

_SAME = 1e-3
"""Difference of poses below which two links are drawn as one, m or rad."""

_CARRIED = (150, 90, 200)
"""Colour of attached objects."""


def rgb(color: Color) -> tuple[int, int, int]:
    """Return a colour as viser has it."""
    red, green, blue = (round(255 * part) for part in color)
    return red, green, blue


class DrawnRobot:
    """The robot where it is. Thread-safe."""

    def __init__(self, server: Any, robot: RobotModel, looks: Looks, name: str = "/robot") -> None:
        self._server, self._robot, self._name = server, robot, name
        self._lock = threading.Lock()
        self._links: list[str] = []
        self._frames: list[Any] = []
        for link in looks.parts:
            self._add_frame(link)
        self._carried: tuple[AttachedObject, ...] = ()
        self._bodies: list[Any] = []
        self._carryings = 0
        for i, link in enumerate(self._links):
            for k, part in enumerate(looks.parts[link]):
                server.scene.add_mesh_simple(
                    f"{name}/{i}/{k}",
                    part.vertices.astype(np.float32),
                    part.triangles.astype(np.uint32),
                    color=rgb(part.color),
                    flat_shading=not part.smooth,
                )
        self._shown: Annotated[Float64, "nq"] | None = None

    def show(self, q: Annotated[Float64, "nq"]) -> None:
        """Draw it in a configuration."""
        with self._lock:
            if self._shown is None or not np.array_equal(q, self._shown):
                self._place(q)

    def carry(self, attached: Mapping[str, AttachedObject]) -> None:
        """Draw what links carry, in place of what they have carried before."""
        with self._lock:
            held = tuple(attached.values())
            if len(held) == len(self._carried) and all(map(operator.is_, held, self._carried)):
                return
            for body in self._bodies:
                body.remove()
            self._carryings += 1
            self._carried = held
            self._bodies = [handle for number, one in enumerate(held) for handle in self._drawn(number, one)]
            if self._shown is not None:
                self._place(self._shown)

    def _drawn(self, number: int, held: AttachedObject) -> list[Any]:
        if held.link not in self._links:
            self._add_frame(held.link)
        handles = []
        for k, placed in enumerate(held.shapes):
            vertices, triangles = triangulated(placed.shape)
            T = held.T_link_object @ placed.T_frame_shape
            handles.append(
                self._server.scene.add_mesh_simple(
                    f"{self._name}/{self._links.index(held.link)}/carried_{self._carryings}_{number}_{k}",
                    vertices.astype(np.float32),
                    triangles.astype(np.uint32),
                    color=_CARRIED,
                    flat_shading=isinstance(placed.shape, Mesh),
                    wxyz=matrix_to_quaternion(T[:3, :3]),
                    position=T[:3, 3],
                )
            )
        return handles

    def _add_frame(self, link: str) -> None:
        frame = self._server.scene.add_frame(f"{self._name}/{len(self._links)}", show_axes=False)
        self._links.append(link)
        self._frames.append(frame)

    def _place(self, q: Annotated[Float64, "nq"]) -> None:
        self._shown = q.copy()
        T = forward_kinematics(self._robot, q, links=tuple(self._links))
        wxyz = matrix_to_quaternion(T[:, :3, :3])
        with self._server.atomic():
            for frame, orientation, pose in zip(self._frames, wxyz, T, strict=True):
                frame.wxyz, frame.position = orientation, pose[:3, 3]


class Ghosts:
    """Transparent copies of the robot, of one colour."""

    def __init__(
        self, server: Any, robot: RobotModel, looks: Looks, name: str, color: Color, opacity: float
    ) -> None:
        self._server, self._robot, self._looks = server, robot, looks
        self._name, self._color, self._opacity = name, color, opacity
        self._links = tuple(looks.parts)
        self._handles: list[tuple[int, Any]] = []

    def show(self, states: Annotated[Float64, "K nq"], q: Annotated[Float64, "nq"]) -> None:
        """Draw one in each of some configurations; none hides them.

        Links that are in all of them where they are in ``q``, where the robot is drawn, are left out.
        """
        if not len(states):
            self.hide()
            return
        T = forward_kinematics(self._robot, states, links=self._links)
        wxyz = matrix_to_quaternion(T[..., :3, :3])
        if not self._handles:
            self._handles = [
                (i, self._batch(i, k, wxyz[:, i], T[:, i, :3, 3]))
                for i, link in enumerate(self._links)
                for k in range(len(self._looks.parts[link]))
            ]
        moved = np.abs(T - forward_kinematics(self._robot, q, links=self._links)).max(axis=(0, 2, 3)) > _SAME
        with self._server.atomic():
            for i, handle in self._handles:
                handle.visible = bool(moved[i])
                if not moved[i]:
                    continue
                handle.batched_wxyzs = wxyz[:, i].astype(np.float32)
                handle.batched_positions = T[:, i, :3, 3].astype(np.float32)

    def hide(self) -> None:
        """Draw none."""
        for _, handle in self._handles:
            handle.visible = False

    def _batch(self, i: int, k: int, wxyz: Float64, position: Float64) -> Any:
        part = self._looks.parts[self._links[i]][k]
        return self._server.scene.add_batched_meshes_simple(
            f"{self._name}/{i}_{k}",
            part.vertices.astype(np.float32),
            part.triangles.astype(np.uint32),
            wxyz.astype(np.float32),
            position.astype(np.float32),
            flat_shading=not part.smooth,
            batched_colors=rgb(self._color),
            opacity=self._opacity,
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
        )
