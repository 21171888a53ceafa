"""Serve poses from a camera: the tool stays above what the camera sees, as long as it sees it.

python examples/serve_camera_poses.py --ros-args -r detections:=/camera/object_pose -p height:=0.15

Listens to `detections` (geometry_msgs/PoseStamped, in any frame that the node knows, as the camera's link or a tf
frame) and sends targets to servo. Old detections are dropped, so that nothing moves after a gap. A target is followed
until it is reached, or for servo.target_timeout: set that low, if the robot shall not go on to where something was seen
last. What servo does is said whenever it changes. Needs a running node with a robot.
"""

import sys
from collections.abc import Sequence

import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.time import Time

from kinopt_msgs.msg import ServoStatus


class ServeCameraPoses(Node):
    """Sends a target above each detection."""

    def __init__(self) -> None:
        super().__init__("serve_camera_poses")
        self._height = self.declare_parameter(
            "height", 0.15
        ).value  # m, above what is seen, along z of the frame
        self._oldest = self.declare_parameter("oldest", 0.3).value  # s, age of a detection that still counts
        kinopt = self.declare_parameter("kinopt", "/kinopt").value
        self._dropped = 0
        self._said = ""
        self._targets = self.create_publisher(PoseStamped, f"{kinopt}/servo/target_pose", 1)
        self.create_subscription(PoseStamped, "detections", self._take, qos_profile_sensor_data)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(ServoStatus, f"{kinopt}/servo/status", self._say, latched)

    def _take(self, seen: PoseStamped) -> None:
        age = (self.get_clock().now() - Time.from_msg(seen.header.stamp)).nanoseconds * 1e-9
        if not 0.0 <= age <= self._oldest:
            self._dropped += 1
            self.get_logger().warning(f"a detection {age:.2f} s old does not count ({self._dropped} so far)")
            return
        target = PoseStamped(header=seen.header)
        target.pose.position.x = seen.pose.position.x
        target.pose.position.y = seen.pose.position.y
        target.pose.position.z = seen.pose.position.z + self._height
        target.pose.orientation.x = 1.0  # the tool points down, however the object lies
        target.pose.orientation.w = 0.0
        self._targets.publish(target)

    def _say(self, status: ServoStatus) -> None:
        said = f"servo: {status.state}" + (f", {status.status.message}" if status.status.message else "")
        if said != self._said:
            self._said = said
            self.get_logger().info(said)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until Ctrl-C."""
    rclpy.init(args=list(sys.argv if arguments is None else arguments))
    node = ServeCameraPoses()
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except RuntimeError:  # what rclpy raises of a callback in whose midst Ctrl-C ends ROS
        if rclpy.ok():
            raise
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
