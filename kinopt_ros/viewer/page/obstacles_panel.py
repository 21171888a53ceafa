"""Obstacles: added, dragged and deleted; scenes kept in files of the browser's."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.shapes import Mesh
from kinopt_ros.geometry.triangulation import triangulated
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.scene.scene import SceneObject
from kinopt_ros.viewer.obstacles import KINDS
from kinopt_ros.viewer.page.actions import Actions
from kinopt_ros.viewer.page.gizmos import pose_of
from kinopt_ros.viewer.session import Session

_COLOR = (235, 150, 60)
_NOTHING = "none"
LARGEST_FILE = 4 * 2**20
"""Largest scene that is taken from a browser, bytes."""


class ObstaclesPanel:
    """Obstacles in the scene, and what adds and deletes them."""

    def __init__(self, server: Any, session: Session, actions: Actions, changed: Callable[[], None]) -> None:
        self._server, self._session, self._changed = server, session, changed
        self._actions = actions
        self._handles: dict[str, list[Any]] = {}
        gui = server.gui
        self._avoid = gui.add_checkbox("Avoid collisions", session.avoid_collisions)
        self._kind = gui.add_dropdown("Shape", KINDS)
        self._size = gui.add_vector3(
            "Size, m",
            (0.2, 0.2, 0.2),
            min=(0.01,) * 3,
            max=(5.0,) * 3,
            step=0.01,
            hint="edges; diameter; diameter and length",
        )
        self._add = gui.add_button("Add an obstacle", icon="plus")
        self._chosen = gui.add_dropdown("Obstacle", (_NOTHING,))
        self._delete = gui.add_button("Delete it", icon="trash")
        self._save = gui.add_button(
            "Save the scene", icon="download", hint="as YAML, which --scene and the node read"
        )
        self._load = gui.add_upload_button("Load a scene", icon="upload", mime_type=".yaml,.yml")
        self._avoid.on_update(actions.guarded(self._set_avoid))
        self._add.on_click(actions.guarded(self._add_one))
        self._delete.on_click(actions.guarded(self._delete_one))
        self._save.on_click(actions.guarded(self._save_file))
        self._load.on_upload(actions.guarded(self._load_file))
        self.show()

    def show(self) -> None:
        """Draw the scene as it is."""
        scene = self._session.obstacles.scene
        for id in [id for id in self._handles if id not in scene.objects]:
            for handle in reversed(self._handles.pop(id)):  # removing the first would remove the others, too
                handle.remove()
        for i, (id, body) in enumerate(scene.objects.items()):
            if id not in self._handles:
                self._handles[id] = self._draw(f"/obstacles/{scene.version}_{i}", id, body)
        names = tuple(scene.objects) or (_NOTHING,)
        if tuple(self._chosen.options) != names:
            self._chosen.options = names
            self._chosen.value = names[-1]

    def _draw(self, name: str, id: str, body: SceneObject) -> list[Any]:
        scene, T = self._server.scene, body.T_root_object
        where = {"wxyz": matrix_to_quaternion(T[:3, :3]), "position": T[:3, 3]}
        gizmo = scene.add_transform_controls(name, scale=0.15, line_width=2.0, depth_test=True, **where)
        handles = [gizmo]
        for k, placed in enumerate(body.shapes):
            vertices, triangles = triangulated(placed.shape)
            T_object_shape = placed.T_frame_shape
            handles.append(
                scene.add_mesh_simple(
                    f"{name}/{k}",
                    vertices.astype(np.float32),
                    triangles.astype(np.uint32),
                    color=_COLOR,
                    opacity=0.75,
                    flat_shading=isinstance(placed.shape, Mesh),
                    wxyz=matrix_to_quaternion(T_object_shape[:3, :3]),
                    position=T_object_shape[:3, 3],
                )
            )

        @gizmo.on_update  # type: ignore[untyped-decorator]
        async def _(event: Any) -> None:
            if self._handles.get(id) is not handles:  # deleted, or of another scene
                return
            try:
                self._session.obstacles.move(id, pose_of(event.target))
            except (
                Exception
            ) as error:  # on viser's thread: it goes back to where it is, and the next drag counts
                self._actions.failed(error)
                body = self._session.obstacles.scene.objects.get(id)
                if body is not None:
                    T = body.T_root_object
                    gizmo.wxyz, gizmo.position = matrix_to_quaternion(T[:3, :3]), T[:3, 3]
                return
            self._changed()

        return handles

    def _set_avoid(self, _: Any) -> None:
        self._session.avoid_collisions = bool(self._avoid.value)
        self._changed()

    def _add_one(self, _: Any) -> None:
        reach = np.mean([T[:3, 3] for T in self._session.targets.values()], axis=0)
        x, y, z = (float(v) for v in reach + np.array([0.0, 0.3, 0.0]))
        self._session.obstacles.add(self._kind.value, self._size.value, (x, y, z))
        self.show()
        self._changed()

    def _delete_one(self, _: Any) -> None:
        if self._chosen.value == _NOTHING:
            raise InvalidShapeError("there is no obstacle to delete")
        self._session.obstacles.remove(self._chosen.value)
        self.show()
        self._changed()

    def _save_file(self, event: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scene.yaml"
            self._session.obstacles.save(path)
            if len(list(Path(folder).iterdir())) > 1:
                raise InvalidShapeError(
                    "the scene has arrays that are too large for one file: save it in Python"
                )
            event.client.send_file_download("scene.yaml", path.read_bytes(), save_immediately=True)

    def _load_file(self, event: Any) -> None:
        content = event.target.value.content
        if len(content) > LARGEST_FILE:
            raise InvalidShapeError(f"the file has {len(content)} bytes; allowed are {LARGEST_FILE}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scene.yaml"
            path.write_bytes(content)
            self._session.obstacles.load(path)
        for handles in self._handles.values():
            for handle in reversed(handles):
                handle.remove()
        self._handles.clear()
        self.show()
        self._changed()
