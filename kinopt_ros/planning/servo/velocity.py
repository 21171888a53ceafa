"""Joint velocities for a twist, inside the limits, from which joints can stop before their position limits."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.differential import JointVelocity, joint_velocity
from kinopt_ros.planning.servo.setup import HEADROOM, ServoSetup
from kinopt_ros.trajectory.braking import MotionState, braking_time
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND

APPROACH = 0.4
"""Share of the acceleration limits with which joints slow down before their position limits."""

LEAST_MADE = 0.02
"""Share of a twist below which the reason for making so little is reported."""


@dataclass(frozen=True, eq=False)
class Wanted:
    """Joint velocities that are wanted."""

    velocity: Annotated[Float64, "n"]
    """Wanted velocities, rad/s or m/s."""
    scale: float = 1.0
    """Share of the twist that velocity limits allow."""
    near_singular: bool = False
    """Whether velocities are damped because the tip can hardly move in some direction."""
    blocked: tuple[str, ...] = ()
    """Joints that are held back by a position limit."""
    hindrance: str = ""
    """Why next to nothing of the twist can be made; empty if more can."""
    position_error: float = float("nan")
    """Distance to the target pose, m; NaN for twists."""
    orientation_error: float = float("nan")
    """Angle to the target pose, rad; NaN for twists."""
    reached: bool = False
    """Whether the target pose is reached and does not move."""


def velocity_for_twist(
    setup: ServoSetup,
    state: MotionState,
    q: Annotated[Float64, "nq"],
    twist: Annotated[Float64, "6"],
) -> Wanted:
    """Compute joint velocities for a twist of the tip.

    Args:
        setup: the robot.
        state: of the joints.
        q: the whole robot in that state.
        twist: (v, w), m/s and rad/s, in the axes of the base link.

    Raises:
        KinoptError: as ``joint_velocity``.
    """
    share = HEADROOM * setup.velocity_scaling
    arm = setup.robot, setup.base, setup.tip, setup.variables, q
    free = joint_velocity(*arm, twist, T_link_tool=setup.T_tip_tool, velocity_scaling=share)
    bounds = _bounds(setup, state, free.velocity)
    if ((free.velocity >= bounds[0]) & (free.velocity <= bounds[1])).all() and not free.blocked:
        return Wanted(free.velocity, free.scale, free.jacobian.damped, hindrance=_hindrance(free, twist))
    # With what the velocity limits leave of the twist, so that bounds are compared with velocities as they will be.
    held = joint_velocity(
        *arm, free.scale * twist, T_link_tool=setup.T_tip_tool, velocity_scaling=share, bounds=bounds
    )
    return Wanted(
        held.velocity,
        free.scale * held.scale,
        held.jacobian.damped,
        held.blocked,
        _hindrance(held, free.scale * twist),
    )


def _hindrance(found: JointVelocity, twist: Annotated[Float64, "6"]) -> str:
    if float(np.linalg.norm(found.achieved)) >= LEAST_MADE * found.scale * float(np.linalg.norm(twist)):
        return ""
    if found.blocked:
        return f"the tip cannot move as is wanted: {', '.join(found.blocked)} at their position limits"
    return "the tip cannot move as is wanted: the arm is stretched or has no joints for it"


def _bounds(setup: ServoSetup, state: MotionState, velocity: Float64) -> Annotated[Float64, "2 n"]:
    """Return the least and largest velocities from which joints can stop before their limits, if all brake together."""
    limits = setup.planning
    longest = braking_time(velocity, limits, np.zeros_like(velocity))
    # Half of the time to stop, in which the way is as long as at full speed, and what passes until a brake begins.
    delay = 3.0 * setup.period / NANOSECONDS_PER_SECOND + float(np.max(limits.acceleration / limits.jerk))
    delay += longest / 2.0

    def fastest(way: Float64) -> Float64:
        left = np.maximum(way, 0.0)
        return np.minimum(np.sqrt(2.0 * APPROACH * limits.acceleration * left), left / delay)

    return np.stack([-fastest(state.position - setup.lower), fastest(setup.upper - state.position)])
