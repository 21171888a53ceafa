"""Requests that tests share."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter

from kinopt_msgs.srv import ComputeFK, SolveIK
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status


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


FLANGE = ("panda_link8",)


def stand(client: Client, positions: Mapping[str, float] = READY, links: Sequence[str] = FLANGE) -> None:
    """Pretend a robot that stands there, and wait until the node sees it there, as ``until_seen`` does."""
    client.pretend_robot(positions)
    until_seen(client, positions, links)


def until_seen(
    client: Client,
    positions: Mapping[str, float] = READY,
    links: Sequence[str] = FLANGE,
    timeout: float = 60.0,
) -> None:
    """Wait until the node sees a robot there that somebody publishes.

    Args:
        client: of the node.
        positions: of joints, rad or m.
        links: by whose poses it is seen, with () those of all links. What moves them must be fresh, so fingers are
            left out, which other tests may have moved.
        timeout: s.
    """
    where = ComputeFK.Request(links=list(links))
    wanted = ComputeFK.Request(
        links=list(links), joint_names=list(positions), positions=list(positions.values())
    )
    end = time.monotonic() + timeout
    while True:
        seen, there = (client.call("compute_fk", request) for request in (where, wanted))
        assert there.status.code == Status.SUCCESS, there.status.message
        if seen.status.code == Status.SUCCESS and np.allclose(
            *(matrices_from_poses(answer.poses) for answer in (seen, there)), rtol=0.0, atol=1e-7
        ):
            return
        assert time.monotonic() < end, f"the node does not see the robot there: {seen.status.message}"
        client.spin(0.02)


def set_parameter(client: Client, node: str, name: str, value: object) -> SetParametersResult:
    """Set a parameter of a node; return its answer."""
    service = client.node.create_client(SetParameters, f"{node}/set_parameters")
    try:
        assert client.spin_until(service.service_is_ready, 60.0)
        client.wait_until_heard()
        wanted = [Parameter(name, value=value).to_parameter_msg()]
        future = service.call_async(SetParameters.Request(parameters=wanted))
        assert client.spin_until(future.done, 60.0), f"{node} does not answer"
        return future.result().results[0]
    finally:
        client.node.destroy_client(service)
