"""One run of servo, from its first command until the robot is at rest: what is commanded, and whether the robot
follows."""

from collections import deque
from dataclasses import replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import PATIENCE, ServoSetup, stops_hard
from kinopt_ros.planning.servo.step import Step, Wish, servo_step
from kinopt_ros.planning.servo.stop import LEAD, is_at_rest_sooner, quickest_stop
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import NANOSECONDS_PER_SECOND
from kinopt_ros.verification.sweep import first_contact
from kinopt_ros.verification.verify import ON_THE_WAY, VerifiedMotion, contact_sentence

LAG = 100_000_000
"""Time by which a robot may lag behind its command, besides the age of its state, ns."""


class NotFollowingError(KinoptError):
    """The robot is not where it was commanded to be."""

    status = Status.CONTROL_FAILED


class Session:
    """One run of servo. Not thread-safe."""

    def __init__(self, setup: ServoSetup, begin: Commanded, goes_on: bool, lead: int = 0) -> None:
        """
        Args:
            setup: the robot.
            begin: the motion that the robot is in, or stands in.
            goes_on: whether that is one that somebody else has commanded: it is ended, whatever servo is asked for.
            lead: ns until the first motion begins, if it begins at rest: in that time the controller gets there from
                wherever it holds the joints.
        """
        self._lead = lead
        self.begins = 0
        """When what was sent last begins, ns of the clock; nothing is sent before."""
        self.commanded = begin
        self._foreign = goes_on
        self.goes_on = goes_on
        """Whether the next motion goes on from one that was sent. Else it begins at rest."""
        self._stops_until = 0
        """Until when a stop lasts that nothing may leave, ns of the clock."""
        self._scene = setup.scene
        self._part = 1.0
        self._speeds: deque[tuple[int, Annotated[Float64, "n"]]] = deque()

    def advance(
        self,
        setup: ServoSetup,
        now: int,
        q: Annotated[Float64, "nq"],
        wish: Wish | None,
        takes: int = 0,
        way: int = 0,
        lead: int = LEAD,
    ) -> Step:
        """Return what there is to send in this period; it counts once it is accepted.

        Args:
            setup: the robot, with the scene as it is now.
            now: ns of the clock.
            q: the whole robot; values of the joints that servo moves do not matter.
            wish: what is wanted; None: rest.
            takes: ns that this may take until a motion is sent.
            way: ns that the motion is on its way then.
            lead: ns until a brake begins, besides its way; that of a motion of others begins when ``takes`` allows it.

        Raises:
            KinoptError: as ``wish`` raises it; then there is nothing to send.
        """
        if setup.scene is not self._scene:
            step = self._look_again(setup, now, q, lead, way)
            if step is not None:
                return step
        if self._lead and not self.goes_on:  # nothing was sent yet
            now += self._lead
            late = now - self.commanded.start
            turn, leave = self.commanded.turn + late, self.commanded.leave + late
            self.commanded = replace(self.commanded, start=now, turn=turn, leave=leave)
        step = Step(self.commanded, None, None, 1.0)
        if wish is not None and now >= self._stops_until + way:
            step = servo_step(setup, self.commanded, now, q, wish, self._part, takes, way)
        if self._foreign and step.motion is None and now < self.commanded.end:
            stop, motion = _stop(setup, self.commanded, now, q, max(lead, 2 * takes), way)
            if not is_at_rest_sooner(setup, self.commanded, stop, now) and not _wrong(motion):
                return replace(step, commanded=stop, motion=motion, brakes=True)
        return step

    def accept(self, setup: ServoSetup, step: Step) -> None:
        """Take a step as done: its motion, if it has one, was sent in time."""
        self.commanded, self._part = step.commanded, step.part
        if not step.missing:
            self._scene = setup.scene
        if step.motion is not None:
            self.begins = step.commanded.start
            self._foreign, self.goes_on = False, True
            hard = step.brakes and stops_hard(setup.robot, setup.variables)
            self._stops_until = step.commanded.end if hard else 0

    def check_follows(
        self,
        setup: ServoSetup,
        now: int,
        measured: Annotated[Float64, "n"],
        age: float,
        tolerance: float,
    ) -> None:
        """Raise NotFollowingError if a joint is elsewhere than it was commanded to be lately.

        Args:
            setup: the robot.
            now: ns of the clock.
            measured: where the joints are, rad or m.
            age: s since that was measured.
            tolerance: rad or m, besides what the robot moves in the time by which it follows later.
        """
        self._speeds.append((now, np.abs(self.commanded.at(now).velocity)))
        late = LAG + round(age * NANOSECONDS_PER_SECOND)
        while self._speeds[0][0] < now - late:
            self._speeds.popleft()
        fastest = np.max([speed for _, speed in self._speeds], axis=0)
        allowed = tolerance + fastest * (late / NANOSECONDS_PER_SECOND)
        away = setup.away(measured, self.commanded.at(now).position)
        if (away > allowed).any():
            i = int(np.argmax(away / allowed))
            raise NotFollowingError(
                f"joint {setup.joints[i]!r} is {away[i]:.4g} away from where it was commanded to be; allowed is "
                f"{allowed[i]:.4g} at its speed (parameter servo.tracking_tolerance): is it this node's motions that "
                "the controller follows?"
            )

    def _look_again(
        self, setup: ServoSetup, now: int, q: Annotated[Float64, "nq"], lead: int, way: int
    ) -> Step | None:
        """Brake if what is left of the motion is not free in another scene; None if it is."""
        if setup.scene is None or now >= self.commanded.end:
            return None
        rest = self.commanded.rest(now)
        contact = first_contact(
            setup.robot, setup.scene, q, setup.variables, rest, setup.clearance, patience=PATIENCE
        )
        if contact is None:
            return None
        sentence = f"the scene has changed: {contact_sentence(contact, setup.clearance)}"
        stop, motion = _stop(setup, self.commanded, now, q, lead, way)
        if is_at_rest_sooner(setup, self.commanded, stop, now):  # it brakes already
            return Step(self.commanded, None, None, 0.0, Status.ENVIRONMENT_CHANGED, sentence)
        wrong = _wrong(motion)
        if wrong:
            said = f"{sentence}; {wrong}"
            return Step(self.commanded, None, None, 0.0, Status.ENVIRONMENT_CHANGED, said, missing=True)
        still = "" if motion.report.ok else ", which does not keep it clear any more"
        return Step(
            stop,
            motion,
            None,
            0.0,
            Status.ENVIRONMENT_CHANGED,
            f"{sentence}; the robot brakes as fast as its limits allow{still}",
            brakes=True,
        )


def _stop(
    setup: ServoSetup, last: Commanded, now: int, q: Annotated[Float64, "nq"], lead: int, way: int
) -> tuple[Commanded, VerifiedMotion]:
    """Return the quickest stop that may be sent: one that goes no farther than its motion, or else that of each joint
    by itself. What is in the way of the motion may be in the way of the former, and it may break a limit to stay there.
    """
    stop, motion = quickest_stop(setup, last, now, q, lead, way=way)
    if motion.report.ok:
        return stop, motion
    other, free = quickest_stop(setup, last, now, q, lead, inside=False, way=way)
    if free.report.ok or _wrong(motion) or other.end < stop.end:
        return other, free
    return stop, motion


def _wrong(motion: VerifiedMotion) -> str:
    """Return what is wrong with a brake, but for what it runs into: the motion that it ends would do so, too."""
    found = [violation.message for violation in motion.report.violations if violation.check != ON_THE_WAY]
    return found[0] if found else ""
