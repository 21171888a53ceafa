"""Several robots in one node process, each tracking a circle at 20 Hz: ``kinopt_circles left=panda right=ur5``."""

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import rclpy
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from rich.console import Console
from rich.table import Table
from sensor_msgs.msg import JointState

from kinopt_msgs.srv import SolveIK
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, KinoptError, quoted
from kinopt_ros.interrupts import end_undisturbed
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse, pose_error
from kinopt_ros.problems.builder import default_group
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import find_robot, load_robot, robot_names
from kinopt_ros.ros.client.client import Client, NodeTimeoutError
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.ros.robot.bundled import bundled_parameters
from kinopt_ros.ros.serving.start_errors import naming_arguments
from kinopt_ros.status import Status

ROBOTS = {"robot_1": "panda", "robot_2": "panda", "robot_3": "ur5", "robot_4": "iiwa"}
"""Four robots of three types, by namespace; all but the Panda are those of robot packages, see ``load_robot``."""
RATE, RADIUS, DURATION = 20.0, 0.1, 3.0
"""Targets per second, radius of the circles (m), and how long they take (s)."""
_STARTS = {
    "panda": (0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8),
    "ur5": (0.0, -1.2, 1.6, -1.9, -1.5, 0.0),
    "iiwa": (0.0, 0.6, 0.0, -1.4, 0.0, 1.1, 0.0),
}
"""Configurations in which the robots begin (rad), with room for the circle; others begin in the middle of their
limits."""


def default_robots() -> tuple[dict[str, str], str]:
    """Return ROBOTS, with Pandas in place of robots that are not installed, and a sentence about these, or nothing."""
    known = robot_names()
    robots = {namespace: robot if robot in known else "panda" for namespace, robot in ROBOTS.items()}
    missing = sorted({robot for robot in ROBOTS.values() if robot not in known})
    said = f"Pandas take the places of {' and '.join(missing)}: `pip install example-robot-data` brings those"
    return robots, said if missing else ""


def robots_of(words: Sequence[str]) -> dict[str, str]:
    """Return robots by namespace, from words such as ``left=panda``; ``default_robots`` without any.

    Raises:
        KinoptError: a word of another form, a namespace twice, or a robot that there is none of.
    """
    robots: dict[str, str] = {}
    for word in words:
        namespace, equals, robot = word.partition("=")
        if not (namespace and equals and robot):
            raise InvalidRequestError(f"{quoted(word)} names no robot; allowed is NAMESPACE=ROBOT")
        if namespace in robots:
            raise InvalidRequestError(f"there are two robots of namespace {quoted(namespace)}")
        robots[namespace] = robot
    for robot in (robots := robots or default_robots()[0]).values():
        find_robot(robot)
    return robots


def parameters_of(robots: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return parameters of the nodes, by namespace."""
    return {namespace: bundled_parameters(robot) for namespace, robot in robots.items()}


@dataclass(eq=False)
class Tracked:
    """One robot on its circle."""

    namespace: str
    robot: RobotModel
    client: Client
    q: Annotated[Float64, "nq"]
    T_base_start: Annotated[Float64, "4 4"]
    base: str
    tip: str
    asked: int = 0
    late: int = 0
    """Number of targets left out as the answer before had not come."""
    solved: int = 0
    failures: list[str] = field(default_factory=list)
    largest_error: float = 0.0
    """Largest distance of the tip from its target, by forward kinematics here, m."""
    largest_step: float = 0.0
    """Largest change of a joint between two targets, rad or m."""
    waiting: Any = None
    target: Annotated[Float64, "4 4"] = field(default_factory=lambda: np.eye(4))

    def pretend(self) -> None:
        """Publish joint states as if the robot were where the last answer was."""
        names = [name for name in self.robot.variable_names if "/" not in name]
        values = [float(self.q[self.robot.variable_index[name]]) for name in names]
        message = JointState(name=names, position=values)
        message.header.stamp = self.client.node.get_clock().now().to_msg()
        self.client.publish_joint_state(message)

    def ask(self, angle: float) -> None:
        """Ask for the pose on the circle at an angle (rad), unless an answer is still outstanding."""
        if self.waiting is not None:
            self.late += 1
            return
        self.target = self.T_base_start.copy()
        self.target[1:3, 3] += RADIUS * math.sin(angle), RADIUS * (math.cos(angle) - 1.0)
        request = SolveIK.Request(poses=poses_from_matrices(self.target[None]))
        request.header.frame_id = self.base
        self.asked += 1
        self.waiting = self.client.send("solve_ik", request)

    def take(self) -> None:
        """Go where an answer says, if it has come."""
        if self.waiting is None or not self.waiting.done():
            return
        answer, self.waiting = self.waiting.result(), None
        if answer.status.code != Status.SUCCESS:
            self.failures.append(answer.status.message)
            return
        before = self.q.copy()
        try:
            self.q[[self.robot.variable_index[name] for name in answer.joint_names]] = answer.positions
        except (KeyError, ValueError):
            self.failures.append(f"the answer is for other joints: {', '.join(answer.joint_names)}")
            return
        base, tip = forward_kinematics(self.robot, self.q, links=(self.base, self.tip))
        distance, _ = pose_error(self.target, inverse(base) @ tip)
        self.solved += 1
        self.largest_error = max(self.largest_error, float(distance))
        self.largest_step = max(self.largest_step, float(np.abs(self.q - before).max()))
        self.pretend()


def track(robots: Mapping[str, str], duration: float = DURATION, name: str = "kinopt") -> list[Tracked]:
    """Follow the circles for some seconds, once around in DURATION, with nodes that run already.

    Raises:
        NodeTimeoutError: a node does not answer.
    """
    tracked = [_tracked(namespace, robot, name) for namespace, robot in robots.items()]
    try:
        for one in tracked:
            one.client.wait_until_ready(300.0)
            one.pretend()
            one.ask(0.0)  # compiles what was not compiled on this machine before
            one.client.spin_until(one.waiting.done, 300.0)
            one.waiting = None
            one.asked = 0
        start = time.monotonic()
        for tick in range(round(duration * RATE)):
            for one in tracked:
                one.ask(2.0 * math.pi * tick / (DURATION * RATE))
            end = start + (tick + 1) / RATE
            while time.monotonic() < end:
                for one in tracked:
                    one.client.spin(0.002)
                    one.take()
        for one in tracked:
            if one.waiting is not None:
                one.client.spin_until(one.waiting.done, 10.0)
                one.take()
    finally:
        for one in tracked:
            one.client.close()
    return tracked


def shown(tracked: Sequence[Tracked]) -> Table:
    """Return a row for each robot."""
    table = Table("robot", "type", "targets", "solved", "left out", "largest error (m)", "largest step (rad)")
    for one in tracked:
        numbers = one.asked, one.solved, one.late
        table.add_row(
            one.namespace,
            one.robot.name,
            *map(str, numbers),
            f"{one.largest_error:.1e}",
            f"{one.largest_step:.3f}",
        )
    return table


def main(arguments: list[str] | None = None) -> int:
    """Track circles with nodes that run; exit status 0 if every target that was asked for was solved, or if
    it was interrupted."""
    console = Console()
    given = sys.argv if arguments is None else arguments
    try:
        with naming_arguments():
            words = remove_ros_args(given)[1:]
        robots = robots_of(words)
        if not words and (said := default_robots()[1]):
            console.print(f"kinopt: {said}", highlight=False, soft_wrap=True)
        with naming_arguments():
            rclpy.init(args=given, signal_handler_options=SignalHandlerOptions.NO)
        tracked = track(robots)
    except (KinoptError, NodeTimeoutError) as error:
        console.print(f"kinopt: {error}", highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:  # the end of what launch, or a person, has started: no failure
        return 0
    finally:
        end_undisturbed()
        rclpy.try_shutdown()
        end_undisturbed()  # ROS has put the handler back
    console.print(shown(tracked))
    for one in tracked:
        for sentence in dict.fromkeys(one.failures):
            console.print(f"{one.namespace}: {sentence}", highlight=False, soft_wrap=True)
    return 0 if all(one.solved == one.asked for one in tracked) else 1


def _tracked(namespace: str, source: str, name: str) -> Tracked:
    robot = load_robot(source)
    group = default_group(robot)
    base, tip = group.base_link or robot.root_link, group.tip_link or robot.root_link
    q = robot.default_q.copy()
    if source in _STARTS:
        q[[robot.variable_index[joint] for joint in group.joints]] = _STARTS[source]
    T_root_base, T_root_tip = forward_kinematics(robot, q, links=(base, tip))
    client = Client(f"circle_{namespace}", f"/{namespace}/{name}")
    return Tracked(namespace, robot, client, q, inverse(T_root_base) @ T_root_tip, base, tip)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
