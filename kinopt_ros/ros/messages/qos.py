"""Quality of service that the node and its clients share."""

from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

QUEUED = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
"""Quality of service of requests and answers that come in bursts.

None must be lost on the way, as with ROS's usual depth of 10: the node's queue, not the middleware, says how many may
wait."""
EACH_ONE = QoSProfile(history=HistoryPolicy.KEEP_ALL, reliability=ReliabilityPolicy.RELIABLE)
"""Quality of service of messages each of which counts and that may come in bursts.

What finds no room is not taken, so that the middleware reports what gets lost."""
