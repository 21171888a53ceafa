"""Plan a motion that takes a link along straight lines through poses."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, UnsupportedFeatureError
from kinopt_ros.planning.cartesian.configurations import Configurations, SolveIk
from kinopt_ros.planning.cartesian.lines import Lines
from kinopt_ros.planning.cartesian.motion import MotionAlongLines
from kinopt_ros.planning.cartesian.result import CartesianResult
from kinopt_ros.planning.cartesian.steps import ACCURACY, CartesianSteps
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.limit_tolerance import LIMIT_TOLERANCE
from kinopt_ros.problems.trajectory import START_TOLERANCE, JointGoal
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.problems.validation import check_transforms, variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import one_variable_each, quaternion_columns
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.readiness import check_ready
from kinopt_ros.solvers.scene_ready import wait_for_scene
from kinopt_ros.trajectory.path_timing import check_compiled


def plan_cartesian_path(
    robot: RobotModel,
    solve_ik: SolveIk,
    waypoints: ArrayLike,
    *,
    group: str | None = None,
    joints: Sequence[str] | None = None,
    base_link: str | None = None,
    link: str | None = None,
    T_link_tool: ArrayLike | None = None,
    keep_orientation: bool = False,
    start: ArrayLike | None = None,
    steps: CartesianSteps | None = None,
    scene: Scene | None = None,
    clearance: float = 0.0,
    velocity_scaling: float = 0.1,
    acceleration_scaling: float = 0.1,
    deadline: float | None = None,
    random_seed: int = 0,
    limit_tolerance: float = LIMIT_TOLERANCE,
    start_tolerance: float = START_TOLERANCE,
) -> CartesianResult:
    """Move a link from where it is along straight lines through poses, at rest at both ends.

    Args:
        robot: the robot.
        solve_ik: solves inverse kinematics, as ``Solver.solve_ik`` does.
        waypoints: poses of the link's tool in the base link, (4, 4) or (W, 4, 4).
        group: joints to move; default: the robot's first group.
        joints: the same joints in the order that the trajectory shall have; default: the group's.
        base_link: frame of the poses; default: the group's base.
        link: link to move; default: the group's tip.
        T_link_tool: pose of a tool in the link.
        keep_orientation: the orientation of the start all the way, whatever the waypoints say.
        start: configuration of the whole robot, (nq,); default: robot.default_q.
        steps: how exact the path is to be.
        scene: what the motion must be free of collisions with, besides the robot itself; None: nobody looks.
        clearance: least distance, m, of bodies that must not touch, with a scene.
        velocity_scaling: share of the velocity limits in (0, 1].
        acceleration_scaling: share of the acceleration limits in (0, 1].
        deadline: value of time.monotonic() at which the path ends where it is. With one, nothing is compiled or
            prepared that takes seconds: see ``prepare_collisions``.
        random_seed: of the solver.
        limit_tolerance: a start that is beyond a position limit by no more than this, rad or m, is moved to the limit;
            ``notes`` of the result say so.
        start_tolerance: distance that the start may be outside its position limits, rad or m; from there joints move
            inwards only.

    Raises:
        KinoptError: something in it is not usable, or with a deadline (``NotReadyError``) not prepared.
    """
    T = np.asarray(waypoints, dtype=np.float64)
    if T.ndim == 2:
        T = T[None]
    if T.ndim != 3 or T.shape[1:] != (4, 4) or not len(T):
        raise InvalidGoalError(
            f"waypoints have shape {T.shape}; allowed is (4, 4) or (W, 4, 4), W at least 1"
        )
    check_transforms(T, "waypoints")
    asked = ik_problem(
        robot,
        T[0],
        group=group,
        base_link=base_link,
        tip_link=link,
        T_link_tool=T_link_tool,
        state=start,
        position_tolerance=ACCURACY,
        orientation_tolerance=ACCURACY,
        random_seed=random_seed,
        deadline=deadline,
    )
    moving = one_variable_each(robot, asked.joints)
    order = moving if joints is None else one_variable_each(robot, joints)
    if set(order) != set(moving) or len(order) != len(moving):
        raise InvalidRequestError(f"joints are {list(joints or ())}; allowed is any order of {list(moving)}")
    asked = replace(asked, joints=order, variables=variables_of_joints(robot, order))
    if quaternion_columns(robot, asked.variables):
        raise UnsupportedFeatureError(
            "paths along lines do not turn floating joints; plan_trajectory does, also with StraightLine along the way"
        )
    limits, variables = robot.limits, asked.variables
    problem = trajectory_problem(
        robot,
        # In place of the end that is not known yet.
        JointGoal(np.clip(asked.state[0, variables], limits.lower[variables], limits.upper[variables])),
        joints=asked.joints,
        start=asked.state[0],
        scene=scene,
        clearance=clearance,
        velocity_scaling=velocity_scaling,
        acceleration_scaling=acceleration_scaling,
        deadline=deadline,
        random_seed=random_seed,
        limit_tolerance=limit_tolerance,
        start_tolerance=start_tolerance,
    )
    if deadline is not None:
        check_compiled()
        if scene is not None:
            check_ready(robot)
            wait_for_scene(robot, scene, deadline)
    asked = replace(asked, state=problem.start[None].copy())
    steps = steps or CartesianSteps()
    configurations = Configurations(robot, solve_ik, asked, steps)
    T_start = configurations.poses_of(asked.state[:, variables])[0]
    if keep_orientation:
        T = T.copy()
        T[:, :3, :3] = T_start[:3, :3]
    lines = Lines(np.concatenate([T_start[None], T]), steps)
    return MotionAlongLines(robot, configurations, problem, steps).through(lines)
