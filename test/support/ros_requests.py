"""Requests that tests share."""

from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion

from kinopt_msgs.srv import SolveIK
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess


def pose(x: float = 0.4, y: float = 0.1, z: float = 0.5, q: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)) -> Pose:
    """A pose, by default in front of the Panda with the flange down; q is xyzw."""
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=q[0], y=q[1], z=q[2], w=q[3]))


def ik(*poses: Pose, frame: str = "", **fields: Any) -> SolveIK.Request:
    """A request of ~/solve_ik."""
    request = SolveIK.Request(poses=list(poses), **fields)
    request.header.frame_id = frame
    return request


def target(at: Pose, frame: str = "") -> PoseStamped:
    """A message for ~/target_pose."""
    message = PoseStamped(pose=at)
    message.header.frame_id = frame
    return message


StartNode = Callable[..., tuple[NodeProcess, Client]]
"""Type of what the fixture start_node gives."""

READY = {
    "panda_joint1": 0.0,
    "panda_joint2": -0.7853981633974483,
    "panda_joint3": 0.0,
    "panda_joint4": -2.356194490192345,
    "panda_joint5": 0.0,
    "panda_joint6": 1.5707963267948966,
    "panda_joint7": 0.7853981633974483,
}
"""The Panda's ready configuration, rad."""
