"""From claimed paths to an answer: the gate that every path of every plugin passes. Paths are timed here, and the
motion that comes of it is checked."""

import time
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import StartStateError
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.paths import PathCandidates, PathRequest
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult
from kinopt_ros.solvers.verified import PluginError
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.path_timing import time_path
from kinopt_ros.trajectory.timing import TimingError
from kinopt_ros.verification.motion import motion_limits, velocity_at_start, verify_motion
from kinopt_ros.verification.trajectory import Violation

OPTIMIZE, TIMING, CHECK = "optimization", "timing", "check"
"""Names of stages."""
HOPELESS = 0.08
"""m; paths that go so deep through something by the plugin's own model are not looked at."""


@dataclass(eq=False)
class Gate:
    """Of one problem: times and checks paths, and keeps count."""

    robot: RobotModel
    problem: TrajectoryProblem
    solver: str
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds spent in each."""

    def passed(self, path: Annotated[Float64, "T n"], goal: int) -> TrajectoryResult | PathAttempt:
        """The answer along a path, timed and checked; or why it is none."""
        problem, limits = self.problem, motion_limits(self.robot, self.problem)
        begin = time.perf_counter()
        try:
            trajectory = time_path(
                problem.joints,
                path,
                limits.velocity,
                limits.acceleration,
                limits.jerk,
                velocity_at_start(self.robot, problem),
                duration=problem.duration,
            )
        except (TimingError, StartStateError) as error:
            return PathAttempt(path, goal, Violation(TIMING, str(error)))
        finally:
            begin = self._spent(TIMING, begin)
        motion = verify_motion(self.robot, problem, trajectory, goal)
        self._spent(CHECK, begin)
        if not motion.report.ok:
            violation = motion.report.violations[0]
            when = violation.time
            state = None if when is None else evaluate(trajectory, np.array([when]))[0][0]
            return PathAttempt(path, goal, violation, state)
        return TrajectoryResult(
            Status.SUCCESS,
            "",
            motion.trajectory,
            self.solver,
            motion.report.checks,
            motion.report.not_checked,
            goal,
            path_length(motion.trajectory),
            scene_version=None if self.problem.scene is None else self.problem.scene.version,
            stages=self.stages,
        )

    def first_passing(self, request: PathRequest, candidates: PathCandidates) -> TrajectoryResult:
        """The first of the candidates, in the order of their promise, that passes; else why the best one does not."""
        _check_form(self.problem, request, candidates, self.solver)
        best: PathAttempt | None = None
        for s in candidates.promising.tolist():
            path, goal = candidates.paths[s], int(request.goal[s])
            if candidates.clearance[s] < -HOPELESS and best is not None:
                continue
            found = self.passed(path, goal)
            if isinstance(found, TrajectoryResult):
                return found
            best = best or found
            if self.problem.late:
                break
        assert best is not None
        return TrajectoryResult(
            Status.PLANNING_FAILED, str(best.violation), None, self.solver, attempt=best, stages=self.stages
        )

    def _spent(self, stage: str, begin: float) -> float:
        now = time.perf_counter()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - begin
        return now


def path_length(trajectory: JointTrajectory) -> float:
    """Of the way in joint space through a trajectory's points, rad (and m)."""
    return float(np.linalg.norm(np.diff(trajectory.position, axis=0), axis=1).sum())


def _check_form(
    problem: TrajectoryProblem, request: PathRequest, candidates: PathCandidates, solver: str
) -> None:
    """Raise unless a plugin's claims have the form that was agreed."""
    paths = candidates.paths
    S = len(request.paths)
    if paths.shape != request.paths.shape or not np.isfinite(paths).all():
        raise PluginError(
            f"solver {solver} returned paths of shape {paths.shape} or not finite; allowed is {S} of them"
        )
    for name in ("cost", "clearance", "violation", "iterations", "stopped"):
        if np.shape(getattr(candidates, name)) != (S,):
            raise PluginError(
                f"solver {solver} returned {name} of shape {np.shape(getattr(candidates, name))}, not ({S},)"
            )
    if not np.array_equal(paths[:, 0], np.broadcast_to(problem.start[problem.variables], paths[:, 0].shape)):
        raise PluginError(f"solver {solver} returned a path that does not begin where the robot is")
