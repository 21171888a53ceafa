"""Trials: a motion of a seed and a number, done by a plant, and stopped by a scenario."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np
from support.two_pandas import LEFT, PANDAS

from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from stops.judge import Verdict, verdict
from stops.plant import MS, PLANTS
from stops.scenarios import SCENARIOS
from stops.world import World

ROBOTS = {
    "panda": (load_robot("panda"), tuple(f"panda_joint{k + 1}" for k in range(7))),
    "two_pandas": (PANDAS, LEFT),
}
"""Robots and joints that move: of limits of acceleration of its own, and of 1 rad/s^2, as where a description gives
none."""
_LONGEST = 8000
"""Longest time that a robot may take to stand, ms."""
_QUIET = 300
"""Time for which it has to stand, ms: a watch may publish a stop again."""


@dataclass(frozen=True)
class Trial:
    """A trial by its names; it is the same whatever else is tried."""

    robot: str
    plant: str
    scenario: str
    seed: int
    number: int

    @property
    def stream(self) -> list[int]:
        """Seed of its random numbers."""
        return [
            self.seed,
            self.number,
            *(crc32(name.encode()) for name in (self.robot, self.plant, self.scenario)),
        ]


def tried(trial: Trial) -> tuple[Verdict, World]:
    """Return how a trial ended, and its world."""
    random = np.random.default_rng(trial.stream)
    robot, joints = ROBOTS[trial.robot]
    motion = _motion(robot, joints, random)
    plant = PLANTS[trial.plant]
    world = World(plant, robot, joints, motion.position[0], trial.stream)
    with world.own_time():
        world.pass_ms(60 + random.uniform(0.0, 20.0))
        running = world.move(motion)
        seconds = motion.duration / plant.speed_scaling
        begin = world.output.published[-1].start + plant.late
        stop = begin + round(1e9 * random.uniform(0.03, 0.97) * seconds)
        if plant.repeats is not None:
            world.repeat_from(stop - plant.repeats)
        world.time.pass_until(stop)
        begun = world.time.now
        ordered = SCENARIOS[trial.scenario](world, running, random)
        _until_it_stands(world)
        truth = world.truth()
    assert not any("internal error" in sentence for sentence in world.said), world.said
    places = np.concatenate([evaluate(one, np.linspace(0.0, one.duration, 400))[0] for one in world.moves])
    return verdict(robot, joints, truth, places, begun, ordered), world


def _motion(robot: RobotModel, joints: tuple[str, ...], random: np.random.Generator) -> JointTrajectory:
    """Return a motion: short or long, of one joint or of several, to a limit of position in one of three."""
    index = np.array([robot.variable_index[name] for name in joints])
    lower, upper = np.maximum(robot.limits.lower[index], -3.0), np.minimum(robot.limits.upper[index], 3.0)
    q = robot.default_q.copy()
    q[index] = np.clip(q[index] + random.uniform(-0.5, 0.5, len(index)), lower + 0.05, upper - 0.05)
    goal = q.copy()
    some = random.choice(len(index), random.integers(1, len(index) + 1), replace=False)
    goal[index[some]] += random.choice([0.1, 0.4, 1.5]) * random.uniform(-1.0, 1.0, len(some))
    if random.random() < 0.3:
        goal[index[some[0]]] = (upper if random.random() < 0.5 else lower)[some[0]]
    goal[index] = np.clip(goal[index], lower, upper)
    return plan_joint_motion(
        robot, joints, q, np.zeros(robot.nq), goal, 1.0, 1.0, 0.01, None, 0.0, None
    ).trajectory


def _until_it_stands(world: World) -> None:
    """Let time pass until the robot stands for good."""
    end = world.time.now + _LONGEST * MS
    while world.time.now < end:
        world.pass_ms(_QUIET)
        _, _, there = world.truth()
        if np.ptp(there[-_QUIET:], axis=0).max() < 1e-4:
            return
    raise AssertionError("the robot does not come to rest")
