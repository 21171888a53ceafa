"""~/joint_trajectory has one owner at a time: whoever asked last for a motion."""

import threading
from collections.abc import Callable
from typing import Any

from trajectory_msgs.msg import JointTrajectory


class MotionOutput:
    """Gives the right to publish motions. Thread-safe.

    Two requests that move the robot at the same time would each take it from where the other one does not expect it.
    So the newest has it, and the one before is told that it lost it.
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self._lock = threading.Lock()
        self._newest: Claim | None = None

    def claim(self, owner: str, lost: Callable[[str], None]) -> "Claim":
        """The right to publish one motion, which somebody else may have had until now.

        Args:
            owner: who asks, for the one who loses the right.
            lost: called with the next owner's name when the right is lost before it was used or given up; from any
                thread, and must return at once.
        """
        claim = Claim(self, lost)
        with self._lock:
            before, self._newest = self._newest, claim
        if before is not None:
            before.lost(owner)
        return claim

    def publish(self, claim: "Claim", message: JointTrajectory) -> bool:
        """Publish a motion if the claim still holds; it is used up then. Whether it was published."""
        with self._lock:
            if self._newest is not claim:
                return False
            self._newest = None
            self._publisher.publish(message)
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
    """The right to publish one motion."""

    def __init__(self, output: MotionOutput, lost: Callable[[str], None]) -> None:
        self._output = output
        self.lost = lost

    def publish(self, message: JointTrajectory) -> bool:
        """Publish a motion, if nobody else has asked for one since. Whether it was published."""
        return self._output.publish(self, message)

    @property
    def holds(self) -> bool:
        """Whether nobody else has asked for a motion since."""
        return self._output.holds(self)

    def give_up(self) -> None:
        """Publish nothing any more."""
        self._output.give_up(self)
