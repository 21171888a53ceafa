"""The motion along straight lines: through configurations that keep to them, timed and verified like every motion."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.kinematics.se3 import rotation_angle
from kinopt_ros.pauses import OutOfTime
from kinopt_ros.planning.cartesian.configurations import Configurations
from kinopt_ros.planning.cartesian.lines import Lines
from kinopt_ros.planning.cartesian.result import CartesianResult, PathEnd
from kinopt_ros.planning.cartesian.steps import ANGLE_TOLERANCE, CartesianSteps
from kinopt_ros.problems.trajectory import JointGoal, TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.collision_gate import least_contacts
from kinopt_ros.solvers.trajectory_gate import Gate
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.verification.verify import ON_THE_WAY

LINE = "straight line"
"""Name of the check."""
_REFINEMENTS = 3
"""Most times that points are put between points where a motion is off its line."""
_SAMPLES = 2000
_HALVINGS = 4


@dataclass(frozen=True, eq=False)
class Touch:
    """Place where a motion is in collision."""

    q: Annotated[Float64, "n"]
    message: str


class MotionAlongLines:
    """The motion of one request."""

    def __init__(
        self,
        robot: RobotModel,
        configurations: Configurations,
        problem: TrajectoryProblem,
        steps: CartesianSteps,
    ) -> None:
        self._robot, self._configurations, self._problem, self._steps = robot, configurations, problem, steps

    def through(self, lines: Lines) -> CartesianResult:
        """Follow the lines; return the result."""
        try:
            return self._through(lines)
        except OutOfTime:
            return self._ended(PathEnd(Status.TIMED_OUT, "the time was up before the motion was checked"))

    def _through(self, lines: Lines) -> CartesianResult:
        q0 = self._problem.start[None, self._problem.variables]
        if not self._free(q0)[0]:
            return self._ended(
                PathEnd(
                    Status.START_STATE_IN_COLLISION,
                    f"the start is in collision: {self._contacts(q0[0], remedy=True)}",
                )
            )
        q, why = self._configurations.followed(lines, q0[0])
        q, why = self._configurations.without_jumps(q, why)
        free = self._free(q)
        if not free.all():
            first = int(np.argmin(free))
            q, why = q[:first], self._in_the_way(lines, first, self._contacts(q[first]))
        while len(q) > 1:
            found = self._motion(lines, q)
            if isinstance(found, PathEnd):
                return self._ended(found)
            if isinstance(found, TrajectoryResult):
                return self._done(lines, q, found, why)
            last = int(np.argmin(np.abs(q - found.q).max(axis=1)))
            q = q[: max(min(last, len(q) - 1), 1)]
            why = self._in_the_way(lines, len(q), found.message)
        if why is None and lines.count == 0:
            why = PathEnd(
                Status.INVALID_GOAL_CONSTRAINTS, "the link is where the waypoints are: nothing to do"
            )
        assert why is not None
        return self._ended(why)

    # Collisions.

    def _free(self, q: Annotated[Float64, "K n"]) -> Annotated[Bool, "K"]:
        from kinopt_ros.verification.collision import check_collisions  # heavy, and not always wanted

        scene = self._problem.scene
        if scene is None:
            return np.ones(len(q), dtype=np.bool_)
        return check_collisions(
            self._robot,
            scene,
            self._configurations.whole(q),
            self._problem.clearance,
            contacts=False,
            pause=self._problem.pause,
        ).free

    def _contacts(self, q: Annotated[Float64, "n"], remedy: bool = False) -> str:
        problem = self._problem
        assert problem.scene is not None
        return least_contacts(
            self._robot,
            problem.scene,
            self._configurations.whole(q[None]),
            problem.clearance,
            problem.hurry,
            remedy,
        )

    def _in_the_way(self, lines: Lines, k: int, what: str) -> PathEnd:
        return PathEnd(Status.PLANNING_FAILED, f"the path is in collision {lines.where(k)}: {what}")

    # The motion.

    def _motion(self, lines: Lines, q: Annotated[Float64, "K n"]) -> TrajectoryResult | Touch | PathEnd:
        """Time and verify a motion through configurations that keeps to the lines; return it, or where it touches
        something, or why there is none."""
        last = len(q) - 1
        gate = Gate(
            self._robot, replace(self._problem, goals=(JointGoal(q[-1]),)), self._configurations.solver
        )
        u, dense = self._dense(lines, np.arange(last + 1, dtype=np.float64), q)
        said = ""
        for _ in range(_REFINEMENTS):
            found = gate.passed(dense, 0)
            if isinstance(found, PathAttempt):
                if found.violation.check == ON_THE_WAY and found.state is not None:
                    return Touch(found.state, found.violation.message)
                self._problem.pause()
                return PathEnd(Status.PLANNING_FAILED, found.violation.message)
            assert found.trajectory is not None
            times = np.linspace(0.0, found.trajectory.duration, _SAMPLES)
            poses = self._configurations.poses_of(evaluate(found.trajectory, times)[0])
            off, angle = lines.off(poses, last, self._steps.tolerance, self._problem.hurry)
            missed = lines.missed(poses, last, self._steps.tolerance, self._problem.hurry)
            if off <= self._steps.tolerance and angle <= ANGLE_TOLERANCE and not missed:
                return found
            where = missed or f"{off:.3g} m and {angle:.3g} rad off its line"
            said = f"{where}; allowed are {self._steps.tolerance:g} m"
            if self._problem.late:
                return PathEnd(Status.TIMED_OUT, f"the time was up while the timed motion was {said}")
            u, dense = self._halved(lines, u, dense)
        return PathEnd(Status.PLANNING_FAILED, f"the timed motion is {said}")

    def _dense(
        self, lines: Lines, u: Annotated[Float64, "K"], q: Annotated[Float64, "K n"]
    ) -> tuple[Annotated[Float64, "L"], Annotated[Float64, "L n"]]:
        """Add points where the middle between two is off the line; return places and configurations."""
        for _ in range(_HALVINGS):
            middle, between = 0.5 * (u[:-1] + u[1:]), 0.5 * (q[:-1] + q[1:])
            wanted, reached = lines.at(middle), self._configurations.poses_of(between)
            distance = np.linalg.norm(wanted[:, :3, 3] - reached[:, :3, 3], axis=1)
            angle = rotation_angle(np.swapaxes(wanted[:, :3, :3], 1, 2) @ reached[:, :3, :3])
            off = (distance > 0.25 * self._steps.tolerance) | (angle > 0.5 * ANGLE_TOLERANCE)
            if not off.any():
                break
            u, q = self._inserted(lines, u, q, np.flatnonzero(off))
        return u, q

    def _halved(
        self, lines: Lines, u: Annotated[Float64, "K"], q: Annotated[Float64, "K n"]
    ) -> tuple[Annotated[Float64, "L"], Annotated[Float64, "L n"]]:
        return self._inserted(lines, u, q, np.arange(len(u) - 1))

    def _inserted(
        self,
        lines: Lines,
        u: Annotated[Float64, "K"],
        q: Annotated[Float64, "K n"],
        after: Annotated[Int64, "M"],
    ) -> tuple[Annotated[Float64, "L"], Annotated[Float64, "L n"]]:
        """Insert middles after some points; those that cannot be solved for are left out."""
        new_u, new_q, places = [], [], []
        for k in after.tolist():
            self._problem.pause()
            at = 0.5 * (u[k] + u[k + 1])
            found = self._configurations.next_to(0.5 * (q[k] + q[k + 1]), lines.at(np.array([at]))[0])
            if not isinstance(found, PathEnd):
                new_u.append(at)
                new_q.append(found)
                places.append(k + 1)
        if not places:
            return u, q
        return np.insert(u, places, new_u), np.insert(q, places, np.array(new_q), axis=0)

    # Results.

    def _done(
        self, lines: Lines, q: Annotated[Float64, "K n"], found: TrajectoryResult, why: PathEnd | None
    ) -> CartesianResult:
        scene = self._problem.scene
        last = len(q) - 1
        return CartesianResult(
            Status.SUCCESS if why is None else why.status,
            "" if why is None else why.message,
            found.trajectory,
            last / lines.count,
            int((lines.ends <= last).sum()),
            self._configurations.solver,
            (*found.checks, f"{LINE} (looked at {_SAMPLES} times)"),
            found.not_checked,
            None if scene is None else scene.version,
            found.notes,
        )

    def _ended(self, why: PathEnd) -> CartesianResult:
        return CartesianResult(why.status, why.message, None, 0.0, 0, self._configurations.solver)
