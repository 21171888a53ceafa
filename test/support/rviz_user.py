"""A user of rviz: interactive markers that are dragged, and what ~/markers shows."""

import time
from collections.abc import Callable
from typing import Any, ClassVar

from rclpy.qos import QoSProfile
from support.marker_client import MarkerClient
from support.ros_requests import pose
from visualization_msgs.msg import Marker, MarkerArray

from kinopt_ros.ros.client.client import Client

TIP = "tip/panda_link8"
LONG = 60.0
"""Time that no test waits unless it fails, s."""


class Rviz:
    """What an rviz user has: markers to drag, and what ~/markers shows."""

    heard: ClassVar[int] = 0
    """Number of times that somebody wanted to be heard."""

    def __init__(self, client: Client, node: str, name: str = "rviz_1") -> None:
        """``node``: whose markers these are; ``name``: of this client."""
        self.client = client
        self.markers = MarkerClient(client.node, f"/{node}/interactive_markers", name)
        self.drawn: dict[tuple[str, int], Marker] = {}
        self.said: list[str] = []
        """All that was said at the tip's target."""
        self._display = client.node.create_subscription(
            MarkerArray, f"/{node}/markers", self._take, QoSProfile(depth=100)
        )
        self.wait(lambda: self.markers.connected and TIP in self.markers.markers)

    def wait(self, condition: Any) -> None:
        def holds() -> bool:
            self.markers.step()
            return bool(condition())

        assert self.client.spin_until(holds, LONG), {k: m.text for k, m in self.drawn.items() if m.text}

    def until(self, do: Callable[[], object], condition: Callable[[], object], every: float = 0.3) -> None:
        """Do something again and again until that has led to something: it may be heard late, or at a bad time."""
        end = time.monotonic() + LONG

        def holds() -> bool:
            self.markers.step()
            return bool(condition())

        while not holds():
            assert time.monotonic() < end, {
                key: marker.text for key, marker in self.drawn.items() if marker.text
            }
            do()
            self.client.spin_until(holds, every)

    def be_heard(self) -> None:
        """Drag until the node hears it, and is heard: both may find the other later than that finds them."""
        Rviz.heard += 1
        at = pose(0.45, 0.0, 0.4 + 1e-5 * Rviz.heard)  # nobody has put the marker there before

        def heard() -> bool:
            return self.markers.markers[TIP].pose.position == at.position and bool(self.of("ghost"))

        self.until(lambda: self.markers.drag(TIP, at), heard)

    def plan(self) -> None:
        """Plan to the target, once it has a solution."""
        begin = len(self.said)
        self.markers.select(TIP, "plan")

        def planned() -> bool:  # not the sentence about the plan before
            said = self.said[begin:]
            return "planning ..." in said and self.text().startswith("planned")

        self.wait(planned)

    def close(self) -> None:
        self.markers.close()
        self.client.node.destroy_subscription(self._display)

    def of(self, kind: str, tip: str = "panda_link8") -> list[Marker]:
        return [marker for (ns, _), marker in sorted(self.drawn.items()) if ns == f"{kind}/{tip}"]

    def text(self, tip: str = "panda_link8") -> str:
        return " ".join(" ".join(marker.text for marker in self.of("text", tip)).split())

    def above(self, kind: str) -> str:
        """Return what stands above the robot: of ``status`` or of ``silence``."""
        said = " ".join(marker.text for (ns, _), marker in self.drawn.items() if ns == kind)
        return " ".join(said.split())

    def is_green(self, tip: str = "panda_link8") -> bool:
        ghost = self.of("ghost", tip)
        return bool(ghost) and ghost[0].color.g > ghost[0].color.r

    def is_red(self, tip: str = "panda_link8") -> bool:
        ghost = self.of("ghost", tip)
        return bool(ghost) and ghost[0].color.r > ghost[0].color.g

    def _take(self, array: Any) -> None:
        for marker in array.markers:
            if marker.action == Marker.DELETE:
                self.drawn.pop((marker.ns, marker.id), None)
            else:
                self.drawn[marker.ns, marker.id] = marker
                if marker.ns == "text/panda_link8":
                    self.said.append(marker.text)
