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

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import (
    EnvironmentChangedError,
    InvalidStateError,
    KinoptError,
    StaleStateError,
    StartStateError,
    quoted,
)
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import apart, endless_variables
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import trajectory_from_message
from kinopt_ros.ros.motion.beside import check_beside, variables_of, without
from kinopt_ros.ros.motion.published import Published, followed, not_begun_since
from kinopt_ros.ros.robot.joint_states import JUMP_SECONDS, UNREAD_SECONDS, RobotState
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.ros.robot.publisher_clock import LATEST
from kinopt_ros.scene.scene import Scene
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.collision import not_checked
from kinopt_ros.verification.sweep import first_contact
from kinopt_ros.verification.verify import contact_sentence

AWAY = 0.01
"""Distance of the robot from a motion's start beyond which it is not sent, rad or m. MoveIt has the same."""
STILL = 1e-3
"""Largest movement, since the collision check, of joints that a motion leaves out, rad or m."""
AT_REST, LEAST_AT_REST, MOST_AT_REST = 0.05, 0.01, 0.1
"""Velocity up to which a joint counts as at rest: a share of its velocity limit, but at least and at most so many rad/s
or m/s. Sensors of slow joints are as noisy as others."""
CALM_SECONDS, _CALM_LOOKS = 2.0 * JUMP_SECONDS + 0.1, 50
"""Time in which joint states that have jumped are to calm down, s, and the number of looks whether they have."""
NOISE_SECONDS, _NOISE_LOOK = 0.05, 5e-3
"""Time for which is looked again whether a robot that was measured to move stands, s, as a single sample may be noise;
and the time between two looks."""
LOOKS = 20
"""Most times that a motion is checked again because something has changed while it was checked."""


class UncheckableError(KinoptError):
    """A motion that should be checked for collisions cannot be."""

    status = Status.UNSUPPORTED_FEATURE


class MovingError(StartStateError):
    """The robot moves, but a motion is to begin at rest."""


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
    """Whether the motion goes on from one of this node that the robot is in. Else it begins at rest.

    Who sends such motions watches the robot follow, and makes another one rather than to have this one checked
    again."""
    stops: bool = False
    """Whether the motion is the stop of one of this node."""


class LastLook:
    """Sends motions that are still valid. Thread-safe."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def send(
        self,
        planned: PlannedFor,
        message: TrajectoryMessage,
        published: Callable[[], Sequence[Published]],
        send: Callable[[], bool],
    ) -> bool:
        """Send a motion, if it is still valid; return what ``send`` returns.

        Args:
            planned: what the motion was planned for.
            message: the motion.
            published: returns the motions that were published or handed over before.
            send: sends it. Called once at most, with the scene locked: it must return at once, and ask nothing of the
                scene.

        Raises:
            UncheckableError: it should be free of collisions, but nothing of the robot has a shape.
            EnvironmentChangedError: the robot is another one, or the motion is in collision now.
            StaleStateError, InvalidStateError, StartStateError: nobody says where the robot is, or it is elsewhere, or
                moves.
        """
        robot, motion = planned.loaded.model, trajectory_from_message(message)
        _check_shapes(planned)
        variables = [robot.variable_index[name] for name in motion.joint_names]
        begin = planned.q.copy()
        begin[variables] = motion.position[0]
        # A stop is sent whatever the scene: the motion that it ends was made in another one, too.
        scene, q, still = None if planned.stops else planned.scene, planned.q, STILL
        beside: tuple[Published, ...] = ()
        if not planned.goes_on:
            self._wait_until_calm(robot, variables)
        for _ in range(LOOKS):

            def act(
                scene: Scene | None = scene,
                q: Float64 = q,
                still: float = still,
                beside: tuple[Published, ...] = beside,
            ) -> bool | None:
                self._check_robot(planned)
                state = self._context.joint_states.of(robot)
                running = self._running_beside(planned, motion, published())
                if without(running, beside):
                    return None
                self._check_alone(planned, motion, begin, state, without(published(), running))
                if not planned.goes_on:
                    expected = variables + variables_of(robot, running)
                    self._check_stands(planned, motion, begin, state, expected)
                    if scene is not None and _others_moved(robot, state, expected, q, still):
                        return None
                return send()

            def look(scene: Scene | None = scene, act: Callable[[], bool | None] = act) -> bool | None:
                return act() if scene is None else self._context.scene.while_it_is(robot, scene, act)

            sent = _unless_noise(look)
            if sent is not None:
                return sent
            if planned.goes_on:
                raise EnvironmentChangedError("the scene changed while the motion was made")
            beside = self._running_beside(planned, motion, published())
            scene, q = self._look(planned, motion, variables, beside)
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

    def _running_beside(
        self, planned: PlannedFor, motion: JointTrajectory, published: Sequence[Published]
    ) -> tuple[Published, ...]:
        """Return motions that run of joints that this one leaves out, beside which it may begin if they cannot meet.

        Motions that go on from one another, as servo's, come too often to be checked against others.
        """
        if planned.goes_on or planned.scene is None:
            return ()
        now = self._context.now()
        return tuple(
            one
            for one in published
            if one.runs(now)
            and not one.goes_on
            and one.robot is planned.loaded.model
            and set(motion.joint_names).isdisjoint(one.message.joint_names)
        )

    def _check_alone(
        self,
        planned: PlannedFor,
        motion: JointTrajectory,
        begin: Annotated[Float64, "nq"],
        state: RobotState,
        published: Sequence[Published],
    ) -> None:
        """Raise StartStateError if a motion of this node runs that this one does not leave.

        What was measured may be from before that motion, or from its middle.
        """
        robot = planned.loaded.model
        now = self._context.now()
        check_can_be_left(robot, motion.joint_names, published, now)
        for one in published:
            if not planned.goes_on and one.robot is robot:
                _check_is_not_in(one, begin, state, now)

    def _check_stands(
        self,
        planned: PlannedFor,
        motion: JointTrajectory,
        begin: Annotated[Float64, "nq"],
        state: RobotState,
        expected: list[int],
    ) -> None:
        """Raise KinoptError unless the robot stands where the motion begins; ``expected``: variables that may move
        besides."""
        robot = planned.loaded.model
        variables = [robot.variable_index[name] for name in motion.joint_names]
        state.require_known(variables, robot)
        state.require_fresh(variables, robot, self._context.parameter("state_timeout"))
        check_has_not_jumped(robot, state, variables)
        check_is_at(robot, state, begin, variables)
        if motion.velocity[0].any():
            k = int(np.argmax(np.abs(motion.velocity[0])))
            raise StartStateError(
                f"the motion begins with {motion.joint_names[k]!r} at a velocity of {motion.velocity[0, k]:.3g}; a "
                "robot is moved from rest, or from a motion of this node"
            )
        # Where collisions matter, joints that the motion leaves out were taken to stay where they are.
        if planned.scene is not None:
            others = np.setdiff1d(np.flatnonzero(state.known), expected).tolist()
            check_others_at_rest(robot, state, others, self._context.parameter("state_timeout"))
        check_is_at_rest(robot, state, variables)

    def _look(
        self,
        planned: PlannedFor,
        motion: JointTrajectory,
        variables: list[int],
        beside: Sequence[Published],
    ) -> tuple[Scene, Annotated[Float64, "nq"]]:
        """Check a motion in the scene as it is now, and beside others; return that scene, and where the other joints
        are."""
        self._check_robot(planned)
        assert planned.scene is not None
        robot = planned.loaded.model
        scene, state = self._context.scene.of(robot), self._context.joint_states.of(robot)
        q = np.where(state.known, state.q, planned.q)
        q[variables] = planned.q[variables]
        timeout = self._context.parameter("state_timeout")
        check_beside(robot, scene, state, q, motion, beside, planned.clearance, timeout)
        contact = first_contact(robot, scene, q, np.array(variables), motion, planned.clearance)
        if contact is not None:
            changed = (
                f"planned in version {planned.scene.version} of the scene, which is {scene.version} now"
                if scene is not planned.scene
                else "joints that the motion leaves out have moved since it was planned"
            )
            raise EnvironmentChangedError(f"{changed}: {contact_sentence(contact, planned.clearance)}")
        return scene, q


def _unless_noise(look: Callable[[], bool | None]) -> bool | None:
    """Return what ``look`` returns; call it again for NOISE_SECONDS as long as it says that the robot moves, and for
    UNREAD_SECONDS as long as joint states are too old: newer ones may lie unread."""
    begin = time.monotonic()
    while True:
        try:
            return look()
        except (MovingError, StaleStateError) as error:
            patience = NOISE_SECONDS if isinstance(error, MovingError) else UNREAD_SECONDS
            if time.monotonic() >= begin + patience:
                raise
        time.sleep(_NOISE_LOOK)


def _check_shapes(planned: PlannedFor) -> None:
    """Raise UncheckableError if collisions matter, and not a single body is there to be checked."""
    robot, scene = planned.loaded.model, planned.scene
    if scene is not None and not robot.collision_shapes and not scene.attached:
        reasons = "; ".join(not_checked(robot))
        raise UncheckableError(
            f"nobody can say whether the motion is free of collisions: {reasons}. {planned.unchecked}"
        )


def check_can_be_left(
    robot: RobotModel, joints: Sequence[str], published: Iterable[Published], now: int
) -> None:
    """Raise StartStateError if a motion runs that none of ``joints`` can leave: one of others, of another robot, or
    that a controller was handed; ``now``: ns of the node's clock."""
    for one in published:
        others = [name for name in one.message.joint_names if name not in joints]
        if one.runs(now) and (others or one.execution is not None or one.robot is not robot):
            names = ", ".join(map(quoted, (others or one.message.joint_names)[:8]))
            left = "" if one.execution is not None else f" for another {(one.end - now) / 1e9:.3g} s"
            raise StartStateError(
                f"a motion that this node has sent before moves {names}{left}: this one was checked with the "
                "robot at rest. Wait until that one is over, or stop it"
            )


def _check_is_not_in(one: Published, begin: Annotated[Float64, "nq"], state: RobotState, now: int) -> None:
    """Raise StartStateError if the robot is in a motion that was published, or may be: joint states may be late.

    Args:
        one: the motion.
        begin: configuration in which the next one begins.
        state: as measured.
        now: ns of the node's clock.
    """
    joints = tuple(one.message.joint_names)
    motion = one.commanded(joints)
    if motion is None:
        return
    setup = servo_setup(one.robot, one.robot.root_link, one.robot.root_link, joints)
    over = now >= motion.end and setup.away(begin[setup.variables], motion.at(now).position).max() <= AWAY
    begun = not_begun_since(motion) <= now < min(motion.end, motion.start + round(LATEST * 1e9))
    if begun or (not over and followed(motion, setup, state, now, AWAY)):
        raise StartStateError(
            "the robot is in a motion that this node has published before: when the next one begins, it will be "
            "elsewhere. Wait until that one is over, or stop it"
        )


def check_is_at_rest(robot: RobotModel, measured: RobotState, variables: Sequence[int]) -> None:
    """Raise MovingError if a joint is measured to move, or has moved lately if its driver measures no velocity."""
    index = list(variables)
    allowed, velocity = allowed_at_rest(robot)[index], measured.seen_velocity[index]
    excess = np.abs(velocity) - allowed
    if excess.size and not excess.max() <= 0.0:
        k = int(np.argmax(excess))
        raise MovingError(
            f"{robot.variable_names[index[k]]!r} moves at a velocity of {velocity[k]:.3g}, and not by a motion of this "
            f"node that may be left; up to {allowed[k]:.3g} counts as at rest. Wait until the robot stands"
        )


def at_rest(robot: RobotModel, measured: RobotState) -> Annotated[Bool, "nq"]:
    """Return which variables count as at rest: what sensors say of joints that stand is never quite 0."""
    return np.asarray(np.abs(measured.seen_velocity) <= allowed_at_rest(robot))


def stands(robot: RobotModel, measured: RobotState, variables: Sequence[int]) -> bool:
    """Check whether some variables are at rest."""
    return bool(at_rest(robot, measured)[list(variables)].all())


def check_others_at_rest(
    robot: RobotModel, measured: RobotState, others: Sequence[int], timeout: float
) -> None:
    """Raise KinoptError if a joint that a motion leaves out moves, or did when it was last heard of: nobody knows how
    far it went, and waiting would not help.

    Args:
        robot: the robot.
        measured: its state.
        others: variables of these joints.
        timeout: age from which on they count as silent, s (parameter state_timeout).
    """
    velocity, allowed = measured.seen_velocity, allowed_at_rest(robot)
    for i in others:
        if measured.age[i] > timeout and not abs(velocity[i]) <= allowed[i]:
            raise StaleStateError(
                f"{robot.variable_names[i]!r} moved at a velocity of {velocity[i]:.3g} when it was heard of last, "
                f"{measured.age[i]:.3g} s ago: nobody knows where it is, so that the robot could hit it. Have it "
                "published again, or ask for motions without collision checks"
            )
    check_is_at_rest(robot, measured, others)


def allowed_at_rest(robot: RobotModel) -> Annotated[Float64, "nq"]:
    """Return the speeds up to which variables count as at rest, rad/s or m/s."""
    return np.clip(AT_REST * robot.limits.velocity, LEAST_AT_REST, MOST_AT_REST)


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
    robot: RobotModel,
    measured: RobotState,
    q: Annotated[Float64, "nq"],
    variables: Sequence[int],
) -> None:
    """Raise StartStateError unless the robot is where a motion starts."""
    index = list(variables)
    away = _away(robot, measured.q, q)[index]
    if away.size and away.max() > AWAY:
        i = index[int(np.argmax(away))]
        raise StartStateError(
            f"the motion starts with {robot.variable_names[i]!r} at {q[i]:.6g}, but it is at {measured.q[i]:.6g}; "
            f"allowed is a difference of {AWAY:g}"
        )


def _away(
    robot: RobotModel, measured: Annotated[Float64, "nq"], q: Annotated[Float64, "nq"]
) -> Annotated[Float64, "nq"]:
    """Return how far variables are from where they are wanted, rad or m.

    Drivers measure continuous joints between half a turn and minus that: noise decides which of the two is said of one
    that stands there. Other whole turns count, as a controller may turn the joint back by them.
    """
    half_turns = (np.abs(np.abs([measured, q]) - np.pi) <= AWAY).all(axis=0)
    return apart(measured - q, endless_variables(robot) & half_turns)


def _others_moved(
    robot: RobotModel,
    state: RobotState,
    variables: list[int],
    q: Annotated[Float64, "nq"],
    tolerance: float,
) -> bool:
    moved = state.known & (_away(robot, state.q, q) > tolerance)
    moved[variables] = False
    return bool(moved.any())
