"""Simulated robot that does what it is told: one controller for each of its groups."""

import math
import re
from collections.abc import Container, Mapping, Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, quoted, shortened
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.variables import joint_named, one_variable_each
from kinopt_ros.trajectory.simulated_controller import SimulatedController, Waypoint
from kinopt_ros.trajectory.timing import point_to_point

SUFFIX = "_controller"
"""Suffix of controllers' names: ``arm_controller`` for the group ``arm``."""


class SimulatedRobot:
    """The joints of a robot and their controllers. Times are ns of any one clock."""

    def __init__(
        self,
        robot: RobotModel,
        controllers: Mapping[str, Sequence[str]] | None = None,
        start: Mapping[str, float] | None = None,
        drive_lag: float = 0.0,
        speed_scaling: float = 1.0,
        from_desired: bool = True,
    ) -> None:
        """
        Args:
            robot: which robot.
            controllers: joints by the controller's name; None: see ``usual_controllers``.
            start: where joints are, rad or m; others where the robot's default has them.
            drive_lag: how far joints are behind what controllers tell them, s.
            speed_scaling: share of their speed with which controllers do motions.
            from_desired: as of ``SimulatedController``.

        Raises:
            KinoptError: a joint that there is none of, one that two controllers have, or one that none can have; a
                start outside the limits; a lag or a scaling that is not allowed.
        """
        self.robot = robot
        self.joints = _controlled(robot, robot.active_joints)
        self._followers = [
            joint for joint in robot.mimic_joints if robot.variable_names[joint.first_variable] in self.joints
        ]
        self._still = {name: float(robot.default_q[robot.variable_index[name]]) for name in self.joints}
        self._put(start or {})
        chosen = usual_controllers(robot) if controllers is None else controllers
        taken: dict[str, str] = {}
        self.controllers: dict[str, SimulatedController] = {}
        for controller, joints in chosen.items():
            for name in joints:
                self._check_joint(name)
                if name in taken:
                    raise InvalidRequestError(
                        f"joint {quoted(name)} is one of two controllers: {taken[name]} and {controller}"
                    )
                taken[name] = controller
            begin = np.array([self._still[name] for name in joints])
            self.controllers[controller] = SimulatedController(
                joints, begin, drive_lag, speed_scaling, from_desired
            )

    def controller_of(self, names: Sequence[str]) -> SimulatedController:
        """Return the controller of these joints, in any order.

        Raises:
            InvalidRequestError: no controller has just these.
        """
        for controller in self.controllers.values():
            if sorted(controller.joints) == sorted(names):
                return controller
        known = "; ".join(
            f"{name}: {shortened(list(controller.joints))}" for name, controller in self.controllers.items()
        )
        raise InvalidRequestError(
            f"no controller has exactly the joints {shortened(list(names)) or '(none)'}; there are {known or 'none'}"
        )

    def follow(self, names: Sequence[str], points: Sequence[Waypoint], start: int, now: int) -> None:
        """Let the controller of these joints follow a trajectory; see ``SimulatedController.take``."""
        self.controller_of(names).take(names, points, start, now)

    def way_to(self, joints: Sequence[str], positions: Sequence[float], now: int) -> list[Waypoint]:
        """Return the way of all joints of a controller to some positions, or to the limits before them, as fast as
        their limits allow.

        Raises:
            InvalidRequestError: a position that is not finite.
        """
        for joint, position in zip(joints, positions, strict=True):
            if not math.isfinite(position):
                raise InvalidRequestError(f"the position of {quoted(joint)} is {position}; it must be finite")
        index, limits = [self.robot.variable_index[joint] for joint in joints], self.robot.limits
        begin = self.controller_of(joints).state(now).position
        motion = point_to_point(
            tuple(joints),
            begin,
            np.clip(np.array(positions), limits.lower[index], limits.upper[index]),
            limits.velocity[index],
            limits.acceleration[index],
            limits.jerk[index],
        )
        rows = zip(
            motion.nanoseconds.tolist(), motion.position, motion.velocity, motion.acceleration, strict=True
        )
        return [Waypoint(time, p.tolist(), v.tolist(), a.tolist()) for time, p, v, a in rows][1:]

    def states(self, now: int) -> tuple[tuple[str, ...], Annotated[Float64, "n"], Annotated[Float64, "n"]]:
        """Return names of all joints, their positions (rad or m) and velocities, as measured.

        Mimic joints are the last ones: drivers of robots publish them, and some clients wait for them.
        """
        position, velocity = dict(self._still), dict.fromkeys(self.joints, 0.0)
        for controller in self.controllers.values():
            state = controller.measured(now)
            position.update(zip(controller.joints, state.position.tolist(), strict=True))
            velocity.update(zip(controller.joints, state.velocity.tolist(), strict=True))
        for joint in self._followers:
            driver = self.robot.variable_names[joint.first_variable]
            position[joint.name] = joint.multiplier * position[driver] + joint.offset
            velocity[joint.name] = joint.multiplier * velocity[driver]
        names = (*self.joints, *(joint.name for joint in self._followers))
        return (
            names,
            np.array([position[name] for name in names]),
            np.array([velocity[name] for name in names]),
        )

    def _put(self, start: Mapping[str, float]) -> None:
        limits = self.robot.limits
        for name, value in start.items():
            self._check_joint(name)
            k = self.robot.variable_index[name]
            if not limits.lower[k] <= value <= limits.upper[k]:
                raise InvalidRequestError(
                    f"joint {quoted(name)} cannot start at {value:g}: its limits are {limits.lower[k]:g} to "
                    f"{limits.upper[k]:g}"
                )
            self._still[name] = float(value)

    def _check_joint(self, name: str) -> None:
        joint = joint_named(self.robot, name)
        if name not in self._still:
            kind = f"follows {joint.mimics!r}" if joint.mimics else f"is {joint.type.value}"
            raise InvalidRequestError(f"joint {quoted(name)} {kind}: no controller moves it")


def usual_controllers(robot: RobotModel) -> dict[str, tuple[str, ...]]:
    """Return a controller for each group, the first ones first, as far as no other has its joints."""
    taken: set[str] = set()
    found: dict[str, tuple[str, ...]] = {}
    for group in robot.groups.values():
        joints = _controlled(robot, [name for name in group.joints if robot.joint(name).is_active])
        if joints and taken.isdisjoint(joints):
            found[_controller_name(group.name, found)] = joints
            taken.update(joints)
    return found


def _controlled(robot: RobotModel, joints: Sequence[str]) -> tuple[str, ...]:
    """Return what controllers have of active joints: all but floating ones, of planar ones their variables."""
    return one_variable_each(
        robot, [name for name in joints if robot.joint(name).type is not JointType.FLOATING]
    )


def _controller_name(group: str, others: Container[str]) -> str:
    """Return a name for the controller of a group.

    Topics are named after controllers, so it has letters, digits and single underscores only.
    """
    word = re.sub(r"[^A-Za-z0-9]+", "_", group)
    name = f"{word if re.match('[A-Za-z_]', word) else f'group_{word}'}{SUFFIX}".replace("__", "_")
    while name in others:
        name = f"{name}_2"
    return name
