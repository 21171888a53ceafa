"""Watch over joint states: such as always come late, as by a clock that is behind, and wrong velocities."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from rclpy.clock import Clock
from rclpy.clock_type import ClockType

from kinopt_ros.array import Float64
from kinopt_ros.errors import shortened
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.robot.joint_states import SLOWEST_WAY, RobotState
from kinopt_ros.ros.robot.motion_clock import MotionClock
from kinopt_ros.ros.robot.publisher_clock import LATEST

LOOK_SECONDS = 1.0
LOOKS = 3
"""Times in a row that a joint state has to be late: on a busy machine one is now and then. One that has not come for so
many looks says nothing any more."""
SAY_SECONDS = 60.0
"""Least time between two lines in the log, s."""


class StateWatch:
    """Says which joints are told of more than SLOWEST_WAY after they were measured, or move otherwise than their
    velocities say, and what follows."""

    def __init__(self, context: Context, clock: MotionClock) -> None:
        self._context, self._clock = context, clock
        self._late: dict[str, int] = {}
        """How often in a row joints were late."""
        self._stamps: dict[str, int] = {}
        self._silent: dict[str, int] = {}
        """For how many looks joints were not heard of."""
        self.sentence = ""
        """What is so now; empty if all is well."""
        # Not by simulated time, which can stand still.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        context.node.create_timer(LOOK_SECONDS, self.look, clock=steady)

    def look(self) -> None:
        """Look once. On the executor's thread."""
        if not self._context.loader.is_ready:
            return
        self._clock.look()
        robot = self._context.loader.loaded.model
        states, names = self._context.joint_states, robot.variable_names
        found = (
            self._late_ones(names, states.of(robot)),
            _untrue(names, states.contradictions(robot)),
            _set(self._clock.set_ahead),
        )
        self.sentence = "; ".join(filter(None, found))
        if self.sentence:
            self._context.node.get_logger().warning(
                f"joint_states: {self.sentence}", throttle_duration_sec=SAY_SECONDS
            )

    def _late_ones(self, names: Sequence[str], state: RobotState) -> str:
        stamps = dict(zip(names, state.stamp.tolist(), strict=True))
        silent = {
            name: self._silent.get(name, 0) + 1 if stamp == self._stamps.get(name) else 0
            for name, stamp in stamps.items()
        }
        late = {
            name: self._late.get(name, 0) + (silent[name] == 0)
            for i, name in enumerate(names)
            if state.known[i] and SLOWEST_WAY < state.late[i] <= LATEST and silent[name] < LOOKS
        }
        self._late, self._stamps, self._silent = late, stamps, silent
        always = [i for i, name in enumerate(names) if late.get(name, 0) >= LOOKS]
        if not always:
            return ""
        by = float(np.max(state.late[always]))
        return (
            f"{shortened([names[i] for i in always], 3)} always come late, {by:.2f} s after their stamps: the clock of "
            "who publishes them is behind, or the way is slow. The robot is taken to have gone on for that time, and "
            f"emergency stop, servo and ~/target_pose leave a motion {SLOWEST_WAY:g} s later than they could. Set the "
            f"clocks alike (chrony, PTP); more than {LATEST:g} s counts as another clock"
        )


def _set(ahead: float) -> str:
    """Return what is said of a clock that was set ``ahead``, s; empty if it was not."""
    if not ahead:
        return ""
    way = "ahead" if ahead > 0.0 else "back"
    return (
        f"the clock of this node was set {way} by {abs(ahead):.2f} s, and that of who publishes them was not: motions "
        "go by the latter, with its stamps. Set the clocks alike (chrony, PTP)"
    )


def _untrue(names: Sequence[str], contradictions: Annotated[Float64, "nq"]) -> str:
    """Return what is said of velocities that positions contradict; empty if there are none."""
    found = np.flatnonzero(contradictions != 1.0).tolist()
    if not found:
        return ""
    return (
        f"velocities of {shortened([names[i] for i in found], 3)} are wrong: by its positions {names[found[0]]} moves "
        f"{contradictions[found[0]]:.2g} times as fast. Most likely they are in another unit, or of the motor's side. "
        "Stops may lead the robot far beyond its motion; let the driver publish rad/s (m/s) of the joint, or none"
    )
