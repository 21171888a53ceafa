"""display_contacts: where what was judged last collides, for RViz, as move_group shows it."""

from collections.abc import Iterable
from typing import Any

from geometry_msgs.msg import Point, Vector3
from visualization_msgs.msg import Marker, MarkerArray

from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.marker_shapes import color

TOPIC = "display_contacts"
DIAMETER = 0.02
"""Diameter of the ball that marks a contact, m."""
MOST = 200
"""Most contacts that are drawn."""
RED = color(0.9, 0.1, 0.1, 1.0)


class ContactDisplay:
    """Publisher of the contacts of a state. Each message replaces the one before; nothing is made while nobody
    listens. Thread-safe."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._publisher = context.node.create_publisher(MarkerArray, TOPIC, 10)

    @property
    def wanted(self) -> bool:
        """Whether somebody listens."""
        return self._publisher.get_subscription_count() > 0

    def show(self, robot: RobotModel, contacts: Iterable[Any]) -> None:
        """Show contacts (of ``verification.contacts``) in the place of those before; none clears the picture."""
        if not self.wanted:
            return
        stamp = self._context.node.get_clock().now().to_msg()
        markers = [Marker(action=Marker.DELETEALL)]
        markers[0].header.frame_id = robot.root_link
        for number, contact in enumerate([*contacts][:MOST]):
            x, y, z = ((contact.point_a + contact.point_b) / 2.0).tolist()
            # One for each pair of bodies, by whose names RViz lists them.
            marker = Marker(ns=f"{contact.a} and {contact.b}", id=number, type=Marker.SPHERE, color=RED)
            marker.header.frame_id = robot.root_link
            marker.header.stamp = stamp
            marker.pose.position = Point(x=x, y=y, z=z)
            marker.scale = Vector3(x=DIAMETER, y=DIAMETER, z=DIAMETER)
            markers.append(marker)
        self._publisher.publish(MarkerArray(markers=markers))

    def show_state(self, robot: RobotModel, q: Any) -> None:
        """Show what collides in a configuration."""
        if not self.wanted:
            return
        from kinopt_ros.verification.collision import check_collisions

        [found] = check_collisions(robot, self._context.scene.of(robot), q[None]).contacts
        self.show(robot, found)
