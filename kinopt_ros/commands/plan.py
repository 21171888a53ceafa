"""`kinopt plan`: a verified motion around obstacles, with a picture of it."""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinopt_ros.bench.plots import check_plot
from kinopt_ros.commands.arguments import add_json, check_timeout, joint_values, print_json
from kinopt_ros.commands.plan_plot import plot_motion
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.planning.problem_files import ProblemFile, load_problem, problem_of
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.solvers.paths import Progress
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import AUTO, create_solver
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status

TIMEOUT = 10.0
"""Default of --timeout, s."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="problem as YAML (see examples/plan); instead of all that follows",
    )
    parser.add_argument("--robot", metavar="NAME|FILE", help="URDF file or known name (default panda)")
    parser.add_argument("--srdf", metavar="FILE", help="SRDF file with groups and named states")
    parser.add_argument("--group", help="joints to move (default: the first group with a tip)")
    parser.add_argument(
        "--scene", metavar="FILE", help="scene as YAML; without one only the robot itself is in the way"
    )
    parser.add_argument(
        "--start",
        nargs="+",
        metavar="STATE|NAME=VALUE",
        help="named state to start from, or joint values in rad or m (default: the robot's default configuration)",
    )
    parser.add_argument("--tip", metavar="LINK", help="link that --to-xyz is about (default: the group's)")
    parser.add_argument("--to-state", metavar="STATE", help="goal: a named state")
    parser.add_argument(
        "--to-xyz", nargs=3, type=float, metavar=("X", "Y", "Z"), help="goal: position of the tip, m"
    )
    parser.add_argument(
        "--to-rpy", nargs=3, type=float, metavar=("R", "P", "Y"), help="and its roll pitch yaw, rad"
    )
    parser.add_argument("--clearance", type=float, metavar="M", help="least distance from things (default 0)")
    parser.add_argument("--velocity-scaling", type=float, metavar="SHARE", help="of the limits (default 0.1)")
    parser.add_argument(
        "--acceleration-scaling", type=float, metavar="SHARE", help="of the limits (default 0.1)"
    )
    parser.add_argument("--duration", type=float, metavar="S", help="(default: as short as the limits allow)")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="S", help=f"(default {TIMEOUT:g})")
    parser.add_argument("--solver", default=AUTO, help="solver plugin (default auto)")
    parser.add_argument("--plot", metavar="PNG", help="draw positions, velocities and clearance over time")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; return 0 if a motion was found, 2 if not."""
    check_timeout(args.timeout)
    picture = None if args.plot is None else check_plot(args.plot)
    console = Console(stderr=args.json)
    with console.status("reading") as status:
        asked = _asked(args)
        robot = asked.robot
        solver = create_solver(args.solver, robot)
        if asked.problem.scene is not None:
            status.update("shapes, spheres and pairs of the robot")
            prepare_collisions(robot)
        status.update("compiling")
        solver.warm_up_motions()

        def report(progress: Progress) -> bool:
            status.update(f"{progress.stage}, {progress.iteration} steps of the optimizer")
            return True

        # Only now the time counts.
        timed = replace(asked.problem, deadline=time.monotonic() + args.timeout)
        result = plan_trajectory(solver, timed, report)
        solver.close()
        if picture is not None and result.trajectory is not None:
            status.update("drawing")
            plot_motion(robot, asked.problem, result, picture)
    if args.json:
        print_json(_record(asked, result))
    else:
        _show(console, asked, result)
        if picture is not None:
            console.print(f"picture: {escape(str(picture))}" if result.success else "no motion, no picture")
    return 0 if result.success else 2


def _asked(args: argparse.Namespace) -> ProblemFile:
    flags = ("robot", "srdf", "group", "scene", "start", "tip", "to_state", "to_xyz", "to_rpy")
    numbers = ("clearance", "velocity_scaling", "acceleration_scaling", "duration")
    given = [name for name in (*flags, *numbers) if getattr(args, name) is not None]
    if args.file is not None:
        if given:
            raise InvalidRequestError(
                f"--{given[0].replace('_', '-')} is said by the file {args.file!r} already"
            )
        return load_problem(args.file)
    said: dict[str, Any] = {
        name: getattr(args, name) for name in (*flags[:4], *numbers) if getattr(args, name) is not None
    }
    if args.start is not None:
        named = len(args.start) == 1 and "=" not in args.start[0]
        said["start"] = args.start[0] if named else joint_values("--start", args.start)
    said.setdefault("scene", "empty")
    if (args.to_state is None) == (args.to_xyz is None):
        raise InvalidRequestError("give a FILE, or one goal: --to-state STATE or --to-xyz X Y Z")
    if args.to_state is not None:
        for option, value in (("--to-rpy", args.to_rpy), ("--tip", args.tip)):
            if value is not None:
                raise InvalidRequestError(f"{option} goes with --to-xyz")
        said["goals"] = [{"state": args.to_state}]
    else:
        pose = {"xyz": args.to_xyz, "rpy": args.to_rpy or [0.0, 0.0, 0.0]}
        said["goals"] = [{"pose": pose, **({} if args.tip is None else {"link": args.tip})}]
    return problem_of(said, Path())


def _record(asked: ProblemFile, result: TrajectoryResult) -> dict[str, object]:
    trajectory, attempt = result.trajectory, result.attempt
    return {
        "robot": asked.robot.name,
        "status": Status(result.status).name,
        "message": result.message,
        "notes": list(result.notes),
        "joint_names": list(asked.problem.joints if trajectory is None else trajectory.joint_names),
        "time_s": [] if trajectory is None else trajectory.time.tolist(),
        "positions": [] if trajectory is None else trajectory.position.tolist(),
        "velocities": [] if trajectory is None else trajectory.velocity.tolist(),
        "accelerations": [] if trajectory is None else trajectory.acceleration.tolist(),
        "turning": [
            {
                "joint": one.joint,
                "angles": list(one.angles),
                "before_wxyz": one.before.tolist(),
                "after_wxyz": one.after.tolist(),
            }
            for one in result.turning
        ],
        "goal": result.goal,
        "length": result.length,
        "clearance_m": result.clearance,
        "attempt": [] if attempt is None else attempt.path.tolist(),
        "violation": None if attempt is None else attempt.violation.message,
        "solver": result.solver,
        "iterations": result.iterations,
        "attempts": result.attempts,
        "stages_s": result.stages,
        "solve_time_s": result.solve_time,
        "checks": list(result.checks),
        "not_checked": list(result.not_checked),
    }


def _show(console: Console, asked: ProblemFile, result: TrajectoryResult) -> None:
    trajectory = result.trajectory
    if trajectory is None:
        console.print(
            f"[red]{Status(result.status).name}[/]: {escape(result.message)}", highlight=False, soft_wrap=True
        )
        return
    console.print(
        f"[green]found[/] by {result.solver} in {result.solve_time * 1e3:.1f} ms, verification included"
    )
    stages = ", ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in result.stages.items())
    console.print(f"ms: {stages}; {result.iterations} steps of the optimizer on {result.attempts} paths")
    table = Table(
        "joint", "from", "to", "fastest", title=escape(f"{asked.robot.name}: {trajectory.duration:.3f} s")
    )
    fastest = abs(trajectory.velocity).max(axis=0)
    for name, first, last, speed in zip(
        trajectory.joint_names, trajectory.position[0], trajectory.position[-1], fastest, strict=True
    ):
        table.add_row(escape(name), f"{first:.4f}", f"{last:.4f}", f"{speed:.3f}")
    console.print(table)
    near = "" if asked.problem.scene is None else f", clearance {result.clearance:.4f} m or more"
    console.print(f"{len(trajectory.time)} points, {result.length:.3f} rad{near}")
    for note in result.notes:
        console.print(f"[yellow]note[/]: {escape(note)}", highlight=False, soft_wrap=True)
    console.print(
        f"verified: {', '.join(result.checks)}; not checked: {', '.join(result.not_checked) or 'nothing'}",
        soft_wrap=True,
    )
