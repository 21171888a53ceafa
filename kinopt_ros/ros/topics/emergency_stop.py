"""~/emergency_stop: true ends whatever this node moves, as fast as the limits allow; nothing moves until false."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from kinopt_ros.array import Float64
from kinopt_ros.errors import KinoptError
from kinopt_ros.pauses import urgent
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import PATIENCE, ServoSetup, servo_setup
from kinopt_ros.planning.servo.stop import is_at_rest_sooner
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import sentence_of, trajectory_message
from kinopt_ros.ros.motion.beside import is_left_in, stays_arrived
from kinopt_ros.ros.motion.brakes import (
    UNSURE,
    brake_as_measured,
    brake_in,
    brake_where_it_stands,
    credible,
    freshly_stands,
    is_heard,
    is_stuck,
    stands,
    was_heard,
    was_on_its_way,
)
from kinopt_ros.ros.motion.lost import slows_down_in
from kinopt_ros.ros.motion.made_soon import made_soon
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.motion.returning import waits_at_its_end
from kinopt_ros.ros.motion.rights import Stop
from kinopt_ros.ros.motion.stop_watch import WATCHED, Stopped, StopWatch
from kinopt_ros.ros.motion.stops_in_time import is_in_time, may_be_sent, stop_in_time, stop_message
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.solvers.readiness import check_ready
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.sweep import first_contact
from kinopt_ros.verification.verify import contact_sentence

_NOTHING = "no motion that this node has published is running"
_SOON = 1.5
"""As ``soon`` of brakes: an emergency may pull harder than a cancel."""


class EmergencyStop:
    """Handler of std_msgs/Bool on ~/emergency_stop; it runs on the thread of urgent callbacks."""

    def __init__(
        self,
        context: Context,
        output: MotionOutput,
        announce: Callable[[bool, str], None],
        moving: Callable[[], list[str]],
        cancel: Callable[[], None],
    ) -> None:
        """
        Args:
            context: the node's.
            output: where motions are published, and handed to controllers.
            announce: called with whether there is a stop, and a sentence, when something has changed.
            moving: the controllers' actions that do a motion.
            cancel: tells controllers to stop what they do.
        """
        self._context = context
        self._output = output
        self._announce = announce
        self._moving_controllers = moving
        self._cancel = cancel
        self._sent: list[tuple[ServoSetup, JointTrajectory, Annotated[Float64, "nq"]]] = []
        """Stops that have not been checked yet, and the configurations of the robot that they begin in."""
        self._stopped: list[Stopped] = []
        """Joints that the emergency stop has told to stop, or would have."""
        self._watch = StopWatch(context, output, self._say_watched)
        self._turn = threading.RLock()
        """Held while somebody stops the robot: emergencies and the node's own stops come on different threads."""

    def take(self, message: Any) -> None:
        """Stop, or allow motions again. What is so already is left as it is, as latched messages come twice; but a
        controller that has refused to stop is told again, and joints are watched again."""
        with self._turn, urgent():
            self._take(message)

    def _take(self, message: Any) -> None:
        if message.data == self._output.halted:
            if message.data:
                self._cancel()
                self._watch.begin([replace(one, end=self._now()) for one in self._stopped])
            return
        if not message.data:
            self._output.release()
            over = "the emergency stop is over: motions are taken again, streams of servo after a pause"
            self._context.node.get_logger().warning(over)
            self._announce(False, over)
            return
        sentence = self.stop_all("the emergency stop") or _NOTHING
        self._context.node.get_logger().warning(f"emergency stop: {sentence}")
        self._announce(True, sentence)
        self.watch()
        sent, self._sent = self._sent, []
        if sent:  # a look may take a while, and a cancel waits for this thread
            threading.Thread(target=self._look, args=(sent,), name="stop_look", daemon=True).start()

    def watch(self, seconds: float = WATCHED) -> None:
        """Watch the joints of the last stop for so many seconds from when they should be at rest. Returns at once."""
        self._watch.begin(self._stopped, seconds)

    @property
    def watches(self) -> bool:
        """Whether joints that were stopped are watched."""
        return self._watch.runs

    def stop_all(self, owner: str, lasting: bool = True) -> str:
        """Stop whatever this node has published.

        Args:
            owner: who stops, for those who wanted the robot to move.
            lasting: refuse new motions until they are released.

        Returns:
            What was done, or why nothing was; empty if nothing runs.
        """
        with self._turn, urgent():
            return self._stop_all(owner, lasting)

    def _stop_all(self, owner: str, lasting: bool) -> str:
        told = self._moving_controllers()
        try:
            self._output.stops_now()
        except Exception as error:  # a defect: say so, and stop what moves
            log_defect(self._context.node.get_logger(), "in a stop", error)
        claim = self._output.halt(owner, lasting)  # who has handed a motion to a controller cancels it
        if told:  # one that has lost the right may have been refused a cancel, and its motion goes on
            self._cancel()
        # Several may run, of different joints, each done by a controller of its own.
        self._stopped, self._sent = [], []
        said = [self._stop_or_say(claim, motion) for motion in self._output.published]
        claim.give_up()
        said += [f"the controller {name} was told to stop" for name in told]
        return "; ".join(dict.fromkeys(filter(None, said)))

    def _stop_or_say(self, claim: Stop, motion: Published) -> str:
        """Publish the stop of a motion; return what was done, or why nothing was.

        Says nothing about a motion that is over.
        """
        try:
            return self._stop(claim, motion)
        except KinoptError as error:
            return f"no stop motion was published: {error}"
        except Exception as error:  # a defect: say so; nothing new moves all the same
            said = log_defect(self._context.node.get_logger(), "on ~/emergency_stop", error)
            return f"no stop motion was published: {said}"

    def _stop(self, claim: Stop, one: Published) -> str:
        # Nobody looks at collisions before the stop is on its way: that may take a compiler, or a package that is
        # not installed, and the robot has to stop anyway.
        robot, joints = one.robot, tuple(one.message.joint_names)
        setup = servo_setup(
            robot,
            robot.root_link,
            robot.root_link,
            joints,
            start_tolerance=self._context.parameter("start_state_tolerance"),
        )
        published = one.commanded(joints)
        if published is None:
            return ""
        state, now = self._context.joint_states.of(robot), self._now()
        self._stopped.append(Stopped(setup, now, published.end, published.at(now).position))
        if now >= published.end and not is_heard(self._context, setup, state):
            # A controller that slows motions down may still do it.
            if now >= published.end + UNSURE:
                return ""
            if not was_on_its_way(self._context, setup, published, state, now):
                return "nobody has said lately whether the robot is at the end of its motion"
        if now >= published.end and stays_arrived(one, state):
            return ""  # also fingers that hold something
        if self._is_elsewhere(setup, state, published, now, one):
            return self._brake_as_measured(claim, setup, published, one)
        if now >= published.end:
            return ""
        if one.brakes:
            # Its end is known, its way is not: another one would begin beside it, and lead farther.
            self._will_rest(published.end, published.trajectory)
            return "the robot brakes already"
        return self._brake_as_published(claim, setup, state, published)

    def _will_rest(self, end: int, motion: JointTrajectory) -> None:
        """Take notice of the motion that is the stop: it ends at a time, ns of the node's clock."""
        self._stopped[-1] = replace(self._stopped[-1], end=end, position=motion.position[-1])

    def _is_elsewhere(
        self, setup: ServoSetup, state: RobotState, published: Commanded, now: int, one: Published
    ) -> bool:
        """Check whether the robot is not in the motion that was published, or not at the time that the node reckons
        with, as far as it is known where it is, or was when it was heard of last; when a brake begins, or a motion
        without a stamp, is up to the controller."""
        if not was_heard(self._context, setup, state, published, now):
            return False  # what was commanded is known
        if waits_at_its_end(one, state, now):
            return True
        if one.brakes:
            tolerance = self._context.parameter("servo.tracking_tolerance")
            return not slows_down_in(published, setup, state, now, tolerance)
        return not (one.stamped and is_in_time(self._context, setup, state, one, now))

    def _brake_as_measured(
        self,
        claim: Stop,
        setup: ServoSetup,
        published: Commanded,
        one: Published,
    ) -> str:
        """Stop a robot that is not in the motion that was published: its controller began with that later, slows
        motions down, or does something else."""
        robot = setup.robot
        found = made_soon(partial(self._made_brake, setup, published, one), self._now)
        if found is None:
            return ""
        brake, state, now = found
        if not claim.publish(trajectory_message(brake, robot.root_link), robot, from_here=True):
            return "the stop motion came too late"
        self._will_rest(now + round(1e9 * brake.duration), brake)
        self._sent.append((setup, brake, state.q))
        return (
            f"the robot brakes for {brake.duration:.3f} s from where it was measured, which is not where it was told "
            "to be"
        )

    def _made_brake(
        self, setup: ServoSetup, published: Commanded, one: Published, ahead: int
    ) -> tuple[JointTrajectory, RobotState, int] | None:
        """Return the brake of a robot from where it is measured, that state, and when it counts: so many ns ahead, ns
        of the node's clock. None: it stands, and its motion is over; on its way it may wait, as by a speed slider.
        One that is not in its brake is still in the motion before."""
        state, now = self._context.joint_states.of(setup.robot).later(ahead), self._now() + ahead
        heard = is_heard(self._context, setup, state)
        over = now >= published.end and stands(setup, state)
        if heard and over and not (is_left_in(one, state) or waits_at_its_end(one, state, now)):
            return None
        if heard and (over or freshly_stands(setup, state, now) or is_stuck(setup, published, state, now)):
            brake = brake_where_it_stands(setup, published, state, now)
        elif one.brakes and credible(setup, state):
            velocity = state.seen_velocity[setup.variables]
            brake = brake_as_measured(setup, state, velocity, published.at(now).position)
        else:
            brake = brake_in(self._context, setup, published, state, now, _SOON)
        return brake, state, now

    def _brake_as_published(
        self, claim: Stop, setup: ServoSetup, state: RobotState, published: Commanded
    ) -> str:
        """Stop a robot that is in the motion that was published, as far as is known."""
        stop, motion, now = stop_in_time(setup, published, state, self._now)
        if is_at_rest_sooner(setup, published, stop, now):
            self._will_rest(published.end, published.trajectory)
            return "the motion that runs is at rest sooner than another one could be"
        found = motion.report.violations
        if not may_be_sent(motion):
            return f"the stop motion failed its check and was not published: {found[0].message}"
        if not claim.publish(stop_message(stop, motion, setup), setup.robot):
            return "the stop motion came too late"
        self._will_rest(stop.end, motion.trajectory)
        self._sent.append((setup, motion.trajectory, state.q))
        said = "; ".join(violation.message for violation in found)
        within = f"though {said}" if said else "within the limits"
        return f"the robot brakes for {(stop.end - now) / 1e9:.3f} s, {within}"

    def _look(self, sent: list[tuple[ServoSetup, JointTrajectory, Annotated[Float64, "nq"]]]) -> None:
        """Report what stops run into. On a thread of its own."""
        log = self._context.node.get_logger()
        try:
            found = [sentence for stop in sent for sentence in self._contact(*stop)]
        except Exception as error:  # a defect: say so; the stop is on its way all the same
            log_defect(log, "in the look at a stop", error)
            return
        if found:
            sentence = f"the robot brakes, though {'; '.join(dict.fromkeys(found))}"
            log.warning(f"emergency stop: {sentence}")
            if self._output.halted:
                self._announce(True, sentence)

    def _say_watched(self, sentence: str) -> None:
        """Report what the watch has found. On its thread."""
        what = "emergency stop" if self._output.halted else "a stop"
        self._context.node.get_logger().error(f"{what}: {sentence}")
        if self._output.halted:
            self._announce(True, sentence)

    def _contact(
        self, setup: ServoSetup, trajectory: JointTrajectory, q: Annotated[Float64, "nq"]
    ) -> list[str]:
        """Return what a stop that was sent runs into, if it matters: one sentence, or why that is not known; or
        nothing."""
        context, robot = self._context, setup.robot
        if not (context.parameter("servo.avoid_collisions") or context.parameter("ik.avoid_collisions")):
            return []
        try:
            check_ready(robot)
            clearance = context.parameter("ik.clearance")
            scene = context.scene.of(robot)
            contact = first_contact(
                robot, scene, q, setup.variables, trajectory, clearance, patience=PATIENCE
            )
        except KinoptError as error:
            return [f"nobody looked at collisions: {sentence_of(error)}"]
        return [] if contact is None else [contact_sentence(contact, clearance)]

    def _now(self) -> int:
        return self._context.now()
