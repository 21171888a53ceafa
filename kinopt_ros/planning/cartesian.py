"""Motions that take a link along straight lines: position linearly, orientation about one axis at a constant rate.

Configurations follow one another: each is solved for from the one before, and one that is too far from it ends the path
instead of becoming a jump. What comes of it is timed and verified like every motion, its distance from the lines too.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.se3 import rotation_angle, so3_exp, so3_log
from kinopt_ros.pauses import OutOfTime, Pause, go_on
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.limit_tolerance import LIMIT_TOLERANCE
from kinopt_ros.problems.preferences.posture import at
from kinopt_ros.problems.trajectory import JointGoal, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.problems.validation import check_transforms, variables_of_joints
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.collision_gate import least_contacts
from kinopt_ros.solvers.readiness import check_ready
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.solvers.scene_ready import wait_for_scene
from kinopt_ros.solvers.trajectory_gate import Gate
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.path_timing import check_compiled
from kinopt_ros.trajectory.timing import nearest_equivalent
from kinopt_ros.verification.verify import ON_THE_WAY

SolveIk: TypeAlias = Callable[[IkProblem], IkResult]

LINE = "straight line"
"""Name of the check."""
ACCURACY = 1e-6
"""Accuracy of the points of a path, m and rad. What is not smooth cannot be followed quickly."""
ANGLE_TOLERANCE = 0.01
"""Largest error of the orientation between points, rad."""
ALTERNATIVES = 8
"""Configurations that are tried where the nearest one is a jump."""
MOST_POINTS = 5000
_REFINEMENTS = 3
"""Most times that points are put between points where a motion is off its line."""
_SAMPLES = 2000
_HALVINGS = 4
_LEVER = 0.1
"""Length that a radian counts as beside a distance, m."""
_SAME = 1e-9
"""Distance, m, and angle, rad, up to which poses are the same."""


@dataclass(frozen=True)
class CartesianSteps:
    """Accuracy and jump limits of a path."""

    max_step: float = 0.01
    """Largest distance between points, m."""
    max_angle: float = 0.05
    """Largest rotation between points, rad."""
    tolerance: float = 1e-3
    """Largest distance of the link from the line anywhere, m."""
    max_revolute_jump: float = 0.5
    """Largest movement of a revolute joint between two points, rad."""
    max_prismatic_jump: float = 0.1
    """Largest movement of a prismatic joint between two points, m."""
    jump_factor: float | None = None
    """Largest distance of neighbouring points in joint space relative to the mean distance; None for no such bound."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0.0 < value < math.inf:
                raise InvalidRequestError(f"{name} is {value}; allowed is a finite number above 0")
        if self.jump_factor is not None and self.jump_factor <= 1.0:
            raise InvalidRequestError(f"jump_factor is {self.jump_factor}; allowed is a number above 1")


@dataclass(frozen=True, eq=False)
class CartesianResult:
    """A verified motion along the lines, as far as it goes."""

    status: Status
    """SUCCESS only if all of the path is done."""
    message: str
    """Why the motion ends where it does; empty on success."""
    trajectory: JointTrajectory | None
    """The motion; None if the path does not even begin."""
    fraction: float
    """Share of the path that is done, 0 to 1."""
    waypoints: int
    """Number of waypoints that were reached."""
    solver: str
    checks: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    scene_version: int | None = None
    notes: tuple[str, ...] = ()
    """Sentences that a user of a motion that was found must know."""


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
    if joints is not None:
        if set(joints) != set(asked.joints):
            raise InvalidRequestError(
                f"joints are {list(joints)}; allowed is any order of {list(asked.joints)}"
            )
        asked = replace(asked, joints=tuple(joints), variables=variables_of_joints(robot, tuple(joints)))
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
    )
    if deadline is not None:
        check_compiled()
        if scene is not None:
            check_ready(robot)
            wait_for_scene(robot, scene, deadline)
    asked = replace(asked, state=problem.start[None].copy())
    path = _Path(robot, solve_ik, asked, problem, steps or CartesianSteps())
    T_start = path.poses_of(asked.state[:, variables])[0]
    if keep_orientation:
        T = T.copy()
        T[:, :3, :3] = T_start[:3, :3]
    return path.through(_Lines(np.concatenate([T_start[None], T]), path.steps))


class _Lines:
    """Poses on straight lines from corner to corner."""

    def __init__(self, corners: Annotated[Float64, "C 4 4"], steps: CartesianSteps) -> None:
        self._corners = corners
        relative = np.swapaxes(corners[:-1, :3, :3], 1, 2) @ corners[1:, :3, :3]
        self._turns = so3_log(relative)
        ways = np.linalg.norm(np.diff(corners[:, :3, 3], axis=0), axis=1)
        angles = np.linalg.norm(self._turns, axis=1)
        counts = np.ceil(np.maximum(ways / steps.max_step, angles / steps.max_angle) - 1e-9)
        self._moves = (ways > _SAME) | (angles > _SAME)
        counts = np.maximum(counts, self._moves)  # however long a step may be
        if counts.sum() > MOST_POINTS:
            raise InvalidRequestError(
                f"the path has {counts.sum():.0f} steps of {steps.max_step:g} m or {steps.max_angle:g} rad; allowed "
                f"are {MOST_POINTS}"
            )
        self.ends = np.cumsum(counts).astype(np.int64)
        """Number of the last step of each line."""
        self.count = int(self.ends[-1])
        """Number of steps; 0 where there is nowhere to go."""

    def at(self, u: Annotated[Float64, "K"]) -> Annotated[Float64, "K 4 4"]:
        """Return poses after so many steps, which need not be whole numbers."""
        starts = np.concatenate([[0], self.ends[:-1]])
        lengths = np.maximum(self.ends - starts, 1)
        line = np.minimum(np.searchsorted(self.ends, u, side="left"), len(self.ends) - 1)
        share = ((u - starts[line]) / lengths[line])[:, None]
        first, last = self._corners[line], self._corners[line + 1]
        T = first.copy()
        T[:, :3, 3] += share * (last[:, :3, 3] - first[:, :3, 3])
        T[:, :3, :3] = first[:, :3, :3] @ so3_exp(share * self._turns[line])
        exact = u == self.ends[line]
        T[exact] = last[exact]
        return T

    def off(
        self, T: Annotated[Float64, "M 4 4"], last: int, tolerance: float, pause: Pause = go_on
    ) -> tuple[float, float]:
        """Return how far poses are off the lines up to a step, at most: m, rad.

        There may be thousands of lines, most of which are far from most poses.
        """
        lines = self._lines_until(last)
        best = np.full(len(T), np.inf)
        distance, angle = best.copy(), best.copy()
        self._nearest(T, lines, tolerance, (best, distance, angle), pause)
        lost = np.flatnonzero(np.isinf(best))
        if lost.size:  # how far off are they?
            found = best[lost], distance[lost], angle[lost]
            self._nearest(T[lost], lines, math.inf, found, pause)
            distance[lost], angle[lost] = found[1:]
        return float(distance.max()), float(angle.max())

    def _lines_until(self, last: int) -> Annotated[Int64, "L"]:
        """Return the lines up to a step that go anywhere; the first one if none does."""
        until = 1 + int(np.searchsorted(self.ends, last))
        moves = np.flatnonzero(self._moves[:until])
        return moves if len(moves) else np.zeros(1, dtype=np.int64)

    def _nearest(
        self,
        T: Annotated[Float64, "M 4 4"],
        lines: Annotated[Int64, "L"],
        reach: float,
        found: tuple[Float64, Float64, Float64],
        pause: Pause,
    ) -> None:
        """Put how far poses are from the nearest of some lines, both together, m, and rad, into ``found`` (each (M,)).

        Lines that are farther away than ``reach`` (m) are left out.
        """
        best, distance, angle = found
        for line in lines.tolist():
            pause()
            first, turn = self._corners[line], self._turns[line]
            way = self._corners[line + 1, :3, 3] - first[:3, 3]
            middle = first[:3, 3] + 0.5 * way
            away = np.linalg.norm(T[:, :3, 3] - middle, axis=1) - 0.5 * np.linalg.norm(way)
            near = np.flatnonzero(away <= reach)
            if not near.size:
                continue
            to, turned = T[near, :3, 3] - first[:3, 3], so3_log(first[:3, :3].T @ T[near, :3, :3])
            # Where on the line each pose is nearest, an angle counting as the way of a lever.
            square = float(way @ way + _LEVER**2 * turn @ turn)
            share = np.zeros(len(near))
            if square > 0.0:
                share = np.clip((to @ way + _LEVER**2 * (turned @ turn)) / square, 0.0, 1.0)
            d = np.linalg.norm(to - share[:, None] * way, axis=1)
            R = first[:3, :3] @ so3_exp(share[:, None] * turn)
            phi = rotation_angle(np.swapaxes(R, 1, 2) @ T[near, :3, :3])
            nearer = d + _LEVER * phi < best[near]
            which = near[nearer]
            best[which] = (d + _LEVER * phi)[nearer]
            distance[which], angle[which] = d[nearer], phi[nearer]

    def missed(
        self, T: Annotated[Float64, "M 4 4"], last: int, tolerance: float, pause: Pause = go_on
    ) -> str:
        """The first waypoint up to a step that poses do not pass after those before it, a few words; or nothing.

        Being near the lines is not enough: a rounded corner is near both.
        """
        first = 0
        steps = np.linalg.norm(np.diff(T[:, :3, 3], axis=0), axis=1)
        for number in range(int((self.ends <= last).sum())):
            if not self._moves[number]:
                continue  # the waypoint before it is the same
            pause()
            corner = self._corners[number + 1]
            away = np.linalg.norm(T[first:-1, :3, 3] - corner[:3, 3], axis=1) - steps[first:]
            near = np.flatnonzero(away <= tolerance)
            if not near.size:
                k = int(np.argmin(away))
                return f"{max(away[k], 0.0):.3g} m or more off waypoint {number}"
            begin, end = first + int(near[0]), first + int(near[-1]) + 2
            turned = so3_log(corner[:3, :3].T @ T[begin:end, :3, :3])
            x = np.concatenate([T[begin:end, :3, 3] - corner[:3, 3], _LEVER * turned], axis=1)
            # Straight between poses: those of a quick motion are far apart.
            step = np.diff(x, axis=0)
            square = np.maximum((step * step).sum(axis=1), np.finfo(np.float64).tiny)
            share = np.clip(-(x[:-1] * step).sum(axis=1) / square, 0.0, 1.0)
            nearest = x[:-1] + share[:, None] * step
            distance = np.linalg.norm(nearest[:, :3], axis=1)
            angle = np.linalg.norm(nearest[:, 3:], axis=1) / _LEVER
            passed = (distance <= tolerance) & (angle <= ANGLE_TOLERANCE)
            if not passed.any():
                k = int(np.argmin(distance + _LEVER * angle))
                return f"{distance[k]:.3g} m and {angle[k]:.3g} rad off waypoint {number}"
            first = begin + int(np.argmax(passed))
        return ""


@dataclass(frozen=True)
class _Why:
    """Reason why a path ends before its end."""

    status: Status
    message: str


@dataclass(frozen=True, eq=False)
class _Touch:
    """Place where a motion is in collision."""

    q: Annotated[Float64, "n"]
    message: str


class _Path:
    """Configurations along the lines of one request, and their motion."""

    def __init__(
        self,
        robot: RobotModel,
        solve_ik: SolveIk,
        asked: IkProblem,
        problem: TrajectoryProblem,
        steps: CartesianSteps,
    ) -> None:
        self.steps = steps
        self._robot, self._solve_ik, self._asked, self._problem = robot, solve_ik, asked, problem
        self._target = asked.targets[0]
        self._chain = chain_between(robot, asked.base_link, self._target.link)
        self._solver = ""
        types = [robot.joint(name).type for name in asked.joints]
        self._continuous = continuous_joints(robot, asked.joints)
        self._farthest = np.array(
            [
                steps.max_prismatic_jump if kind is JointType.PRISMATIC else steps.max_revolute_jump
                for kind in types
            ]
        )
        now = time.monotonic()
        self._search_end = math.inf
        if problem.deadline is not None:  # the rest of the time is for the motion
            self._search_end = now + 0.7 * (problem.deadline - now)

    def through(self, lines: _Lines) -> CartesianResult:
        """Follow the lines; return the result."""
        try:
            return self._through(lines)
        except OutOfTime:
            return self._ended(_Why(Status.TIMED_OUT, "the time was up before the motion was checked"))

    def _through(self, lines: _Lines) -> CartesianResult:
        q0 = self._asked.state[:, self._asked.variables]
        if not self._free(q0)[0]:
            return self._ended(
                _Why(
                    Status.START_STATE_IN_COLLISION,
                    f"the start is in collision: {self._contacts(q0[0], remedy=True)}",
                )
            )
        q, why = self._followed(lines, q0[0])
        q, why = self._without_jumps(q, why)
        free = self._free(q)
        if not free.all():
            first = int(np.argmin(free))
            q, why = q[:first], self._in_the_way(lines, first, self._contacts(q[first]))
        while len(q) > 1:
            found = self._motion(lines, q)
            if isinstance(found, _Why):
                return self._ended(found)
            if isinstance(found, TrajectoryResult):
                return self._done(lines, q, found, why)
            last = int(np.argmin(np.abs(q - found.q).max(axis=1)))
            q = q[: max(min(last, len(q) - 1), 1)]
            why = self._in_the_way(lines, len(q), found.message)
        if why is None and lines.count == 0:
            why = _Why(Status.INVALID_GOAL_CONSTRAINTS, "the link is where the waypoints are: nothing to do")
        assert why is not None
        return self._ended(why)

    def poses_of(self, q: Annotated[Float64, "K n"]) -> Annotated[Float64, "K 4 4"]:
        """Return poses of the tool in the base link."""
        whole = self._whole(q)
        T = chain_pose(self._chain, whole[:, self._chain.variables])
        return T if self._target.T_link_tool is None else T @ self._target.T_link_tool

    # Configurations.

    def _followed(
        self, lines: _Lines, q0: Annotated[Float64, "n"]
    ) -> tuple[Annotated[Float64, "K n"], _Why | None]:
        """Return configurations after each step, up to the first jump, and why they end there if they do."""
        poses = lines.at(np.arange(lines.count + 1, dtype=np.float64))
        q = [q0]
        for k in range(1, len(poses)):
            if time.monotonic() >= self._search_end:
                return np.array(q), _Why(Status.TIMED_OUT, f"the time was up {_where(lines, k)}")
            found = self._next(q[-1], poses[k])
            if isinstance(found, _Why):
                return np.array(q), _Why(found.status, f"the path ends {_where(lines, k)}: {found.message}")
            q.append(found)
        return np.array(q), None

    def _next(self, before: Annotated[Float64, "n"], T: Annotated[Float64, "4 4"]) -> Float64 | _Why:
        """Find a configuration for a pose, next to the one before."""
        asked = replace(
            self._asked,
            targets=(replace(self._target, T_base_target=T[None].copy()),),
            state=self._whole(before[None]),
        )
        result = self._solve_ik(asked)
        self._solver = result.solver
        if not result.success[0]:
            return _Why(Status(int(result.status[0])), result.messages[0])
        q = self._nearest(result.q[0, 0], before)
        if not self._jumps(q, before):
            return q
        try:  # the solver's first one is not the only one
            near = at(before[None].copy())
            several = self._solve_ik(replace(asked, num_solutions=ALTERNATIVES, preference=near))
            for row in several.q[0, : int(several.num_found[0])]:
                other = self._nearest(row, before)
                if not self._jumps(other, before):
                    return other
        except UnsupportedFeatureError:  # then the first one is what there is
            pass
        i = int(np.argmax(np.abs(q - before) / self._farthest))
        return _Why(
            Status.PLANNING_FAILED,
            f"joint {self._asked.joints[i]!r} would have to jump by {abs(q[i] - before[i]):.3g}; allowed is "
            f"{self._farthest[i]:g}",
        )

    def _without_jumps(
        self, q: Annotated[Float64, "K n"], why: _Why | None
    ) -> tuple[Annotated[Float64, "K n"], _Why | None]:
        """Return the configurations up to the first step that is too many times longer than the mean step."""
        factor = self.steps.jump_factor
        if factor is None or len(q) < 3:
            return q, why
        ways = np.linalg.norm(np.diff(q, axis=0), axis=1)
        long = np.flatnonzero(ways > factor * ways.mean())
        if not long.size:
            return q, why
        k = int(long[0])
        return q[: k + 1], _Why(
            Status.PLANNING_FAILED,
            f"step {k + 1} is {ways[k] / ways.mean():.3g} times as long in joint space as the mean; allowed is "
            f"{factor:g}",
        )

    def _nearest(
        self, q: Annotated[Float64, "n"], before: Annotated[Float64, "n"]
    ) -> Annotated[Float64, "n"]:
        return nearest_equivalent(q, before, self._continuous)

    def _jumps(self, q: Annotated[Float64, "n"], before: Annotated[Float64, "n"]) -> bool:
        return bool((np.abs(q - before) > self._farthest).any())

    def _whole(self, q: Annotated[Float64, "K n"]) -> Annotated[Float64, "K nq"]:
        whole = np.repeat(self._asked.state, len(q), axis=0)
        whole[:, self._asked.variables] = q
        return whole

    # Collisions.

    def _free(self, q: Annotated[Float64, "K n"]) -> Annotated[Bool, "K"]:
        from kinopt_ros.verification.collision import check_collisions  # heavy, and not always wanted

        scene = self._problem.scene
        if scene is None:
            return np.ones(len(q), dtype=np.bool_)
        return check_collisions(
            self._robot,
            scene,
            self._whole(q),
            self._problem.clearance,
            contacts=False,
            pause=self._problem.pause,
        ).free

    def _contacts(self, q: Annotated[Float64, "n"], remedy: bool = False) -> str:
        problem = self._problem
        assert problem.scene is not None
        return least_contacts(
            self._robot, problem.scene, self._whole(q[None]), problem.clearance, problem.hurry, remedy
        )

    def _in_the_way(self, lines: _Lines, k: int, what: str) -> _Why:
        return _Why(Status.PLANNING_FAILED, f"the path is in collision {_where(lines, k)}: {what}")

    # The motion.

    def _motion(self, lines: _Lines, q: Annotated[Float64, "K n"]) -> TrajectoryResult | _Touch | _Why:
        """Time and verify a motion through configurations that keeps to the lines; return it, or where it touches
        something, or why there is none."""
        last = len(q) - 1
        gate = Gate(self._robot, replace(self._problem, goals=(JointGoal(q[-1]),)), self._solver)
        u, dense = self._dense(lines, np.arange(last + 1, dtype=np.float64), q)
        said = ""
        for _ in range(_REFINEMENTS):
            found = gate.passed(dense, 0)
            if isinstance(found, PathAttempt):
                if found.violation.check == ON_THE_WAY and found.state is not None:
                    return _Touch(found.state, found.violation.message)
                self._problem.pause()
                return _Why(Status.PLANNING_FAILED, found.violation.message)
            assert found.trajectory is not None
            times = np.linspace(0.0, found.trajectory.duration, _SAMPLES)
            poses = self.poses_of(evaluate(found.trajectory, times)[0])
            off, angle = lines.off(poses, last, self.steps.tolerance, self._problem.hurry)
            missed = lines.missed(poses, last, self.steps.tolerance, self._problem.hurry)
            if off <= self.steps.tolerance and angle <= ANGLE_TOLERANCE and not missed:
                return found
            where = missed or f"{off:.3g} m and {angle:.3g} rad off its line"
            said = f"{where}; allowed are {self.steps.tolerance:g} m"
            if self._problem.late:
                return _Why(Status.TIMED_OUT, f"the time was up while the timed motion was {said}")
            u, dense = self._halved(lines, u, dense)
        return _Why(Status.PLANNING_FAILED, f"the timed motion is {said}")

    def _dense(
        self, lines: _Lines, u: Annotated[Float64, "K"], q: Annotated[Float64, "K n"]
    ) -> tuple[Annotated[Float64, "L"], Annotated[Float64, "L n"]]:
        """Add points where the middle between two is off the line; return places and configurations."""
        for _ in range(_HALVINGS):
            middle, between = 0.5 * (u[:-1] + u[1:]), 0.5 * (q[:-1] + q[1:])
            wanted, reached = lines.at(middle), self.poses_of(between)
            distance = np.linalg.norm(wanted[:, :3, 3] - reached[:, :3, 3], axis=1)
            angle = rotation_angle(np.swapaxes(wanted[:, :3, :3], 1, 2) @ reached[:, :3, :3])
            off = (distance > 0.25 * self.steps.tolerance) | (angle > 0.5 * ANGLE_TOLERANCE)
            if not off.any():
                break
            u, q = self._inserted(lines, u, q, np.flatnonzero(off))
        return u, q

    def _halved(
        self, lines: _Lines, u: Annotated[Float64, "K"], q: Annotated[Float64, "K n"]
    ) -> tuple[Annotated[Float64, "L"], Annotated[Float64, "L n"]]:
        return self._inserted(lines, u, q, np.arange(len(u) - 1))

    def _inserted(
        self,
        lines: _Lines,
        u: Annotated[Float64, "K"],
        q: Annotated[Float64, "K n"],
        after: Annotated[Int64, "M"],
    ) -> tuple[Annotated[Float64, "L"], Annotated[Float64, "L n"]]:
        """Insert middles after some points; those that cannot be solved for are left out."""
        new_u, new_q, places = [], [], []
        for k in after.tolist():
            self._problem.pause()
            at = 0.5 * (u[k] + u[k + 1])
            found = self._next(0.5 * (q[k] + q[k + 1]), lines.at(np.array([at]))[0])
            if not isinstance(found, _Why):
                new_u.append(at)
                new_q.append(found)
                places.append(k + 1)
        if not places:
            return u, q
        return np.insert(u, places, new_u), np.insert(q, places, np.array(new_q), axis=0)

    # Results.

    def _done(
        self, lines: _Lines, q: Annotated[Float64, "K n"], found: TrajectoryResult, why: _Why | None
    ) -> CartesianResult:
        scene = self._problem.scene
        last = len(q) - 1
        return CartesianResult(
            Status.SUCCESS if why is None else why.status,
            "" if why is None else why.message,
            found.trajectory,
            last / lines.count,
            int((lines.ends <= last).sum()),
            self._solver,
            (*found.checks, f"{LINE} (looked at {_SAMPLES} times)"),
            found.not_checked,
            None if scene is None else scene.version,
            found.notes,
        )

    def _ended(self, why: _Why) -> CartesianResult:
        return CartesianResult(why.status, why.message, None, 0.0, 0, self._solver)


def _where(lines: _Lines, k: int) -> str:
    number = int(np.searchsorted(lines.ends, k))
    return f"after {(k - 1) / lines.count:.1%}, on the way to waypoint {number}"
