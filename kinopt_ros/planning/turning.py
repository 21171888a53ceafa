"""Motions in which floating joints turn.

They are planned, timed and verified for the robot whose floating joints turn by three angles
(``kinematics/angled_robot.py``), which are 0 at the start. The first of them turns about the axis that leads to the
goal's orientation, so that the straight line is the geodesic, of up to half a turn.

What comes of it stays in these angles: they are what was verified between points, too. ``configurations_along`` gives
configurations of the robot itself; both robots' poses are compared at the points of the motion.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, UnsupportedFeatureError
from kinopt_ros.kinematics.angled_robot import AngledRobot, angled_robot
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.quaternion_products import conjugate, product
from kinopt_ros.kinematics.se3 import (
    matrix_to_quaternion,
    normalized,
    pose_error,
    quaternion_to_matrix,
    rotation_angle,
    so3_exp,
    so3_log,
)
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.target_errors import errors_of_target
from kinopt_ros.problems.trajectory import Goal, JointGoal, PoseGoal, TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import quaternion_columns
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult, TurningJoint
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.verification.motion import JOINT_TOLERANCE, joint_difference
from kinopt_ros.verification.turning import fastest_turn

TURNING = "floating joints"
"""Name of the check that both robots' poses are the same."""
TURN_LIMITS = "angular velocity limits"
"""Name of the check of how fast floating joints turn, between points, too."""
SAME = 1e-9
"""Largest difference of poses of both robots, m and rad, by metre of the distance from the root or less."""
_ROUNDS = 5
"""Most plans of one problem, each slower than the one before."""
_SLOWER = 1.002
"""Factor by which a motion is to be slower than it would have to be: the bound is above the truth, and limits of jerk
are not scaled."""
_ROUNDING = 1e-6
"""Part by which a limit of the angular velocity may be passed, as those of joints."""
_UNIT_RATE = 1e-6
"""Largest part of a quaternion's rate that would change its length, 1/s, by the rate's own length or less."""


def turns(robot: RobotModel, problem: TrajectoryProblem) -> bool:
    """Return whether floating joints turn in a problem's motions."""
    return bool(quaternion_columns(robot, problem.variables))


def plan_turning(
    robot: RobotModel,
    problem: TrajectoryProblem,
    solver: Solver,
    plan: Callable[[RobotModel, TrajectoryProblem], TrajectoryResult],
) -> TrajectoryResult:
    """Plan a motion in which floating joints turn; slower where the angles together turn one too fast.

    Args:
        robot: the robot.
        problem: what is asked.
        solver: finds configurations at poses.
        plan: plans for the robot of angles.

    Raises:
        KinoptError: what cannot be said by angles, or what ``plan`` raises.
    """
    turning = Turning(robot, problem, solver)
    spent = 0.0
    for _ in range(_ROUNDS):
        found = plan(turning.robot, turning.problem)
        spent += found.solve_time
        excess = turning.excess(found)
        if excess <= 1.0:
            break
        turning.slow_down(excess)
    return replace(turning.answer(found), solve_time=spent)


class Turning:
    """One problem in terms of the robot whose floating joints turn by angles."""

    def __init__(self, robot: RobotModel, problem: TrajectoryProblem, solver: Solver) -> None:
        """``solver`` finds a configuration at the poses of the first goal, if it is one of poses: the way to turn.

        Raises:
            KinoptError: what cannot be said by angles: limits of a quaternion's numbers, a rate that is none of a
                rotation, a path with a quaternion of length 0.
        """
        self._robot, self._own = robot, problem
        self._angled: AngledRobot = angled_robot(robot)
        _check_unlimited(robot, problem)
        self._frames = self._angled.with_frames(problem.start, self._axes(solver))
        self._variables = self._angled.variables_from_own(problem.variables)
        names = self._angled.robot.variable_names
        self.robot = self._angled.robot
        """The other robot."""
        self.problem = replace(
            problem,
            joints=tuple(names[i] for i in self._variables),
            variables=self._variables,
            start=self._frames,
            start_velocity=self._velocity(),
            goals=tuple(map(self._goal, problem.goals)),
            waypoints=self._waypoints(),
            rest=None if problem.rest is None else self._there(problem.rest),
            paths=self._paths(),
        )
        """The problem for it."""

    def answer(self, found: TrajectoryResult) -> TrajectoryResult:
        """Return a result in terms of the problem itself: what failed as configurations, a motion as it was
        verified."""
        attempt = found.attempt
        if attempt is not None:
            found = replace(found, attempt=self._attempt(attempt))
        if found.trajectory is None:
            return found
        full = self.problem.whole(found.trajectory.position)
        wrong = (
            self._difference(full)
            or self._missed(full[-1], self._own.goals[found.goal or 0])
            or self._too_fast(found)
        )
        if wrong:
            return replace(
                found, status=Status.PLANNING_FAILED, message=wrong, trajectory=None, goal=None, checks=()
            )
        return replace(found, checks=(*found.checks, TURNING, TURN_LIMITS), turning=self._turning())

    def excess(self, found: TrajectoryResult) -> float:
        """Return by which factor a motion turns a floating joint faster than it may; 1 or less if it does not."""
        return max((speed / limit for _, speed, _, limit in self._turns(found)), default=0.0)

    def slow_down(self, factor: float) -> None:
        """Ask for motions slower by so much."""
        own = self.problem
        factor *= _SLOWER
        self.problem = replace(
            own,
            velocity_scaling=own.velocity_scaling / factor,
            acceleration_scaling=own.acceleration_scaling / factor**2,
        )

    def _turns(self, found: TrajectoryResult) -> list[tuple[str, float, float, float]]:
        """Return for every joint that turns its name, a bound of its angular velocity (rad/s), when it is so fast (s),
        and what is allowed: the limit, or what it turns with at the start."""
        motion, turned = found.trajectory, []
        for joint in self._angled.joints if motion is not None else ():
            columns = np.flatnonzero(np.isin(self._variables, range(joint.first, joint.first + 3)))
            if motion is None or not len(columns):
                continue
            limit = self._own.velocity_scaling * self._angled.robot.limits.velocity[joint.first]
            start = float(np.linalg.norm(self.problem.start_velocity[joint.first : joint.first + 3]))
            allowed = max(limit, start) * (1.0 + _ROUNDING)
            turned.append((joint.joint, *fastest_turn(motion, columns, allowed), allowed))
        return turned

    def _too_fast(self, found: TrajectoryResult) -> str:
        """Return a sentence about a joint that turns too fast; empty if none does."""
        for joint, speed, time, limit in self._turns(found):
            if speed > limit:
                return f"{joint!r} turns with {speed:.9g} rad/s at {time:.3f} s; its limit is {limit:.9g}"
        return ""

    def _axes(self, solver: Solver) -> Annotated[Float64, "F 4"]:
        """Return the rotation after the angles of every floating joint: the axis to the first goal becomes x."""
        goal = self._own.goals[0]
        end = self._own.whole(goal.q) if isinstance(goal, JointGoal) else self._at(goal, solver)
        after = np.tile([1.0, 0.0, 0.0, 0.0], (len(self._angled.joints), 1))
        for k, joint in enumerate(self._angled.joints):
            own = slice(joint.own, joint.own + 4)
            way = so3_log(quaternion_to_matrix(product(conjugate(self._own.start[own]), end[own])))
            if np.linalg.norm(way) > SAME:
                after[k] = conjugate(_from_x(way / np.linalg.norm(way)))
        return after

    def _at(self, goal: PoseGoal, solver: Solver) -> Annotated[Float64, "nq"]:
        """Return a configuration at poses, or the start if none is found: what it is for is a good axis only."""
        own = self._own
        asked = IkProblem(
            targets=goal.targets,
            base_link=own.base_link,
            joints=own.joints,
            variables=own.variables,
            state=own.start[None].copy(),
            seeds=np.zeros((1, 0, len(own.variables))),
            deadline=own.deadline,
            random_seed=own.random_seed,
        )
        try:
            found = solver.solve_ik(asked)
        except UnsupportedFeatureError:
            return own.start
        return own.whole(found.q[0, 0]) if found.success[0] else own.start

    def _there(
        self, q: Annotated[Float64, "... n"], near: Annotated[Float64, "mq"] | None = None
    ) -> Annotated[Float64, "... m"]:
        """Return values of the other problem's variables; angles are those near to some, 0 by default."""
        frames = self._frames if near is None else near
        return self._angled.from_own(self._own.whole(q), frames)[..., self._variables]

    def _goal(self, goal: Goal) -> Goal:
        return JointGoal(self._there(goal.q)) if isinstance(goal, JointGoal) else goal

    def _waypoints(self) -> tuple[Goal, ...]:
        near, found = self._frames, list[Goal]()
        for waypoint in self._own.waypoints:
            if isinstance(waypoint, JointGoal):
                near = self._angled.from_own(self._own.whole(waypoint.q), near)
                found.append(JointGoal(near[self._variables]))
            else:
                found.append(waypoint)
        return tuple(found)

    def _paths(self) -> Annotated[Float64, "S T m"]:
        """Return paths whose angles go on from one point to the next."""
        given = self._own.paths
        if not len(given):
            return np.zeros((0, 0, len(self._variables)))
        for first in quaternion_columns(self._robot, self._own.variables):
            if not given[..., first : first + 4].any(axis=-1).all():
                raise InvalidRequestError("paths has a quaternion of length 0")
        points = np.empty((*given.shape[:2], len(self._variables)))
        for path, row in zip(given, points, strict=True):
            near = self._frames
            for k, point in enumerate(path):
                near = self._angled.from_own(self._own.whole(point), near)
                row[k] = near[self._variables]
        return points

    def _velocity(self) -> Annotated[Float64, "mq"]:
        """Return the velocity at the start; rates of quaternions become those of the angles, which are 0 there."""
        own, start = self._own.start_velocity, self._own.start
        velocity = np.zeros(self._angled.robot.nq)
        velocity[self._angled.variables] = own
        for joint in self._angled.joints:
            place = slice(joint.own, joint.own + 4)
            rate, quaternion = own[place], normalized(start[place])
            velocity[joint.before : joint.before + 4] = 0.0
            stretching = abs(float(rate @ quaternion))
            if stretching > _UNIT_RATE * max(1.0, float(np.linalg.norm(rate))):
                raise InvalidStateError(
                    f"start_velocity of the quaternion of joint {joint.joint!r} would change its length by "
                    f"{stretching:.3g} /s; a rotation changes it by 0"
                )
            turning = 2.0 * product(conjugate(quaternion), rate)[1:]  # in the link's frame
            after = self._frames[joint.after : joint.after + 4]
            velocity[joint.first : joint.first + 3] = quaternion_to_matrix(after) @ turning
        return velocity

    def _attempt(self, attempt: PathAttempt) -> PathAttempt:
        def own(q: Annotated[Float64, "... m"]) -> Annotated[Float64, "... n"]:
            return self._angled.to_own(self.problem.whole(q))[..., self._own.variables]

        state = None if attempt.state is None else own(attempt.state)
        return replace(attempt, path=own(attempt.path), state=state)

    def _difference(self, full: Annotated[Float64, "T mq"]) -> str:
        """Return a sentence about a point at which the robots' poses differ; empty if none does."""
        links = self._robot.link_names
        one = forward_kinematics(self._robot, self._angled.to_own(full), links=links)
        other = forward_kinematics(self._angled.robot, full, links=links)
        distance, angle = pose_error(one, other)
        far = np.maximum(np.linalg.norm(one[..., :3, 3], axis=-1), 1.0)
        off = np.maximum(distance, angle) / far
        if off.max(initial=0.0) <= SAME:
            return ""
        k, link = np.unravel_index(int(np.argmax(off)), off.shape)
        return f"angles and quaternions differ by {off[k, link]:.3g} at point {k} in where {links[link]!r} is"

    def _missed(self, last: Annotated[Float64, "mq"], goal: Goal) -> str:
        """Return a sentence about a goal that the robot itself is not at; empty if it is there."""
        q = self._angled.to_own(last)
        if isinstance(goal, PoseGoal):
            for target in goal.targets:
                distance, angle, within = errors_of_target(self._robot, self._own.base_link, target, q[None])
                if not within[0]:
                    return f"{target.link!r} ends {distance[0]:.3g} m and {angle[0]:.3g} rad from its goal"
            return ""
        end = q[self._own.variables]
        off = np.abs(joint_difference(self._robot, self._own, end - goal.q))
        for first in quaternion_columns(self._robot, self._own.variables):
            one, other = (quaternion_to_matrix(row[first : first + 4]) for row in (end, goal.q))
            off[first : first + 4] = rotation_angle(one.T @ other)
        i = int(np.argmax(off))
        return "" if off[i] <= JOINT_TOLERANCE else f"{self._own.joints[i]!r} ends {off[i]:.3g} from its goal"

    def _turning(self) -> tuple[TurningJoint, ...]:
        names, moving = self._angled.robot.variable_names, set(self._variables.tolist())
        return tuple(
            TurningJoint(
                joint.joint,
                (names[joint.first], names[joint.first + 1], names[joint.first + 2]),
                self._frames[joint.before : joint.before + 4].copy(),
                self._frames[joint.after : joint.after + 4].copy(),
            )
            for joint in self._angled.joints
            if joint.first in moving
        )


def _check_unlimited(robot: RobotModel, problem: TrajectoryProblem) -> None:
    """Raise UnsupportedFeatureError if numbers of a quaternion that moves are limited to less than what they can be."""
    for column in quaternion_columns(robot, problem.variables):
        for i in problem.variables[column : column + 4].tolist():
            lower, upper = robot.limits.lower[i], robot.limits.upper[i]
            if lower > -1.0 or upper < 1.0:
                raise UnsupportedFeatureError(
                    f"{robot.variable_names[i]!r} is limited to {lower:g} to {upper:g}; motions in which a floating "
                    "joint turns keep no limits of its quaternion's numbers"
                )


def configurations_along(
    robot: RobotModel,
    problem: TrajectoryProblem,
    result: TrajectoryResult,
    times: Annotated[Float64, "M"],
) -> Annotated[Float64, "M nq"]:
    """Return configurations of the whole robot along a motion, floating joints with their quaternions.

    Args:
        robot: the robot.
        problem: what was asked.
        result: its answer, with a motion.
        times: from the start of the motion, s.

    Raises:
        InvalidRequestError: there is no motion, or it is no answer to this problem.
    """
    motion = result.trajectory
    if motion is None:
        raise InvalidRequestError(f"there is no motion: {result.message}")
    values = evaluate(motion, np.asarray(times, dtype=np.float64))[0]
    if not result.turning:
        if motion.joint_names != problem.joints:
            raise InvalidRequestError("the motion is of other joints than the problem")
        return problem.whole(values)
    angled = angled_robot(robot)
    index = [angled.robot.variable_index.get(name, -1) for name in motion.joint_names]
    if not np.array_equal(index, angled.variables_from_own(problem.variables)):
        raise InvalidRequestError("the motion is of other joints than the problem")
    after = np.tile([1.0, 0.0, 0.0, 0.0], (len(angled.joints), 1))
    for turning in result.turning:
        after[[joint.joint for joint in angled.joints].index(turning.joint)] = turning.after
    full = np.repeat(angled.with_frames(problem.start, after)[None], len(values), axis=0)
    full[:, index] = values
    return angled.to_own(full)


def _from_x(axis: Annotated[Float64, "3"]) -> Annotated[Float64, "4"]:
    """Return the quaternion of the smallest rotation that takes x to an axis of length 1."""
    across = np.array([0.0, -axis[2], axis[1]])
    sine = float(np.linalg.norm(across))
    angle = float(np.arctan2(sine, axis[0]))
    direction = across / sine if sine > SAME else np.array([0.0, 0.0, 1.0])
    return matrix_to_quaternion(so3_exp(angle * direction))
