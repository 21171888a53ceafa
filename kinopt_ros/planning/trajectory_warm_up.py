"""Small motions, planned so that no request has to wait for a compiler."""

import numpy as np

from kinopt_ros.errors import MissingPackageError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.builder import default_group
from kinopt_ros.problems.trajectory import JointGoal
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.variables import quaternion_columns
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.solvers.base import Feature, Solver
from kinopt_ros.status import Status
from kinopt_ros.wanted import check_wanted

_STEP = 0.05
"""Share of each joint's way to the middle of its limits that a warm-up motion goes."""
_MOST_TRIES = 5
"""Most tries of a plan that runs out of time because the compiler takes it."""


def warm_up_trajectories(solver: Solver, ik_solver: Solver | None = None) -> None:
    """Plan as requests do: to joints, to a pose and through a waypoint, with collisions and without.

    Args:
        solver: a plugin; one that optimizes no trajectories has nothing to do.
        ik_solver: finds configurations at poses; None: the solver itself, if it can.

    Raises:
        KinoptError: the robot's default group cannot be moved along trajectories.
    """
    if Feature.TRAJECTORIES not in solver.capabilities.features:
        return
    robot = solver.robot
    group = default_group(robot)
    start, limits = robot.default_q, robot.limits
    variables = [i for name in group.joints for i in robot.variables_of(name)]
    lower, upper, q = (values[variables] for values in (limits.lower, limits.upper, start))
    limited = np.isfinite(lower) & np.isfinite(upper)
    away = np.where(np.isfinite(upper), -1.0, 1.0)  # from the only limit
    way = 0.5 * (np.where(limited, lower, q + away) + np.where(limited, upper, q + away)) - q
    for first in quaternion_columns(robot, np.array(variables)):
        way[first : first + 4] = 0.0
    near, far = (q + k * _STEP * way for k in (1, 2))
    end = start.copy()
    end[variables] = far
    links = (group.base_link or robot.root_link, group.tip_link or robot.root_link)
    T = forward_kinematics(robot, end, links=links)
    goals = [(JointGoal(far), ()), (inverse(T[0]) @ T[1], (JointGoal(near),))]
    if ik_solver is None and not solver.solves_ik():
        del goals[1]
    for scene in (None, EMPTY_SCENE):
        for goal, waypoints in goals:
            problem = trajectory_problem(
                robot, [goal], group=group.name, start=start, waypoints=waypoints, scene=scene
            )
            try:
                for _ in range(_MOST_TRIES):
                    check_wanted()
                    if plan_trajectory(solver, problem, ik_solver=ik_solver).status is not Status.TIMED_OUT:
                        break
            except MissingPackageError:  # without coal there are motions, only none around obstacles
                return
