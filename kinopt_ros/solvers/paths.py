"""Paths between the core and a plugin that optimizes trajectories: the core then times and verifies them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from kinopt_ros.array import Bool, Float64, Immutable, Int64, taken_over
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.problems.trajectory import TrajectoryProblem


@dataclass(frozen=True)
class Progress:
    """How far an optimization has come."""

    stage: str
    """Name of what is being done, in a few words."""
    iteration: int
    """Number of steps of the optimizer so far."""
    costs: tuple[tuple[str, float], ...]
    """Names and values of the terms of the best path's cost."""
    clearance: float
    """Clearance of the best path so far by the optimizer's model, m; negative in penetration, NaN if not known."""


Report: TypeAlias = Callable[[Progress], bool]
"""Function that is called with the progress at least every 50 ms, and returns whether to go on."""


@dataclass(frozen=True, eq=False)
class PathRequest(Immutable):
    """Paths to improve. Their first points are where the robot is, and stay."""

    paths: Annotated[Float64, "S T n"]
    """Points of the paths, rad or m, in the order of the problem's variables.

    They are inside the limits but for what is outside at the start."""
    goal: Annotated[Int64, "S"]
    """Which of the problem's goals each path ends at: a joint goal's last point stays, that of a pose goal may move
    within the tolerances."""
    passed: Annotated[Int64, "S W"]
    """Which points of each path pass the problem's W waypoints: joint waypoints stay, of poses as for goals."""
    margin: float
    """Distance (m) that shapes shall keep in the optimizer's model, beside the problem's clearance."""
    rough: bool = False
    """Whether the paths lead around everything already, or nearly: they are to be kept to."""

    def __post_init__(self) -> None:
        taken_over(self, "paths", "goal", "passed")


@dataclass(frozen=True, eq=False)
class PathCandidates:
    """Improved paths: claims, not yet an answer. As many as were asked for, in that order."""

    paths: Annotated[Float64, "S T n"]
    cost: Annotated[Float64, "S"]
    """Smoothness, rest and the like; paths that seem to be free are tried in this order."""
    clearance: Annotated[Float64, "S"]
    """Least distance (m) along each path by the optimizer's model: not much above the truth, and below it by no more
    than its spheres are too large; infinity without a scene."""
    violation: Annotated[Float64, "S"]
    """Largest excess over limits and constraints (rad or m), 0 where none."""
    iterations: Annotated[Int64, "S"]
    stopped: Annotated[Bool, "S"]
    """Whether the search was cut short, by the deadline or by ``Report``."""

    @property
    def promising(self) -> Annotated[Int64, "S"]:
        """Indices of the paths, the most promising first: least violation, then penetration, then cost."""
        return np.lexsort((self.cost, np.maximum(-self.clearance, 0.0), self.violation))


def check_path_request(problem: TrajectoryProblem, request: PathRequest) -> None:
    """Raise InvalidRequestError unless paths fit the problem: their shapes, where they start, what they end at."""
    paths = request.paths
    S, T, n, W = len(paths), problem.num_points, len(problem.variables), len(problem.waypoints)
    if not S or paths.shape != (S, T, n) or not np.isfinite(paths).all():
        raise InvalidRequestError(
            f"paths have shape {paths.shape}; allowed is (S, {T}, {n}), S > 0, of finite numbers"
        )
    if request.goal.shape != (S,) or request.passed.shape != (S, W):
        raise InvalidRequestError(
            f"goal and passed have shapes {request.goal.shape} and {request.passed.shape}; allowed are ({S},) and "
            f"({S}, {W})"
        )
    if not ((request.goal >= 0) & (request.goal < len(problem.goals))).all():
        raise InvalidRequestError(f"goal is {request.goal}; allowed is 0 to {len(problem.goals) - 1}")
    if W and not ((request.passed > 0) & (request.passed < T - 1)).all():
        raise InvalidRequestError(f"passed is {request.passed}; allowed is 1 to {T - 2}")
    if not (paths[:, 0] == problem.start[problem.variables]).all():
        raise InvalidRequestError("a path does not begin where the robot is")
