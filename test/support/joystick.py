"""A joystick that somebody holds: a twist that is sent again and again, whatever else the test does."""

import threading
from types import TracebackType

from geometry_msgs.msg import TwistStamped

from kinopt_ros.ros.client.client import Client

EVERY = 0.05
"""Time between two of its messages, s."""


class Joystick:
    """Sends a twist on a thread of its own, as long as a ``with`` block lasts."""

    def __init__(self, client: Client, node: str, *linear: float) -> None:
        """
        Args:
            client: whose node sends.
            node: which node is to move the robot.
            linear: velocity of the tip, m/s.
        """
        self._node = client.node
        self._publisher = client.node.create_publisher(TwistStamped, f"{node}/servo/twist", 1)
        assert client.spin_until(lambda: self._publisher.get_subscription_count() > 0, 60.0)
        self._twist = TwistStamped()
        self._twist.twist.linear.x, self._twist.twist.linear.y, self._twist.twist.linear.z = linear
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._hold, daemon=True)

    def _hold(self) -> None:
        while not self._released.wait(EVERY):
            self._publisher.publish(self._twist)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._released.set()
        self._thread.join()
        self._node.destroy_publisher(self._publisher)
