"""`kinopt doctor`: what works on this machine, what is wrong with a robot's files, and what to do about it."""

import argparse
import platform
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinopt_ros.commands import doctor_collision
from kinopt_ros.commands.arguments import add_json, add_robot, print_json, robot_of
from kinopt_ros.commands.doctor_moveit import config_folder, controllers_in, lint_moveit, srdf_of
from kinopt_ros.errors import InvalidRequestError, KinoptError, SolverUnavailableError, shortened
from kinopt_ros.files import is_file
from kinopt_ros.robot.lint.finding import Finding, Severity
from kinopt_ros.robot.lint.meshes import mesh_file
from kinopt_ros.robot.lint.rates import lint_rates
from kinopt_ros.robot.lint.srdf import lint_srdf
from kinopt_ros.robot.lint.urdf import lint_urdf
from kinopt_ros.robot.sources import find_robot, read_description
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.main import missing
from kinopt_ros.solvers.registry import list_solvers
from kinopt_ros.trajectory.ruckig_module import ruckig_module

_LIBRARIES = {
    "numpy": ("numpy", "all arithmetic"),
    "urdf_parser_py": ("urdf-parser-py", "reading URDF"),
    "numba": ("numba", "solver cpu"),
    "eaik": ("eaik", "solver analytic"),
    "jax": ("jax", "solver jax_lm, kinopt_ros.differentiable"),
    "warp": ("warp-lang", "solver hjcd"),
    "rclpy": ("rclpy", "the node"),
    "kinopt_msgs": ("kinopt-msgs", "the node"),
    "diagnostic_msgs": ("diagnostic_msgs", "/diagnostics"),
    "tf2_ros": ("tf2_ros", "targets in tf frames outside the robot"),
    "tf_transformations": ("tf_transformations", "rotations at the ROS border (transforms3d is as good)"),
    "transforms3d": ("transforms3d", "rotations at the ROS border"),
    "coal": ("coal", "collision checks"),
    "trimesh": ("trimesh", "meshes of robots and obstacles"),
    "matplotlib": ("matplotlib", "plots"),
}
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


@dataclass(frozen=True)
class Check:
    """One line of the first table: a part of the installation, or the robot."""

    what: str
    ok: bool
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot(parser)
    add_json(parser)
    parser.add_argument(
        "--moveit",
        metavar="FOLDER",
        help="look at a MoveIt configuration, too: its SRDF, joint limits, kinematics and controllers",
    )
    parser.add_argument(
        "--collision",
        action="store_true",
        help="compare the robot's spheres with its shapes; look at pairs of links",
    )
    parser.add_argument("--spheres", metavar="FILE", help="with --collision: YAML file of spheres to use")
    parser.add_argument("--plot", metavar="FILE.png", help="with --collision: picture of shapes and spheres")


def run(args: argparse.Namespace) -> int:
    """Run the command; return 0 if the robot loads without an error and a solver is available."""
    if (args.spheres or args.plot) and not args.collision:
        raise InvalidRequestError("--spheres and --plot need --collision")
    folder = None if args.moveit is None else config_folder(args.moveit)
    if folder is not None and args.srdf is None:
        args.srdf = str(srdf_of(folder))
    remedy = missing()
    solvers = [
        Check(
            f"solver {info.name}",
            info.unavailable_reason is None,
            info.unavailable_reason
            or (info.version if info.solves_ik else f"{info.version}, trajectories alone"),
        )
        for info in list_solvers()
    ]
    robot = _robot(args)
    checks = [
        Check("python", True, f"{platform.python_version()} on {platform.machine()}"),
        *(_library(module) for module in _LIBRARIES),
        _ruckig(),
        Check("node", remedy is None, remedy or "can be started"),
        *solvers,
        *robot,
    ]
    findings = _findings(args)
    controllers: list[str] = []
    if folder is not None and robot[0].ok:
        model = robot_of(args)
        findings += lint_moveit(folder, model)
        controllers = controllers_in(folder, model)
    elif robot[0].ok:
        findings += [(find_robot(args.robot)[0], finding) for finding in lint_rates(robot_of(args))]
    collision = doctor_collision.examine(args) if args.collision and robot[0].ok else None
    errors = any(finding.severity is Severity.ERROR for _, finding in findings)
    if args.json:
        record = [
            {
                "severity": finding.severity.value,
                "file": str(file),
                "line": finding.line,
                "what": finding.what,
                "remedy": finding.remedy,
            }
            for file, finding in findings
        ]
        report: dict[str, Any] = {"checks": [vars(check) for check in checks], "findings": record}
        if folder is not None:
            report["controllers"] = controllers
        print_json({**report, "collision": asdict(collision)} if collision else report)
    else:
        _show(checks, findings, robot[0].ok)
        if controllers:
            print(f"\ncontrollers of the node: -p controllers:=[{', '.join(controllers)}]")
        if collision:
            doctor_collision.show(collision)
    return 0 if any(check.ok for check in solvers) and robot[0].ok and not errors else 1


def _library(module: str) -> Check:
    package, purpose = _LIBRARIES[module]
    if find_spec(module) is None:
        return Check(module, False, f"not installed; needed for {purpose}")
    try:
        return Check(module, True, version(package))
    except PackageNotFoundError:  # a ROS package from apt or colcon carries no Python metadata
        return Check(module, True, "installed")


def _ruckig() -> Check:
    """Return which of two modules times motions."""
    try:
        name = ruckig_module().__name__
    except SolverUnavailableError as error:
        return Check("ruckig", False, str(error))
    try:
        return Check("ruckig", True, version(name))
    except PackageNotFoundError:
        return Check("ruckig", True, f"by {name}, on the C++ library")


def _robot(args: argparse.Namespace) -> list[Check]:
    try:
        robot = robot_of(args)
    except KinoptError as error:
        return [Check(f"robot {args.robot}", False, str(error))]
    groups = shortened([f"{group.name} ({len(group.joints)})" for group in robot.groups.values()], 50)
    summary = f"{len(robot.link_names)} links, {robot.nq} variables, groups: {groups or 'none'}"
    return [
        Check(f"robot {robot.name}", True, summary),
        *(Check(f"robot {robot.name}", False, warning) for warning in robot.warnings),
    ]


def _findings(args: argparse.Namespace) -> list[tuple[Path, Finding]]:
    """Return the findings about the robot's files, in the order of files and lines."""
    try:
        urdf, srdf = find_robot(args.robot)
        text = read_description(urdf, "URDF")
    except KinoptError:
        return []  # the check of the robot says it
    findings = [(urdf, finding) for finding in lint_urdf(text, partial(mesh_file, urdf=urdf))]
    srdf = Path(args.srdf) if args.srdf else srdf
    if srdf is not None and is_file(srdf):
        try:
            robot = robot_from_urdf(text)
        except KinoptError:
            # Every name in it would be unknown.
            remedy = "mend the URDF first"
            return [
                *findings,
                (srdf, Finding(Severity.NOTE, 0, "not looked at, since the URDF cannot be loaded", remedy)),
            ]
        try:
            srdf_text = read_description(srdf, "SRDF")
        except KinoptError:
            return findings  # the check of the robot says it
        findings += [(srdf, finding) for finding in lint_srdf(srdf_text, robot)]
    return findings


def _show(checks: list[Check], findings: list[tuple[Path, Finding]], robot_ok: bool) -> None:
    console = Console()
    table = Table("", "what", "detail")
    for check in checks:
        table.add_row(
            "[green]ok[/]" if check.ok else "[yellow]--[/]", escape(check.what), escape(check.detail)
        )
    console.print(table)
    if not findings:
        if robot_ok:  # else the table has said it
            console.print("nothing to say about the robot's files")
        return
    for file in dict.fromkeys(file for file, _ in findings):
        console.print(f"\n[bold]{escape(file.name)}[/]")
        found = (finding for of, finding in findings if of == file)
        # One remedy below all that it is for.
        for remedy, alike in groupby(found, lambda finding: finding.remedy):
            for finding in alike:
                place = f"line {finding.line}: " if finding.line else ""
                colour = _COLOURS[finding.severity]
                console.print(
                    f"  {place}[{colour}]{finding.severity.value}[/]: {escape(finding.what)}", soft_wrap=True
                )
            console.print(f"      → {escape(remedy)}", soft_wrap=True)
    counts = {severity: sum(finding.severity is severity for _, finding in findings) for severity in Severity}
    console.print(
        "\n"
        + ", ".join(
            f"{count} {severity.value}{'' if count == 1 else 's'}" for severity, count in counts.items()
        )
    )
