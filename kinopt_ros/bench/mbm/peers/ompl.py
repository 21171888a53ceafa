"""OMPL's RRT-Connect and its shortening, with the library's collision check of lines."""

import time
from importlib.metadata import version

from kinopt_ros.bench.mbm.attempt import SEARCH, PeerPath
from kinopt_ros.errors import SolverUnavailableError
from kinopt_ros.planning.sampling import missing_sampler, sampled_path
from kinopt_ros.planning.search.validity import ValidityChecker
from kinopt_ros.problems.trajectory import JointGoal, TrajectoryProblem
from kinopt_ros.robot.model import RobotModel

SHORTENING_TIME = 0.1
"""Time for shortening a path, s."""


class OmplPeer:
    """RRT-Connect and shortening."""

    name = "ompl"

    def __init__(self, robot: RobotModel) -> None:
        """
        Raises:
            SolverUnavailableError: OMPL is not installed.
        """
        reason = missing_sampler()
        if reason:
            raise SolverUnavailableError(reason)
        self._robot = robot
        self.version = version("ompl")

    def enter(self, problem: TrajectoryProblem) -> None:
        """Nothing is kept of a scene."""

    def plan(self, problem: TrajectoryProblem, seconds: float, seed: int) -> PeerPath:
        """Search a path, and shorten it."""
        [goal] = problem.goals
        assert isinstance(goal, JointGoal)
        validity = ValidityChecker(self._robot, problem, lambda: None)
        begin = time.perf_counter()
        corners = sampled_path(
            self._robot,
            problem,
            goal.q[None],
            validity.step_is_free,
            time.monotonic() + seconds,
            1 + seed,
            shortening=SHORTENING_TIME,
        )
        stages = {SEARCH: time.perf_counter() - begin}
        return PeerPath(corners, "" if corners is not None else "TIMED_OUT", stages)
