"""Interactive markers of tips and of objects, as messages. Pure functions."""

import math
from collections.abc import Sequence
from typing import Any

from geometry_msgs.msg import Pose, Quaternion
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerControl, Marker, MenuEntry

from kinopt_ros.ros.robot.marker_tips import Mode

BODY = "body"
"""Name of the control that is the tip, or the object, itself: it is dragged parallel to the screen."""
_HALF = math.sqrt(0.5)
_AXES = {
    "x": Quaternion(w=_HALF, x=_HALF, y=0.0, z=0.0),
    "y": Quaternion(w=_HALF, x=0.0, y=0.0, z=_HALF),
    "z": Quaternion(w=_HALF, x=0.0, y=_HALF, z=0.0),
}
"""Rotations that turn a control's own axis, x, into an axis of the marker, with the colours that rviz gives them."""


def tip_marker(
    name: str,
    title: str,
    frame: str,
    pose: Pose,
    mode: Mode,
    scale: float,
    body: Sequence[Marker],
    menu: Sequence[MenuEntry],
) -> InteractiveMarker:
    """Return the marker of a tip.

    Args:
        name: of the marker.
        title: shown above it.
        frame: frame of the pose. The stamp is 0, so that clients answer in this frame.
        pose: of the target.
        mode: what of the pose counts: there are arrows along all axes, and rings about those that count.
        scale: size of the handles, m.
        body: what hangs on the tip, in its frame; a small ball if empty.
        menu: its menu.
    """
    marker = _marker(name, title, frame, pose, scale, menu)
    marker.controls = [_body(body or [_ball(0.2 * scale)], InteractiveMarkerControl.MOVE_3D)]
    # What has no orientation moves along the axes of its frame.
    own = InteractiveMarkerControl.FIXED if mode is Mode.POSITION else InteractiveMarkerControl.INHERIT
    for axis in _AXES:
        marker.controls.append(_along(axis, own))
        if f"r{axis}" not in mode.free_axes:
            marker.controls.append(_about(axis))
    return marker


def object_marker(
    name: str,
    title: str,
    frame: str,
    pose: Pose,
    scale: float,
    body: Sequence[Marker],
    menu: Sequence[MenuEntry],
    handles: bool,
) -> InteractiveMarker:
    """Return the marker of an object of the scene: itself to be dragged, and arrows and rings with ``handles``. All
    else as of ``tip_marker``."""
    marker = _marker(name, title if handles else "", frame, pose, scale, menu)
    marker.controls = [_body(body, InteractiveMarkerControl.MOVE_ROTATE_3D)]
    for axis in _AXES if handles else ():
        marker.controls += [_along(axis, InteractiveMarkerControl.INHERIT), _about(axis)]
    return marker


def _marker(
    name: str, title: str, frame: str, pose: Pose, scale: float, menu: Sequence[MenuEntry]
) -> InteractiveMarker:
    marker = InteractiveMarker(name=name, description=title, pose=pose, scale=scale)
    marker.header.frame_id = frame
    marker.menu_entries = list(menu)
    return marker


def _body(shown: Sequence[Marker], kind: int) -> Any:
    return InteractiveMarkerControl(
        name=BODY,
        orientation=Quaternion(w=1.0),
        interaction_mode=kind,
        always_visible=True,
        markers=list(shown),
    )


def _along(axis: str, orientation_mode: int) -> Any:
    return InteractiveMarkerControl(
        name=f"move_{axis}",
        orientation=_AXES[axis],
        orientation_mode=orientation_mode,
        interaction_mode=InteractiveMarkerControl.MOVE_AXIS,
    )


def _about(axis: str) -> Any:
    return InteractiveMarkerControl(
        name=f"rotate_{axis}",
        orientation=_AXES[axis],
        interaction_mode=InteractiveMarkerControl.ROTATE_AXIS,
    )


def _ball(diameter: float) -> Marker:
    ball = Marker(type=Marker.SPHERE, color=ColorRGBA(r=1.0, g=0.6, b=0.1, a=0.8))
    ball.scale.x = ball.scale.y = ball.scale.z = diameter
    return ball
