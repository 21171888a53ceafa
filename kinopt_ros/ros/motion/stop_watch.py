"""Watch over a stop: joints that still move when they should be at rest are stopped once more.

A stop may be lost on its way, and a controller drops one that is over when it arrives: by its own clock, which may be
another one's. A controller that slows motions down is still at one that should be over. So what is measured counts: a
stop is published again, from there, with a stamp of 0, which counts from its arrival by any clock. One that was lost is
seen before its end: the robot goes on in the motion that it was to end.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.array import Float64
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.ros.motion.brakes import brake_as_measured, brake_of, credible
from kinopt_ros.ros.motion.lost import goes_on_in
from kinopt_ros.ros.motion.made_soon import made_soon
from kinopt_ros.ros.motion.movement import Movement
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.published import Published, last_of
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.ros.serving.defects import log_defect

AFTER = 0.2
"""Time after its end by which a stop has to have had its effect, s: robots lag behind, and so do their joint states."""
WATCHED = 2.0
"""Least time for which joints are watched from then on, s; while nobody says where they are, nobody watches."""
WATCHED_AT_THE_END = 0.3
"""The same where the node ends, s, as that waits for it, and where others may move the robot."""
SILENT = 1.0
"""Time without joint states after which that is said, s."""
MOST = 5
"""Most stops that are published again."""
PERIOD = 0.02
"""Time between two looks, s."""
_ENDLESS = 60.0
"""Longest time that one stop is watched, s, as a simulated clock may stand still."""


@dataclass(frozen=True, eq=False)
class Stopped:
    """Joints that have been told to stop."""

    setup: ServoSetup
    end: int
    """When they should be at rest, ns of the node's clock."""
    over: int
    """When the motion that was stopped would have been over, ns of the node's clock: a slow one is watched for
    longer."""
    position: Annotated[Float64, "n"]
    """Where they should be at rest then, rad or m: continuous joints are told to stop with as many whole turns."""


class StopWatch:
    """Watches joints after a stop of all, on threads of its own; or after the brake of one motion, on the caller's."""

    def __init__(self, context: Context, output: MotionOutput, say: Callable[[str], None]) -> None:
        """
        Args:
            context: the node's.
            output: where stops are published.
            say: told what was found, from any thread.
        """
        self._context = context
        self._output = output
        self._say = say
        self._threads: list[threading.Thread] = []
        self._stops = 0

    @property
    def runs(self) -> bool:
        """Whether joints are watched."""
        return any(thread.is_alive() for thread in self._threads)

    def begin(self, stopped: Sequence[Stopped], seconds: float = WATCHED) -> None:
        """Watch joints of the last stop, unless they are watched: until motions are allowed again; if they are already,
        until the joints have stood for a moment. Returns at once.

        Args:
            stopped: the joints.
            seconds: for how long from when they should be at rest, unless motions are allowed.
        """
        stops = self._output.stops
        if stops == self._stops and self.runs:
            return
        self._stops = stops
        self._threads = [
            threading.Thread(
                target=self._watch_or_say, args=(one, stops, seconds), name="stop_watch", daemon=True
            )
            for one in stopped
        ]
        for thread in self._threads:
            thread.start()

    def _watch_or_say(self, stopped: Stopped, stops: int, seconds: float) -> None:
        try:
            watched = round(seconds * 1e9)
            if seconds == WATCHED:
                watched = max(watched, stopped.over - stopped.end)
            self._watch(stopped, stops, watched)
        except Exception as error:  # nothing ends the thread unsaid
            log_defect(self._context.node.get_logger(), "in the watch over a stop", error)

    def _watch(self, stopped: Stopped, stops: int, watched: int) -> None:
        output, robot = self._output, stopped.setup.robot
        if not output.refuses:  # motions are allowed again: no later one is to be braked
            last = last_of(output.published, stopped.setup.joints)
            if last is not None and (last.stops or last.brakes) and last.runs(self._now()):
                self.follow_brake(last)
            return
        self._follow(
            stopped,
            watched,
            _ENDLESS,
            lambda: output.refuses and output.stops == stops,
            lambda message: output.stop_again(stops, message, robot),
        )

    def follow_brake(self, brake: Published) -> bool:
        """Watch joints that a brake, or a stop, was published for until they have stood for a moment, as others may
        move them then; brake again if they move. Return whether no other motion has taken its place: that ends it,
        too, as a stop of all does."""
        output, robot, joints = self._output, brake.robot, tuple(brake.message.joint_names)

        def is_there() -> bool:
            return any(one is brake for one in output.published)

        def again(message: JointTrajectory) -> bool:
            nonlocal brake
            if not output.brake(brake, message, lambda one: None):
                return False
            brake = next((one for one in output.published if one.message is message), brake)
            return True

        setup = servo_setup(robot, robot.root_link, robot.root_link, joints)
        at_rest = np.array(brake.message.points[-1].positions)
        stopped = Stopped(setup, brake.end, brake.end, at_rest)
        watched, longest = round(WATCHED_AT_THE_END * 1e9), (brake.end - brake.start) / 1e9 + WATCHED
        self._follow(stopped, watched, longest, lambda: not output.refuses and is_there(), again)
        return output.refuses or is_there()

    def _follow(
        self,
        stopped: Stopped,
        watched: int,
        longest: float,
        wanted: Callable[[], bool],
        again: Callable[[JointTrajectory], bool],
    ) -> None:
        """Watch joints, and stop them again as long as they move.

        Args:
            stopped: the joints.
            watched: ns for which they are watched from when they should be at rest.
            longest: s after which this ends in any case.
            wanted: asked again and again; with False this ends.
            again: publishes a brake from where the joints are; with False this ends.
        """
        setup, end = stopped.setup, stopped.end
        latest = time.monotonic() + longest

        def goes_on() -> bool:
            return wanted() and time.monotonic() < latest

        movement = Movement(setup)
        for number in range(1, MOST + 2):
            begin = end + round(AFTER * 1e9)
            moved = self._first_movement(movement, begin, watched, goes_on)
            if moved is None:
                break
            joint, state = moved
            if number > MOST:
                self._say(
                    f"joint {joint!r} still moves, though the stop was published {MOST} more times: who moves it?"
                )
                return
            message = self._made_brake(stopped, movement, state)
            if not again(message):
                return
            end = self._now() + nanoseconds(message.points[-1].time_from_start)
            self._say(
                f"joint {joint!r} still moves, so the stop was published again, from where the robot is: was it lost, "
                "or is the controller's clock another one?"
            )
            movement.begin_anew()
        if movement.jumped is not None and wanted():
            self._say(
                f"the joint state of {movement.jumped!r} jumps, so that nobody knows whether the robot stands: is "
                "there more than one who publishes it?"
            )

    def _made_brake(self, stopped: Stopped, movement: Movement, seen: RobotState) -> JointTrajectory:
        """Return the brake of joints that still move; ``seen``: where they were seen to."""
        setup, robot = stopped.setup, stopped.setup.robot
        motion = self._lost_of(setup, seen)
        if motion is not None:
            return brake_of(self._context, motion)
        then = self._now()

        def brake_for(ahead: int) -> JointTrajectory:
            state = self._context.joint_states.of(robot)
            if credible(setup, state):
                movement.take(state, time.monotonic())
            else:  # a driver that has just begun anew, say: what was seen counts
                state = seen.later(max(0, self._now() - then))
            velocity = movement.velocity(state)
            brake = brake_as_measured(setup, state.later(ahead), velocity, stopped.position)
            return trajectory_message(brake, robot.root_link)

        return made_soon(brake_for, self._now)

    def _first_movement(
        self, movement: Movement, begin: int, watched: int, wanted: Callable[[], bool]
    ) -> tuple[str, RobotState] | None:
        """Wait until a joint has moved that should be at rest, or one goes on in a motion whose stop was lost; return
        its name and the robot's state, or None if none has, or nobody needs to know any more.

        Args:
            movement: of the joints.
            begin: ns of the node's clock from which on they have to be at rest.
            watched: ns for which they are watched.
            wanted: whether somebody still needs to know.
        """
        setup = movement.setup
        index = setup.variables
        before, seen, silent, lost = begin, 0, 0, 0
        while wanted():
            time.sleep(PERIOD)
            now = self._now()
            passed, before = max(0, now - before), max(now, begin)
            looked = time.monotonic()
            state = self._context.joint_states.of(setup.robot)
            if now < begin:
                lost = lost + 1 if self._lost_of(setup, state) is not None else 0
                if lost > 1:
                    fastest = np.argmax(np.abs(state.seen_velocity[index]))
                    return setup.joints[int(fastest)], state
                continue
            if not state.known[index].all() or float(state.age[index].max()) > AFTER:
                silent += passed
                if silent > SILENT * 1e9 >= silent - passed:
                    self._say("nobody says where the robot is, so that nobody knows whether it stands")
                continue
            silent = 0
            if state.seen(index, now) < begin:
                continue  # from when they were not to be at rest yet: joint states may be late
            movement.take(state, looked)
            joint = movement.moving(looked)
            if joint is not None:
                return joint, state
            seen += passed
            if seen > watched:
                return None
        return None

    def _lost_of(self, setup: ServoSetup, state: RobotState) -> Published | None:
        """Return the motion that joints go on in, if what was published last was to end it and seems to be lost."""
        timeout = self._context.parameter("servo.state_timeout")
        heard = state.known[setup.variables].all() and state.age[setup.variables].max() <= timeout
        if not (heard and credible(setup, state)):
            return None
        tolerance, now = self._context.parameter("servo.tracking_tolerance"), self._now()
        stop = last_of(self._output.published, setup.joints)
        return None if stop is None else goes_on_in(stop, setup, state, now, tolerance)

    def _now(self) -> int:
        return self._context.now()
