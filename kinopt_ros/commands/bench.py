"""`kinopt bench`: measurements, side by side with other solvers and with plain ROS."""

import argparse
from typing import Any

from rich.console import Console
from rich.table import Table

from kinopt_ros.bench import ik
from kinopt_ros.commands.arguments import add_json, print_json
from kinopt_ros.errors import SolverUnavailableError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand per measurement."""
    benches = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    ik_parser = benches.add_parser("ik", help="inverse kinematics, one target per call, every solver alike")
    ik.add_arguments(ik_parser)
    ik_parser.set_defaults(measure=ik.main)
    ros = benches.add_parser("ros", help="requests to the node from another process, beside std_srvs/Trigger")
    ros.add_argument("--calls", type=int, default=1000, help="calls of each service (default 1000)")
    ros.add_argument("--batch", type=int, default=1000, help="targets in one call (default 1000)")
    add_json(ros)
    ros.set_defaults(measure=_ros)


def run(args: argparse.Namespace) -> int:
    """Exit status of the measurement."""
    return int(args.measure(args))


def _ros(args: argparse.Namespace) -> int:
    from kinopt_ros.ros.main import missing

    remedy = missing()
    if remedy is not None:
        raise SolverUnavailableError(remedy)
    from kinopt_ros.ros.bench import measure

    result = measure(args.calls, args.batch)
    if args.json:
        print_json(result)
    else:
        _show(result)
    return 0 if result["solved"] == result["requests"] else 2


def _show(result: dict[str, Any]) -> None:
    table = Table(
        "call", "calls", "p50 ms", "p99 ms", "max ms", "p50 / Trigger", title="one client, another process"
    )
    for row in result["rows"]:
        figures = (f"{row[key]:.2f}" for key in ("p50_ms", "p99_ms", "max_ms", "p50_over_trigger"))
        table.add_row(row["call"], str(row["calls"]), *figures)
    console = Console()
    console.print(table)
    console.print(f"{result['solved']} of {result['requests']} requests solved")
