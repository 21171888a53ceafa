"""The float64 check of a whole motion for collisions: between samples, too.

What is checked is what a joint_trajectory_controller interpolates. An interval of it is free if, in its middle, every
pair of shapes is farther apart than it can come nearer within the interval; else it is halved. So nothing is passed
through, however thin. (Conservative advancement: B. Mirtich, J. Canny, "Impulse-based simulation of rigid bodies",
1995.)
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.bounds import halve
from kinopt_ros.trajectory.interpolation import control_points
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

FIRST = 1e-3
"""s, to which the time of the first contact is found."""
RESOLUTION = 1e-4
"""m; pairs that come nearer to each other than this, without touching, count as touching: halving must end."""


@dataclass(frozen=True)
class WayContact:
    """Where a motion comes too near to something, first."""

    a: str
    b: str
    """Links or objects."""
    distance: float
    """m, paddings subtracted; negative in penetration."""
    time: float
    """s from the start of the motion."""


def first_contact(
    robot: RobotModel,
    scene: Scene,
    state: Annotated[Float64, "nq"],
    variables: Annotated[Int64, "n"],
    trajectory: JointTrajectory,
    clearance: float = 0.0,
) -> WayContact | None:
    """The first contact of a motion, or None if all of it is free.

    Args:
        robot: the robot.
        scene: what is around it, and what it carries.
        state: values of the variables that do not move.
        variables: those that the trajectory's joints are, in its order; of joints with one variable each.
        trajectory: of finite numbers and increasing times.
        clearance: least distance (m) of bodies that must not touch, besides padding.

    Raises:
        MissingPackageError: coal is not installed.
    """
    from kinopt_ros.collision.bodies import bodies_of  # they import numba
    from kinopt_ros.collision.contacts import Placement
    from kinopt_ros.collision.judge import IN_DOUBT
    from kinopt_ros.collision.link_poses import link_poses
    from kinopt_ros.collision.motion_bounds import pair_levers

    bodies = bodies_of(robot, scene)
    if len(trajectory.time) < 2:
        control, times = np.repeat(trajectory.position[:1, None], 6, axis=0), [(0.0, 0.0)]
    else:
        control = control_points(trajectory).position
        times = list(zip(trajectory.time[:-1].tolist(), trajectory.time[1:].tolist(), strict=True))
    largest = np.abs(state)
    largest[variables] = np.abs(control).max(axis=(0, 1))
    levers = pair_levers(robot, bodies, variables, largest)
    q = state.copy()
    found: WayContact | None = None
    every = np.arange(len(bodies.pairs))
    # The earliest interval is on top. Where a motion starts is looked at by itself: there it may be in contact.
    waiting = [(control[:, k], *times[k], every) for k in reversed(range(len(times)))]
    waiting.append((np.repeat(control[:1, 0], 6, axis=0), 0.0, 0.0, every))
    while waiting:
        points, begin, end, pairs = waiting.pop()
        left, right = halve(points)
        middle, time = right[0], 0.5 * (begin + end)
        q[variables] = middle
        way = levers[pairs] @ np.abs(points - middle).max(axis=0)
        placement = Placement(bodies, link_poses(robot, q[None], bodies.links)[0])
        gaps = placement.gaps(pairs, way.max(initial=0.0) + clearance)
        unsure: list[int] = []
        for pair, reach, gap in zip(pairs.tolist(), way.tolist(), gaps.tolist(), strict=True):
            if gap - clearance > reach:
                continue
            # As in configurations, what coal may take for a gap counts as touching.
            distance = placement.distance_of(pair) - clearance - IN_DOUBT
            if distance <= 0.0 or (reach < RESOLUTION and distance <= reach):
                # What follows does not matter any more; there may be something before.
                found = WayContact(*placement.bodies_in(pair), distance + clearance + IN_DOUBT, time)
                waiting = [(left, begin, time, pairs)] if time - begin > FIRST else []
                unsure.clear()
                break
            if distance <= reach:
                unsure.append(pair)
        if unsure:
            left_over = np.array(unsure, dtype=np.int64)
            waiting.append((right, time, end, left_over))
            waiting.append((left, begin, time, left_over))
    return found
