"""Follow a path of poses with an upright tool, as one that carries a full cup: plain Python, no ROS.

python examples/follow_path_upright.py path.csv        # needs pip install '.[collision]' in a clone

Writes times and joint values of the verified motion, 100 rows per second.
"""

import csv
import sys

import numpy as np

import kinopt_ros as ko
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.trajectory.interpolation import evaluate

PLACES = [(0.45, -0.2, 0.45), (0.5, 0.0, 0.55), (0.45, 0.2, 0.45)]
"""Where the tool passes, m; the last is where it ends."""
TILT = 0.1
"""Largest tilt on the way, rad."""
ROWS_PER_SECOND = 100


def main(file: str) -> int:
    """Plan, say what was verified, write."""
    robot = ko.load_robot("panda")
    solver = ko.create_solver("cpu", robot)
    start = named_configuration(robot, "ready")
    T_base_start = ko.forward_kinematics(robot, start, links=["panda_hand"])[0]

    poses = []
    for place in PLACES:
        T_base_tool = T_base_start.copy()  # upright, as at the start
        T_base_tool[:3, 3] = place
        poses.append(T_base_tool)

    problem = ko.trajectory_problem(
        robot,
        poses[-1],
        group="panda_arm",
        tip_link="panda_hand",
        start=start,
        waypoints=poses[:-1],
        along=[ko.upright(robot, "panda_hand", TILT, start)],
        scene=ko.EMPTY_SCENE,  # the robot itself; ko.load_scene(file, robot) for more
        velocity_scaling=0.3,
        acceleration_scaling=0.3,
    )
    result = ko.plan_trajectory(solver, problem)
    if result.trajectory is None:
        print(f"{result.status.name}: {result.message}", file=sys.stderr)
        return 1
    print(f"{result.trajectory.duration:.2f} s; checked: {', '.join(result.checks)}")

    duration = result.trajectory.duration
    times = np.append(np.arange(0.0, duration, 1.0 / ROWS_PER_SECOND), duration)  # the goal, too
    positions, *_ = evaluate(result.trajectory, times)
    with open(file, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["time", *result.trajectory.joint_names])
        writer.writerows(np.column_stack([times, positions]).round(9).tolist())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "path.csv"))
