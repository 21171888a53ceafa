"""Client of interactive markers that behaves as rviz's does: what it has, it has by the protocol alone."""

from collections import deque
from typing import Any

from geometry_msgs.msg import Pose
from rclpy.node import Node
from rclpy.qos import QoSProfile
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerFeedback,
    InteractiveMarkerUpdate,
)
from visualization_msgs.srv import GetInteractiveMarkers


class MarkerClient:
    """Idle until the service is there; then asks for all markers, leaves out updates that these have already, and
    applies those that follow. A gap in their numbers begins it all anew."""

    def __init__(self, node: Node, namespace: str, client_id: str) -> None:
        self.client_id = client_id
        self.markers: dict[str, InteractiveMarker] = {}
        self.resets = 0
        self.numbers: list[int] = []
        """Numbers of all updates that came."""
        self.running = False
        self._asked: Any = None
        self._last: int | None = None
        self._waiting: deque[Any] = deque()
        self._node = node
        self._service = node.create_client(GetInteractiveMarkers, f"{namespace}/get_interactive_markers")
        self._feedback = node.create_publisher(
            InteractiveMarkerFeedback, f"{namespace}/feedback", QoSProfile(depth=100)
        )
        self._updates = node.create_subscription(
            InteractiveMarkerUpdate, f"{namespace}/update", self._take, QoSProfile(depth=100)
        )

    def close(self) -> None:
        """Leave."""
        self._node.destroy_client(self._service)
        self._node.destroy_publisher(self._feedback)
        self._node.destroy_subscription(self._updates)

    @property
    def connected(self) -> bool:
        """Whether it has all markers, and the server hears it."""
        self.step()
        return self.running and self._feedback.get_subscription_count() > 0

    def step(self) -> None:
        """Go on, as rviz does with every frame."""
        if self._asked is None and not self.running and self._service.service_is_ready():
            self._asked = self._service.call_async(GetInteractiveMarkers.Request())
        if self._asked is not None and self._asked.done():
            answer, self._asked = self._asked.result(), None
            self.markers = {marker.name: marker for marker in answer.markers}
            while self._waiting and self._waiting[0].seq_num <= answer.sequence_number:
                self._waiting.popleft()
            self.running = True
        while self.running and self._waiting:
            self._apply(self._waiting.popleft())

    def send(self, name: str, kind: int, pose: Pose | None = None, entry: int = 0, **fields: Any) -> None:
        """Send feedback about a marker; a pose is in the marker's frame."""
        message = InteractiveMarkerFeedback(
            client_id=self.client_id, marker_name=name, event_type=kind, menu_entry_id=entry
        )
        marker = self.markers.get(name)
        if marker is not None:
            message.header.frame_id = marker.header.frame_id
            message.pose = marker.pose
        message.pose = pose or message.pose
        for field, value in fields.items():
            setattr(message, field, value)
        self._feedback.publish(message)

    def drag(self, name: str, pose: Pose) -> None:
        """Move a marker with the mouse."""
        self.send(name, InteractiveMarkerFeedback.POSE_UPDATE, pose, control_name="body")

    def select(self, name: str, *titles: str) -> None:
        """Select an entry of a marker's menu by its title, below others."""
        self.send(name, InteractiveMarkerFeedback.MENU_SELECT, entry=self.entry(name, *titles))

    def entry(self, name: str, *titles: str) -> int:
        """Return the number of an entry; its box does not matter."""
        parent = 0
        for title in titles:
            [parent] = [
                entry.id
                for entry in self.markers[name].menu_entries
                if entry.parent_id == parent
                and entry.title.removeprefix("[x] ").removeprefix("[ ] ") == title
            ]
        return parent

    def is_ticked(self, name: str, *titles: str) -> bool:
        """Whether the box of an entry is ticked."""
        number = self.entry(name, *titles)
        [entry] = [entry for entry in self.markers[name].menu_entries if entry.id == number]
        assert entry.title[:4] in ("[x] ", "[ ] ")
        return bool(entry.title.startswith("[x] "))

    def _take(self, update: Any) -> None:
        assert update.type == InteractiveMarkerUpdate.UPDATE, "rviz warns of these"
        self.numbers.append(update.seq_num)
        if self._last is not None and update.seq_num != self._last + 1:
            self.resets += 1
            self._asked, self._last, self.running = None, None, False
            self._waiting.clear()
            return
        self._last = update.seq_num
        self._waiting.append(update)

    def _apply(self, update: Any) -> None:
        for marker in update.markers:
            self.markers[marker.name] = marker
        for moved in update.poses:
            self.markers[moved.name].pose = moved.pose
            self.markers[moved.name].header = moved.header
        for name in update.erases:
            del self.markers[name]
