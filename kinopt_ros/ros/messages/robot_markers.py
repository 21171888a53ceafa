"""Markers of a robot in a configuration, of the way of a tip, and of how easily it moves. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from kinopt_ros.array import Float64, Int64
from kinopt_ros.geometry.coarse import coarse
from kinopt_ros.geometry.shapes import Mesh, PlacedShape
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.se3 import pose
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.messages.conversions import matrices_from_poses, poses_from_matrices
from kinopt_ros.ros.messages.marker_shapes import body_markers, points_of
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene
from kinopt_ros.scene.tool_frames import Tip

ELLIPSOID_SCALE = 0.2
"""Length of a semi-axis of the manipulability ellipsoid per unit of manipulability, m."""
THINNEST = 1e-3
"""Least diameter that is drawn, m: in a singular configuration the ellipsoid is flat."""
_WAY_WIDTH = 0.006
_BONE_WIDTH = 0.02


@dataclass(frozen=True, eq=False)
class RobotDrawing:
    """A robot's shapes, ready to be drawn in any configuration."""

    robot: RobotModel
    links: tuple[str, ...]
    """Links that have shapes."""
    link: Annotated[Int64, "N"]
    """Link of every marker, as an index into ``links``."""
    T_link_marker: Annotated[Float64, "N 4 4"]
    shapes: tuple[Marker, ...]
    """One marker of every shape; its pose does not matter."""

    def markers(self, q: Annotated[Float64, "nq"], painted: ColorRGBA) -> list[Marker]:
        """Return the robot in configuration q, in the frame of its root link; its bones if it has no shapes."""
        if not self.shapes:
            return _bones(self.robot, q, painted)
        T_root_link = forward_kinematics(self.robot, q, links=self.links)
        poses = poses_from_matrices(T_root_link[self.link] @ self.T_link_marker)
        drawn = []
        for shape, at in zip(self.shapes, poses, strict=True):
            marker = Marker(type=shape.type, action=Marker.ADD, color=painted, pose=at, scale=shape.scale)
            marker.header.frame_id = self.robot.root_link
            marker.points = shape.points
            drawn.append(marker)
        return drawn


def robot_drawing(robot: RobotModel, scene: Scene = EMPTY_SCENE) -> RobotDrawing:
    """Return what draws a robot with the objects that it carries, by its collision shapes. Reads meshes; slow the first
    time."""
    bodies = [(link, np.eye(4), shapes) for link, shapes in robot.collision_shapes.items()]
    bodies += [(held.link, held.T_link_object, held.shapes) for held in scene.attached.values()]
    links = tuple(dict.fromkeys(link for link, _, _ in bodies))
    index: list[int] = []
    found: list[Marker] = []
    for link, T_link_body, shapes in bodies:
        own = body_markers("", link, T_link_body, coarse_shapes(shapes), ColorRGBA())
        index += [links.index(link)] * len(own)
        found += own
    T = matrices_from_poses([marker.pose for marker in found], "shapes")
    return RobotDrawing(robot, links, np.array(index, dtype=np.int64), T, tuple(found))


def coarse_shapes(shapes: Sequence[PlacedShape]) -> list[PlacedShape]:
    """Return shapes with few triangles."""
    return [
        PlacedShape(coarse(one.shape), one.T_frame_shape) if isinstance(one.shape, Mesh) else one
        for one in shapes
    ]


def carried_markers(
    robot: RobotModel, tip: Tip, q: Annotated[Float64, "nq"], painted: ColorRGBA
) -> list[Marker]:
    """Return the shapes of a tip's link and of all that hangs on it (a gripper), in the tip's frame, without a
    frame_id: as controls of interactive markers have them."""
    hanging = {tip.link}
    for joint in robot.joints:  # parents before children
        if joint.parent_link in hanging:
            hanging.add(joint.child_link)
    links = tuple(link for link in robot.link_names if link in hanging and link in robot.collision_shapes)
    T = forward_kinematics(robot, q, links=(tip.link, *links))
    T_tip_root = np.linalg.inv(T[0] if tip.T_link_tip is None else T[0] @ tip.T_link_tip)
    markers: list[Marker] = []
    for link, T_root_link in zip(links, T[1:], strict=True):
        markers += body_markers(
            "", "", T_tip_root @ T_root_link, coarse_shapes(robot.collision_shapes[link]), painted
        )
    for marker in markers:
        marker.frame_locked = False
    return markers


def way_markers(
    robot: RobotModel, tip: Tip, q: Annotated[Float64, "N nq"], painted: ColorRGBA
) -> list[Marker]:
    """Return the way of a tip through N configurations, as a line, and a ball at each of them."""
    T = forward_kinematics(robot, q, links=(tip.link,))[:, 0]
    if tip.T_link_tip is not None:
        T = T @ tip.T_link_tip
    line = Marker(type=Marker.LINE_STRIP, action=Marker.ADD, color=painted)
    balls = Marker(type=Marker.SPHERE_LIST, action=Marker.ADD, color=painted)
    line.scale.x = _WAY_WIDTH
    balls.scale.x = balls.scale.y = balls.scale.z = 2.0 * _WAY_WIDTH
    for marker in (line, balls):
        marker.points = points_of(T[:, :3, 3])
        marker.header.frame_id = robot.root_link
        marker.pose.orientation.w = 1.0
    return [line, balls]


def manipulability_ellipsoid(
    J: Annotated[Float64, "3 k"],
) -> tuple[Annotated[Float64, "3 3"], Annotated[Float64, "3"]]:
    """Return the velocities of a tip that joint velocities of length 1 bring about, as an ellipsoid.

    Args:
        J: linear part of the Jacobian, m/s per rad/s or m/s.

    Returns:
        Its axes, as the columns of a rotation, and semi-axes in ascending order: the roots of the eigenvalues of J J^T.
        T. Yoshikawa, "Manipulability of robotic mechanisms" (1985).
    """
    values, axes = np.linalg.eigh(J @ J.T)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    return axes, np.sqrt(np.maximum(values, 0.0))


def manipulability_marker(
    robot: RobotModel, base: str, tip: Tip, q: Annotated[Float64, "nq"], painted: ColorRGBA
) -> Marker:
    """Return the manipulability ellipsoid of a tip at the tip, in the frame of the root link; its semi-axes are
    ELLIPSOID_SCALE times the roots of the eigenvalues."""
    chain = chain_between(robot, base, tip.link)
    J = geometric_jacobian(chain, q[chain.variables])
    T_root_base, T_root_link = forward_kinematics(robot, q, links=(base, tip.link))
    lever = np.zeros(3)
    if tip.T_link_tip is not None:
        lever = T_root_base[:3, :3].T @ T_root_link[:3, :3] @ tip.T_link_tip[:3, 3]
    linear = J[:3] + np.cross(J[3:].T, lever).T
    axes, semi = manipulability_ellipsoid(T_root_base[:3, :3] @ linear)
    center = T_root_link[:3, 3] + T_root_base[:3, :3] @ lever
    marker = Marker(type=Marker.SPHERE, action=Marker.ADD, color=painted)
    marker.header.frame_id = robot.root_link
    marker.pose = poses_from_matrices(pose(axes, center)[None])[0]
    diameters = np.maximum(2.0 * ELLIPSOID_SCALE * semi, THINNEST)
    marker.scale.x, marker.scale.y, marker.scale.z = (float(value) for value in diameters)
    return marker


def text_marker(
    frame: str, at: Annotated[Float64, "3"], text: str, height: float, painted: ColorRGBA
) -> Marker:
    """Return a text that faces the viewer; ``height`` of its letters, m."""
    marker = Marker(type=Marker.TEXT_VIEW_FACING, action=Marker.ADD, color=painted, text=text)
    marker.header.frame_id = frame
    marker.pose.position = points_of(at[None])[0]
    marker.pose.orientation.w = 1.0
    marker.scale.z = height
    return marker


def _bones(robot: RobotModel, q: Annotated[Float64, "nq"], painted: ColorRGBA) -> list[Marker]:
    """Return lines between the frames of a robot's links."""
    T = forward_kinematics(robot, q, links=robot.link_names)[:, :3, 3]
    ends = [
        T[robot.link_index[name]] for joint in robot.joints for name in (joint.parent_link, joint.child_link)
    ]
    lines = Marker(type=Marker.LINE_LIST, action=Marker.ADD, color=painted)
    lines.scale.x = _BONE_WIDTH
    lines.points = points_of(np.array(ends).reshape(-1, 3))
    lines.header.frame_id = robot.root_link
    lines.pose.orientation.w = 1.0
    return [lines]
