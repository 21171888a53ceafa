"""~/joint_trajectory has one owner at a time: whoever asked last for a motion."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.errors import KinoptError
from kinopt_ros.status import Status


class EmergencyStopError(KinoptError):
    """A motion that was asked for during an emergency stop."""

    status = Status.EMERGENCY_STOP


@dataclass(frozen=True)
class Published:
    """A motion that was published."""

    message: JointTrajectory
    start: int
    """ns of the node's clock at which its first point counts."""


class MotionOutput:
    """Gives the right to publish motions. Thread-safe.

    Two requests that move the robot at the same time would each take it from where the other one does not expect it.
    So the newest has it, and the one before is told that it lost it.
    """

    def __init__(self, publisher: Any, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """``clock``: ns of the node's clock."""
        self._publisher = publisher
        self._clock = clock
        self._lock = threading.Lock()
        self._newest: Claim | None = None
        self._halted = False
        self._published: tuple[Published, ...] = ()

    @property
    def published(self) -> tuple[Published, ...]:
        """The motions that were published last of joints that no later one moves; they may be over."""
        return self._published

    @property
    def halted(self) -> bool:
        """Whether there is an emergency stop."""
        return self._halted

    def halt(self, owner: str) -> "Claim":
        """End every motion, and refuse new ones until ``release``. Returns the right to publish a stop.

        Args:
            owner: who stops, for the one who loses the right to publish.
        """
        claim = Claim(self, lambda owner: None)
        with self._lock:
            self._halted = True
            before, self._newest = self._newest, claim
        if before is not None:
            before.lost(owner)
        return claim

    def release(self) -> None:
        """Allow motions again."""
        with self._lock:
            self._halted = False

    def claim(self, owner: str, lost: Callable[[str], None]) -> "Claim":
        """The right to publish one motion, which somebody else may have had until now.

        Args:
            owner: who asks, for the one who loses the right.
            lost: called with the next owner's name when the right is lost before it was used or given up; from any
                thread, and must return at once.

        Raises:
            EmergencyStopError: there is one.
        """
        claim = Claim(self, lost)
        with self._lock:
            if self._halted:
                raise EmergencyStopError(
                    "there is an emergency stop: nothing moves until false comes on ~/emergency_stop"
                )
            before, self._newest = self._newest, claim
        if before is not None:
            before.lost(owner)
        return claim

    def publish(self, claim: "Claim", message: JointTrajectory, keep: bool = False) -> bool:
        """Publish a motion if the claim still holds, which is used up then, unless it is kept. Whether it was
        published."""
        with self._lock:
            if self._newest is not claim:
                return False
            if not keep:
                self._newest = None
            stamp = message.header.stamp
            self._publisher.publish(message)
            new = Published(message, stamp.sec * 10**9 + stamp.nanosec or self._clock())
            joints = set(message.joint_names)
            others = [motion for motion in self._published if joints.isdisjoint(motion.message.joint_names)]
            self._published = (*others, new)
            return True

    def holds(self, claim: "Claim") -> bool:
        """Whether nobody else has asked for a motion since."""
        with self._lock:
            return self._newest is claim

    def give_up(self, claim: "Claim") -> None:
        """Give the right back."""
        with self._lock:
            if self._newest is claim:
                self._newest = None


class Claim:
    """The right to publish one motion, or, as long as nobody else asks, several."""

    def __init__(self, output: MotionOutput, lost: Callable[[str], None]) -> None:
        self._output = output
        self.lost = lost

    def publish(self, message: JointTrajectory, keep: bool = False) -> bool:
        """Publish a motion, if nobody else has asked for one since; ``keep`` the right for more of them. Whether it was
        published."""
        return self._output.publish(self, message, keep)

    @property
    def holds(self) -> bool:
        """Whether nobody else has asked for a motion since."""
        return self._output.holds(self)

    def give_up(self) -> None:
        """Publish nothing any more."""
        self._output.give_up(self)
