"""The demonstration: the node in its own process, asked from this one."""

import os
import sys

import rclpy
from geometry_msgs.msg import PoseStamped
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from trajectory_msgs.msg import JointTrajectory

from kinopt_msgs.msg import MotionReport
from kinopt_msgs.srv import SolveIK
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client, NodeTimeoutError
from kinopt_ros.ros.client.isolation import elsewhere, isolate
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.client.simulated_robot import SimulatedRobotTopics
from kinopt_ros.ros.messages.conversions import seconds
from kinopt_ros.ros.messages.rotations import quaternion_from_rpy
from kinopt_ros.ros.robot.bundled import bundled_parameters
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

_READY = (0.0, -0.785398163397448, 0.0, -2.356194490192345, 0.0, 1.570796326794897, 0.785398163397448)
_POSE = (0.45, 0.2, 0.45, 3.141592653589793, 0.0, 0.4)
_ARRIVED = 1e-6
"""Largest distance from the last point at which the robot counts as arrived, rad or m."""
_LATE_SECONDS = 10.0
"""Time that the robot may take longer than its motion on a busy machine, s."""
_COMPILED_SECONDS = 3600.0
"""Longest time to wait for the node's compilers, s: whoever looks on can end it."""
_SHOWN = 4
"""Number of points shown from either end of the trajectory."""


def run(once: bool) -> int:
    """Show one motion and, on a terminal unless ``once``, ask for more poses. Exit status 0 if all went well."""
    domain = isolate()
    console = Console()
    console.print(
        f"Starting the node for the bundled Panda in its own process, on this machine only "
        f"(ROS_DOMAIN_ID={domain}); it cannot reach a robot.",
        highlight=False,
        soft_wrap=True,
    )
    parameters = {**bundled_parameters("panda"), "default_group": "panda_arm"}
    with NodeProcess(parameters) as process:
        rclpy.init(args=[])
        client = Client()
        try:
            console.print(
                f"Node ready: {client.wait_until_ready(alive=lambda: process.running)}.", highlight=False
            )
            reachable = elsewhere(process.pid) + elsewhere(os.getpid())
            if reachable:
                console.print(f"[red]ROS listens on other networks, too: {', '.join(reachable)}[/]")
                return 1
            joints = [f"panda_joint{i + 1}" for i in range(7)]
            start = dict(zip(joints, _READY, strict=True))
            robot = SimulatedRobotTopics(client.node, SimulatedRobot(load_robot("panda"), start=start))
            good = _show_motion(console, client, robot, _POSE)
            if good and not once and sys.stdin.isatty():
                _ask(console, client, robot)
            return 0 if good else 1
        except NodeTimeoutError as error:
            console.print(
                f"[red]{escape(str(error))}[/]\n{escape(process.log_text())}", highlight=False, soft_wrap=True
            )
            return 1
        except (KeyboardInterrupt, EOFError):
            return 0
        finally:
            client.close()
            rclpy.try_shutdown()


def _ask(console: Console, client: Client, robot: SimulatedRobotTopics) -> None:
    while True:
        line = console.input("\nAnother pose: x y z \\[roll pitch yaw], or Enter to end: ")
        if not line.strip():
            return
        try:
            numbers = [float(word) for word in line.replace(",", " ").split()]
        except ValueError as error:
            console.print(f"[red]{escape(str(error))}[/]", highlight=False, soft_wrap=True)
            continue
        if len(numbers) not in (3, 6):
            console.print(
                f"[red]{len(numbers)} numbers were given; allowed are 3 or 6[/]",
                highlight=False,
                soft_wrap=True,
            )
            continue
        _show_motion(console, client, robot, (*numbers, *_POSE[len(numbers) :]))


def _show_motion(
    console: Console, client: Client, robot: SimulatedRobotTopics, numbers: tuple[float, ...]
) -> bool:
    client.spin(0.3)  # the simulated robot is silent while nobody spins: let the node see it again
    target = PoseStamped()
    target.header.frame_id = "panda_link0"
    position, orientation = target.pose.position, target.pose.orientation
    position.x, position.y, position.z = numbers[:3]
    orientation.x, orientation.y, orientation.z, orientation.w = (
        float(c) for c in quaternion_from_rpy(*numbers[3:])
    )

    console.rule("request")
    x, y, z = numbers[:3]
    quaternion = ", ".join(f"{name}: {getattr(orientation, name):.4f}" for name in "xyzw")
    shown = (
        "{header: {frame_id: panda_link0}, "
        f"poses: [{{position: {{x: {x:g}, y: {y:g}, z: {z:g}}}, orientation: {{{quaternion}}}}}]}}"
    )
    console.print(
        f'ros2 service call /kinopt/solve_ik kinopt_msgs/srv/SolveIK "{shown}"',
        highlight=False,
        soft_wrap=True,
    )
    answer = client.call("solve_ik", SolveIK.Request(header=target.header, poses=[target.pose]))

    console.rule("answer")
    if answer.status.code != answer.status.SUCCESS:
        console.print(
            f"[red]{answer.status.code}[/]: {answer.status.message}", highlight=False, soft_wrap=True
        )
        return False
    console.print(
        f"[green]SUCCESS[/] by {answer.solver_used}: position error {answer.position_errors[0]:.1e} m, "
        f"orientation error {answer.orientation_errors[0]:.1e} rad, {answer.wall_time * 1e6:.0f} µs in the node",
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"verified in float64: {', '.join(answer.checks)}; not checked: {', '.join(answer.not_checked)}",
        highlight=False,
        soft_wrap=True,
    )

    console.print(
        "Now a motion. The first one on a machine waits for compilers: a minute, on a busy machine much longer.",
        highlight=False,
        soft_wrap=True,
    )
    report, trajectory = _move(console, client, target)
    console.rule("same pose on /kinopt/target_pose: motion on /kinopt/joint_trajectory")
    if report.status.code != report.status.SUCCESS or trajectory is None:
        console.print(
            f"[red]{report.status.code}[/]: {report.status.message}", highlight=False, soft_wrap=True
        )
        return False
    table = Table("time s", *(name.removeprefix("panda_") for name in trajectory.joint_names))
    points = trajectory.points
    for index, point in enumerate(points):
        if _SHOWN <= index < len(points) - _SHOWN:
            if index == _SHOWN:
                table.add_row("...", *("" for _ in trajectory.joint_names))
            continue
        table.add_row(f"{seconds(point.time_from_start):.3f}", *(f"{value:.4f}" for value in point.positions))
    console.print(table)
    console.print(
        f"{len(points)} points in {report.duration:.2f} s; verified: {', '.join(report.checks)}; "
        f"not checked: {', '.join(report.not_checked)}",
        highlight=False,
        soft_wrap=True,
    )
    return _follow(console, client, robot, trajectory, report.duration)


def _move(
    console: Console, client: Client, target: PoseStamped
) -> tuple[MotionReport, JointTrajectory | None]:
    """Ask for a motion; say so where that takes several times."""
    return client.ask_while_stale(
        lambda: client.move_to(target, patience=_COMPILED_SECONDS),
        lambda moved: int(moved[0].status.code),
        lambda: console.print("Joint states come late, the machine is busy: asked again.", highlight=False),
    )


def _follow(
    console: Console,
    client: Client,
    robot: SimulatedRobotTopics,
    trajectory: JointTrajectory,
    duration: float,
) -> bool:
    """Follow the motion; return whether the robot arrives."""
    joints = zip(trajectory.joint_names, trajectory.points[-1].positions, strict=True)
    goal = {str(name): float(value) for name, value in joints}

    def away() -> float:
        names, position, _ = robot.robot.states(robot.now())
        now: dict[str, float] = dict(zip(names, position.tolist(), strict=True))
        return max(abs(now[name] - value) for name, value in goal.items())

    with console.status("the simulated robot moves"):
        arrived = client.spin_until(lambda: away() <= _ARRIVED, duration + _LATE_SECONDS)
    if arrived:
        console.print("[green]the simulated robot has arrived[/]", highlight=False)
    else:
        console.print(
            f"[red]the simulated robot is {away():.3g} rad away from the last point[/]", highlight=False
        )
    return arrived
