"""Upper bound of a chain's reach that holds for every configuration inside the limits."""

import math
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.robot.chain import KinematicChain, Motion
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel


@remembered
def reach_bounds(robot: RobotModel, chain: KinematicChain) -> tuple[float, float]:
    """Compute upper bounds (m) of the distance from the first motion's origin to the last one's origin, and to the tip.

    Infinite if a translation is unlimited.

    The links between are summed, two at a time: two links a and b with a rotation about the axis z between them span
    at most sqrt((a_z + b_z)^2 + (|a_xy| + |b_xy|)^2), which is less than |a| + |b| where they are bent.
    """
    m = len(chain.motion)
    if m == 0:
        return 0.0, 0.0
    travel = [_travel(robot, chain, i) for i in range(m)]
    last = chain.T_fixed[m][:3, 3]
    to_last = _span(chain, m - 1) + sum(travel[: m - 1])
    return to_last, to_last + travel[m - 1] + float(np.linalg.norm(last))


def beyond_reach(
    robot: RobotModel,
    chain: KinematicChain,
    T_base_target: Annotated[Float64, "B 4 4"],
    T_link_tool: Annotated[Float64, "4 4"] | None,
    position_tolerance: float,
    orientation_tolerance: float,
) -> Annotated[Float64, "B"]:
    """Compute how much nearer (m) targets would have to be, at least, for the chain to reach them; 0 where it may.

    Of the last link, the place of its joint follows from the target where the orientation is given.
    """
    m = len(chain.motion)
    shoulder = chain.T_fixed[0][:3, 3]
    T_last = chain.T_fixed[m] if T_link_tool is None else chain.T_fixed[m] @ T_link_tool
    if m == 0:
        shoulder, to_last, to_tip = np.zeros(3), 0.0, float(np.linalg.norm(T_last[:3, 3]))
    else:
        to_last, _ = reach_bounds(robot, chain)
        to_tip = to_last + _travel(robot, chain, m - 1) + float(np.linalg.norm(T_last[:3, 3]))
    position = T_base_target[:, :3, 3]
    beyond = np.linalg.norm(position - shoulder, axis=1) - to_tip - position_tolerance
    if m and orientation_tolerance < math.pi and chain.motion[m - 1] != Motion.TRANSLATION:
        # p_target = p_joint + R_base_target R_tool_last p_last
        arm = T_last[:3, :3].T @ T_last[:3, 3]
        joint = position - T_base_target[:, :3, :3] @ arm
        swing = 2.0 * math.sin(0.5 * orientation_tolerance) * float(np.linalg.norm(arm))
        other = np.linalg.norm(joint - shoulder, axis=1) - to_last - position_tolerance - swing
        beyond = np.maximum(beyond, other)
    return np.asarray(np.maximum(beyond, 0.0))


def _travel(robot: RobotModel, chain: KinematicChain, i: int) -> float:
    """Return the largest distance that a motion moves what follows, if it is a translation; else 0."""
    if chain.motion[i] != Motion.TRANSLATION:
        return 0.0
    multiplier, offset = float(chain.multiplier[i]), float(chain.offset[i])
    if multiplier == 0.0:
        return abs(offset)
    variable = chain.variables[chain.column[i]]
    ends = (robot.limits.lower[variable], robot.limits.upper[variable])
    return max(abs(multiplier * float(end) + offset) for end in ends)


def _span(chain: KinematicChain, last: int) -> float:
    """Return the least sum over all ways to take the links before the motions 1 to ``last`` singly or in pairs."""
    links = chain.T_fixed[1 : last + 1]  # link k lies between the motions k and k + 1
    best = [0.0]
    for k, link in enumerate(links):
        length = best[k] + float(np.linalg.norm(link[:3, 3]))
        if k > 0 and chain.motion[k] == Motion.ROTATION:
            before = links[k - 1]
            u, w, axis = before[:3, :3].T @ before[:3, 3], link[:3, 3], chain.axis[k]
            along = float(u @ axis + w @ axis)
            across = float(np.linalg.norm(np.cross(axis, u)) + np.linalg.norm(np.cross(axis, w)))
            length = min(length, best[k - 1] + math.hypot(along, across))
        best.append(length)
    return best[-1]
