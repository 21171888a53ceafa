"""The controllers that motions are handed to, as parameters name them, and which of them moves which joints.

``controller_action`` is one action for every motion. ``controllers`` are several, each with the joints of a group: a
motion is split among those whose joints it moves. How they are told motions is said by MoveIt's parameters
(``robot/controller_parameters.py``).
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, quoted, shortened
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.moveit_controllers import ControllerEntry
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import longer
from kinopt_ros.ros.messages.trajectory_answer import whole_controller
from kinopt_ros.ros.motion.controller_hand_over import ControllerHandOver, Ended, Execution
from kinopt_ros.ros.motion.controller_kinds import (
    FOLLOWS,
    PARAMETER,
    ControllerError,
    ControllerKind,
    NoControllerError,
    kind_of,
)
from kinopt_ros.ros.robot.controller_names import (
    SEVERAL,
    groups_of_controllers,
    joints_of_controllers,
)
from kinopt_ros.ros.serving.urgent import UrgentExecutor

_STAYS = 1e-4
"""Distance that a gripper may be told to move without being told anything, rad or m."""


@dataclass(frozen=True, eq=False)
class Part:
    """Part of a motion that one controller does."""

    controller: ControllerHandOver
    message: JointTrajectory


def unheard(context: Context, publisher: Any) -> str:
    """Return why nobody would do what a publisher publishes; empty if somebody may.

    Controllers that parameters name hear actions alone.
    """
    if publisher.get_subscription_count() > 0:
        return ""
    named = [name for name in (PARAMETER, SEVERAL) if context.parameter(name)]
    if not named:
        return ""
    return (
        f"nobody listens to {publisher.topic_name}, where this motion would be published: the controllers of parameter "
        f"{named[0]} do goals of actions (~/optimize_trajectory, move_action)"
    )


def commanded(
    context: Context, chosen: "ChosenControllers | None", joints: Sequence[str], names: Sequence[str] = ()
) -> Sequence[str] | None:
    """Return the joints that a motion of some joints commands: controllers hold their other ones. None: all, as nobody
    knows which.

    Args:
        context: the node's.
        chosen: who does it; None: it is published.
        joints: the motion's.
        names: controllers that may do it; none: any.

    Raises:
        ControllerError: none of them moves a joint of the motion.
        InvalidRequestError: controllers are named where it is published.
        KinoptError: the parameters do not fit the robot.
    """
    robot = context.loaded.model
    if chosen is not None:
        return chosen.joints(robot, joints, names)
    check_unnamed(names)
    return list(whole(context, JointTrajectory(joint_names=list(joints)), robot, robot.default_q).joint_names)


def check_unnamed(names: Sequence[str]) -> None:
    """Raise InvalidRequestError if controllers are named for a motion that is published."""
    if names:
        raise InvalidRequestError(
            f"controllers {shortened(names)} are named, but this node knows none (parameter {SEVERAL}): set it, or "
            "name none, and the motion is published"
        )


def whole(
    context: Context, message: JointTrajectory, robot: RobotModel, q: Annotated[Float64, "nq"]
) -> JointTrajectory:
    """Return a motion to be published with all joints that parameter controller_joints names, if it does.

    Raises:
        ControllerError: it leaves out a joint of the motion.
    """
    order = tuple(context.parameter("controller_joints") or ())
    return _of(message, order, robot, q) if order else message


class Controllers:
    """Clients of the controllers that the parameters name, made when they are needed."""

    def __init__(self, context: Context, urgent: UrgentExecutor) -> None:
        """
        Args:
            context: the node's.
            urgent: delivers what controllers say.
        """
        self._context = context
        self._urgent = urgent
        self.clients: dict[str, ControllerHandOver] = {}
        """By the actions' names; one that gets no new motions may still execute an old one."""
        self._needed: list[Callable[[ControllerHandOver], bool]] = []

    def needed_by(self, asks: Callable[[ControllerHandOver], bool]) -> None:
        """Keep the clients for which ``asks`` says that somebody will hand a motion over to them."""
        self._needed.append(asks)

    def one(self) -> ControllerHandOver | None:
        """Return the controller of every motion; None if there is none. On the executor's thread.

        Raises:
            MissingPackageError: there should be one, but control_msgs is not installed.
        """
        name = self._context.parameter(PARAMETER)
        if not name:
            return None
        self._close_others({name})
        return self._client(name)

    def chosen(self) -> "ChosenControllers | None":
        """Return the controllers of motions; None if motions are published. On the executor's thread.

        Raises:
            MissingPackageError: there should be one, but control_msgs is not installed.
            ControllerError: both parameters name controllers.
        """
        words = self._context.parameter(SEVERAL)
        if words and self._context.parameter(PARAMETER):
            raise ControllerError(
                f"parameters {PARAMETER} and {SEVERAL} both name controllers; leave one of them empty"
            )
        one = self.one()
        if one is not None:
            return ChosenControllers({one.name: one}, None, self._context)
        entries = {name: self._entry(name) for name in groups_of_controllers(words)}
        if not entries:
            return None
        self._close_others({entry.action_of(name) for name, entry in entries.items()})
        clients = {
            name: self._client(entry.action_of(name), kind_of(name, entry)) for name, entry in entries.items()
        }
        return ChosenControllers(clients, tuple(words), self._context)

    def endpoints(self) -> list[Any]:
        """Return endpoints of the nodes that offer the actions which the parameters name."""
        words, one = self._context.parameter(SEVERAL), self._context.parameter(PARAMETER)
        actions = [one] if one else []
        actions += [self._entry(name).action_of(name) for name in groups_of_controllers(words)]
        node = self._context.node
        return [
            info for name in actions for info in node.get_publishers_info_by_topic(f"{name}/_action/status")
        ]

    def cancel(self) -> None:
        """Tell all controllers to stop what they were asked to do. Returns at once. On any thread."""
        for controller in list(self.clients.values()):
            controller.cancel()

    @property
    def moving(self) -> list[str]:
        """Actions of controllers that have not told the end of a motion yet. On any thread."""
        return [name for name, controller in list(self.clients.items()) if controller.moves]

    def _entry(self, name: str) -> ControllerEntry:
        return self._context.controllers.get(name, ControllerEntry())

    def _client(self, name: str, kind: ControllerKind = FOLLOWS) -> ControllerHandOver:
        if name not in self.clients:
            self.clients[name] = ControllerHandOver(self._context.node, name, self._urgent, kind)
        known = self.clients[name]
        if known.kind.type != kind.type:
            raise ControllerError(
                f"the action {quoted(name)} cannot be of type {kind.type}: it is of type {known.kind.type} for what is "
                "still done by parameters that were set before"
            )
        return known

    def _close_others(self, names: set[str]) -> None:
        """Close controllers that nobody names, needs or waits for.

        Names come by parameter, and nobody may fill the memory with them.
        """
        for name, controller in list(self.clients.items()):
            if name in names or controller.moves or any(asks(controller) for asks in self._needed):
                continue
            controller.close()
            del self.clients[name]


class ChosenControllers:
    """The controllers that the parameters named when a motion was asked for. Thread-safe."""

    def __init__(
        self, clients: Mapping[str, ControllerHandOver], words: Sequence[str] | None, context: Context
    ) -> None:
        """
        Args:
            clients: by the controllers' names.
            words: parameter ``controllers``; None: the only one moves all joints.
            context: the node's.
        """
        self.clients = dict(clients)
        self._words = words
        self._context = context

    def uses(self, controller: ControllerHandOver) -> bool:
        """Whether a controller is one of them."""
        return controller in self.clients.values()

    def split(
        self,
        message: JointTrajectory,
        robot: RobotModel,
        q: Annotated[Float64, "nq"],
        names: Sequence[str] = (),
    ) -> list[Part]:
        """Return the parts of a motion, each with all joints of its controller, without those that are told nothing.

        Args:
            message: the motion.
            robot: the robot.
            q: where the joints are that do not move, rad or m.
            names: controllers that may do it; none: any.

        Raises:
            NoControllerError: one that is named does not exist, or not just one moves a joint of the motion.
            KinoptError: the parameters do not fit the robot.
        """
        return _told(self._parts(message, robot, q, names))

    def _parts(
        self,
        message: JointTrajectory,
        robot: RobotModel,
        q: Annotated[Float64, "nq"],
        names: Sequence[str],
    ) -> list[Part]:
        """Return all parts of a motion; see ``split``."""
        for name in names:
            if name not in self.clients:
                raise NoControllerError(
                    f"unknown controller {quoted(name)}; known: {shortened(list(self.clients))}"
                )
        if self._words is None:
            [controller] = self.clients.values()
            joints = tuple(self._context.parameter("controller_joints") or message.joint_names)
            return [Part(controller, _of(message, joints, robot, q))]
        left = list(message.joint_names)
        parts: list[Part] = []
        for name, joints in joints_of_controllers(robot, self._words).items():
            own = [joint for joint in message.joint_names if joint in joints]
            if not own or (names and name not in names):
                continue
            twice = [joint for joint in joints if any(joint in part.message.joint_names for part in parts)]
            if twice:  # one may hold what the other moves
                raise NoControllerError(
                    f"two controllers move {shortened(twice)} (parameter {SEVERAL}): name one of them"
                )
            left = [joint for joint in left if joint not in own]
            parts.append(Part(self.clients[name], _of(only(message, own), joints, robot, q)))
        if left:
            raise NoControllerError(
                f"none of the controllers {shortened(list(names or self.clients))} moves {shortened(left)} "
                f"(parameter {SEVERAL})"
            )
        return parts

    def joints(
        self, robot: RobotModel, joints: Sequence[str], names: Sequence[str] = ()
    ) -> Sequence[str] | None:
        """Return the joints that a motion of some joints commands; see ``commanded``. Arguments and errors as of
        ``split``."""
        parts = self._parts(JointTrajectory(joint_names=list(joints)), robot, robot.default_q, names)
        if self._words is None and not self._context.parameter("controller_joints"):
            return None
        return [name for part in parts for name in part.message.joint_names]

    def wait(self, parts: Sequence[Part]) -> None:
        """Wait until the controllers of some parts are there, and have ended what they did; not on the executor's
        thread.

        Raises:
            ControllerError: one is not.
            StartStateError: one has not.
        """
        for part in parts:
            part.controller.wait()


def _told(parts: list[Part]) -> list[Part]:
    """Return the parts without grippers that stay where they are, if others move: told to be where it is, a gripper
    would let go what it holds."""
    return [part for part in parts if part.controller.kind.keeps_time or _moves(part.message)] or parts


def _moves(message: JointTrajectory) -> bool:
    """Check whether a motion moves a joint."""
    position = np.array([list(point.positions) for point in message.points])
    return bool((np.ptp(position, axis=0) > _STAYS).any())


def together(parts: Sequence[Part]) -> JointTrajectory:
    """Return all that controllers are told, as one motion: joints that they hold are commanded, too."""
    first, *others = (part.message for part in parts)
    if not others:
        return first
    names = [name for part in parts for name in part.message.joint_names]
    message = JointTrajectory(header=first.header, joint_names=names)
    for points in zip(*(part.message.points for part in parts), strict=True):
        whole_point = type(points[0])(time_from_start=points[0].time_from_start)
        for field in ("positions", "velocities", "accelerations"):
            setattr(whole_point, field, [value for point in points for value in getattr(point, field)])
        message.points.append(whole_point)
    return message


class SeveralExecutions:
    """What several controllers make of the parts of one motion: it fails, and ends, as soon as one fails."""

    def __init__(self, ended: Ended) -> None:
        """``ended``: told once how the motion ended; on any thread."""
        self._ended = ended
        self._lock = threading.RLock()
        self._parts: list[Part] = []
        self._executions: list[Execution] = []
        self._open = 0
        self._failed = False
        self._remarks: list[str] = []
        self._braked: set[int] = set()
        """Parts that have got a brake each, as their controllers did not stop."""

    def send(self, parts: Sequence[Part]) -> "SeveralExecutions":
        """Hand all parts over. Returns at once."""
        with self._lock:
            self._open = len(parts)
            for part in parts:
                self._parts.append(part)
                self._executions.append(part.controller.send(part.message, self._end))
        return self

    def brake(self, message: JointTrajectory, ended: Ended) -> "SeveralExecutions":
        """Have a brake take the place of the parts whose joints it has and whose controllers have not ended them, as
        ``ControllerHandOver.brake``. Returns at once."""
        brake, joints = SeveralExecutions(ended), set(message.joint_names)
        with brake._lock:
            braked = [
                (Part(part.controller, only(message, part.message.joint_names)), running)
                for part, running in zip(self._parts, self._executions, strict=True)
                if joints.issuperset(part.message.joint_names) and not running.over
            ]
            brake._open = len(braked)
            for part, running in braked:
                brake._parts.append(part)
                brake._executions.append(part.controller.brake(running, part.message, brake._end))
        return brake

    @property
    def moving(self) -> list[str]:
        """Joints of the parts whose controllers have not ended them."""
        return [
            name
            for part, one in zip(self._parts, tuple(self._executions), strict=True)
            if not one.over
            for name in part.message.joint_names
        ]

    @property
    def over(self) -> bool:
        """Whether all controllers have ended their parts."""
        return all(one.over for one in tuple(self._executions))

    def brake_rest(
        self,
        made: Callable[[Sequence[str]], JointTrajectory | None],
        goes_on: Callable[[Sequence[str]], bool],
        ended: Ended,
    ) -> tuple[str, ...]:
        """Have a brake take the place of each part whose controller has not said that it stops, or does not do so,
        unless it has got one. Returns at once, with the names of the controllers.

        Args:
            made: the brake of some joints; None if there is none now.
            goes_on: whether some joints, whose controller has said that it stops, go on all the same.
            ended: told how each ended.
        """
        names = []
        for number, (part, running) in enumerate(zip(self._parts, self._executions, strict=True)):
            joints, stops = part.message.joint_names, running.stops
            if number in self._braked or running.over or (stops and not goes_on(joints)):
                continue
            brake = made(joints)
            if brake is not None and not running.over and running.stops == stops:  # to make one takes a while
                self._braked.add(number)
                part.controller.brake(running, brake, ended)
                names.append(part.controller.name)
        return tuple(names)

    @property
    def settled(self) -> bool:
        """Whether all controllers have ended their parts, or got a brake in their place."""
        return all(one.over or number in self._braked for number, one in enumerate(tuple(self._executions)))

    @property
    def taken(self) -> bool:
        """Whether all controllers have said that they take their parts."""
        return all(one.is_taken for one in tuple(self._executions))

    def cancel(self) -> None:
        """Tell all controllers to stop. Returns at once."""
        for one in tuple(self._executions):
            one.cancel()

    def _end(self, done: bool, sentence: str) -> None:
        with self._lock:
            self._open -= 1
            tell = not self._failed and (not done or self._open == 0)
            self._failed = self._failed or not done
            if done and sentence:
                self._remarks.append(sentence)
        if tell:
            self._ended(done, "; ".join(self._remarks) if done else sentence)


def begun_later(message: JointTrajectory, lead: int) -> JointTrajectory:
    """Return a motion whose first point is reached so many ns after it comes: until then its controller is on its way
    there."""
    if not lead:
        return message
    later = JointTrajectory(header=message.header, joint_names=message.joint_names)
    for point in message.points:
        moved = copy(point)
        moved.time_from_start = longer(point.time_from_start, lead)
        later.points.append(moved)
    return later


def only(message: JointTrajectory, joints: Sequence[str]) -> JointTrajectory:
    """Return a motion of some of its joints."""
    columns = [list(message.joint_names).index(joint) for joint in joints]
    if columns == list(range(len(message.joint_names))):
        return message
    part = JointTrajectory(header=message.header, joint_names=list(joints))
    for point in message.points:
        own = type(point)(time_from_start=point.time_from_start)
        for field in ("positions", "velocities", "accelerations"):
            values = getattr(point, field)
            setattr(own, field, [values[k] for k in columns] if len(values) else [])
        part.points.append(own)
    return part


def _of(
    message: JointTrajectory, joints: Sequence[str], robot: RobotModel, q: Annotated[Float64, "nq"]
) -> JointTrajectory:
    """Return a motion with all joints of a controller."""
    missing: list[Any] = [name for name in message.joint_names if name not in joints]
    if missing:
        raise NoControllerError(
            f"the motion moves {shortened(missing)}, which parameter controller_joints leaves out"
        )
    return whole_controller(message, list(joints), [float(q[robot.variable_index[name]]) for name in joints])
