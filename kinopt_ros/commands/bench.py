"""`kinopt bench`: measurements, side by side with other solvers and with plain ROS."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kinopt_ros.bench import branches, fk, ik, mobile, nearest
from kinopt_ros.bench.beam import command as beam
from kinopt_ros.bench.collision import command as collision
from kinopt_ros.bench.growth import command as growth
from kinopt_ros.bench.hjcd import command as hjcd
from kinopt_ros.bench.machine import machine
from kinopt_ros.bench.mbm import command as mbm
from kinopt_ros.bench.objective import command as objective
from kinopt_ros.bench.progress import progress_bar
from kinopt_ros.bench.table import print_table
from kinopt_ros.bench.trajectory import command as trajectory
from kinopt_ros.bench.verify import soak
from kinopt_ros.commands import bench_load
from kinopt_ros.commands.arguments import add_json, plain, print_json, require_ros
from kinopt_ros.robot.sources import robot_names

ARMS = {
    "panda": ("panda_link0", "panda_link8"),
    "ur5": ("base_link", "tool0"),
    "ur10": ("base_link", "tool0"),
    "kinova": ("j2s6s200_link_base", "j2s6s200_end_effector"),
    "talos_reduced": ("torso_2_link", "gripper_left_base_link"),
    "tiago": ("base_link", "arm_tool_link"),
    "iiwa": ("base_link", "tool0"),
    "fetch": ("torso_lift_link", "gripper_link"),
}
"""Robots of `kinopt bench all`; those that are not installed are named and left out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one subcommand per measurement; without one, all of them run."""
    benches = parser.add_subparsers(dest="bench", metavar="BENCH")
    ik_parser = benches.add_parser("ik", help="inverse kinematics, one target per call, every solver alike")
    ik.add_arguments(ik_parser)
    ik_parser.set_defaults(measure=ik.main)
    branches_parser = benches.add_parser(
        "branches", help="all branches of 6R arms, beside an analytic solver"
    )
    branches.add_arguments(branches_parser)
    branches_parser.set_defaults(measure=branches.main)
    nearest_parser = benches.add_parser(
        "nearest", help="what is as near as possible, on arms of five joints, beside scipy"
    )
    nearest.add_arguments(nearest_parser)
    nearest_parser.set_defaults(measure=nearest.main)
    beam_parser = benches.add_parser("beam", help="batches of targets, beside PyRoki's IK-Beam")
    beam.add_arguments(beam_parser)
    beam_parser.set_defaults(measure=beam.main)
    hjcd_parser = benches.add_parser(
        "hjcd", help="the plugin hjcd by seeds and joints, and how diverse it is"
    )
    hjcd.add_arguments(hjcd_parser)
    hjcd_parser.set_defaults(measure=hjcd.main)
    collision_parser = benches.add_parser(
        "collision", help="inverse kinematics among obstacles, successes judged independently"
    )
    collision.add_arguments(collision_parser)
    collision_parser.set_defaults(measure=collision.main)
    trajectory_parser = benches.add_parser(
        "trajectory", help="motions around obstacles, successes judged independently"
    )
    trajectory.add_arguments(trajectory_parser)
    trajectory_parser.set_defaults(measure=trajectory.main)
    mbm_parser = benches.add_parser(
        "mbm", help="MotionBenchMaker's problems, beside OMPL and RoboPlan, motions judged independently"
    )
    mbm.add_arguments(mbm_parser)
    mbm_parser.set_defaults(measure=mbm.main)
    objective_parser = benches.add_parser("objective", help="objectives of several costs, beside PyRoki")
    objective.add_arguments(objective_parser)
    objective_parser.set_defaults(measure=objective.main)
    fk_parser = benches.add_parser("fk", help="forward kinematics in batches, beside Pinocchio's loop")
    fk.add_arguments(fk_parser)
    fk_parser.set_defaults(measure=fk.main)
    mobile_parser = benches.add_parser("mobile", help="poses out of an arm's reach, its base still or moving")
    mobile.add_arguments(mobile_parser)
    mobile_parser.set_defaults(measure=mobile.main)
    growth_parser = benches.add_parser(
        "growth", help="how cost grows with obstacles, points, joints, spheres, batches and threads"
    )
    growth.add_arguments(growth_parser)
    growth_parser.set_defaults(measure=growth.main)
    verify = benches.add_parser("verify", help="random requests of all kinds, successes judged independently")
    soak.add_arguments(verify)
    verify.set_defaults(measure=soak.main)
    ros = benches.add_parser("ros", help="requests to the node from another process, beside std_srvs/Trigger")
    ros.add_argument("--calls", type=int, default=1000, help="calls of each service (default 1000)")
    ros.add_argument("--batch", type=int, default=1000, help="targets in one call (default 1000)")
    add_json(ros)
    ros.set_defaults(measure=_ros)
    load = benches.add_parser("load", help="the node under the load of many clients, every answer judged")
    bench_load.add_arguments(load)
    every = benches.add_parser("all", help="both, on several robots; what `kinopt bench` alone does")
    for all_parser in (parser, every):
        all_parser.add_argument("--output", metavar="FILE", help="write the figures and the machine as JSON")
        all_parser.set_defaults(measure=_all)


def run(args: argparse.Namespace) -> int:
    """Run the measurement; return its exit status."""
    return int(args.measure(args))


def _ros(args: argparse.Namespace) -> int:
    result = _measure_ros(args.calls, args.batch)
    if args.json:
        print_json(result)
    else:
        _show(result)
    return 0 if result["solved"] == result["requests"] else 2


def _all(args: argparse.Namespace) -> int:
    known = robot_names()
    arms = {robot: links for robot, links in ARMS.items() if robot in known}
    record: dict[str, Any] = {"machine": machine(), "ik": []}
    # Pinocchio's loop in Python is slow: fewer targets say as much about it.
    many, few = (("cpu", "rtb_ik_lm", "trac_ik"), 10_000), (("pinocchio_lm",), 500)
    total = ik.count_calls(*many) + ik.count_calls(*few)
    for robot, (base, tip) in arms.items():
        with progress_bar(f"measuring {robot},", total, enabled=sys.stderr.isatty()) as report:
            rows = ik.run_ik_bench(robot, base, tip, *many, report=report)
            rows += ik.run_ik_bench(robot, base, tip, *few, report=report)
        print_table(rows)
        record["ik"] += rows
    for robot in set(ARMS) - set(arms):
        print(f"{robot}: not installed (pip install example-robot-data)")
    record["ros"] = _measure_ros(1000, 1000)
    _show(record["ros"])
    if args.output:
        Path(args.output).write_text(json.dumps(plain(record), indent=1) + "\n")
    return 0 if record["ros"]["solved"] == record["ros"]["requests"] else 2


def _measure_ros(calls: int, batch: int) -> dict[str, Any]:
    require_ros()
    from kinopt_ros.bench.node.requests import measure

    return measure(calls, batch)


def _show(result: dict[str, Any]) -> None:
    table = Table(
        *("call", "calls", "p50 ms", "p99 ms", "max ms", "p50 / Trigger", "node's CPU ms"),
        title="one client, another process",
    )
    for row in result["rows"]:
        figures = (f"{row[key]:.2f}" for key in ("p50_ms", "p99_ms", "max_ms", "p50_over_trigger"))
        cpu = row["node_cpu_ms"]
        table.add_row(row["call"], str(row["calls"]), *figures, "-" if cpu is None else f"{cpu:.2f}")
    console = Console()
    console.print(table)
    console.print(f"{result['solved']} of {result['requests']} requests solved")
