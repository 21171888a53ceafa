"""Joint velocities that follow a target pose, which may be at rest or come in a stream."""

from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.differential import joint_velocity
from kinopt_ros.kinematics.se3 import pose_error, so3_exp, so3_log
from kinopt_ros.planning.servo.setup import ServoSetup
from kinopt_ros.planning.servo.velocity import APPROACH, Wanted, velocity_for_twist
from kinopt_ros.trajectory.braking import MotionState
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

STREAM = 200_000_000
"""Interval, ns, beyond which targets are no stream and have no velocity."""
AHEAD = 100_000_000
"""Time, ns, by which a target may be older than two intervals of its stream when it is followed: it was on its way, and
motions are made ahead of time."""
_CLOSEST = 1_000_000
"""Least time between targets, ns; nearer ones say nothing about velocity."""


@dataclass(frozen=True, eq=False)
class Target:
    """A pose to follow, and how it moves."""

    T_base_target: Annotated[Float64, "4 4"]
    time: int
    """Time when the target was there, ns."""
    twist: Annotated[Float64, "6"] = field(default_factory=lambda: np.zeros(6))
    """Velocity since the target before, m/s and rad/s in the axes of the base link."""
    steady: Annotated[Float64, "6"] = field(default_factory=lambda: np.zeros(6))
    """The smaller one of that velocity and the one before: a single jump is no velocity."""
    interval: int = 0
    """Time since the target before, ns; 0 without one."""

    def followed_by(self, T_base_target: Annotated[Float64, "4 4"], time: int) -> "Target":
        """Return the next target of the stream."""
        passed = time - self.time
        if not 0 <= passed <= STREAM:
            return Target(T_base_target, time)
        if passed < _CLOSEST:
            return Target(T_base_target, time, self.twist, self.steady, self.interval)
        way = np.concatenate(
            [
                T_base_target[:3, 3] - self.T_base_target[:3, 3],
                so3_log(T_base_target[:3, :3] @ self.T_base_target[:3, :3].T),
            ]
        )
        twist = way / (passed / NANOSECONDS_PER_SECOND)
        steady = twist if np.linalg.norm(twist) <= np.linalg.norm(self.twist) else self.twist
        return Target(T_base_target, time, twist, steady, passed)

    def at(self, time: int) -> "tuple[Annotated[Float64, '4 4'], Annotated[Float64, '6']]":
        """Return pose and twist at a time: for two intervals of the stream and ``AHEAD`` as if it went on, then at
        rest."""
        passed, longest = time - self.time, 2 * self.interval + AHEAD
        if passed <= 0 or not self.interval:
            return self.T_base_target, np.zeros(6)
        ahead = min(passed, longest) / NANOSECONDS_PER_SECOND
        T = self.T_base_target.copy()
        T[:3, 3] += ahead * self.steady[:3]
        T[:3, :3] = so3_exp(ahead * self.steady[3:]) @ T[:3, :3]
        return T, self.steady if passed <= longest else np.zeros(6)


def velocity_to_follow(
    setup: ServoSetup,
    state: MotionState,
    q: Annotated[Float64, "nq"],
    target: Target,
    time: int,
    gain: float,
    tolerance: tuple[float, float],
) -> Wanted:
    """Compute velocities towards a target, so that the way to it can be braked on, plus its own velocity.

    Args:
        setup: the robot.
        state: of the joints.
        q: the whole robot in that state.
        target: what to follow.
        time: ns, when the robot is in that state.
        gain: 1/s, velocity per error.
        tolerance: m and rad; a target that stands and is as near as that is reached.

    Raises:
        KinoptError: as ``joint_velocity``.
    """
    robot = setup.robot
    T_base_target, moving = target.at(time)
    T_base_tip = setup.T_base_frame(q, setup.tip, setup.T_tip_tool)
    position_error, orientation_error = map(float, pose_error(T_base_tip, T_base_target))
    turn = so3_log(T_base_target[:3, :3] @ T_base_tip[:3, :3].T)
    error = np.concatenate([T_base_target[:3, 3] - T_base_tip[:3, 3], turn])
    reached = position_error <= tolerance[0] and orientation_error <= tolerance[1] and not moving.any()
    # The way that joints still have to go, at full length.
    way = joint_velocity(
        robot, setup.base, setup.tip, setup.variables, q, error, T_link_tool=setup.T_tip_tool
    )
    displacement = np.abs(way.velocity) / way.scale if way.scale > 0.0 else np.abs(way.velocity)
    slowest = float(np.max(displacement / setup.limits.acceleration))
    # Half of it is gone at constant braking when the time that this takes is up.
    rate = min(gain, np.sqrt(2.0 * APPROACH / slowest)) if slowest > 0.0 else gain
    wanted = velocity_for_twist(setup, state, q, moving + rate * error)
    return replace(
        wanted, position_error=position_error, orientation_error=orientation_error, reached=reached
    )
