"""Kinds of controllers, by the action that they have: what they are told of a motion, and what their results mean."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

from action_msgs.msg import GoalStatus
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.errors import KinoptError, MissingPackageError, cut, quoted
from kinopt_ros.robot.moveit_controllers import (
    GRIPPER,
    MANAGER,
    MOTIONS,
    PARALLEL_GRIPPER,
    ControllerEntry,
)
from kinopt_ros.ros.robot.controller_names import SEVERAL
from kinopt_ros.status import Status

PARAMETER = "controller_action"
"""Parameter of the only controller."""

_STATES = {
    GoalStatus.STATUS_SUCCEEDED: "as succeeded",
    GoalStatus.STATUS_ABORTED: "as aborted",
    GoalStatus.STATUS_CANCELED: "as cancelled",
}


class ControllerError(KinoptError):
    """A controller is not there, or does not do what it was asked to."""

    status = Status.FAILURE


class NoControllerError(ControllerError):
    """A controller that is named does not run, or no single one does what a motion asks for. move_group answers both
    alike."""

    status = Status.CONTROL_FAILED


class ControllerKind(ABC):
    """How controllers of one type do motions."""

    type: ClassVar[str]
    """Type of their action."""
    keeps_time: ClassVar[bool]
    """Whether they go along a motion as it says. Others go to its end, as fast and as hard as they like, and stop where
    they are when their goal is cancelled."""

    def __init__(self, entry: ControllerEntry) -> None:
        """``entry``: how one of them is told motions."""
        self.entry = entry

    @abstractmethod
    def goal(self, kind: Any, motion: JointTrajectory) -> Any:
        """Return the goal of a motion; ``kind``: type of the action."""

    @abstractmethod
    def failure(self, state: int, result: Any) -> str:
        """Return why a goal that has ended in a state with a result did not do what it should; empty if it did."""

    def remark(self, state: int, result: Any) -> str:
        """Return what is to be said of a goal that did what it should; empty if nothing is."""
        del state, result
        return ""


class TrajectoryFollower(ControllerKind):
    """control_msgs/FollowJointTrajectory, as joint_trajectory_controller has it."""

    type = MOTIONS
    keeps_time = True

    def goal(self, kind: Any, motion: JointTrajectory) -> Any:
        """Return the goal of the whole motion."""
        return kind.Goal(trajectory=motion)

    def failure(self, state: int, result: Any) -> str:
        """Return how the controller ended the motion, unless it did all of it."""
        if state == GoalStatus.STATUS_SUCCEEDED and result.error_code == 0:
            return ""
        said = f": {cut(result.error_string)}" if result.error_string else ""
        name = _STATES.get(state, str(state))
        return f"the controller ended the motion {name}, with error code {result.error_code}{said}"


class Gripper(ControllerKind):
    """A controller that is told where its joint is to end."""

    keeps_time = False

    def failure(self, state: int, result: Any) -> str:
        """Return how the gripper ended the motion, unless it arrived, or need not."""
        if state == GoalStatus.STATUS_SUCCEEDED or self._is_let_pass(state, result):
            return ""
        return f"the gripper's controller ended the motion {_STATES.get(state, str(state))}: {self._told(result)}"

    def remark(self, state: int, result: Any) -> str:
        """Return where a gripper is that did not arrive."""
        if self._is_let_pass(state, result):
            return f"{self._told(result)}, which {self._leave} lets pass"
        if state == GoalStatus.STATUS_SUCCEEDED and not result.reached_goal:
            return f"{self._told(result)}, and its controller says that it is done"
        return ""

    _leave: ClassVar[str]
    """Parameter by which a gripper need not arrive."""

    def _is_let_pass(self, state: int, result: Any) -> bool:
        del result
        return self.entry.lenient and state == GoalStatus.STATUS_ABORTED

    @abstractmethod
    def _position(self, result: Any) -> float:
        """Return where a result says that the gripper is, rad or m; NaN if it does not."""

    def _told(self, result: Any) -> str:
        how = "it has stalled" if result.stalled else "it has not stalled"
        return f"the gripper is at {self._position(result):.4g}, {how}"

    def _ends(self, motion: JointTrajectory) -> dict[str, float]:
        """Return where the joints are to end whose positions the gripper is told."""
        names, last = list(motion.joint_names), motion.points[-1].positions
        return {name: float(last[names.index(name)]) for name in self.entry.commanded(names)}


class GripperCommander(Gripper):
    """control_msgs/GripperCommand: one position, the sum of two joints for some, and an effort."""

    type = GRIPPER
    _leave = "allow_failure"

    def goal(self, kind: Any, motion: JointTrajectory) -> Any:
        """Return the goal of the motion's end."""
        goal = kind.Goal()
        goal.command.position = sum(self._ends(motion).values())
        goal.command.max_effort = self.entry.max_effort
        return goal

    def _position(self, result: Any) -> float:
        return float(result.position)


class ParallelGripperCommander(Gripper):
    """control_msgs/ParallelGripperCommand: the position of a joint, and velocity and effort if they are limited."""

    type = PARALLEL_GRIPPER
    _leave = "allow_stalling"

    def goal(self, kind: Any, motion: JointTrajectory) -> Any:
        """Return the goal of the motion's end."""
        ends, entry = self._ends(motion), self.entry
        command = JointState(name=list(ends), position=list(ends.values()))
        command.velocity = [entry.max_velocity] * len(ends) if entry.max_velocity > 0.0 else []
        command.effort = [entry.max_effort] * len(ends) if entry.max_effort > 0.0 else []
        return kind.Goal(command=command)

    def _is_let_pass(self, state: int, result: Any) -> bool:
        return super()._is_let_pass(state, result) and bool(result.stalled)

    def _position(self, result: Any) -> float:
        return float(result.state.position[0]) if len(result.state.position) else float("nan")


KINDS: dict[str, Callable[[ControllerEntry], ControllerKind]] = {
    one.type: one for one in (TrajectoryFollower, GripperCommander, ParallelGripperCommander)
}
"""Kinds of controllers by their type in moveit_controllers.yaml."""
FOLLOWS = TrajectoryFollower(ControllerEntry())


def kind_of(name: str, entry: ControllerEntry) -> ControllerKind:
    """Return the kind of a controller.

    Raises:
        NoControllerError: it is of a type that is told no motions.
    """
    if entry.type not in KINDS:
        raise NoControllerError(
            f"the controller {quoted(name)} is of type {quoted(entry.type)} (parameter {MANAGER}.{name}.type); allowed "
            f"are {', '.join(KINDS)}"
        )
    return KINDS[entry.type](entry)


def action_type(name: str) -> Any:
    """Return the type of a controller's action.

    Raises:
        MissingPackageError: control_msgs is not installed, or does not have it.
    """
    try:
        return getattr(import_module("control_msgs.action"), name)
    except (ImportError, AttributeError):
        raise MissingPackageError(
            f"parameter {PARAMETER} or {SEVERAL} is set, which needs {name} of the package control_msgs: it is not "
            "installed. Install it, or leave the parameter empty, and motions are published on ~/joint_trajectory"
        ) from None
