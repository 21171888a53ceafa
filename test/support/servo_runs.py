"""Servo without ROS: a clock that a test winds, and robots that do what they are sent."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinopt_ros.planning.servo.commanded import Commanded, begun
from kinopt_ros.planning.servo.session import Session
from kinopt_ros.planning.servo.setup import ServoSetup, servo_setup
from kinopt_ros.planning.servo.step import Step, Wish
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.trajectory.braking import MotionState

ARMS = {
    "panda": ("panda_link0", "panda_link8", [f"panda_joint{i + 1}" for i in range(7)]),
    "ur5": (
        "base_link",
        "tool0",
        [
            "shoulder_pan_joint",
            "shoulder_lift_joint",
            "elbow_joint",
            "wrist_1_joint",
            "wrist_2_joint",
            "wrist_3_joint",
        ],
    ),
}
STARTS = {
    "panda": (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785),
    "ur5": (0.0, -1.2, 1.6, -1.9, -1.5, 0.0),
}
ROBOTS: dict[str, RobotModel] = {}


def robot_of(name: str) -> RobotModel:
    """The robot, prepared for collisions once."""
    if name not in ROBOTS:
        robot = load_robot(name)
        prepare_collisions(robot)
        ROBOTS[name] = robot
    return ROBOTS[name]


def setup_of(name: str, scene: Scene | None = None, scaling: float = 1.0, **options: Any) -> ServoSetup:
    """A robot for servo, at its full limits if nothing else is said."""
    base, tip, joints = ARMS[name]
    options = {"velocity_scaling": scaling, "acceleration_scaling": scaling, **options}
    return servo_setup(robot_of(name), base, tip, joints, scene=scene, **options)


@dataclass(eq=False)
class Run:
    """Servo, period by period. The robot is at every time where it was commanded to be."""

    setup: ServoSetup
    start: Any
    now: int = 1_700_000_000_000_000_000
    way: int = 0
    """How long messages are on their way to the robot, ns."""
    sent: list[Commanded] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        n = len(self.setup.joints)
        self.q = self.setup.robot.default_q.copy()
        at = MotionState(np.array(self.start, dtype=np.float64), np.zeros(n), np.zeros(n))
        begin = begun(self.setup.joints, at, self.now, self.setup.period, self.setup.planning)
        self.session = Session(self.setup, begin, goes_on=False)
        self.was: list[tuple[int, MotionState]] = []

    def period(self, wish: Wish | None, late: int = 0) -> Step:
        """One period, which begins ``late`` ns after its time; what was commanded meanwhile is noted every 2 ms."""
        self._note(late)
        step = self.session.advance(self.setup, self.now, self.q, wish, way=self.way)
        self.session.accept(self.setup, step)
        self.steps.append(step)
        if step.motion is not None:
            self.sent.append(step.commanded)
        self._note(self.setup.period)
        return step

    def _note(self, duration: int) -> None:
        for passed in range(0, duration, 2_000_000):
            self.was.append((self.now + passed, self.session.commanded.at(self.now + passed)))
        self.now += duration

    def positions(self) -> np.ndarray:
        """Return where the joints were, every 2 ms (T, n)."""
        return np.array([state.position for _, state in self.was])
