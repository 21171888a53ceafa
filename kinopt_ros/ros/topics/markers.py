"""~/markers: the scene, the spheres that stand for the robot, and where it is nearest to a collision, for RViz.

Nothing is computed while nobody listens.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import numpy as np
from visualization_msgs.msg import Marker, MarkerArray

from kinopt_ros.array import Float64
from kinopt_ros.errors import KinoptError
from kinopt_ros.geometry.shapes import PlacedShape, Sphere
from kinopt_ros.kinematics.se3 import pose
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.marker_shapes import body_markers, color, points_of
from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.ros.serving.newcomers import Newcomers, listeners_of
from kinopt_ros.scene.scene import Scene

SECONDS = 0.5
"""Time between two looks at what has changed, s."""
NEAR = 0.05
"""Distance up to which the nearest pair is drawn in another colour, m."""
OBJECTS, ATTACHED, SPHERES = color(0.2, 0.7, 0.3, 0.8), color(0.6, 0.3, 0.8, 0.8), color(0.6, 0.6, 0.6, 0.35)
COLLISION, CLOSE, CLEAR = color(0.9, 0.1, 0.1, 1.0), color(1.0, 0.6, 0.0, 1.0), color(0.2, 0.6, 1.0, 1.0)


class MarkersTopic:
    """Publisher of visualization_msgs/MarkerArray."""

    def __init__(self, context: Context, markers: Any) -> None:
        self._context = context
        self._markers = markers
        self._closed = False
        self._newcomers = Newcomers(lambda: listeners_of(context.node, markers.topic_name))
        self._drawn: tuple[Scene, RobotModel] | None = None
        self._present: set[tuple[str, int]] = set()
        """Namespaces and numbers of the markers that listeners have."""
        self._spheres: tuple[RobotModel, list[Marker]] | None = None
        self._measured: tuple[Scene, RobotModel, bytes] | None = None
        """Scene, robot and joint values for which the clearance was drawn last."""
        self._busy = threading.Lock()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="markers")
        self._timer = context.node.create_timer(SECONDS, self._look)

    def close(self) -> None:
        """Publish no more."""
        self._closed = True
        self._timer.cancel()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _look(self) -> None:
        """Draw, on a thread of its own, if somebody listens and it is not being done."""
        if self._markers.get_subscription_count() > 0 and self._context.loader.is_ready:
            if self._busy.acquire(blocking=False):
                self._worker.submit(self._draw)
        elif self._drawn is not None:
            self._drawn = None  # who comes next gets everything

    def _draw(self) -> None:
        """Publish what has changed. Never raises."""
        logger = self._context.node.get_logger()
        try:
            self._publish_changes()
        except KinoptError as error:
            logger.warning(f"~/markers: {error}", throttle_duration_sec=30.0)
        except Exception as error:  # nothing ends the thread
            if not self._closed:  # else the publisher went away in the middle of it
                log_defect(logger, "on ~/markers", error, seconds=30.0)
        finally:
            self._busy.release()

    def _publish_changes(self) -> None:
        robot = self._context.loaded.model
        scene = self._context.scene.of(robot)
        if self._newcomers.are_due():  # they get everything
            self._drawn = self._measured = None
        if (scene, robot) != self._drawn:
            self._drawn = scene, robot
            self._publish(scene_markers(scene, robot), "objects", "attached")
            # Slow the first time: what is quick is shown before.
            self._publish(self._sphere_markers(robot), "spheres")
        state = self._context.joint_states.of(robot)
        measured = scene, robot, state.q.tobytes()
        if state.known.any() and measured != self._measured:
            self._measured = measured
            self._publish(clearance_markers(robot, scene, state.q), "clearance")

    def _publish(self, markers: list[Marker], *kinds: str) -> None:
        """Publish all markers of some kinds and remove those that were there before."""
        now = {(marker.ns, marker.id) for marker in markers}
        before = {key for key in self._present if key[0].split("/")[0] in kinds}
        gone = [Marker(ns=ns, id=number, action=Marker.DELETE) for ns, number in sorted(before - now)]
        self._present = (self._present - before) | now
        self._markers.publish(MarkerArray(markers=[*gone, *markers]))

    def _sphere_markers(self, robot: RobotModel) -> list[Marker]:
        if self._spheres is None or self._spheres[0] is not robot:
            self._spheres = robot, sphere_markers(robot)
        return self._spheres[1]


def scene_markers(scene: Scene, robot: RobotModel) -> list[Marker]:
    """Return markers of all objects in namespaces ``objects/<id>`` and ``attached/<id>``."""
    markers = []
    for body in scene.objects.values():
        markers += body_markers(
            f"objects/{body.id}", robot.root_link, body.T_root_object, body.shapes, OBJECTS
        )
    for held in scene.attached.values():
        markers += body_markers(f"attached/{held.id}", held.link, held.T_link_object, held.shapes, ATTACHED)
    return markers


def sphere_markers(robot: RobotModel) -> list[Marker]:
    """Return markers of the spheres that stand for the robot's links, in namespaces ``spheres/<link>``."""
    from kinopt_ros.collision.spheres import robot_spheres

    spheres = robot_spheres(robot)
    markers = []
    for index, link in enumerate(robot.link_names):
        own = spheres.link == index
        placed = [
            PlacedShape(Sphere(float(radius)), pose(np.eye(3), center))
            for center, radius in zip(spheres.centers[own], spheres.radii[own], strict=True)
        ]
        markers += body_markers(f"spheres/{link}", link, np.eye(4), placed, SPHERES)
    return markers


def clearance_markers(robot: RobotModel, scene: Scene, q: Annotated[Float64, "nq"]) -> list[Marker]:
    """Return a line between the nearest points of the two bodies that are nearest to each other, and their distance."""
    from kinopt_ros.verification.collision import clearance_of

    nearest = clearance_of(robot, scene, q)
    if nearest.point_a is None or nearest.point_b is None:
        return []
    painted = COLLISION if nearest.distance < 0.0 else CLOSE if nearest.distance < NEAR else CLEAR
    line = Marker(ns="clearance", id=0, type=Marker.LINE_LIST, action=Marker.ADD, color=painted)
    line.points = points_of(np.stack([nearest.point_a, nearest.point_b]))
    line.scale.x = 0.004
    text = Marker(ns="clearance", id=1, type=Marker.TEXT_VIEW_FACING, action=Marker.ADD, color=painted)
    text.text = f"{nearest.a} - {nearest.b}: {nearest.distance:.3f} m"
    text.pose.position = points_of(0.5 * (nearest.point_a + nearest.point_b)[None])[0]
    text.pose.position.z += 0.05
    text.scale.z = 0.03
    for marker in (line, text):
        marker.header.frame_id = robot.root_link
    return [line, text]
