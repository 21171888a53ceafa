"""Planning within the time that a request has, for services and the action of trajectories."""

import time
from typing import Any

from kinopt_ros.planning.solver_pool import Pooled
from kinopt_ros.planning.statistics import Statistics
from kinopt_ros.ros.messages.trajectory_answer import fill_answer
from kinopt_ros.ros.requests.costs import read_costs
from kinopt_ros.ros.requests.trajectory import TrajectoryRequest
from kinopt_ros.solvers.paths import Report
from kinopt_ros.solvers.trajectory_result import TrajectoryResult


def check_request(asked: TrajectoryRequest) -> None:
    """Look whether a request can be answered, as far as what it says tells: who would end a motion for it asks first.
    Returns at once.

    Raises:
        KinoptError: it cannot, whatever the robot does.
    """
    costs = read_costs(asked.loaded.model, asked.costs, "objective")
    asked.loaded.pool.check_trajectory(asked.problem, asked.solver, asked.allow_fallback, costs)


def plan(
    asked: TrajectoryRequest, response: Any, statistics: Statistics, report: Report | None
) -> Pooled[TrajectoryResult]:
    """Plan a motion, and fill a response.

    Raises:
        KinoptError: the request cannot be answered.
    """
    begin = time.monotonic()
    costs = read_costs(asked.loaded.model, asked.costs, "objective")
    pooled = asked.loaded.pool.plan_trajectory(
        asked.problem, asked.solver, asked.allow_fallback, report, costs
    )
    fill_answer(response, asked, pooled)
    statistics.record(
        f"solver {pooled.result.solver}",
        response.status.code,
        time.monotonic() - begin,
        reason=pooled.fallback_reason,
    )
    return pooled
