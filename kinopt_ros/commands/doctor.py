"""`kinopt doctor`: what works on this machine, what does not, and what to do about it."""

import argparse
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinopt_ros.commands.arguments import add_json, add_robot, print_json, robot_of
from kinopt_ros.errors import KinoptError
from kinopt_ros.ros.main import missing
from kinopt_ros.solvers.registry import list_solvers

_LIBRARIES = {
    "numpy": ("numpy", "all arithmetic"),
    "urdf_parser_py": ("urdf-parser-py", "reading URDF"),
    "numba": ("numba", "solver cpu"),
    "ruckig": ("ruckig", "timed motion"),
    "rclpy": ("rclpy", "the node"),
    "kinopt_msgs": ("kinopt-msgs", "the node"),
    "tf2_ros": ("tf2_ros", "targets in tf frames outside the robot"),
    "tf_transformations": ("tf_transformations", "rotations at the ROS border (transforms3d is as good)"),
    "transforms3d": ("transforms3d", "rotations at the ROS border"),
    "matplotlib": ("matplotlib", "plots"),
}


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    what: str
    ok: bool
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_robot(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Exit status 0 if the robot loads and a solver is available."""
    findings = [Finding("python", True, f"{platform.python_version()} on {platform.machine()}")]
    findings += [_library(module) for module in _LIBRARIES]
    remedy = missing()
    findings.append(Finding("node", remedy is None, remedy or "can be started"))
    solvers = [
        Finding(
            f"solver {info.name}", info.unavailable_reason is None, info.unavailable_reason or info.version
        )
        for info in list_solvers()
    ]
    robot = _robot(args)
    findings += solvers + robot
    if args.json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        table = Table("", "what", "detail")
        for finding in findings:
            table.add_row(
                "[green]ok[/]" if finding.ok else "[yellow]--[/]", finding.what, escape(finding.detail)
            )
        Console().print(table)
    return 0 if any(finding.ok for finding in solvers) and robot[0].ok else 1


def _library(module: str) -> Finding:
    package, purpose = _LIBRARIES[module]
    if find_spec(module) is None:
        return Finding(module, False, f"not installed; needed for {purpose}")
    try:
        return Finding(module, True, version(package))
    except PackageNotFoundError:  # a ROS package from apt or colcon carries no Python metadata
        return Finding(module, True, "installed")


def _robot(args: argparse.Namespace) -> list[Finding]:
    try:
        robot = robot_of(args)
    except KinoptError as error:
        return [Finding(f"robot {args.robot}", False, str(error))]
    groups = ", ".join(f"{group.name} ({len(group.joints)})" for group in robot.groups.values())
    summary = f"{len(robot.link_names)} links, {robot.nq} variables, groups: {groups or 'none'}"
    return [
        Finding(f"robot {robot.name}", True, summary),
        *(Finding(f"robot {robot.name}", False, warning) for warning in robot.warnings),
    ]
