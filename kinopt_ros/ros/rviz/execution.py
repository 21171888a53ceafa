"""Motions that the menus of markers execute: those that are shown, through the gate that all motions go through."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass

from builtin_interfaces.msg import Time
from trajectory_msgs.msg import JointTrajectory

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.planning.motion import commanded_variables
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.motion.controller_hand_over import ControllerHandOver
from kinopt_ros.ros.motion.controllers import ChosenControllers, Controllers, commanded
from kinopt_ros.ros.motion.last_look import PlannedFor, check_is_at
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.rights import Claim
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.ros.requests.trajectory import TrajectoryRequest, controller_order
from kinopt_ros.ros.serving.defects import error_status
from kinopt_ros.status import Status

THREADS = 8
"""Motions that run at the same time, of different joints."""
_UNCHECKED = "With collision avoidance off in the menu the robot moves unchecked"


@dataclass(frozen=True, eq=False)
class ShownMotion:
    """A motion that is drawn, and may be executed."""

    message: JointTrajectory
    asked: TrajectoryRequest


class Executions:
    """Motions of this node's markers that run."""

    def __init__(self, context: Context, output: MotionOutput, controllers: Controllers) -> None:
        self._context = context
        self._output = output
        self._controllers = controllers
        self._lock = threading.Lock()
        self._running: dict[MotionRun, ChosenControllers | None] = {}
        self._workers = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="marker_motion")
        controllers.needed_by(self._needs)

    def begin(self, motion: ShownMotion, ended: Callable[[StatusMsg], None], stops: int) -> None:
        """Execute a motion as it is shown. Returns at once; on the executor's thread.

        Args:
            motion: what is shown.
            ended: called with how it ended, on another thread.
            stops: emergency stops when it was asked for.

        Raises:
            KinoptError: the robot may not move.
        """
        asked, robot = motion.asked, motion.asked.loaded.model
        message = deepcopy(motion.message)
        message.header.stamp = Time()
        variables = commanded_variables(robot, message.joint_names)  # raises where no controller can move one
        order = tuple(self._context.parameter("controller_joints") or ())
        controller_order(order, message.joint_names, publish=True)
        problem = asked.problem
        planned = PlannedFor(asked.loaded, problem.start, problem.scene, problem.clearance, _UNCHECKED)
        chosen = self._controllers.chosen()
        run = MotionRun(self._context, self._output, chosen)
        joints = commanded(self._context, chosen, message.joint_names)

        # A motion that has taken the robot from where the plan begins is not ended for it.
        def check() -> None:
            check_is_at(robot, self._context.joint_states.of(robot), problem.start, variables.tolist())

        claim = self._output.claim("an interactive marker", run.lost, stops, joints, check=check)
        with self._lock:
            self._running[run] = chosen

        def work() -> None:
            try:
                status = self._run(run, claim, message, planned)
            except Exception as error:  # nothing ends the worker
                status = error_status(self._context.node.get_logger(), "in an interactive marker", error)
            with self._lock:
                del self._running[run]
            ended(status)

        self._workers.submit(work)

    def close(self) -> None:
        """Stop what runs, and begin nothing any more."""
        with self._lock:
            running = list(self._running)
        for run in running:
            run.stop(Status.PREEMPTED, "the node is shutting down")
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _run(self, run: MotionRun, claim: Claim, message: JointTrajectory, planned: PlannedFor) -> StatusMsg:
        try:
            run.wait_for_rest(message.joint_names)
            return run.run(claim, message, planned)
        finally:
            claim.give_up()

    def _needs(self, controller: ControllerHandOver) -> bool:
        with self._lock:
            chosen = list(self._running.values())
        return any(one is not None and one.uses(controller) for one in chosen)
