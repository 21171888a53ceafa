"""Rights to move joints, which ``output.py`` gives and takes away."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.motion.last_look import PlannedFor
from kinopt_ros.ros.motion.published import Execution

if TYPE_CHECKING:
    from kinopt_ros.ros.motion.output import MotionOutput


def agreed_by_all() -> bool:
    """Agree to a motion."""
    return True


class Claim:
    """The right to send one motion, or, as long as nobody else asks, several."""

    def __init__(
        self,
        output: MotionOutput,
        owner: str,
        lost: Callable[[str], None],
        stops: int | None,
        joints: frozenset[str] | None,
    ) -> None:
        """Arguments as of ``MotionOutput.claim``."""
        self._output = output
        self.owner = owner
        self.lost = lost
        self.stops = stops
        self.joints = joints
        self.waits = True
        """Whether it is still to be taken, with its first motion that is published."""

    def publish(
        self,
        message: JointTrajectory,
        planned: PlannedFor,
        keep: bool = False,
        agreed: Callable[[], bool] = agreed_by_all,
    ) -> bool:
        """Publish a motion, if it is still valid and nobody else has asked for one since.

        Args:
            message: the motion.
            planned: what it was planned for: it is looked at once more, in the present scene and state.
            keep: the right, for more of them.
            agreed: asked right before; with False nothing is published. Must return at once.

        Returns:
            Whether it was published.

        Raises:
            EnvironmentChangedError: it moves joints that are not of this right.
            KinoptError: as ``LastLook.send``.
        """
        return self._output.publish(self, message, planned, keep, agreed)

    def hand_over(
        self,
        message: JointTrajectory,
        planned: PlannedFor,
        send: Callable[[], Execution | None],
        lead: int = 0,
    ) -> bool:
        """Let somebody else send a motion, by ``send``, which must return at once how far the motion is, or None if
        it was not sent; the right is kept. It begins ``lead`` ns later. All else as ``publish``."""
        return self._output.hand_over(self, message, planned, send, lead)

    @property
    def holds(self) -> bool:
        """Whether it was taken, and nobody else has asked for a motion since."""
        return self._output.holds(self)

    def give_up(self) -> None:
        """Publish nothing any more."""
        self._output.give_up(self)


class Stop:
    """The right to publish stops, which are not checked once more: a robot that brakes is better than one that does
    not."""

    joints: frozenset[str] | None = None

    def __init__(self, output: MotionOutput) -> None:
        self._output = output

    def lost(self, owner: str) -> None:
        """Take notice that somebody else stops the robot, or moves it after that."""

    def publish(self, message: JointTrajectory, robot: RobotModel, from_here: bool = False) -> bool:
        """Publish the stop of a robot's motion, if nobody else has asked for a motion since; return whether it was
        published. ``from_here``: see ``held``."""
        return self._output.publish_stop(self, message, robot, from_here)

    def give_up(self) -> None:
        """Publish nothing any more."""
        self._output.give_up(self)
