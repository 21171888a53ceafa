"""Trajectory problems with costs of anybody's: the path is that of an objective, motion and verdict are as for all.

The objective has the start and the goal as what has to hold, smoothness and distances to obstacles with usual weights
unless they are given, and the costs that were asked for. It begins from the motion that a solver of trajectories finds
without them, if there is one, else from a straight line to the goal.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.obstacles import obstacles_of
from kinopt_ros.costs.reference import Reference
from kinopt_ros.costs.self_collision import SelfCollision
from kinopt_ros.costs.smoothness import Smoothness
from kinopt_ros.costs.world_collision import WorldCollision
from kinopt_ros.errors import KinoptError, UnsupportedFeatureError
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.planning.ik_objective import link_pose
from kinopt_ros.planning.objective_motion import motion_with_costs
from kinopt_ros.planning.objectives import with_starts
from kinopt_ros.planning.search.search_state import CANCELLED, Stopped
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.trajectory import (
    NUM_POINTS,
    POINTS_TO_GOALS,
    CostWeights,
    JointGoal,
    TrajectoryProblem,
)
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Feature, Solver
from kinopt_ros.solvers.paths import Progress, Report
from kinopt_ros.solvers.trajectory_gate import TIMING
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.wanted import AbandonedError, as_long_as

POINTS = 25
"""Points of the path that is optimized."""
MARGIN = 0.03
"""Distance to obstacles, besides the problem's clearance, from which on nearness counts, m."""
OBJECTIVE = "objective"
"""Name of a stage."""
_AT_END = 1e-7
"""Tolerance of start and of joint goals, rad or m."""
_SHARE = 0.5
"""Share of a pose goal's tolerances that the path may use."""


def plan_with_costs(
    solver: Solver,
    problem: TrajectoryProblem,
    costs: Sequence[Cost],
    helper: Solver | None = None,
    report: Report | None = None,
) -> TrajectoryResult:
    """Plan a motion whose path is the best by some costs.

    Args:
        solver: solves objectives.
        problem: a start at rest and one goal.
        costs: what counts, besides what the module says.
        helper: solves inverse kinematics and trajectories, for a path to begin from; None: the straight line.
        report: told where the search is, after every part of the solver's work; when it returns False, the search ends.

    Raises:
        UnsupportedFeatureError: the solver solves no objectives, or the problem has what objectives do not: several
            goals, waypoints, constraints along the way, a duration, or a robot that moves at the start.
        KinoptError: a cost does not fit, or its code fails.
    """
    robot = solver.robot
    check_with_costs(robot, problem, costs)
    asked = _objective_problem(robot, problem, costs)

    def told(stage: str) -> bool:
        return report is None or report(Progress(stage, 0, (), float("nan")))

    def go_on(stage: str) -> None:
        if not told(stage):
            raise Stopped(Status.PREEMPTED, CANCELLED)
        if problem.late:
            raise Stopped(Status.TIMED_OUT, f"the deadline came before the {stage} of a motion with costs")

    try:
        asked = _with_path(asked, robot, problem, helper, report)
        go_on(OBJECTIVE)
        with as_long_as(lambda: told(OBJECTIVE)):
            result = solver.solve_objective(asked)
        go_on(TIMING)
    except Stopped as stop:
        return TrajectoryResult(stop.status, stop.sentence, None, solver.name)
    except AbandonedError:
        return TrajectoryResult(Status.PREEMPTED, CANCELLED, None, solver.name)
    terms = result.terms[0]
    if result.status[0] not in (Status.SUCCESS, Status.NEAREST):
        code = Status(int(result.status[0]))
        failed = Status.PLANNING_FAILED if code is Status.NO_IK_SOLUTION else code
        return TrajectoryResult(failed, result.messages[0], None, solver.name, costs=terms)
    path = np.array(result.best[0][:, problem.variables])
    path[0] = problem.start[problem.variables]
    goal = problem.goals[0]
    if isinstance(goal, JointGoal):
        path[-1] = goal.q
    found = motion_with_costs(robot, problem, asked, 0, path, solver.name)
    return replace(found, iterations=int(result.iterations[0]), attempts=1)


def check_with_costs(robot: RobotModel, problem: TrajectoryProblem, costs: Sequence[Cost]) -> None:
    """Raise UnsupportedFeatureError if a problem has what objectives do not; see ``plan_with_costs``."""
    refused = (
        ("planar or floating joints", any(name not in robot.joint_by_name for name in problem.joints)),
        ("a number of points", problem.num_points not in (NUM_POINTS, POINTS_TO_GOALS)),
        (
            "a tolerance on velocities, accelerations or jerks: its times come later, within the robot's limits",
            any(cost.order > 0 and cost.holds for cost in costs),
        ),
        ("several goals", len(problem.goals) > 1),
        ("waypoints", bool(problem.waypoints)),
        ("constraints along the way", bool(problem.along)),
        ("a duration", problem.duration is not None),
        ("a robot that moves at the start", bool(problem.start_velocity.any())),
        ("weights of the usual costs", problem.weights != CostWeights() or problem.rest is not None),
    )
    for what, given in refused:
        if given:
            raise UnsupportedFeatureError(f"a motion with an objective of costs cannot have {what}")


def _objective_problem(
    robot: RobotModel, problem: TrajectoryProblem, costs: Sequence[Cost]
) -> ObjectiveProblem:
    kinds = {type(cost) for cost in costs}
    start = np.repeat(problem.start[None], POINTS, axis=0)
    ends: list[Cost] = [
        Reference(q=start, joints=problem.joints, points=(0,), tolerance=_AT_END, label="start")
    ]
    goal = problem.goals[0]
    if isinstance(goal, JointGoal):
        end = np.repeat(problem.whole(goal.q)[None], POINTS, axis=0)
        ends.append(Reference(q=end, joints=problem.joints, points=(-1,), tolerance=_AT_END, label="goal"))
    else:
        ends += [
            link_pose(problem.base_link, target, 0, _SHARE).replace(
                points=(-1,), label=f"goal of {target.link}"
            )
            for target in goal.targets
        ]
    usual: list[Cost] = []
    if Smoothness not in kinds:
        usual.append(Smoothness(weight=1.0))
    scene = problem.scene
    if scene is not None:
        margin = MARGIN + problem.clearance
        if WorldCollision not in kinds and scene.objects:
            obstacles = obstacles_of(scene, known_only=True)
            usual.append(WorldCollision(weight=20.0, margin=margin, obstacles=obstacles))
        if SelfCollision not in kinds:
            usual.append(SelfCollision(weight=10.0, margin=margin))
    return objective_problem(
        robot,
        Objective([*ends, *costs, *usual]),
        joints=problem.joints,
        state=problem.start,
        num_points=POINTS,
        num_starts=0,
        scene=scene,
        clearance=problem.clearance,
        deadline=problem.deadline,
        random_seed=problem.random_seed,
    )


def _with_path(
    asked: ObjectiveProblem,
    robot: RobotModel,
    problem: TrajectoryProblem,
    helper: Solver | None,
    report: Report | None,
) -> ObjectiveProblem:
    """Return the problem with a path to begin from.

    Raises:
        Stopped: the search for one was cancelled.
    """
    if helper is not None and Feature.TRAJECTORIES in helper.capabilities.features:
        try:
            planned = plan_trajectory(helper, problem, report)
        except KinoptError:  # not what it takes: the straight line will do
            planned = None
        if planned is not None and planned.status is Status.PREEMPTED:
            raise Stopped(planned.status, planned.message)
        if planned is not None and planned.trajectory is not None:
            times = np.linspace(0.0, planned.trajectory.duration, POINTS)
            return replace(asked, seeds=problem.whole(evaluate(planned.trajectory, times)[0])[None, None])
    goal = problem.goals[0]
    if isinstance(goal, JointGoal):
        return replace(asked, seeds=_line(problem, goal.q)[None, None])
    if helper is None:
        return asked
    found = with_starts(asked, helper)
    if not found.seeds.shape[1]:
        return asked
    return replace(asked, seeds=_line(problem, found.seeds[0, 0, -1, problem.variables])[None, None])


def _line(problem: TrajectoryProblem, end: Annotated[Float64, "n"]) -> Annotated[Float64, "T nq"]:
    share = np.linspace(0.0, 1.0, POINTS)[:, None]
    begin = problem.start[problem.variables]
    return problem.whole(begin + share * (end - begin))
