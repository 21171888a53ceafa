"""Servo by dragging, without ROS: a robot that does exactly what the library's servo commands follows the gizmo."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, KinoptError
from kinopt_ros.planning.servo.commanded import begun
from kinopt_ros.planning.servo.follow import Target, velocity_to_follow
from kinopt_ros.planning.servo.session import Session as Run
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.planning.servo.velocity import Wanted
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import one_variable_each
from kinopt_ros.scene.scene import Scene
from kinopt_ros.status import Status
from kinopt_ros.trajectory.braking import MotionState

PERIOD = 0.02
"""s between two steps."""
GAIN = 5.0
"""1/s, velocity per error."""


@dataclass(frozen=True, eq=False)
class ServoState:
    """Where the robot is, and what stops it."""

    q: Annotated[Float64, "nq"]
    status: Status
    sentence: str
    """What stops it or slows it down, and why; empty if nothing does."""
    position_error: float
    """m, from the gizmo."""
    orientation_error: float
    """rad."""
    at_rest: bool


class DraggedServo:
    """A robot that follows poses. Not thread-safe."""

    def __init__(
        self,
        robot: RobotModel,
        tips: tuple[str, ...],
        joints: tuple[str, ...],
        q: Annotated[Float64, "nq"],
        now: int,
        *,
        velocity_scaling: float,
        acceleration_scaling: float,
        scene: Scene | None,
        clearance: float,
    ) -> None:
        """
        Args:
            robot: the robot.
            tips: links with a gizmo; servo follows one.
            joints: joints that move.
            q: where the robot stands.
            now: ns.
            velocity_scaling: share of the limits in (0, 1].
            acceleration_scaling: likewise.
            scene: what must not be touched; None: collisions are not looked at.
            clearance: m.

        Raises:
            KinoptError: servo cannot move this robot.
        """
        if len(tips) != 1:
            raise InvalidRequestError(f"servo follows one gizmo; there are {len(tips)}")
        self._make = partial(
            servo_setup,
            robot,
            robot.root_link,
            tips[0],
            one_variable_each(robot, joints),
            velocity_scaling=velocity_scaling,
            acceleration_scaling=acceleration_scaling,
            period=PERIOD,
            clearance=clearance,
        )
        self._setup = self._make(scene=scene)
        self._q = q
        still = np.zeros(len(self._setup.variables))
        standing = MotionState(q[self._setup.variables], still, still)
        begin = begun(self._setup.joints, standing, now, self._setup.period, self._setup.planning)
        self._run = Run(self._setup, begin, goes_on=False)
        self._target: Target | None = None

    def step(
        self,
        now: int,
        T_root_tip: Annotated[Float64, "4 4"] | None,
        scene: Scene | None,
        tolerance: tuple[float, float],
    ) -> ServoState:
        """Command the next motion; return where the robot is.

        Args:
            now: ns.
            T_root_tip: where the gizmo is; None: come to rest.
            scene: what must not be touched, as it is now.
            tolerance: m and rad; what is as near as that is reached.
        """
        if scene is not self._setup.scene:
            self._setup = self._make(scene=scene)
        setup, run = self._setup, self._run
        if T_root_tip is None:
            self._target = None
        elif self._target is None or (self._target.T_base_target != T_root_tip).any():
            before = self._target
            self._target = Target(T_root_tip, now) if before is None else before.followed_by(T_root_tip, now)
        status, sentence, wanted = Status.SUCCESS, "", None
        try:
            wish = None if self._target is None else partial(_wish, setup, self._target, tolerance)
            step = run.advance(setup, now, self._q, wish)
            run.accept(setup, step)
            status, sentence, wanted = step.status, step.sentence, step.wanted
        except KinoptError as error:
            status, sentence = error.status, str(error)
        state = run.commanded.at(now)
        self._q = setup.whole(self._q, state.position)
        nan = float("nan")
        return ServoState(
            self._q,
            status,
            sentence,
            nan if wanted is None else wanted.position_error,
            nan if wanted is None else wanted.orientation_error,
            now >= run.commanded.end,
        )


def _wish(
    setup: ServoSetup,
    target: Target,
    tolerance: tuple[float, float],
    state: MotionState,
    q: Annotated[Float64, "nq"],
    time: int,
) -> Wanted:
    return velocity_to_follow(setup, state, q, target, time, GAIN, tolerance)
