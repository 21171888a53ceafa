"""Server of interactive markers: what rviz shows and drags, by the protocol of the package interactive_markers.

Three names below ``<ns>``: ``update`` carries changes, numbered without a gap, ``get_interactive_markers`` gives all
markers and the number of the last change, for who joins late or has missed one, and ``feedback`` brings what clients do
(rviz's client is ``interactive_marker_client.cpp``, which says what it expects). A marker that a client drags is that
client's for a second after each of its messages; rviz sends ``KEEP_ALIVE`` feedback meanwhile. Servers of ROS 2 send
no ``KEEP_ALIVE`` updates any more: clients warn of them.

This server is used everywhere, also where the package interactive_markers is installed: rviz cannot tell the
difference, a second path would have to be tested again, and the package's Python server counts its changes outside its
lock, shares one default header among all markers, and drops callbacks that are given to ``insert``.

Pure bookkeeping: the connection with ROS is in ``interactive_markers.py``.
"""

import math
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from geometry_msgs.msg import Pose
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerFeedback,
    InteractiveMarkerPose,
    InteractiveMarkerUpdate,
)

from kinopt_ros.errors import InvalidRequestError, quoted, shortened
from kinopt_ros.geometry.shapes import LARGEST
from kinopt_ros.ros.messages.conversions import matrices_from_poses

HELD_SECONDS = 1.0
"""Time for which a marker is a client's after its last message, s."""
_LONGEST_NAME = 1000
"""Longest name that is looked at, characters."""
_UNIT = 0.1
"""Difference of a quaternion's length from 1 up to which it is made 1: clients turn markers by many small steps."""
_KINDS = range(InteractiveMarkerFeedback.KEEP_ALIVE, InteractiveMarkerFeedback.MOUSE_UP + 1)


@dataclass
class _Shown:
    """A marker that clients have."""

    marker: InteractiveMarker
    client: str = ""
    """Who has sent feedback about it last ..."""
    heard: float = -math.inf
    """... and when, s."""


class MarkerServer:
    """Markers by name, and the changes that clients are told. Thread-safe.

    Changes count when ``apply`` is called: all since the last one go into one update.
    """

    def __init__(self, publish: Callable[[Any], None], clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            publish: sends an InteractiveMarkerUpdate.
            clock: seconds.
        """
        self._publish = publish
        self._clock = clock
        # Held while an update is sent, so that no number overtakes another, and no answer has a change that its number
        # does not say.
        self._lock = threading.Lock()
        self._number = 0
        self._shown: dict[str, _Shown] = {}
        self._changed: dict[str, InteractiveMarker] = {}
        """New markers, and those that take the place of others."""
        self._moved: dict[str, Pose] = {}
        self._erased: set[str] = set()

    @property
    def changed(self) -> bool:
        """Whether something is to be applied."""
        with self._lock:
            return bool(self._changed or self._moved or self._erased)

    def names(self) -> list[str]:
        """Return the names of all markers, with those that are not applied yet."""
        with self._lock:
            return [*self._shown.keys() - self._erased, *self._changed.keys() - self._shown.keys()]

    def set(self, marker: InteractiveMarker) -> None:
        """Add a marker, or put it in the place of the one of its name."""
        with self._lock:
            self._erased.discard(marker.name)
            self._moved.pop(marker.name, None)
            self._changed[marker.name] = deepcopy(marker)

    def move(self, name: str, pose: Pose) -> bool:
        """Move a marker in its frame; return whether there is one of that name."""
        with self._lock:
            return self._move(name, pose)

    def erase(self, name: str) -> bool:
        """Remove a marker; return whether there was one of that name."""
        with self._lock:
            there = self._is_there(name)
            self._changed.pop(name, None)
            self._moved.pop(name, None)
            if name in self._shown:
                self._erased.add(name)
            return there

    def apply(self) -> None:
        """Send the changes, if there are some, as the update of the next number."""
        with self._lock:
            if not (self._changed or self._moved or self._erased):
                return
            update = InteractiveMarkerUpdate(type=InteractiveMarkerUpdate.UPDATE)
            for name, marker in self._changed.items():
                # Who replaces a marker that is being dragged leaves it to who drags it.
                self._shown.setdefault(name, _Shown(marker)).marker = marker
                update.markers.append(marker)
            for name, pose in self._moved.items():
                marker = self._shown[name].marker
                marker.pose = pose
                update.poses.append(InteractiveMarkerPose(header=marker.header, pose=pose, name=name))
            for name in sorted(self._erased):
                del self._shown[name]
                update.erases.append(name)
            self._changed, self._moved, self._erased = {}, {}, set()
            self._number += 1
            update.seq_num = self._number
            self._publish(update)

    def answer(self, response: Any) -> Any:
        """Fill a response of GetInteractiveMarkers: all markers as they are after the last update."""
        with self._lock:
            response.sequence_number = self._number
            response.markers = [deepcopy(one.marker) for one in self._shown.values()]
        return response

    def take(self, feedback: Any, shared: bool = False) -> None:
        """Look at what a client has done: whether it makes sense, and whether the marker is another client's. A pose
        moves the marker; what else follows from it is the caller's.

        Args:
            feedback: InteractiveMarkerFeedback; a pose that is taken is made one of unit length.
            shared: whether it does not matter whose the marker is, as of a stop.

        Raises:
            KinoptError: it is refused.
        """
        for what in ("marker_name", "client_id", "control_name"):
            if len(getattr(feedback, what)) > _LONGEST_NAME:
                raise InvalidRequestError(
                    f"{what} has {len(getattr(feedback, what))} characters; allowed are {_LONGEST_NAME}"
                )
        name = feedback.marker_name
        if feedback.event_type not in _KINDS:
            raise InvalidRequestError(
                f"event_type is {feedback.event_type}; allowed is {_KINDS.start} to {_KINDS.stop - 1}"
            )
        with self._lock:
            if name not in self._shown or name in self._erased:
                raise InvalidRequestError(
                    f"there is no marker {quoted(name)}; there are {shortened(list(self._shown), 10)}"
                )
            shown, now = self._shown[name], self._clock()
            if shown.client != feedback.client_id and now < shown.heard + HELD_SECONDS:
                if shared:
                    return
                raise InvalidRequestError(
                    f"marker {quoted(name)} is being moved by client {quoted(shown.client)}; "
                    f"{quoted(feedback.client_id)} may move it {HELD_SECONDS:g} s after that"
                )
            if feedback.event_type == InteractiveMarkerFeedback.POSE_UPDATE:
                pose = self._checked(feedback, shown.marker)
                self._move(name, pose)
                feedback.pose = pose
            shown.client, shown.heard = feedback.client_id, now

    def _checked(self, feedback: Any, marker: InteractiveMarker) -> Pose:
        """Return the pose of some feedback, of unit length."""
        frame, own = feedback.header.frame_id, marker.header.frame_id
        if frame not in ("", own):
            raise InvalidRequestError(
                f"marker {quoted(marker.name)} is moved in frame {quoted(frame)}; allowed is its own one, {own!r}"
            )
        q, p = feedback.pose.orientation, feedback.pose.position
        length = math.sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w)
        pose = Pose(position=p, orientation=q)
        if abs(length - 1.0) <= _UNIT:
            q.x, q.y, q.z, q.w = (value / length for value in (q.x, q.y, q.z, q.w))
        matrices_from_poses([pose], f"pose of {quoted(marker.name)}", InvalidRequestError)
        if max(abs(p.x), abs(p.y), abs(p.z)) > LARGEST:
            raise InvalidRequestError(
                f"marker {quoted(marker.name)} is moved to ({p.x:g}, {p.y:g}, {p.z:g}); allowed are coordinates of at "
                f"most {LARGEST:g} m"
            )
        return pose

    def _is_there(self, name: str) -> bool:
        return name in self._changed or (name in self._shown and name not in self._erased)

    def _move(self, name: str, pose: Pose) -> bool:
        if name in self._changed:
            self._changed[name].pose = pose
        elif self._is_there(name):
            self._moved[name] = pose
        return self._is_there(name)
