"""Picture of a motion: positions, velocities, and distances from obstacles."""

from pathlib import Path
from typing import Any

import numpy as np

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.angled_robot import angled_robot
from kinopt_ros.planning.turning import configurations_along
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.verification.collision import clearance_of

_SAMPLES = 400
"""Number of instants of the curves."""
_LOOKS = 60
"""Number of instants at which distances are measured, which takes milliseconds each."""


def plot_motion(robot: RobotModel, problem: TrajectoryProblem, result: TrajectoryResult, file: Path) -> None:
    """Draw what a controller interpolates.

    Raises:
        InvalidRequestError: there is no motion, or the file cannot be written.
    """
    from matplotlib.figure import Figure

    trajectory = result.trajectory
    if trajectory is None:
        raise InvalidRequestError(f"there is no motion to draw: {result.message}")
    times = np.linspace(0.0, trajectory.duration, _SAMPLES)
    position, velocity, _ = evaluate(trajectory, times)
    rows = 2 if problem.scene is None else 3
    figure = Figure(figsize=(10.0, 3.0 * rows), layout="constrained")
    figure.suptitle(f"{robot.name}: {trajectory.duration:.2f} s, {len(trajectory.time)} points")
    panels: Any = figure.subplots(rows, 1, sharex=True)
    for column, name in enumerate(trajectory.joint_names):
        (curve,) = panels[0].plot(times, position[:, column], label=name)
        panels[0].plot(
            trajectory.time, trajectory.position[:, column], ".", color=curve.get_color(), markersize=3
        )
    own = angled_robot(robot).robot if result.turning else robot
    index = [own.variable_index[name] for name in trajectory.joint_names]
    limit = problem.velocity_scaling * own.limits.velocity[index]
    panels[1].plot(times, velocity / np.where(np.isfinite(limit), limit, np.nan))
    for share in (-1.0, 1.0):
        panels[1].axhline(share, color="0.6", linestyle="--", linewidth=0.8)
    panels[0].set_ylabel("position, rad or m")
    panels[1].set_ylabel("velocity / limit asked for")
    if problem.scene is not None:
        looks = np.linspace(0.0, trajectory.duration, _LOOKS)
        full = configurations_along(robot, problem, result, looks)
        nearest = [clearance_of(robot, problem.scene, q) for q in full]
        panels[2].plot(looks, [near.distance for near in nearest], color="0.2")
        panels[2].axhline(problem.clearance, color="#e0341f", linestyle="--", linewidth=0.8)
        panels[2].set_ylim(bottom=min(0.0, *(near.distance for near in nearest)))
        k = int(np.argmin([near.distance for near in nearest]))
        if np.isfinite(nearest[k].distance):
            said = (
                f"nearest: {nearest[k].a} and {nearest[k].b}, {nearest[k].distance:.3f} m at {looks[k]:.2f} s"
            )
            panels[2].set_title(said, fontsize=9)
        panels[2].set_ylabel("least distance, m")
    panels[-1].set_xlabel("time, s")
    panels[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    for axes in panels:
        axes.grid(color="0.92")
    try:
        figure.savefig(file, format="png", dpi=110)
    except OSError as error:
        raise InvalidRequestError(f"the picture {str(file)!r} cannot be written: {error}") from error
