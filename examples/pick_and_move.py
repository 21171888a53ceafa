"""Pick a pose and move there: asks the node for a motion to whichever of some grasps can be reached, and has it done.

python examples/pick_and_move.py 0.45 0.2 0.3 --robot-group panda_arm --tip panda_hand

Needs a running node with a robot (`ros2 launch kinopt_ros panda.launch.py`). The tool points down, with turns about
the vertical to choose from. Returns 0 if the motion was verified and sent.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence

import rclpy
from geometry_msgs.msg import Point, Pose, Quaternion
from rclpy.action import ActionClient
from rclpy.node import Node

from kinopt_msgs.action import OptimizeTrajectory
from kinopt_msgs.msg import Status

TURNS = [0.0, 0.5 * math.pi, -0.5 * math.pi, math.pi]
"""Turns of the tool about the vertical that will do, rad."""


def grasps(x: float, y: float, z: float) -> list[Pose]:
    """Poses that point down at a place (m), one for each turn."""
    poses = []
    for turn in TURNS:
        # Half a turn about x, then about the vertical: quaternion xyzw.
        half = 0.5 * turn
        down = Quaternion(x=math.cos(half), y=math.sin(half), z=0.0, w=0.0)
        poses.append(Pose(position=Point(x=x, y=y, z=z), orientation=down))
    return poses


def move(
    node: Node, kinopt: str, goal: OptimizeTrajectory.Goal, patience: float
) -> OptimizeTrajectory.Result | None:
    """Send a goal, and again while the node prepares what it needs; return the result, or None if nobody answers."""
    client = ActionClient(node, OptimizeTrajectory, f"{kinopt}/optimize_trajectory")
    if not client.wait_for_server(timeout_sec=patience):
        return None
    end = time.monotonic() + patience
    while True:
        sending = client.send_goal_async(goal)
        rclpy.spin_until_future_complete(node, sending, timeout_sec=patience)
        if sending.result() is None:
            return None
        waiting = sending.result().get_result_async()
        rclpy.spin_until_future_complete(node, waiting, timeout_sec=patience)
        if waiting.result() is None:
            return None
        result = waiting.result().result
        if result.status.code != Status.NOT_READY or time.monotonic() > end:
            return result
        time.sleep(1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, and say what became of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("x", type=float, help="m, in the robot's root link")
    parser.add_argument("y", type=float)
    parser.add_argument("z", type=float)
    parser.add_argument("--robot-group", default="", help="joint group; default: the node's")
    parser.add_argument("--tip", default="", help="link that shall get there; default: the group's tip")
    parser.add_argument("--kinopt", default="/kinopt", help="name of the node")
    parser.add_argument("--dry-run", action="store_true", help="plan and verify, and move nothing")
    args = parser.parse_args(arguments)

    rclpy.init(args=[])
    node = rclpy.create_node("pick_and_move")
    goal = OptimizeTrajectory.Goal(
        group=args.robot_group,
        tip_link=args.tip,
        poses=grasps(args.x, args.y, args.z),
        velocity_scaling=0.3,
        acceleration_scaling=0.3,
        publish=not args.dry_run,
    )
    result = move(node, args.kinopt, goal, patience=120.0)
    node.destroy_node()
    rclpy.try_shutdown()
    if result is None:
        print(f"{args.kinopt} does not answer: is it running?", file=sys.stderr)
        return 1
    if result.status.code != Status.SUCCESS:
        print(f"no motion ({result.status.code}): {result.status.message}", file=sys.stderr)
        return 1
    last = result.trajectory.points[-1].time_from_start
    took = last.sec + 1e-9 * last.nanosec
    print(
        f"a motion of {took:.2f} s, {'moving' if result.published else 'not sent'}; checked: {', '.join(result.checks)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
