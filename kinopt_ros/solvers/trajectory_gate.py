"""Gate that every path of every plugin passes on the way to an answer.

Paths are timed here, and the motion that comes of it is checked.
"""

import time
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import StartStateError
from kinopt_ros.pauses import OutOfTime
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.collision_gate import named_contacts
from kinopt_ros.solvers.judgement import PluginError
from kinopt_ros.solvers.paths import PathCandidates, PathRequest
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.path_timing import time_path
from kinopt_ros.trajectory.timing import TimingError
from kinopt_ros.verification.collision import first_in_collision, left_out
from kinopt_ros.verification.motion import motion_limits, velocity_at_start, verify_motion
from kinopt_ros.verification.trajectory import Violation
from kinopt_ros.verification.verify import ON_THE_WAY, VerifiedMotion

OPTIMIZE, TIMING, CHECK = "optimization", "timing", "check"
"""Names of stages."""
_TOO_LATE = "the deadline came before a path could be timed and checked"
POSITION_LIMITS = "position limits"
"""Name of a check."""


@dataclass(eq=False)
class Gate:
    """Times and checks paths of one problem, and counts the time that this takes."""

    robot: RobotModel
    problem: TrajectoryProblem
    solver: str
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds spent in each stage."""

    def passed(
        self, path: Annotated[Float64, "T n"], goal: int, corners: bool = False
    ) -> TrajectoryResult | PathAttempt:
        """Time and check a path; return the answer along it, or why it is none.

        Between points the motion follows a spline, or with ``corners`` the straight edges, whose corners it rounds.
        """
        try:
            motion = self._checked(self._timed(path, corners), goal)
            if not corners and _beyond_limits(motion):
                # The curve through the points leaves the limits, which the edges between them never do.
                motion = self._checked(self._timed(path, True), goal)
        except (TimingError, StartStateError) as error:
            return PathAttempt(path, goal, Violation(TIMING, str(error)))
        except OutOfTime:
            return PathAttempt(path, goal, Violation(TIMING, _TOO_LATE))
        if not motion.report.ok:
            violation = motion.report.violations[0]
            when = violation.time
            state = None if when is None else evaluate(motion.trajectory, np.array([when]))[0][0]
            return PathAttempt(path, goal, violation, state)
        return TrajectoryResult(
            Status.SUCCESS,
            "",
            motion.trajectory,
            self.solver,
            motion.report.checks,
            motion.report.not_checked,
            (*self.problem.notes, *(() if self.problem.scene is None else left_out(self.robot))),
            goal,
            path_length(motion.trajectory),
            motion.clearance,
            scene_version=None if self.problem.scene is None else self.problem.scene.version,
            stages=self.stages,
        )

    def first_passing(self, request: PathRequest, candidates: PathCandidates) -> TrajectoryResult:
        """Return the first of the candidates, in the order of their promise, that passes; else why the best one does
        not.

        Of those that were cut short only one is tried.
        """
        _check_form(self.problem, request, candidates, self.solver)
        best: PathAttempt | None = None
        for s in candidates.promising.tolist():
            if candidates.stopped[s] and best is not None:
                continue  # nobody waits any more for what was cut short
            path, goal, clearance = candidates.paths[s], int(request.goal[s]), float(candidates.clearance[s])
            if self.problem.late:
                best = best or PathAttempt(path, goal, Violation(TIMING, _TOO_LATE), None, clearance)
                break
            found: TrajectoryResult | PathAttempt | None = None
            if clearance < self.problem.clearance:  # by spheres, which are too large
                found = self._in_collision(path, goal)
            found = found or self.passed(path, goal)
            if isinstance(found, TrajectoryResult):
                return found
            best = best or replace(found, clearance=clearance)
        assert best is not None
        return TrajectoryResult(
            Status.PLANNING_FAILED, str(best.violation), None, self.solver, attempt=best, stages=self.stages
        )

    def _in_collision(self, path: Annotated[Float64, "T n"], goal: int) -> PathAttempt | None:
        """Return an attempt if a point of a path is in collision, which is sooner known than what timing makes of the
        path."""
        problem = self.problem
        if problem.scene is None:
            return None
        begin = time.perf_counter()
        try:
            first = first_in_collision(
                self.robot, problem.scene, problem.whole(path), problem.clearance, problem.pause
            )
        except OutOfTime:
            return PathAttempt(path, goal, Violation(TIMING, _TOO_LATE))
        finally:
            self._spent(CHECK, begin)
        found = None
        if first is not None:
            k, contacts = first
            wanted = f" (a clearance of {problem.clearance:g} m is wanted)" if problem.clearance > 0.0 else ""
            sentence = (
                f"point {k} of {len(path)} on the way is in collision{wanted}: {named_contacts(contacts)}"
            )
            found = PathAttempt(path, goal, Violation(ON_THE_WAY, sentence), path[k])
        return found

    def _timed(self, path: Annotated[Float64, "T n"], corners: bool) -> JointTrajectory:
        problem, limits = self.problem, motion_limits(self.robot, self.problem)
        begin = time.perf_counter()
        try:
            return time_path(
                problem.joints,
                path,
                limits.velocity,
                limits.acceleration,
                limits.jerk,
                velocity_at_start(self.robot, problem),
                duration=problem.duration,
                corners=corners,
                pause=problem.pause,
            )
        finally:
            self._spent(TIMING, begin)

    def _checked(self, trajectory: JointTrajectory, goal: int) -> VerifiedMotion:
        begin = time.perf_counter()
        try:
            return verify_motion(self.robot, self.problem, trajectory, goal, self.problem.pause)
        finally:
            self._spent(CHECK, begin)

    def _spent(self, stage: str, begin: float) -> float:
        now = time.perf_counter()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - begin
        return now


def _beyond_limits(motion: VerifiedMotion) -> bool:
    """Check whether a motion leaves the position limits, and nothing else is wrong with it."""
    found = {violation.check for violation in motion.report.violations}
    return found == {POSITION_LIMITS}


def path_length(trajectory: JointTrajectory) -> float:
    """Return the length in joint space of the path through a trajectory's points, rad (and m)."""
    return float(np.linalg.norm(np.diff(trajectory.position, axis=0), axis=1).sum())


def _check_form(
    problem: TrajectoryProblem, request: PathRequest, candidates: PathCandidates, solver: str
) -> None:
    """Raise unless a plugin's claims have the form that was agreed."""
    if not isinstance(candidates, PathCandidates):
        raise PluginError(f"solver {solver} returned {type(candidates).__name__}; agreed is PathCandidates")
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
