"""What services and the action of trajectories do alike: plan within the time that a request has."""

import time
from typing import Any

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.solver_pool import Pooled
from kinopt_ros.planning.statistics import Statistics
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.trajectory_answer import fill_answer
from kinopt_ros.ros.trajectory_request import TrajectoryRequest, check_is_at
from kinopt_ros.solvers.paths import Report
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.verification.motion import contact_sentence
from kinopt_ros.verification.sweep import first_contact


class LatePlanError(KinoptError):
    """A request whose time was up before anybody could begin with it."""

    status = Status.TIMED_OUT


def check_in_time(waited: float, timeout: float) -> None:
    """Raise LatePlanError if a request waited longer than it may take (s)."""
    if waited >= timeout:
        raise LatePlanError(f"the request waited {waited:.3f} s for its turn; its timeout is {timeout:g} s")


def plan(
    asked: TrajectoryRequest, response: Any, statistics: Statistics, report: Report | None
) -> Pooled[TrajectoryResult]:
    """Plan, and fill a response.

    Raises:
        KinoptError: the request cannot be answered.
    """
    begin = time.monotonic()
    pooled = asked.loaded.pool.plan_trajectory(asked.problem, asked.solver, asked.allow_fallback, report)
    fill_answer(response, asked, pooled)
    statistics.record(
        f"solver {pooled.result.solver}",
        response.status.code,
        time.monotonic() - begin,
        reason=pooled.fallback_reason,
    )
    return pooled


class EnvironmentChangedError(KinoptError):
    """What a motion was planned for is not so any more."""

    status = Status.ENVIRONMENT_CHANGED


def check_still_valid(context: Context, asked: TrajectoryRequest, result: TrajectoryResult) -> None:
    """Look at a motion once more before the robot moves, which may be seconds after it was planned.

    Raises:
        EnvironmentChangedError: the robot is another one, or the motion is in collision in the present scene.
        StaleStateError, StartStateError: nobody says where the robot is, or it is elsewhere.
    """
    problem, robot = asked.problem, asked.loaded.model
    if context.loaded is not asked.loaded:
        raise EnvironmentChangedError("the robot's description was replaced while its motion was planned")
    scene = problem.scene
    while scene is not None and scene is not (present := context.scene.of(robot)):
        scene = present
        assert result.trajectory is not None
        contact = first_contact(
            robot, scene, problem.start, problem.variables, result.trajectory, problem.clearance
        )
        if contact is not None:
            raise EnvironmentChangedError(
                f"planned in version {result.scene_version} of the scene, which is {scene.version} now: "
                f"{contact_sentence(contact, problem.clearance)}"
            )
    measured = context.joint_states.of(robot)
    measured.require_fresh(problem.variables.tolist(), robot, context.parameter("state_timeout"))
    check_is_at(robot, measured, problem.start, problem.variables.tolist())
