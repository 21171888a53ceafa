"""A planned motion as the page plays and plots it."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, shown
from kinopt_ros.kinematics.angled_robot import angled_robot
from kinopt_ros.planning.turning import configurations_along
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

SAMPLES = 200
"""Number of instants of the curves."""


@dataclass(frozen=True, eq=False)
class Curves:
    """What a controller interpolates, each value as a share of its limit: ±1 is the limit that was asked for.

    Positions are shares of half the range about its middle; where there is no limit, values in rad and m.
    """

    names: tuple[str, ...]
    time: Annotated[Float64, "N"]
    """s."""
    position: Annotated[Float64, "N n"]
    velocity: Annotated[Float64, "N n"]
    acceleration: Annotated[Float64, "N n"]


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """A verified motion."""

    robot: RobotModel
    problem: TrajectoryProblem
    result: TrajectoryResult

    @property
    def trajectory(self) -> JointTrajectory:
        """The motion's numbers."""
        assert self.result.trajectory is not None
        return self.result.trajectory

    @property
    def duration(self) -> float:
        """s."""
        return self.trajectory.duration

    def at(self, time: float) -> Annotated[Float64, "nq"]:
        """Return the whole robot at a time (s) from the start; before and after, where it begins and ends.

        Raises:
            InvalidRequestError: the time is no number.
        """
        if math.isnan(time):
            raise InvalidRequestError(f"the time is {shown(time)}; allowed are numbers")
        q = configurations_along(self.robot, self.problem, self.result, np.array([float(time)]))
        return np.asarray(q[0])

    @cached_property
    def curves(self) -> Curves:
        """Curves to plot."""
        motion = self.trajectory
        own = angled_robot(self.robot).robot if self.result.turning else self.robot
        index = [own.variable_index[name] for name in motion.joint_names]
        limits, problem = own.limits, self.problem
        time = np.linspace(0.0, motion.duration, SAMPLES)
        position, velocity, acceleration = evaluate(motion, time)
        lower, upper = limits.lower[index], limits.upper[index]
        bounded = np.isfinite(lower) & np.isfinite(upper) & (upper > lower)
        middle = np.where(bounded, (np.where(bounded, lower, 0.0) + np.where(bounded, upper, 0.0)) / 2.0, 0.0)
        half = np.where(bounded, np.where(bounded, upper, 1.0) - middle, 1.0)
        return Curves(
            motion.joint_names,
            time,
            (position - middle) / half,
            velocity / _or_one(problem.velocity_scaling * limits.velocity[index]),
            acceleration / _or_one(problem.acceleration_scaling * limits.acceleration[index]),
        )


def _or_one(limit: Float64) -> Float64:
    return np.where(np.isfinite(limit), limit, 1.0)
