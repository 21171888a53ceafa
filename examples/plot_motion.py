"""A pose in, a verified motion out, as a picture: the arm on its way, and its joints over time.

python examples/plot_motion.py motion.png        # needs matplotlib: pip install '.[plot]' in a clone
"""

import sys

import matplotlib
import numpy as np

import kinopt_ros as ko
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.trajectory.interpolation import evaluate

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def main(file: str) -> None:
    """Solve, time, verify, draw."""
    robot = ko.load_robot("panda")
    solver = ko.create_solver("cpu", robot)
    start = named_configuration(robot, "ready")

    T_base_target = np.diag([1.0, -1.0, -1.0, 1.0])  # flange down
    T_base_target[:3, 3] = 0.45, -0.35, 0.35  # m
    result = solver.solve_ik(ko.ik_problem(robot, T_base_target, group="panda_arm", state=start))
    if not result.success[0]:
        sys.exit(result.messages[0])

    goal = start.copy()
    joints = result.joint_names
    goal[[robot.variable_index[name] for name in joints]] = result.q[0, 0]
    motion = plan_joint_motion(robot, joints, start, np.zeros(robot.nq), goal, 0.5, 0.5)
    if not motion.report.ok:
        sys.exit("; ".join(violation.message for violation in motion.report.violations))
    draw(robot, start, motion.trajectory, T_base_target, file)


def draw(robot: ko.RobotModel, start: np.ndarray, trajectory, T_base_target: np.ndarray, file: str) -> None:
    """The arm at seven moments, and positions and velocities over time."""
    time = np.linspace(0.0, trajectory.duration, 400)
    position, velocity, *_ = evaluate(trajectory, time)
    q = np.repeat(start[None], len(time), axis=0)
    q[:, [robot.variable_index[name] for name in trajectory.joint_names]] = position
    links = [f"panda_link{i}" for i in range(9)]
    origins = ko.forward_kinematics(robot, q, links=links)[..., :3, 3]

    figure = plt.figure(figsize=(11, 4.6), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1))
    arm = figure.add_subplot(grid[:, 0], projection="3d")
    colours = plt.cm.viridis(np.linspace(0.0, 0.85, 7))
    for colour, index in zip(colours, np.linspace(0, len(time) - 1, 7).astype(int), strict=True):
        arm.plot(*origins[index].T, "o-", color=colour, linewidth=2.5, markersize=4)
    arm.plot(*origins[:, -1].T, color="tab:red", linewidth=1.2, label="way of the flange")
    for axis, colour in zip(T_base_target[:3, :3].T, ("r", "g", "b"), strict=True):
        arm.quiver(*T_base_target[:3, 3], *(0.12 * axis), color=colour)
    arm.set(xlabel="x m", ylabel="y m", zlabel="z m")
    arm.set(xlim=(-0.2, 0.6), ylim=(-0.5, 0.3), zlim=(0.0, 0.8))
    arm.set_box_aspect((1, 1, 1), zoom=1.12)
    arm.locator_params(nbins=4)
    arm.view_init(20, -58)
    arm.legend(loc="upper left")
    for row, (values, label) in enumerate(((position, "position rad"), (velocity, "velocity rad/s"))):
        plot = figure.add_subplot(grid[row, 1])
        plot.plot(
            time,
            values,
            linewidth=1.3,
            label=[name.removeprefix("panda_") for name in trajectory.joint_names],
        )
        plot.set(ylabel=label, xlabel="time s" if row else "")
        plot.grid(alpha=0.3)
    figure.legend(*plot.get_legend_handles_labels(), loc="outside lower right", ncols=7, fontsize=7)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "motion.png")
