"""Markers of the scene's objects: dragging one moves it, in the queue that all changes of the scene go through."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose

from kinopt_msgs.msg import CollisionObject, SceneOperation, SceneUpdate
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, Mesh, Sphere
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.ros.messages.marker_shapes import body_markers, color
from kinopt_ros.ros.messages.robot_markers import coarse_shapes
from kinopt_ros.ros.requests import scene_changes
from kinopt_ros.ros.rviz.controls import object_marker
from kinopt_ros.ros.rviz.menu import Action, Entry, menu_of
from kinopt_ros.ros.rviz.server import MarkerServer
from kinopt_ros.ros.topics.scene_update import Kind, SceneUpdateTopic
from kinopt_ros.scene.scene import Scene, SceneObject

PREFIX = "object/"
"""How names of these markers begin; the object's id follows."""
MOST = 100
"""Most objects that have a marker."""
BODY = color(0.2, 0.7, 0.3, 0.4)
DRAGGED = Sphere | Box | Cylinder | Cone | Capsule | Mesh
"""Shapes of which all of an object have to be that has a marker: nobody drags the floor, or what a camera saw."""


@dataclass(frozen=True, eq=False)
class _Known:
    """An object as its marker has it."""

    body: SceneObject
    robot: RobotModel
    handles: bool


class ObjectMarkers:
    """Markers of objects. ``update`` on one thread at a time, all else on any."""

    def __init__(
        self,
        context: Context,
        server: MarkerServer,
        updates: SceneUpdateTopic,
        scale: float,
        say: Callable[[str], None],
    ) -> None:
        """
        Args:
            context: the node's.
            server: of the markers.
            updates: makes changes of the scene in the order in which they come, and reports what is refused.
            scale: size of handles, m.
            say: logs a sentence.
        """
        self._context = context
        self._server = server
        self._updates = updates
        self._scale = scale
        self._say = say
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._menus: dict[str, dict[int, Any]] = {}
        self._handles: set[str] = set()
        """Objects that have arrows and rings."""
        self._moved: dict[str, Pose] = {}
        """Where objects are to be moved; the newest pose of each counts."""
        self._broken: set[str] = set()
        """Objects of which a change was refused."""
        self._kind = Kind("interactive_markers/feedback", lambda update: None, self._apply)
        self.stale = True
        """Whether markers may not be as the scene is."""

    def update(self, robot: RobotModel, scene: Scene) -> None:
        """Make the markers those of a scene; those that are being dragged stay where they are."""
        self.stale = False
        shown = {id: body for id, body in scene.objects.items() if _is_dragged(body)}
        if len(shown) > MOST:
            self._say(f"of {len(shown)} objects the first {MOST} have markers")
            shown = dict(list(shown.items())[:MOST])
        with self._lock:
            moving, handles = set(self._moved), set(self._handles)
            broken, self._broken = self._broken, set()
        for id in [id for id in self._known if id not in shown]:
            self._server.erase(PREFIX + id)
            del self._known[id]
            self._menus.pop(id, None)
        for id, body in shown.items():
            known = None if id in broken else self._known.get(id)
            if known is None or known.robot is not robot or known.body.shapes is not body.shapes:
                alike = False
            else:
                alike = known.handles == (id in handles)
            if alike and known is not None and known.body is body:
                continue
            pose = poses_from_matrices(body.T_root_object[None])[0]
            if not alike:
                self._set(robot, body, pose, id in handles)
            elif id not in moving:
                self._server.move(PREFIX + id, pose)
            self._known[id] = _Known(body, robot, id in handles)

    def move(self, id: str, pose: Pose, frame: str) -> None:
        """Move an object, soon."""
        with self._lock:
            waits = id in self._moved
            self._moved[id] = pose
        if not waits and not self._updates.offer(_update(SceneOperation.MOVE, id, frame), self._kind):
            with self._lock:
                self._moved.pop(id, None)
                self._broken.add(id)  # its marker is to go back
            self.stale = True

    def do(self, id: str, number: int) -> None:
        """Do what an entry of an object's menu asks for; KeyError if it has no such entry."""
        action, _ = self._menus[id][number]
        if action is Action.REMOVE:
            self._updates.take(_update(SceneOperation.REMOVE, id), self._kind)
            return
        with self._lock:
            self._handles ^= {id}
        self.stale = True

    def has(self, id: str, number: int) -> bool:
        """Whether an object's menu has an entry."""
        return number in self._menus.get(id, {})

    def _apply(self, context: Context, update: Any) -> None:
        """Make a change, with the newest pose; see Kind."""
        operation = update.operations[0]
        if operation.operation == SceneOperation.MOVE:
            with self._lock:
                operation.object.pose = self._moved.pop(operation.object.id)
        try:
            scene_changes.apply(context, update)
        except Exception:
            with self._lock:
                self._broken.add(operation.object.id)  # its marker is to go back
            self.stale = True
            raise

    def _set(self, robot: RobotModel, body: SceneObject, pose: Pose, handles: bool) -> None:
        shapes = body_markers("", "", np.eye(4), coarse_shapes(body.shapes), BODY)
        for marker in shapes:
            marker.frame_locked = False
        entries = [Entry("arrows and rings", Action.HANDLES, checked=handles), Entry("remove", Action.REMOVE)]
        menu, self._menus[body.id] = menu_of(entries)
        self._server.set(
            object_marker(
                PREFIX + body.id, body.id, robot.root_link, pose, self._scale, shapes, menu, handles
            )
        )


def _is_dragged(body: SceneObject) -> bool:
    return all(isinstance(one.shape, DRAGGED) for one in body.shapes)


def _update(operation: str, id: str, frame: str = "") -> Any:
    what = CollisionObject(id=id)
    what.header.frame_id = frame
    return SceneUpdate(operations=[SceneOperation(operation=operation, object=what)])
