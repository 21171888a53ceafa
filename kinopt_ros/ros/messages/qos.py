"""Quality of service that the node and its clients share."""

from rclpy.qos import QoSProfile, ReliabilityPolicy

QUEUED = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
"""A burst of requests, or of answers to a busy client, must not be lost on the way, as it is with ROS's usual depth of
10: the node's queue, not the middleware, says how many may wait."""
