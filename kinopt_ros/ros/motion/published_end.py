"""Whether a published motion is over, and the robot where it ends: nobody says so but joint states.

Some controllers slow motions down, or begin later. What waits may go on later, when nobody looks any more.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import StaleStateError, StartStateError
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.motion.arrival import (
    TOLERANCE,
    GripsWaitError,
    check_at_end,
    check_grips_have_begun,
    grips_in,
    off_end,
    off_end_of,
)
from kinopt_ros.ros.motion.beside import (
    OFF,
    have_moved,
    is_at_end,
    is_left_in,
    moved_by,
    pace_until,
    sides_of_begin,
    variables_of,
)
from kinopt_ros.ros.motion.last_look import AWAY
from kinopt_ros.ros.motion.published import LOOK_SECONDS, Published
from kinopt_ros.ros.motion.returning import look, may_be_to_come, times_at_end
from kinopt_ros.ros.robot.joint_states import RobotState

MOVED, LAG_SECONDS, THERE_SECONDS, STILL = 1e-3, 0.5, 0.1, 5e-3
"""How far a joint has to be measured to move after its motion should be over, rad or m, within how many seconds, for
the motion to go on. Where it ends, within how many seconds, and from which velocity on, rad/s or m/s."""
SLOWEST = 0.05
"""Share of its pace from which on a motion counts as slowed down, not as stopped."""
ARRIVES_SECONDS = 1.0
"""Longest time that somebody waits for the robot to be where a motion ends, s."""


@dataclass
class _Moved:
    """When joints had last moved."""

    q: Annotated[Float64, "n"]
    """Where they were then."""
    at: float
    """s, of the machine's time."""
    node_time: int
    """ns of the node's clock."""
    pace: float | None = None
    """At which share of its pace the motion was done until then."""


class PublishedEnd:
    """Finds the end of one motion that was published, and writes down its progress."""

    def __init__(
        self, context: Context, running: Published, waited_for: bool, q: Annotated[Float64, "nq"]
    ) -> None:
        """
        Args:
            context: the node's.
            running: the motion.
            waited_for: whether somebody waits for the robot to be there, and fails if it takes long.
            q: where the robot was when it was sent.
        """
        self._context = context
        self._running = running
        self._waited_for = waited_for
        self._moved: _Moved | None = None
        self._sent_at = q[variables_of(running.robot, [running])]
        self._waiting: list[str] = []
        """Joints of end effectors that have not moved, if the motion was not done for them."""

    @property
    def only_grips_wait(self) -> bool:
        """Whether the motion was not done as joints of end effectors have not moved, and is over for all others.

        They may hold something, which a brake would loosen.
        """
        return bool(self._waiting) and self._is_done_but_for_waiting()

    def look(self) -> None:
        """Take notice of where the joints are."""
        look(self._running, self._state())

    def lags(self) -> bool:
        """Check whether joints are still on their way, if the motion should be over."""
        running, state, now = self._running, self._state(), time.monotonic()
        index = variables_of(running.robot, [running])
        q = state.q[index]
        if self._moved is None or np.abs(q - self._moved.q).max() > MOVED:
            self._moved = _Moved(q, now, self._context.now())
        moved = self._moved
        if is_at_end(running, state) and times_at_end(running) == 1:
            passes = np.abs(state.seen_velocity[index]).max(initial=0.0) > STILL
            return bool(passes and now < moved.at + THERE_SECONDS)
        if now < moved.at + LAG_SECONDS:
            return True
        if moved.pace is None:
            moved.pace = 1.0 if self._waited_for else pace_until(running, state, moved.node_time)
        return now < moved.at + LAG_SECONDS / (moved.pace if moved.pace > SLOWEST else 1.0)

    def may_go_on(self) -> bool:
        """Check whether joints that stand may be on their way, or have not begun."""
        running, state = self._running, self._state()
        return (
            may_be_to_come(running, state, self._context.now())
            or (self._comes_again() and is_at_end(running, state))
            or is_left_in(running, state)
        )

    def why_not_there(self, stopped: Callable[[], bool]) -> str:
        """Wait until the robot is where the motion ends; return a sentence if it is not, in time. Empty also if it is
        stopped meanwhile."""
        end = time.monotonic() + ARRIVES_SECONDS
        waiting: list[str] = []
        while not stopped():
            try:
                self._check_there()
            except (StartStateError, StaleStateError) as error:
                if isinstance(error, GripsWaitError):
                    waiting = error.joints
                if time.monotonic() > end:
                    self._waiting = waiting
                    if self.only_grips_wait:
                        self._arrive()
                    return f"the motion was published, and should be over: {error}"
            else:
                self._arrive()
                return ""
            time.sleep(LOOK_SECONDS)
        self._waiting = waiting
        return ""

    def why_left(self) -> str:
        """Return a sentence if the robot is known to stand on its way; else nothing."""
        running, state = self._running, self._state()
        variables = variables_of(running.robot, [running])
        timeout = self._context.parameter("state_timeout")
        if not state.known[variables].all() or state.age[variables].max() > timeout:
            return ""
        off = off_end(running, state).max()
        if off <= AWAY and not may_be_to_come(running, state, self._context.now()):
            self._arrive()
        if off <= self._context.parameter(TOLERANCE):
            left = running.progress.visits.count > 0 and self._comes_again()
        else:
            left = is_left_in(running, state, begun=True)
        if not left:
            return ""
        return (
            "the motion was published, and should be over, but the robot stands on its way, and is held there"
        )

    def _check_there(self) -> None:
        """Raise StartStateError or StaleStateError unless the robot is known to be at rest where the motion ends."""
        self.look()
        state = self._state()
        check_at_end(self._running, state, self._context.parameter("state_timeout"))
        if may_be_to_come(self._running, state, self._context.now()):
            raise StartStateError(
                "the motion ends where it begins, and nobody has seen the robot leave that place"
            )
        if self._comes_again():
            times, seen = times_at_end(self._running), self._running.progress.visits.count
            raise StartStateError(
                f"the motion comes to where it ends {times} times, and the robot was seen to come there {seen} times"
            )
        check_grips_have_begun(self._running, state, self._sent_at)

    def _is_done_but_for_waiting(self) -> bool:
        """Check whether a motion is over for all joints but those that wait, and these are not still to come by a
        controller that is slow: they leave their begin for good, and do so before all others have ended."""
        running = self._running
        waiting = np.array([name in self._waiting for name in running.message.joint_names])
        sides = sides_of_begin(running)[:, waiting]
        begin = int(np.argmax(sides.any(axis=1)))
        for side in sides.T:
            went = side[int(np.argmax(side != 0)) :]
            if (went != went[0]).any():
                return False
        others = moved_by(running) & ~grips_in(running)
        if not others.any():
            return True
        off = off_end_of(running, running.motion.position)[:, others]
        # Of a motion that ends where it begins nobody knows whether others have done it.
        if not (off[0] > 2.0 * OFF).any():
            return False
        return begin - 1 <= int(np.flatnonzero((off > OFF).any(axis=1))[-1])

    def _comes_again(self) -> bool:
        """Check whether a motion that comes to where it ends more than once was seen to do so less often."""
        times = times_at_end(self._running)
        return times > 1 and self._running.progress.visits.count < times

    def _arrive(self) -> None:
        """Take notice that joints are where their motion ends. Fingers may have done nothing yet, and of a motion that
        comes there more than once nobody knows for which time."""
        running, state = self._running, self._state()
        if times_at_end(running) > 1:
            return
        begun = have_moved(running, state, self._sent_at) & moved_by(running)
        if begun.any() or is_at_end(running, state):
            running.progress.arrived = state.q[variables_of(running.robot, [running])]

    def _state(self) -> RobotState:
        return self._context.joint_states.of(self._running.robot)
