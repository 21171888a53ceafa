"""~/target_pose: a pose in, one verified motion out on ~/joint_trajectory, and a report of what became of it; another
one, if the scene gets into the way of it."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_msgs.msg import MotionReport
from kinopt_ros.array import Float64
from kinopt_ros.errors import (
    EnvironmentChangedError,
    KinoptError,
    NotReadyError,
    SolverUnavailableError,
    StartStateError,
    UnsupportedFeatureError,
)
from kinopt_ros.planning.leaving import Leaving, leaving
from kinopt_ros.planning.motion import commanded_variables, plan_joint_motion
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.planning.solver_pool import PooledResult
from kinopt_ros.problems.builder import ik_problem, resolve_chain
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.every import CLOSEST
from kinopt_ros.problems.validation import check_transforms
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import one_variable_each
from kinopt_ros.ros.context import Context, assumed_default
from kinopt_ros.ros.messages.conversions import (
    matrices_from_poses,
    said,
    status_message,
    trajectory_message,
)
from kinopt_ros.ros.messages.stamps import seconds_unread
from kinopt_ros.ros.motion.last_look import (
    AWAY,
    PlannedFor,
    check_has_not_jumped,
    check_is_at,
    check_is_at_rest,
    check_others_at_rest,
)
from kinopt_ros.ros.motion.output import ClosedError, MotionOutput
from kinopt_ros.ros.motion.published import (
    TooSoonToTellError,
    check_clock,
    check_keeps_stamps,
    followed_motion,
    told_lately,
)
from kinopt_ros.ros.motion.rights import Claim
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.ros.motion.watched import WatchedMotions
from kinopt_ros.ros.robot import parameters
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.ros.robot.tips import tip_of
from kinopt_ros.ros.serving.defects import error_status
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import SELF_COLLISION, WORLD_COLLISION
from kinopt_ros.verification.configuration import verify_configurations
from kinopt_ros.verification.verify import VerifiedMotion

ALTERNATIVES = 4
"""Number of goal configurations to which the way is checked, the nearest first."""
PLANS = 5
"""Most times that a motion is planned, as what it was planned for has changed before it could be published."""
LEAD = 100_000_000
"""Time for planning, ns, in which a robot goes on with the motion that it is in; longer after each plan that was not
ready by then."""
SEEN = 0.25
"""Greatest age of joint states, s, by which a robot counts as being in a motion that is to be left."""
STOP_SECONDS = 2.0
"""Longest time that a target waits until the robot stands that a controller was told to stop, or that brakes, s."""
_LOOK_SECONDS = 0.02
"""Time between two looks whether all is prepared, or the robot stands, s."""
_ALLOWED = "With parameter ik.avoid_collisions: false the robot moves unchecked"


@dataclass(frozen=True, eq=False)
class _Target:
    """A target in terms of the library."""

    loaded: LoadedRobot
    base: str
    tip: str
    joints: tuple[str, ...]
    """Those that the controller gets."""
    T_link_tip: Annotated[Float64, "4 4"] | None
    T_base_target: Annotated[Float64, "1 4 4"]
    state: RobotState


class TargetPoseTopic:
    """Handler of geometry_msgs/PoseStamped on ~/target_pose. Publishes a trajectory only if it was verified."""

    def __init__(self, context: Context, output: MotionOutput, watched: WatchedMotions, reports: Any) -> None:
        """
        Args:
            context: the node's.
            output: what motions are sent through.
            watched: watches them.
            reports: publisher of ~/report.
        """
        self._context = context
        self._output = output
        self._watched = watched
        self._reports = reports
        self._lock = threading.Lock()
        self._newest: tuple[Any, int, ClosedError | None] | None = None
        """The target that waits, how many emergency stops there were when it came, and why nothing might move then."""
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="target_pose")

    def take(self, target: Any, info: Any) -> None:
        """Move there, on a thread of its own. Of targets that come meanwhile the newest counts."""
        stops = self._output.stops_before(seconds_unread(info))
        with self._lock:
            idle = self._newest is None
            self._newest = target, stops, self._output.closed
        if idle:
            with suppress(RuntimeError):  # closed: the node ends
                self._worker.submit(self._next)

    def close(self) -> None:
        """Take no more targets."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> None:
        with self._lock:
            newest, self._newest = self._newest, None
        if newest is not None:
            self._handle(*newest)

    def _handle(self, target: Any, stops: int, closed: ClosedError | None = None) -> None:
        """Move there once. Never raises: what went wrong is reported on ~/report. ``stops`` and ``closed``: see
        MotionOutput."""
        start = time.monotonic()
        report = MotionReport(header=target.header)
        claim: Claim | None = None
        run: MotionRun | None = None
        owners: list[str] = []
        """Name of who has the robot instead."""
        try:
            self._output.check_heard()
            self._read(target, report)  # what cannot be used ends nobody's motion
            if closed is not None:
                raise type(closed)(str(closed))
            # Only now: targets that come in a steady stream must not keep one another from being reached.
            claim = self._output.claim("~/target_pose", owners.append, stops)
            run = self._move(target, report, start, claim)
        except Exception as error:  # nothing ends the thread
            report.status = error_status(self._context.node.get_logger(), "on ~/target_pose", error)
        if claim is not None:
            claim.give_up()
        if owners:  # what else was wrong was so because of that, or does not matter any more
            sentence = f"{owners[0]} came later: the robot has one owner at a time"
            report.status = status_message(Status.PREEMPTED, sentence)
        report.wall_time = time.monotonic() - start
        if report.status.code != Status.SUCCESS:
            self._context.node.get_logger().warning(f"~/target_pose: {report.status.message}")
        try:
            self._reports.publish(report)
        finally:
            if run is not None:
                self._watched.begin_reported(run, "~/target_pose", report, start)

    def _move(self, target: Any, report: MotionReport, start: float, claim: Claim) -> MotionRun | None:
        """Plan and publish; once more, in time, if what was planned for is no longer so. Return the motion that is to
        be watched, if one was published."""
        waited = self._wait_until_still(claim, self._output.is_executed)
        deadline, lead = start + waited + self._context.parameter("ik.timeout"), LEAD
        for number in range(1, PLANS + 1):
            # One may come at any time. Nobody knows exactly where in it the joints are: it is not left half way.
            deadline += self._wait_until_still(claim, lambda: self._output.brakes)
            self._wait_until_prepared(claim, deadline)
            begin = time.monotonic()
            planned = self._plan(target, report, deadline, lead)
            lead = 2 * max(lead, round(1e9 * (time.monotonic() - begin)))
            if planned is None:
                return None
            try:
                return self._publish(*planned, report, claim)
            except (EnvironmentChangedError, StartStateError) as error:
                replaced = self._context.loaded is not planned[1].loaded
                if number == PLANS or replaced or time.monotonic() >= deadline:
                    times = f" (planned {number} times)" if number > 1 else ""
                    error.args = (f"{error}{times}",)
                    raise
                if isinstance(error, TooSoonToTellError):
                    deadline += self._wait_until(claim, error.until, deadline)
        return None

    def _wait_until(self, claim: Claim, until: int, deadline: float) -> float:
        """Wait until a time, ns of the node's clock, as long as nobody else has asked for a motion, until the deadline
        (``time.monotonic()``) at most; return how long, s."""
        begin = time.monotonic()
        while claim.holds and self._now() < until and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - begin

    def _plan(
        self, target: Any, report: MotionReport, deadline: float, lead: int
    ) -> tuple[TrajectoryMessage, PlannedFor, float, Callable[[], bool]] | None:
        """Plan a motion; return it, what it was planned for, how long it takes (s), and what checks the one it leaves.

        Returns None if there is none, and the report says why.
        """
        context = self._context
        asked_for = self._read(target, report)
        loaded, joints, state = asked_for.loaded, asked_for.joints, asked_for.state
        base, tip, robot = asked_for.base, asked_for.tip, loaded.model
        variables = commanded_variables(robot, joints)
        start, velocity = state.q.copy(), np.zeros(robot.nq)
        scalings = context.parameter("velocity_scaling"), context.parameter("acceleration_scaling")
        setup = servo_setup(
            robot, base, tip, joints, velocity_scaling=scalings[0], acceleration_scaling=scalings[1]
        )
        left = self._left(setup, state, lead)
        if left is not None:
            start[variables], velocity[variables] = left.state.position, left.state.velocity
        asked: dict[str, Any] = {
            "group": report.group,
            "tip_link": tip,
            "T_link_tool": asked_for.T_link_tip,
            "state": start,
            "position_tolerance": context.parameter("ik.position_tolerance"),
            "orientation_tolerance": context.parameter("ik.orientation_tolerance"),
            "deadline": deadline,
            **self._avoiding(loaded),
        }
        pooled, problem = self._solve(robot, loaded, asked_for.T_base_target, asked)
        if not _note_answer(pooled, report):
            return None
        motions = []
        for q in pooled.result.q[0, : int(pooled.result.num_found[0])]:
            goal = start.copy()
            goal[problem.variables] = q
            motions.append(
                plan_joint_motion(
                    robot,
                    joints,
                    start,
                    velocity,
                    goal,
                    *scalings,
                    context.parameter("start_state_tolerance"),
                    problem.scene,
                    problem.clearance,
                    left,
                )
            )
            if motions[-1].contact is None:  # whatever else may be wrong is so of the others, too
                break
        motion = motions[-1] if motions[-1].contact is None else motions[0]
        if not (_note_end(robot, problem, motion, report) and _note_motion(motion, report)):
            return None
        message = trajectory_message(motion.trajectory, robot.root_link)
        if left is not None:  # when one from rest begins is up to the output
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(left.start, 10**9)
        if problem.scene is not None:
            names = robot.variable_names
            assumed = assumed_default([names[i] for i in np.flatnonzero(~state.known)])
            report.status.message = said(report.status.message, assumed)
        planned = PlannedFor(
            loaded, start, problem.scene, problem.clearance, unchecked=_ALLOWED, goes_on=left is not None
        )
        around = None if problem.scene is None else start
        return message, planned, motion.trajectory.duration, lambda: self._is_still_in(left, setup, around)

    def _read(self, target: Any, report: MotionReport) -> _Target:
        """Read a target, and where the robot is; the report gets the group.

        Raises:
            KinoptError: something in it, or in what is measured, is not usable.
        """
        context = self._context
        loaded = context.loaded
        robot = loaded.model
        report.group = context.group_name(robot)
        named = context.parameter("target_pose.tip_link")
        frame = tip_of(context, robot, named) if named else None
        base, tip, group_joints = resolve_chain(robot, report.group, None, frame.link if frame else None)
        joints = tuple(context.parameter("controller_joints") or one_variable_each(robot, group_joints))

        # A motion starts from what was measured, never from a guess.
        needed = {*context.moving(robot, ((base, tip), (base, target.header.frame_id)))}
        needed.update(commanded_variables(robot, joints).tolist())
        state = context.joint_states.fresh(robot, sorted(needed), context.parameter("state_timeout"))
        state.require_known(sorted(needed), robot)
        T_base_frame = context.frames.T_link_frame(robot, base, target.header.frame_id, state.q)
        T_base_target = T_base_frame @ matrices_from_poses([target.pose], "pose")
        check_transforms(T_base_target, "pose")  # as a number may be too large, and a transform wrong
        return _Target(loaded, base, tip, joints, frame.T_link_tip if frame else None, T_base_target, state)

    def _left(self, setup: ServoSetup, state: RobotState, lead: int) -> Leaving | None:
        """Return how the motion is left that this node has published and the robot is in; None if it is in none.

        What was measured is too old to begin with while the robot moves: it would be set back, and its velocity, too.
        """
        now = self._now()
        followed = followed_motion(self._output.published, setup, state, now, AWAY)
        if followed is None:
            return None
        return leaving(followed, now, lead, setup.planning, state.way(setup.variables))

    def _is_still_in(
        self, left: Leaving | None, setup: ServoSetup, around: Annotated[Float64, "nq"] | None
    ) -> bool:
        """Return True, right before the motion is sent that leaves another one.

        Args:
            left: how it is left; None: none is.
            setup: the joints.
            around: where the others were taken to stay; None where collisions do not matter.

        Raises:
            StartStateError: it is too late for that, or the robot, or its controller's clock, is elsewhere: the
                controller would jump.
        """
        if left is None:
            return True
        state, now = self._context.joint_states.of(setup.robot), self._now()
        state.require_known(setup.variables, setup.robot)
        state.require_fresh(setup.variables, setup.robot, self._context.parameter("state_timeout"))
        state.require_fresh(
            setup.variables, setup.robot, SEEN, "the robot moves, and the target leaves its motion"
        )
        check_has_not_jumped(setup.robot, state, setup.variables)
        check_clock(state, setup)
        if around is not None:  # as for a motion that begins at rest
            others = np.setdiff1d(np.flatnonzero(state.known), setup.variables).tolist()
            check_is_at(setup.robot, state, around, others)
            check_others_at_rest(setup.robot, state, others, self._context.parameter("state_timeout"))
        told = told_lately(self._output.published, setup.joints)
        check_keeps_stamps(left.motion, setup, state, now, told)
        followed = followed_motion(self._output.published, setup, state, now, AWAY)
        # Who lost the joints may have sent a brake meanwhile, and a robot that has just begun to brake is near to both.
        if followed is None or followed.start != left.motion.start:
            raise StartStateError(
                "the robot has left the motion that was to be left: does something else stop it?"
            )
        # Last, as a controller would jump to what is late, and what comes before may take a while on a busy machine.
        if self._now() + state.way(setup.variables) >= left.leave:
            raise StartStateError("the motion was not ready when the one before was to be left")
        return True

    def _now(self) -> int:
        return self._context.now()

    def _wait_until_still(self, claim: Claim, stopping: Callable[[], bool]) -> float:
        """Wait, if something is being stopped, until it is not any more, and the robot stands; return how long, s."""
        begin = time.monotonic()
        if stopping():
            while claim.holds and time.monotonic() < begin + STOP_SECONDS:
                if not stopping() and self._stands():
                    break
                time.sleep(_LOOK_SECONDS)
        return time.monotonic() - begin

    def _stands(self) -> bool:
        """Check whether the robot is at rest, as far as is known."""
        robot = self._context.loaded.model
        state = self._context.joint_states.of(robot)
        try:
            check_is_at_rest(robot, state, np.flatnonzero(state.known).tolist())
        except StartStateError:
            return False
        return True

    def _wait_until_prepared(self, claim: Claim, deadline: float) -> None:
        """Wait for what collision checks need, if they are wanted, until the deadline (``time.monotonic()``).

        Waits for the robot that is in service then, and as long as nobody else has asked for a motion.
        """
        if self._context.parameter("ik.avoid_collisions"):
            while claim.holds and self._context.loaded.pool.must_wait(True, False, deadline):
                time.sleep(_LOOK_SECONDS)

    def _avoiding(self, loaded: LoadedRobot) -> dict[str, Any]:
        """Return arguments of ``ik_problem`` for a goal without collisions, unless a parameter turns checks off.

        Raises:
            KinoptError: nobody can.
        """
        context, robot = self._context, loaded.model
        if not context.parameter("ik.avoid_collisions"):
            return {}
        try:
            loaded.pool.check_prepared(collisions=True, motions=False)
        except KinoptError as error:
            error.args = (f"{error}. {_ALLOWED}",)
            raise
        return {"scene": context.scene.of(robot), "clearance": context.parameter("ik.clearance")}

    def _solve(
        self, robot: RobotModel, loaded: LoadedRobot, T_base_target: Any, asked: dict[str, Any]
    ) -> tuple[PooledResult, IkProblem]:
        """Return the goal, and where collisions matter others to go to if the way to it is not free."""
        context = self._context
        solver = parameters.ik_solver(context.node)
        alternatives = ALTERNATIVES if "scene" in asked else 1
        try:  # the shortest way, where the solver can find it
            problem = ik_problem(robot, T_base_target, prefer=CLOSEST, num_solutions=alternatives, **asked)
            return loaded.pool.solve_ik(problem, solver, allow_fallback=False), problem
        except (UnsupportedFeatureError, NotReadyError, SolverUnavailableError):
            problem = ik_problem(robot, T_base_target, **asked)
            return loaded.pool.solve_ik(problem, solver, context.parameter("allow_fallback")), problem

    def _publish(
        self,
        message: TrajectoryMessage,
        planned: PlannedFor,
        duration: float,
        agreed: Callable[[], bool],
        report: MotionReport,
        claim: Claim,
    ) -> MotionRun | None:
        run = MotionRun(self._context, self._output, None, judged=False)
        if not run.send(claim, message, planned, keep=False, agreed=agreed):
            report.status = status_message(
                Status.PREEMPTED, "another motion was asked for: the robot has one owner"
            )
            return None
        report.duration = duration
        report.status = status_message(Status.SUCCESS, report.status.message)
        return run


def _note_motion(motion: VerifiedMotion, report: MotionReport) -> bool:
    """Put the check of a motion into the report; return whether it may be sent."""
    report.checks = list(dict.fromkeys([*report.checks, *motion.report.checks]))
    report.not_checked = list(dict.fromkeys([*report.not_checked, *motion.report.not_checked]))
    if not motion.report.ok:
        code = Status.VERIFICATION_FAILED
        if motion.contact is not None:
            at_start = motion.contact.time == 0.0
            code = Status.START_STATE_IN_COLLISION if at_start else Status.PLANNING_FAILED
        report.status = status_message(
            code, "; ".join(violation.message for violation in motion.report.violations)
        )
    return motion.report.ok


def _note_end(robot: RobotModel, problem: IkProblem, motion: VerifiedMotion, report: MotionReport) -> bool:
    """Put into the report how far from the target the motion's last point is; return whether that is within tolerances.

    The target itself is asked once more: the solver's answer is verified, what became of it here is not.
    """
    q = problem.state.copy()
    q[0, commanded_variables(robot, motion.trajectory.joint_names)] = motion.trajectory.position[-1]
    chains = tuple(chain_between(robot, problem.base_link, target.link) for target in problem.targets)
    end = verify_configurations(
        robot, replace(problem, state=q), chains, q[:, problem.variables], np.zeros(1, dtype=np.int64)
    )
    report.position_error = float(end.position_error[0])
    report.orientation_error = float(end.orientation_error[0])
    if not end.ok[0]:
        report.status = status_message(
            Status.VERIFICATION_FAILED,
            f"the motion would end {report.position_error:.3g} m and {report.orientation_error:.3g} rad from the "
            f"target, its joints {float(end.limit_violation[0]):.3g} rad or m outside their limits",
        )
    return bool(end.ok[0])


def _note_answer(pooled: PooledResult, report: MotionReport) -> bool:
    """Put the solver's answer into the report; return whether there is a solution."""
    result = pooled.result
    report.solver_used = result.solver
    report.checks, report.not_checked = list(result.checks), list(result.not_checked)
    if result.scene_version is not None:
        looked_at = (SELF_COLLISION, WORLD_COLLISION)
        report.checks = [f"{name} at the goal" if name in looked_at else name for name in result.checks]
    solved = bool(result.success[0])
    report.position_error = float(result.position_error[0, 0] if solved else result.attempt_position_error[0])
    report.orientation_error = float(
        result.orientation_error[0, 0] if solved else result.attempt_orientation_error[0]
    )
    if solved:
        report.status.message = said(*result.notes)
    else:
        report.status = status_message(Status(int(result.status[0])), result.messages[0])
    return solved
