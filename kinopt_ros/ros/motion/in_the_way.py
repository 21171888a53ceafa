"""What comes in the way of a motion that runs: obstacles, joints that it leaves out, and other motions."""

import time
from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.servo.session import LAG
from kinopt_ros.planning.servo.setup import PATIENCE
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import error_message
from kinopt_ros.ros.motion.beside import begun_by, check_beside, variables_of, without
from kinopt_ros.ros.motion.brakes import commanded_of
from kinopt_ros.ros.motion.controllers import Part
from kinopt_ros.ros.motion.last_look import PlannedFor
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.own_pace import OwnPaceError, check_own_pace, in_time
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.scene.scene import Scene
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.sweep import first_contact
from kinopt_ros.verification.verify import contact_sentence

OTHERS_SECONDS, OTHERS_MOVED = 0.05, 2e-3
"""Time between two looks at joints that a motion leaves out, s, and how far they have to move for what is left of it to
be checked again, rad or m."""


class InTheWay:
    """Looks at what is left of one motion that was planned with a scene, whenever something has changed."""

    def __init__(
        self,
        context: Context,
        output: MotionOutput,
        running: Published,
        planned: PlannedFor,
        parts: Sequence[Part] | None,
        stop: Callable[[Status, str], None],
    ) -> None:
        """
        Args:
            context: the node's.
            output: knows the other motions.
            running: the motion.
            planned: what it was planned for.
            parts: what each controller was told to do of it; None: it was published.
            stop: called with why the motion has to stop.
        """
        self._context = context
        self._output = output
        self._running = running
        self._planned = planned
        self._parts = parts
        self._stop = stop
        self._seen = None if planned.scene is None else planned.scene.version
        self._known = self._beside()
        self._others, self._looked = self._measured_others(), time.monotonic()

    def look(self) -> None:
        """Stop the motion if it is not free any more."""
        scene, beside = self._context.scene.of(self._running.robot), self._beside()
        if scene.version != self._seen:
            self._seen = scene.version
            self._check(scene, beside, "the scene has changed")
        else:
            self._check_beside(scene, without(beside, self._known))
        self._known = beside
        if time.monotonic() >= self._looked + OTHERS_SECONDS:
            before, self._others, self._looked = self._others, self._measured_others(), time.monotonic()
            if (np.abs(self._others - before) > OTHERS_MOVED).any():
                self._check(scene, beside, "joints that it leaves out have moved")
            else:  # they may creep
                self._others = np.where(np.isfinite(before), before, self._others)

    def left(self) -> JointTrajectory:
        """Return what is left of the motion. The controller may be behind: a little, or, where it slows motions down,
        as far as joint states say."""
        running = self._running
        late = max(running.start, self._context.now() - LAG)
        begun = begun_by(in_time(running, self._parts), self._context.joint_states.of(running.robot))
        return commanded_of(running).rest(late if begun is None else min(late, begun))

    def _measured_others(self) -> Annotated[Float64, "nq"]:
        """Return where the variables are measured that no motion of this node moves; NaN elsewhere."""
        robot, now = self._running.robot, self._context.now()
        state = self._context.joint_states.of(robot)
        moved = [
            self._running,
            *(one for one in self._output.published if one.robot is robot and one.runs(now)),
        ]
        at = np.where(state.known, state.q, np.nan)
        at[variables_of(robot, moved)] = np.nan
        return at

    def _beside(self) -> list[Published]:
        """Return the motions of other joints that are not over."""
        joints, now = set(self._running.message.joint_names), self._context.now()
        return [
            one
            for one in self._output.published
            if one.runs(now)
            and one.robot is self._running.robot
            and joints.isdisjoint(one.message.joint_names)
        ]

    def _check(self, scene: Scene, beside: Sequence[Published], why: str) -> None:
        """Stop the motion if what is left of it is not free any more; ``why`` that may be."""
        running, clearance = self._running, self._planned.clearance
        robot, q = running.robot, self._measured()
        variables = np.array(variables_of(robot, [running]))
        left = self.left()
        try:
            contact = first_contact(robot, scene, q, variables, left, clearance, patience=PATIENCE)
            if contact is None and self._parts is not None:
                check_own_pace(robot, scene, q, running.message, left, self._parts, clearance)
        except OwnPaceError as error:
            self._stop(Status.ENVIRONMENT_CHANGED, f"{why}: {error}; the robot brakes")
            return
        except KinoptError as error:  # nobody knows whether it is free
            self._stop(error.status, error_message(error).message)
            return
        if contact is not None:
            self._stop(
                Status.ENVIRONMENT_CHANGED, f"{why}: {contact_sentence(contact, clearance)}; the robot brakes"
            )
            return
        self._check_beside(scene, beside)

    def _check_beside(self, scene: Scene, beside: Sequence[Published]) -> None:
        """Stop the motion if it may meet others that run now: one that was checked before it began, or its brake."""
        if not beside:
            return
        robot, state = self._running.robot, self._context.joint_states.of(self._running.robot)
        q, left = self._measured(), self.left()
        timeout = self._context.parameter("state_timeout")
        try:
            check_beside(robot, scene, state, q, left, beside, self._planned.clearance, timeout)
        except KinoptError as error:
            self._stop(Status.ENVIRONMENT_CHANGED, f"{error_message(error).message}; the robot brakes")

    def _measured(self) -> Annotated[Float64, "nq"]:
        """Return where all joints are; those that nobody has measured, as the motion was planned."""
        state = self._context.joint_states.of(self._running.robot)
        return np.where(state.known, state.q, self._planned.q)
