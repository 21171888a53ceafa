"""Actions of simulated controllers: what MoveIt's parameters say of them, else FollowJointTrajectory of each, and a
gripper's of those of one joint."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from rclpy.action.server import CancelResponse, GoalResponse
from rclpy.node import Node
from sensor_msgs.msg import JointState

from kinopt_ros.errors import InvalidRequestError, KinoptError, quoted, shortened
from kinopt_ros.robot.moveit_controllers import ACTIONS, ControllerEntry
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.ros.serving.action_server import QuietActionServer, begin_cancelling, give_result, no_callback
from kinopt_ros.trajectory.simulated_controller import SimulatedController, Waypoint
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

REACHED = 1e-2
"""Distance from the position that was commanded at which a gripper counts as there, rad or m."""
Now = Callable[[], int]
"""Function that returns the present time, ns."""


def given(message: Any) -> tuple[Sequence[str], list[Waypoint], int]:
    """Return joints, points and start (ns, 0: now) of a trajectory as it came, whatever may be wrong with it."""
    points = [
        Waypoint(
            nanoseconds(point.time_from_start),
            point.positions,
            point.velocities,
            point.accelerations,
            point.effort,
        )
        for point in message.points
    ]
    return list(message.joint_names), points, nanoseconds(message.header.stamp)


class ControllerAction(ABC):
    """An action of one controller. On the executor's thread."""

    def __init__(
        self, node: Node, name: str, controller: SimulatedController, kind: Any, now: Now, preempt: Preempt
    ) -> None:
        """
        Args:
            node: that offers it.
            name: of the action.
            controller: what it moves.
            kind: type of the action.
            now: the present time, ns.
            preempt: ends what other goals the controller has.
        """
        self.controller = controller
        self._type = kind
        self._now = now
        self._preempt = preempt
        self._running: Any = None
        self._logger = node.get_logger()
        self._server = QuietActionServer(
            node,
            kind,
            name,
            execute_callback=no_callback,
            goal_callback=self._judge,
            handle_accepted_callback=self._begin,
            cancel_callback=lambda handle: CancelResponse.ACCEPT,
        )

    @abstractmethod
    def check(self, goal: Any) -> None:
        """Raise KinoptError if a goal is to be refused."""

    @abstractmethod
    def take(self, goal: Any) -> None:
        """Have the controller do a goal; raises as ``check``."""

    @abstractmethod
    def result(self, how: str, sentence: str) -> Any:
        """Return the result of a goal that ended by ``succeed``, ``abort``, ``canceled`` or ``replaced``."""

    def outcome(self) -> str:
        """Return how a goal ends whose motion is over: ``succeed`` or ``abort``."""
        return "succeed"

    def advance(self) -> None:
        """End the goal if it is over, or shall be."""
        handle = self._running
        if handle is None:
            return
        if handle.is_cancel_requested:
            self.controller.hold(self._now())
            self.end("canceled", "cancelled")
        elif self.controller.end <= self._now():
            self.end(self.outcome(), "")

    def end(self, how: str, sentence: str) -> None:
        """Give the goal that runs its result, if there is one. One that is ``replaced`` is cancelled."""
        handle, self._running = self._running, None
        if handle is None:
            return
        result = self.result(how, sentence)
        if how == "replaced":
            begin_cancelling(handle)
        # Who has asked for the end gets it, whatever else has ended it.
        transition = "canceled" if handle.is_cancel_requested else how
        self._server.notify_execute(handle, lambda one: give_result(getattr(one, transition), result))

    def close(self) -> None:
        """Offer nothing any more."""
        self._running = None
        self._server.destroy()

    def _judge(self, goal: Any) -> GoalResponse:
        try:
            self.check(goal)
        except KinoptError as error:
            self._logger.error(f"a goal is refused: {error}")
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _begin(self, handle: Any) -> None:
        handle.execute()
        self._preempt(self.controller)
        self._running = handle
        try:
            self.take(handle.request)
        except KinoptError as error:  # its time has passed since it was judged
            self.end("abort", str(error))


Preempt = Callable[[SimulatedController], None]
"""Function that lets another motion take the place of a controller's goals."""


class FollowAction(ControllerAction):
    """control_msgs/FollowJointTrajectory.

    A goal whose place is taken is cancelled with INVALID_GOAL, as joint_trajectory_controller's sets it. (There, a
    trajectory that comes by topic leaves the goal to succeed when that ends; nobody should rely on it.)
    """

    def check(self, goal: Any) -> None:
        """Refuse what the controller cannot follow."""
        self.controller.check(*given(goal.trajectory), self._now())

    def take(self, goal: Any) -> None:
        """Follow the trajectory."""
        self.controller.take(*given(goal.trajectory), self._now())

    def result(self, how: str, sentence: str) -> Any:
        """Return the result as the controller gives it."""
        result = self._type.Result(error_code=0, error_string=sentence)
        if how in ("abort", "replaced"):
            result.error_code = self._type.Result.INVALID_GOAL
        return result


class GripperAction(ControllerAction):
    """An action that takes the joints of a controller to a position, as gripper controllers have it.

    They go there as fast as their limits allow, and as far; at a limit it has stalled, and the goal is aborted.
    """

    def __init__(self, robot: SimulatedRobot, *rest: Any) -> None:
        """``robot``: has the joints' limits; all else as ``ControllerAction``."""
        self._robot = robot
        self._wanted = [0.0]
        super().__init__(*rest)

    @abstractmethod
    def wanted(self, goal: Any) -> list[float]:
        """Return the positions (rad or m) that a goal asks for; raise KinoptError if it names none of the joints."""

    @abstractmethod
    def report(self, position: list[float], velocity: list[float]) -> dict[str, Any]:
        """Return the fields of the result that say where the joints are (rad or m) and how they move."""

    def check(self, goal: Any) -> None:
        """Refuse what does not name a position of the joint."""
        self._robot.way_to(self.controller.joints, self.wanted(goal), self._now())

    def take(self, goal: Any) -> None:
        """Go there."""
        joints, now = self.controller.joints, self._now()
        self._wanted = self.wanted(goal)
        self.controller.take(joints, self._robot.way_to(joints, self._wanted, now), 0, now)

    def outcome(self) -> str:
        """Return whether it has come there."""
        return "succeed" if self._is_there() else "abort"

    def result(self, how: str, sentence: str) -> Any:
        """Return where the gripper is, and whether it should be."""
        del sentence
        there = self._is_there()
        stalled = how == "abort" and not there
        state = self.controller.measured(self._now())
        fields = self.report(state.position.tolist(), state.velocity.tolist())
        return self._type.Result(stalled=stalled, reached_goal=there, **fields)

    def _is_there(self) -> bool:
        at = self.controller.measured(self._now()).position
        return bool((abs(at - self._wanted) <= REACHED).all())


class ParallelGripperAction(GripperAction):
    """control_msgs/ParallelGripperCommand, as parallel_gripper_action_controller has it."""

    def wanted(self, goal: Any) -> list[float]:
        """Return the position that the command has for the joint."""
        command, [joint] = goal.command, self.controller.joints
        if list(command.name) != [joint] or len(command.position) != 1:
            raise InvalidRequestError(
                f"command has positions {list(command.position)[:8]} of {shortened(list(command.name)) or 'no joint'}; "
                f"allowed is one, of {quoted(joint)}"
            )
        return [float(command.position[0])]

    def report(self, position: list[float], velocity: list[float]) -> dict[str, Any]:
        """Return the joint's state."""
        state = JointState(name=list(self.controller.joints), position=position, velocity=velocity)
        return {"state": state}


class GripperCommandAction(GripperAction):
    """control_msgs/GripperCommand, as gripper_action_controller has it: of two joints it is told the sum. Efforts are
    not simulated."""

    def wanted(self, goal: Any) -> list[float]:
        """Return the position of the command, which names no joint: each has its share."""
        joints = self.controller.joints
        return [float(goal.command.position) / len(joints)] * len(joints)

    def report(self, position: list[float], velocity: list[float]) -> dict[str, Any]:
        """Return the position alone."""
        del velocity
        return {"position": sum(position)}


GRIPPERS: dict[str, type[GripperAction]] = {
    "ParallelGripperCommand": ParallelGripperAction,
    "GripperCommand": GripperCommandAction,
}
"""Actions of grippers by type. Controllers have either under the same name, so a robot has one of them."""


def actions_of(
    robot: SimulatedRobot,
    node: Node,
    now: Now,
    preempt: Preempt,
    gripper: str,
    entries: Mapping[str, ControllerEntry],
) -> list[ControllerAction]:
    """Return the actions of a robot's controllers; none where control_msgs is not installed.

    Args:
        robot: the robot.
        node: that offers them.
        now: the present time, ns.
        preempt: ends what other goals a controller has.
        gripper: key of ``GRIPPERS``: what controllers of one joint have besides, unless entries say otherwise.
        entries: how controllers are told motions.
    """
    actions: list[ControllerAction] = []
    for name, controller in robot.controllers.items():
        usual = [ControllerEntry()]
        if len(controller.joints) == 1:
            usual.append(ControllerEntry(gripper, ACTIONS[gripper]))
        for entry in [entries[name]] if name in entries else usual:
            if entry.type not in ACTIONS:
                raise InvalidRequestError(
                    f"the controller {quoted(name)} is of type {quoted(entry.type)}; allowed are {', '.join(ACTIONS)}"
                )
            kind, rest = _kind(entry.type), (now, preempt)
            if kind is None:
                continue
            if entry.type in GRIPPERS:
                _check_joints(name, controller, entry)
                made = GRIPPERS[entry.type](robot, node, entry.action_of(name), controller, kind, *rest)
                actions.append(made)
            else:
                actions.append(FollowAction(node, entry.action_of(name), controller, kind, *rest))
    return actions


def _check_joints(name: str, controller: SimulatedController, entry: ControllerEntry) -> None:
    allowed = 2 if entry.parallel else 1
    if len(controller.joints) != allowed:
        raise InvalidRequestError(
            f"the gripper {quoted(name)} has the joints {shortened(list(controller.joints))}; simulated are grippers "
            "of one joint that moves by itself, and of two if they are parallel"
        )


def _kind(name: str) -> Any:
    """Return a type of action; None where control_msgs is not installed, or does not have it."""
    try:
        return getattr(import_module("control_msgs.action"), name, None)
    except ImportError:
        return None
