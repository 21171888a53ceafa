"""What servo has to know of a robot, and the check that every motion has to pass."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.motion import commanded_variables
from kinopt_ros.robot.limits import assumed_jerk
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import apart, continuous_joints
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.braking import MotionState, planning_limits
from kinopt_ros.trajectory.jerk_phases import MotionLimits
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.timing import nearest_equivalent, scaled_limits
from kinopt_ros.verification.collision import clearance_of, is_free
from kinopt_ros.verification.trajectory import TrajectoryLimits, Violation
from kinopt_ros.verification.verify import ON_THE_WAY, Start, Surroundings, VerifiedMotion, verify

MOST_MARGIN = 0.1
"""Largest margin at either end of a joint's range, as a share of the range."""
BUFFER = 1e-3
"""Distance besides the clearance at which motions end away from obstacles, m: from there the robot can be moved away
again."""
PATIENCE = 8
"""Most looks of the collision judge at a motion; one that needs more is too near to something to be cleared in time."""
STOP_RAMP = 0.05
"""Time in which a stop reaches its deceleration where nobody has stated a jerk, s."""
HEADROOM = 0.99
"""Share of the velocity limits that is asked for; the rest is for what acceleration adds before it is back at zero."""


@dataclass(frozen=True, eq=False)
class ServoSetup:
    """All that servo needs but the state, for n joints."""

    robot: RobotModel
    base: str
    tip: str
    T_tip_tool: Annotated[Float64, "4 4"] | None
    joints: tuple[str, ...]
    variables: Annotated[Int64, "n"]
    velocity_scaling: float
    limits: MotionLimits
    """Scaled limits; jerk is the robot's."""
    margin: Annotated[Float64, "n"]
    """Distance that joints keep from their position limits, rad or m."""
    start_tolerance: float
    """Distance by which a joint may be outside its position limits when servo begins, rad or m."""
    period: int
    """Period of servo, ns."""
    scene: Scene | None
    """Scene that motions must be free of collisions with, besides the robot itself; None: collisions are not
    checked."""
    clearance: float

    @property
    def planning(self) -> MotionLimits:
        """Limits to plan with."""
        return planning_limits(self.limits)

    @property
    def unscaled(self) -> MotionLimits:
        """The robot's own limits."""
        own, index = self.robot.limits, self.variables
        return MotionLimits(own.velocity[index], own.acceleration[index], own.jerk[index])

    @property
    def stopping(self) -> MotionLimits:
        """Limits of stops: the robot's own, but not a jerk that nobody has stated, which may be far less than it can.
        It would keep a stop from braking for a second, in which the robot gets faster."""
        own = self.unscaled
        quick = np.maximum(own.jerk, own.acceleration / STOP_RAMP)
        return MotionLimits(
            own.velocity,
            own.acceleration,
            np.where(assumed_jerk(self.robot)[self.variables], quick, own.jerk),
        )

    @property
    def lower(self) -> Annotated[Float64, "n"]:
        """Lower position limits, margin included."""
        return np.asarray(self.robot.limits.lower[self.variables] + self.margin)

    @property
    def upper(self) -> Annotated[Float64, "n"]:
        """Upper position limits, margin included."""
        return np.asarray(self.robot.limits.upper[self.variables] - self.margin)

    def whole(
        self, q: Annotated[Float64, "nq"], position: Annotated[Float64, "n"]
    ) -> Annotated[Float64, "nq"]:
        """Return the configuration ``q`` with other values of the joints."""
        full = q.copy()
        full[self.variables] = position
        return full

    def away(
        self, measured: Annotated[Float64, "n"], commanded: Annotated[Float64, "... n"]
    ) -> Annotated[Float64, "... n"]:
        """Return how far joints are from where they were commanded to be, rad or m.

        Whole turns of continuous joints do not count: many drivers measure angles between half a turn and minus that.
        """
        return apart(measured - commanded, continuous_joints(self.robot, self.joints))

    def as_commanded(
        self, measured: Annotated[Float64, "n"], commanded: Annotated[Float64, "n"]
    ) -> Annotated[Float64, "n"]:
        """Return where joints are, with as many whole turns of continuous ones as were commanded."""
        return nearest_equivalent(measured, commanded, continuous_joints(self.robot, self.joints))

    def T_base_frame(
        self, q: Annotated[Float64, "nq"], link: str, T_link_frame: Annotated[Float64, "4 4"] | None
    ) -> Annotated[Float64, "4 4"]:
        """Return the pose of a frame on a link (None: of the link itself) in the base link."""
        if link == self.base and T_link_frame is None:
            return np.eye(4)
        T_root_base, T_root_link = forward_kinematics(self.robot, q, links=(self.base, link))
        T = inverse(T_root_base) @ T_root_link
        return np.asarray(T if T_link_frame is None else T @ T_link_frame)

    def check(
        self,
        trajectory: JointTrajectory,
        start: MotionState,
        q: Annotated[Float64, "nq"],
        braking: bool = False,
    ) -> VerifiedMotion:
        """Check a motion in float64: numbers, limits, start, collisions all the way.

        Args:
            trajectory: the motion.
            start: what it has to begin with; limits are raised to what already moves faster, never above the robot's.
            q: the whole robot; the joints' own values do not matter.
            braking: whether limits are the robot's own, without scaling and margin.
        """
        own = self.robot.limits
        limits, fastest = self.stopping, self.unscaled
        if not braking:
            # What another motion has left is faster, for as long as it takes to become slower.
            back = np.max(np.abs(start.acceleration) / fastest.jerk)
            speed = np.abs(start.velocity) + np.abs(start.acceleration) * back
            limits = MotionLimits(
                np.minimum(fastest.velocity, np.maximum(self.limits.velocity, speed)),
                np.minimum(
                    fastest.acceleration, np.maximum(self.limits.acceleration, np.abs(start.acceleration))
                ),
                fastest.jerk,
            )
        margin = 0.0 * self.margin if braking else self.margin
        around = None
        if self.scene is not None:
            around = Surroundings(
                self.robot, self.scene, q, self.variables, self.clearance, patience=PATIENCE
            )
        motion = verify(
            trajectory,
            TrajectoryLimits(
                own.lower[self.variables] + margin,
                own.upper[self.variables] - margin,
                limits.velocity,
                limits.acceleration,
                limits.jerk,
            ),
            Start(start.position, start.velocity, float(np.max(margin)) + self.start_tolerance),
            around,
        )
        if around is None or braking or not motion.report.ok:
            return motion
        sentence = self._ends_too_near(trajectory, start, q)
        if not sentence:
            return motion
        found = Violation(ON_THE_WAY, sentence, time=trajectory.duration)
        return replace(motion, report=replace(motion.report, violations=(found,)))

    def _ends_too_near(self, trajectory: JointTrajectory, start: MotionState, q: Float64) -> str:
        """Return why a motion ends too near to something to leave it again; nothing if it does not.

        From such an end no motion could be told from a collision in time. An end as near as the start is accepted.
        """
        assert self.scene is not None
        end = self.whole(q, trajectory.position[-1])
        if is_free(self.robot, self.scene, end, self.clearance + BUFFER):
            return ""
        before = clearance_of(self.robot, self.scene, self.whole(q, start.position))
        after = clearance_of(self.robot, self.scene, end)
        if after.distance >= before.distance:
            return ""
        return (
            f"the motion would end with {after.a!r} {after.distance:.4f} m from {after.b!r}; a clearance of "
            f"{self.clearance:g} m, and {BUFFER:g} m to move in, are wanted"
        )


def stops_hard(robot: RobotModel, variables: Sequence[int] | Annotated[Int64, "n"]) -> bool:
    """Check whether stops of some variables slow down as motions may not: what leaves one half way would turn back."""
    harder = assumed_jerk(robot) & (robot.limits.acceleration / STOP_RAMP > robot.limits.jerk)
    return bool(harder[np.asarray(variables, dtype=np.int64)].any())


def servo_setup(
    robot: RobotModel,
    base: str,
    tip: str,
    joints: Sequence[str],
    *,
    T_tip_tool: Annotated[Float64, "4 4"] | None = None,
    velocity_scaling: float = 0.1,
    acceleration_scaling: float = 0.1,
    limit_margin: float = 0.01,
    start_tolerance: float = 1e-3,
    period: float = 0.02,
    scene: Scene | None = None,
    clearance: float = 0.0,
) -> ServoSetup:
    """Gather what servo has to know of a robot.

    Args:
        robot: the robot.
        base: link that the motion is measured against.
        tip: link that moves.
        joints: joints of the motions, in the order that the controller gets them; active ones of one variable each.
        T_tip_tool: pose in the tip link of what is moved; None: the tip link itself.
        velocity_scaling: share of the velocity limits in (0, 1].
        acceleration_scaling: share of the acceleration limits in (0, 1].
        limit_margin: rad or m that joints keep from their position limits, or a tenth of their range if that is less.
        start_tolerance: how far a joint may be outside its position limits at first; from there it moves inwards only.
        period: s between two motions.
        scene: what is around the robot; None: collisions are not looked at.
        clearance: least distance, m, of bodies that must not touch, with a scene.

    Raises:
        KinoptError: a joint that cannot be commanded, or a number that is not allowed.
    """
    variables = commanded_variables(robot, joints)
    own = robot.limits
    velocity, acceleration = scaled_limits(
        own.velocity[variables], own.acceleration[variables], velocity_scaling, acceleration_scaling
    )
    for what, value in (("limit_margin", limit_margin), ("clearance", clearance)):
        if not value >= 0.0:
            raise InvalidRequestError(f"{what} is {value}; allowed is a number from 0 up")
    if not 1e-3 <= period <= 1.0:
        raise InvalidRequestError(f"period is {period} s; allowed is 0.001 s to 1 s")
    width = own.upper[variables] - own.lower[variables]
    return ServoSetup(
        robot,
        base,
        tip,
        T_tip_tool,
        tuple(joints),
        variables,
        velocity_scaling,
        MotionLimits(velocity, acceleration, own.jerk[variables]),
        np.minimum(limit_margin, MOST_MARGIN * width),
        start_tolerance,
        round(period * 1e9),
        scene,
        clearance,
    )
