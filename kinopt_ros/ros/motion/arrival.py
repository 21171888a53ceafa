"""Whether a robot is where its controllers say to have brought it.

A joint_trajectory_controller without tolerances for goals says that it is done when a motion's time is over, though
drives are off, or the arm is held. What is done next is then done elsewhere.
"""

from collections.abc import Collection

import numpy as np

from kinopt_ros.errors import quoted
from kinopt_ros.ros.motion.beside import away
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import RobotState

TOLERANCE = "arrival_tolerance"
"""Parameter of how far joints may be from there, rad or m."""


def missed(one: Published, joints: Collection[str], state: RobotState, tolerance: float) -> str:
    """Say which joint is measured farthest from where a motion ends.

    Args:
        one: the motion.
        joints: of the motion that are looked at. Those of end effectors may be anywhere: grippers hold things.
        state: as measured.
        tolerance: how far joints may be from there, rad or m.

    Returns:
        A sentence; empty if all joints are near enough, or nobody has ever said where they are.
    """
    robot, ends = one.robot, list(one.message.points[-1].positions)
    grips = {name for tool in robot.end_effectors for name in robot.groups[tool.group].joints}
    off = away(one, state, np.array(ends))
    for k in np.argsort(-off).tolist():
        name = one.message.joint_names[k]
        i = robot.variable_index[name]
        if not off[k] > tolerance:  # also of those that nobody knows, which are not numbers
            break
        if name in joints and name not in grips and state.known[i]:
            return (
                f"the controller says that the motion is done, but {quoted(name)} is at {state.q[i]:.4g}, and the "
                f"motion ends at {ends[k]:.4g}: allowed is a difference of {tolerance:g} (parameter {TOLERANCE})"
            )
    return ""
