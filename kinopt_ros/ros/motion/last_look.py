"""Last check of a motion before the robot moves: whether what it was planned for still holds.

Planning takes milliseconds to seconds. Meanwhile obstacles come, joints move, another robot is loaded. Nothing is sent
to the robot but through here (``MotionOutput`` sees to that), and what is sent is sent while nobody can change the
scene: a change that was confirmed before counts.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_ros.array import Float64
from kinopt_ros.errors import EnvironmentChangedError, InvalidStateError, KinoptError, StartStateError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.ros.robot.joint_states import JUMP_SECONDS, LATEST, RobotState
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.scene.scene import Scene
from kinopt_ros.status import Status
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND, JointTrajectory
from kinopt_ros.verification.collision import not_checked
from kinopt_ros.verification.sweep import first_contact
from kinopt_ros.verification.verify import contact_sentence

AWAY = 0.01
"""Distance of the robot from a motion's start beyond which it is not sent, rad or m. MoveIt has the same."""
STILL = 1e-3
"""Largest movement, since the collision check, of joints that a motion leaves out, rad or m."""
OTHER_VELOCITY, MOST_OTHER_VELOCITY = 0.05, 0.1
"""How much faster or slower a joint may be than a motion begins: a share of its velocity limit, and rad/s or m/s."""
EARLIEST = -0.05
"""How late joint states may arrive by their stamps, s, at least (LATEST: at most), for a motion that begins while the
robot moves: its stamp means something to a controller of the same clock only. Another one would leave a part of the
motion out, in a jump."""
CALM_SECONDS, _CALM_LOOKS = 2.0 * JUMP_SECONDS + 0.1, 50
"""Time in which joint states that have jumped are to calm down, s, and the number of looks whether they have."""
LOOKS = 20
"""Most times that a motion is checked again because something has changed while it was checked."""


class UncheckableError(KinoptError):
    """A motion that should be checked for collisions cannot be."""

    status = Status.UNSUPPORTED_FEATURE


@dataclass(frozen=True, eq=False)
class PlannedFor:
    """Robot, scene and state that a motion was planned for. It holds for the robot that is like that, and for no
    other."""

    loaded: LoadedRobot
    q: Annotated[Float64, "nq"]
    """The configuration that was planned from; joints that the motion leaves out were taken to stay there."""
    scene: Scene | None
    """Scene that the motion was checked in; None if nobody asked for that."""
    clearance: float = 0.0
    """Clearance that was asked for, m; counts with a scene only."""
    unchecked: str = ""
    """Remedy in the sentence that refuses a motion that nobody can check for collisions: what to do to have it sent."""
    goes_on: bool = False
    """Whether the motion goes on from the one before, as those of servo do.

    Who sends such motions watches the robot follow, and makes another one rather than to have this one checked
    again."""


class LastLook:
    """Sends motions that are still valid. Thread-safe."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def send(self, planned: PlannedFor, message: TrajectoryMessage, send: Callable[[], bool]) -> bool:
        """Send a motion, if it is still valid; return what ``send`` returns.

        Args:
            planned: what the motion was planned for.
            message: the motion.
            send: sends it. Called once at most, with the scene locked: it must return at once, and ask nothing of the
                scene.

        Raises:
            UncheckableError: it should be free of collisions, but nothing of the robot has a shape.
            EnvironmentChangedError: the robot is another one, or the motion is in collision now.
            StaleStateError, InvalidStateError, StartStateError: nobody says where the robot is, or it is elsewhere.
        """
        robot, motion = planned.loaded.model, trajectory_from_message(message)
        _check_shapes(planned)
        stamp = message.header.stamp
        start = stamp.sec * NANOSECONDS_PER_SECOND + stamp.nanosec or None
        variables = [robot.variable_index[name] for name in motion.joint_names]
        scene, q, still = planned.scene, planned.q, STILL
        if not planned.goes_on:
            self._wait_until_calm(robot, variables)
        for _ in range(LOOKS):

            def act(scene: Scene | None = scene, q: Float64 = q, still: float = still) -> bool | None:
                self._check_robot(planned)
                state = self._context.joint_states.of(robot)
                if not planned.goes_on:
                    self._check_start(robot, state, motion, start, variables, planned.q)
                    if scene is not None and _others_moved(state, variables, q, still):
                        return None
                return send()

            sent = act() if scene is None else self._context.scene.while_it_is(robot, scene, act)
            if sent is not None:
                return sent
            if planned.goes_on:
                raise EnvironmentChangedError("the scene changed while the motion was made")
            scene, q = self._look(planned, motion, variables)
            still = AWAY  # who waits for others to stand still may wait for ever
        raise EnvironmentChangedError(
            f"the scene, or joints that the motion leaves out, changed {LOOKS} times while the motion was looked at"
        )

    def _wait_until_calm(self, robot: RobotModel, variables: list[int]) -> None:
        """Wait a little if positions have jumped: a simulation may have begun anew."""
        for _ in range(_CALM_LOOKS):
            if self._context.joint_states.of(robot).jumped(variables, robot) is None:
                return
            time.sleep(CALM_SECONDS / _CALM_LOOKS)

    def _check_robot(self, planned: PlannedFor) -> None:
        if self._context.loaded is not planned.loaded:
            raise EnvironmentChangedError("the robot's description was replaced while its motion was planned")

    def _check_start(
        self,
        robot: RobotModel,
        state: RobotState,
        motion: JointTrajectory,
        start: int | None,
        variables: list[int],
        q: Annotated[Float64, "nq"],
    ) -> None:
        """Raise KinoptError unless the robot is where the motion has it, and moves like that."""
        state.require_known(variables, robot)
        state.require_fresh(variables, robot, self._context.parameter("state_timeout"))
        check_has_not_jumped(robot, state, variables)
        seconds = 0.0
        if start is None:
            _check_has_not_gone_on(robot, state, variables)
        else:
            check_clock(state, variables, robot)
            seconds = max(0.0, (int(state.stamp[variables].min()) - start) / NANOSECONDS_PER_SECOND)
        position, velocity, _ = (rows[0] for rows in evaluate(motion, np.array([seconds])))
        expected = q.copy()
        expected[variables] = position
        check_is_at(robot, state, expected, variables)
        # Meanwhile the robot does what it did before, and the motion what it begins with.
        allowed = allowed_velocity(robot, variables) + seconds * robot.limits.acceleration[variables]
        excess = np.abs(state.velocity[variables] - velocity) - allowed
        if excess.size and excess.max() > 0.0:
            k = int(np.argmax(excess))
            raise StartStateError(
                f"the motion starts with {motion.joint_names[k]!r} at a velocity of {velocity[k]:.3g}, but it moves at "
                f"{state.velocity[variables[k]]:.3g}; allowed is a difference of {allowed[k]:.3g}"
            )

    def _look(
        self, planned: PlannedFor, motion: JointTrajectory, variables: list[int]
    ) -> tuple[Scene, Annotated[Float64, "nq"]]:
        """Check a motion in the scene as it is now; return that scene, and where the other joints are."""
        self._check_robot(planned)
        assert planned.scene is not None
        robot = planned.loaded.model
        scene, state = self._context.scene.of(robot), self._context.joint_states.of(robot)
        q = np.where(state.known, state.q, planned.q)
        q[variables] = planned.q[variables]
        contact = first_contact(robot, scene, q, np.array(variables), motion, planned.clearance)
        if contact is not None:
            changed = (
                f"planned in version {planned.scene.version} of the scene, which is {scene.version} now"
                if scene is not planned.scene
                else "joints that the motion leaves out have moved since it was planned"
            )
            raise EnvironmentChangedError(f"{changed}: {contact_sentence(contact, planned.clearance)}")
        return scene, q


def _check_shapes(planned: PlannedFor) -> None:
    """Raise UncheckableError if collisions matter, and not a single body is there to be checked."""
    robot, scene = planned.loaded.model, planned.scene
    if scene is not None and not robot.collision_shapes and not scene.attached:
        reasons = "; ".join(not_checked(robot))
        raise UncheckableError(
            f"nobody can say whether the motion is free of collisions: {reasons}. {planned.unchecked}"
        )


def check_clock(state: RobotState, variables: Iterable[int], robot: RobotModel) -> None:
    """Raise StartStateError if who measures the joints has another clock, as far as stamps tell."""
    for k in variables:
        late = float(state.late[k])
        if not EARLIEST <= late <= LATEST:
            when = f"{-late:.3g} s ahead of" if late < 0.0 else f"{late:.3g} s behind"
            raise StartStateError(
                f"the motion begins while the robot moves, at a time of the node's clock, but the joint state of "
                f"{robot.variable_names[k]!r} is stamped {when} that clock: its controller may begin at another time. "
                "Set the clocks of all machines, or wait until the robot stands"
            )


def _check_has_not_gone_on(robot: RobotModel, measured: RobotState, variables: Sequence[int]) -> None:
    """Raise StartStateError if a joint has moved on since it was measured: a motion that begins when it comes would
    begin behind it."""
    index = list(variables)
    way = np.abs(measured.velocity[index]) * measured.behind[index]
    if way.size and way.max() > AWAY:
        i = index[int(np.argmax(way))]
        raise StartStateError(
            f"{robot.variable_names[i]!r} moves at {measured.velocity[i]:.3g}, and was measured "
            f"{measured.behind[i]:.2f} s ago: a motion cannot begin there any more. Wait until the robot stands"
        )


def allowed_velocity(robot: RobotModel, variables: Iterable[int]) -> Annotated[Float64, "n"]:
    """Return by how much joints may be faster or slower than a motion begins."""
    return np.asarray(
        np.minimum(OTHER_VELOCITY * robot.limits.velocity[list(variables)], MOST_OTHER_VELOCITY)
    )


def check_has_not_jumped(robot: RobotModel, measured: RobotState, variables: Iterable[int]) -> None:
    """Raise InvalidStateError if joints were measured lately where they cannot have been: nobody knows where the robot
    is."""
    jumped = measured.jumped(variables, robot)
    if jumped is not None:
        raise InvalidStateError(
            f"the joint state of {jumped!r} jumps, so that nobody knows where the robot is: is there more than one who "
            "publishes it?"
        )


def check_is_at(
    robot: RobotModel, measured: RobotState, q: Annotated[Float64, "nq"], variables: Sequence[int]
) -> None:
    """Raise StartStateError unless the robot is where a motion starts."""
    index = list(variables)
    away = np.abs(measured.q[index] - q[index])
    if away.size and away.max() > AWAY:
        i = index[int(np.argmax(away))]
        raise StartStateError(
            f"the motion starts with {robot.variable_names[i]!r} at {q[i]:.6g}, but it is at {measured.q[i]:.6g}; "
            f"allowed is a difference of {AWAY:g}"
        )


def _others_moved(
    state: RobotState, variables: list[int], q: Annotated[Float64, "nq"], tolerance: float
) -> bool:
    moved = state.known & (np.abs(state.q - q) > tolerance)
    moved[variables] = False
    return bool(moved.any())
