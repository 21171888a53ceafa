"""Pictures of the book that need no browser: what bounds see between samples, spheres, servo before a wall, figures.

make pictures
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from support.arm_scenes import scene_of
from support.servo_runs import STARTS, Run, setup_of

import kinopt_ros as ko
from kinopt_ros.collision.spheres import robot_spheres
from kinopt_ros.commands.doctor_plot import plot_collision
from kinopt_ros.geometry.shapes import Box
from kinopt_ros.planning.servo.velocity import velocity_for_twist
from kinopt_ros.trajectory.bounds import upper_bounds
from kinopt_ros.trajectory.interpolation import control_points, evaluate
from kinopt_ros.verification.collision import clearance_of

ROOT = Path(__file__).resolve().parent.parent
RED, GREY, BLUE = "#e0341f", "0.6", "#2563eb"


def main() -> int:
    """Make all pictures; return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs")
    folder = parser.parse_args().folder
    robot = ko.load_robot("panda")
    plot_collision(robot, robot_spheres(robot), folder / "spheres.png")
    between_samples(folder / "between_samples.png")
    servo_before_a_wall(folder / "servo.png")
    arms(folder / "arms.png")
    return 0


def between_samples(file: Path) -> None:
    """Draw a motion whose points keep a limit that the curve between them breaks, and the bounds that see it."""
    limit = 1.0
    trajectory = ko.JointTrajectory(
        ("joint",),
        np.array([0.0, 0.5, 1.0, 1.5]),
        np.array([[0.0], [0.2], [0.73], [0.93]]),
        np.array([[0.0], [0.8], [0.8], [0.0]]),
        np.zeros((4, 1)),
    )
    velocity = control_points(trajectory).velocity
    bounds, _ = upper_bounds(velocity, np.zeros(velocity.shape[1:]))
    times = np.linspace(0.0, trajectory.duration, 600)
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes: Any = figure.subplots()
    curve = evaluate(trajectory, times)[1][:, 0]
    axes.plot(times, curve, color=BLUE, label="what a controller interpolates")
    axes.plot(times, np.where(curve > limit, curve, np.nan), color=RED, linewidth=3.0, label="too fast")
    axes.plot(trajectory.time, trajectory.velocity, "o", color=BLUE, label="points of the message")
    for k, (begin, end) in enumerate(zip(trajectory.time[:-1], trajectory.time[1:], strict=True)):
        name = "bound of each segment" if k == 0 else None
        axes.hlines(bounds[k], begin, end, color="0.2", linewidth=1.2, label=name)
    axes.axhline(limit, color=RED, linestyle="--", linewidth=0.9, label="limit")
    axes.set(xlabel="time, s", ylabel="velocity, rad/s", ylim=(0.0, None))
    saved(figure, [axes], file)


def servo_before_a_wall(file: Path) -> None:
    """Draw servo that is told to drive into a wall for four seconds."""
    clearance, period = 0.03, 0.02
    scene = scene_of((Box(0.1, 1.5, 1.5), (0.64, 0.0, 0.5)))
    setup = setup_of("panda", scene, 0.3, period=period, clearance=clearance)
    run = Run(setup, STARTS["panda"])
    wanted = np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
    times, speeds, distances = [], [], []
    chain = ko.build_chain(setup.robot, setup.base, setup.tip)
    for k in range(round(4.0 / period)):
        run.period(lambda state, q, _: velocity_for_twist(setup, state, q, wanted))
        state = run.session.commanded.at(run.now)
        times.append(k * period)
        speeds.append(float((ko.geometric_jacobian(chain, state.position) @ state.velocity)[0]))
        whole = setup.whole(run.q, state.position)
        distances.append(clearance_of(setup.robot, scene, whole).distance)
    figure = Figure(figsize=(8.0, 4.6), layout="constrained")
    panels: Any = figure.subplots(2, 1, sharex=True)
    panels[0].plot(times, speeds, color=BLUE, label="tip towards the wall")
    panels[0].axhline(wanted[0], color=GREY, linestyle="--", label="wanted")
    panels[0].set_ylabel("velocity, m/s")
    panels[1].plot(times, distances, color=BLUE, label="least distance, between links, too")
    panels[1].axhline(clearance, color=RED, linestyle="--", label="clearance")
    panels[1].set(xlabel="time, s", ylabel="distance, m", ylim=(0.0, None))
    saved(figure, panels, file)


def arms(file: Path) -> None:
    """Draw mean times of single requests for eight arms, as benchmarks/arms.json has them."""
    measured = json.loads((ROOT / "benchmarks" / "arms.json").read_text("utf-8"))["ik"]
    robots = list(dict.fromkeys(row["robot"] for row in measured))
    solvers = list(dict.fromkeys(row["solver"] for row in measured))
    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes: Any = figure.subplots()
    width = 0.8 / len(solvers)
    for place, (solver, colour) in enumerate(zip(solvers, (BLUE, "#93b4f5", GREY), strict=True)):
        rows = {row["robot"]: row for row in measured if row["solver"] == solver}
        across = np.arange(len(robots)) + (place - (len(solvers) - 1) / 2.0) * width
        bars = axes.bar(across, [rows[name]["mean_us"] for name in robots], width, color=colour, label=solver)
        shares = [f"{100.0 * rows[name]['success']:.4g} %" for name in robots]
        axes.bar_label(bars, shares, fontsize=6, rotation=90, padding=2)
    axes.set_yscale("log")
    axes.set_ylim(1.0, 2000.0)
    axes.set_xticks(
        np.arange(len(robots)),
        [name.removeprefix("kuka_lbr_").replace("_", " ") for name in robots],
        fontsize=8,
    )
    axes.set_ylabel("mean time per target, µs")
    saved(figure, [axes], file)


def saved(figure: Figure, panels: Any, file: Path) -> None:
    for axes in panels:
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
        axes.legend(fontsize=8, loc="best")
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    raise SystemExit(main())
