"""A robot that does what is published on ~/joint_trajectory, as a joint_trajectory_controller would."""

from typing import Any

import numpy as np
from rclpy.time import Time
from sensor_msgs.msg import JointState

from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.trajectory.braking import MotionState


class SimulatedController:
    """Plays trajectories back as joint states while the client spins: each from its stamp on, or from its arrival."""

    def __init__(self, client: Client, start: dict[str, float], rate: float = 50.0) -> None:
        self._client = client
        self.names = list(start)
        self.plays = True
        self._rest = MotionState(np.array(list(start.values())), np.zeros(len(start)), np.zeros(len(start)))
        self.motion: Commanded | None = None
        self._taken = len(client.trajectories)
        self._timer = client.node.create_timer(1.0 / rate, self._advance)
        self._advance()

    def now(self) -> int:
        """Present time of the client's clock, which is that of the node, ns."""
        return int(self._client.node.get_clock().now().nanoseconds)

    def state(self, now: int | None = None) -> MotionState:
        """Return where the robot is at a time (ns; now), and how it moves."""
        if self.motion is None:
            return self._rest
        now = self.now() if now is None else now
        return self._rest if now < self.motion.start else self.motion.at(now)

    def is_at_rest(self) -> bool:
        """Whether it has done all that it was told."""
        self._take()
        return self.motion is None or self.now() >= self.motion.end

    def stay(self, start: dict[str, float]) -> None:
        """Be elsewhere, at rest."""
        n = len(start)
        self._rest = MotionState(np.array([start[name] for name in self.names]), np.zeros(n), np.zeros(n))
        self.motion = None
        self._advance()

    def close(self) -> None:
        """Publish no more."""
        self._client.node.destroy_timer(self._timer)

    def _take(self) -> None:
        while self._taken < len(self._client.trajectories):
            message = self._client.trajectories[self._taken]
            self._taken += 1
            if self.plays:
                self._replace(message)

    def _replace(self, message: Any) -> None:
        given = trajectory_from_message(message)
        assert list(given.joint_names) == self.names
        now = self.now()
        stamp = message.header.stamp
        start = stamp.sec * 10**9 + stamp.nanosec or now
        motion = Commanded(given, start, start, start)
        self._rest, self.motion = self.state(), motion

    def _advance(self) -> None:
        self._take()
        # One time for both: beside other work, what is stamped later than it was measured seems to jump afterwards.
        now = self.now()
        state = self.state(now)
        message = JointState(
            name=self.names, position=state.position.tolist(), velocity=state.velocity.tolist()
        )
        message.header.stamp = Time(nanoseconds=now).to_msg()
        self._client.publish_joint_state(message)
