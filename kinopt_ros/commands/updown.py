"""`kinopt ik --demo updown`: the tip goes up and down around where it is, each target from the last answer."""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from kinopt_ros.array import Float64
from kinopt_ros.commands.arguments import print_json, require_ros
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.chains import resolve_chain
from kinopt_ros.robot.chain import KinematicChain, chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the demonstration."""
    parser.add_argument("--demo", choices=("updown",), help="instead of one pose: up and down from the state")
    parser.add_argument(
        "--amplitude", type=float, default=0.05, metavar="M", help="of --demo, up and down (0.05)"
    )
    parser.add_argument(
        "--cycles", type=int, default=10, metavar="N", help="of --demo, two targets each (10)"
    )
    parser.add_argument(
        "--period", type=float, default=2.0, metavar="S", help="of --demo, between targets (2)"
    )
    parser.add_argument(
        "--display",
        action="store_true",
        help="of --demo, publish motions to what is reached on display_planned_path, which rviz plays (needs ROS and "
        "moveit_msgs)",
    )


def run(args: argparse.Namespace, robot: RobotModel) -> int:
    """Run the demonstration; return 0 if every target was reached, 2 if not."""
    if args.cycles < 1:
        raise InvalidRequestError(f"--cycles is {args.cycles}; allowed is 1 or more")
    for name in ("amplitude", "period"):
        if not 0.0 <= getattr(args, name) < float("inf"):
            raise InvalidRequestError(f"--{name} is {getattr(args, name)}; allowed is 0 or more")
    base, tip, _ = resolve_chain(robot, args.group, args.base, args.tip)
    console = Console(quiet=args.json)
    with _display(args, robot) as show:
        steps = _go(args, robot, chain_between(robot, base, tip), console, show)
    solved = [step for step in steps if step["status"] == "SUCCESS"]
    summary = {
        "targets": len(steps),
        "successes": len(solved),
        "median_iterations": median(step["iterations"] for step in steps),
        "position_error_max_m": max(step["position_error_m"] for step in steps),
        "orientation_error_max_rad": max(step["orientation_error_rad"] for step in steps),
        "largest_joint_step": max((step["largest_joint_step"] for step in solved), default=None),
    }
    if args.json:
        print_json({"robot": robot.name, "base": base, "tip": tip, **summary, "steps": steps})
    else:
        console.print(
            f"{len(solved)} of {len(steps)} reached, {summary['median_iterations']:g} iterations at the median, "
            f"off by {summary['position_error_max_m']:.1e} m, "
            f"{summary['orientation_error_max_rad']:.1e} rad at most",
            highlight=False,
            soft_wrap=True,
        )
    return 0 if len(solved) == len(steps) else 2


@contextmanager
def _display(args: argparse.Namespace, robot: RobotModel) -> Iterator[Any]:
    """Yield what shows a motion in rviz, or None."""
    if not args.display:
        yield None
        return
    require_ros()
    from kinopt_ros.ros.client.path_display import path_display

    with path_display(robot) as show:
        yield show


def _go(
    args: argparse.Namespace, robot: RobotModel, chain: KinematicChain, console: Console, show: Any
) -> list[dict[str, Any]]:
    """Solve all targets, and say what became of each; return their records."""
    state = robot.default_q if args.seed_state is None else named_configuration(robot, args.seed_state)
    start = chain_pose(chain, state[chain.variables])
    solver = create_solver(args.solver, robot)
    solver.warm_up()
    console.print(
        escape(
            f"{robot.name}: {chain.tip_link} up and down by {args.amplitude:g} m in {chain.base_link}, "
            f"{args.cycles} cycles"
        )
    )
    steps = []
    q = state.copy()
    for number in range(2 * args.cycles):
        if number and args.period:
            time.sleep(args.period)
        target = start.copy()
        target[2, 3] += args.amplitude * (1.0 if number % 2 == 0 else -1.0)
        step, following = _step(args, robot, solver, target, q)
        steps.append(step)
        if show is not None and step["largest_joint_step"] > 0.0:
            step["not_displayed"] = show(q, following, chain.variables)
        q = following
        shown = (
            f"[green]Success[/] off by {step['position_error_m']:.1e} m, {step['orientation_error_rad']:.1e} rad, "
            f"{step['iterations']} iterations, {1e3 * step['solve_time_s']:.2f} ms"
            if step["status"] == "SUCCESS"
            else f"[red]Failed[/] {escape(step['message'])}"
        )
        if step.get("not_displayed"):
            shown += f", not displayed: {escape(step['not_displayed'])}"
        console.print(f"{number + 1:4d} {'up  ' if number % 2 == 0 else 'down'} {shown}", highlight=False)
    solver.close()
    return steps


def _step(
    args: argparse.Namespace, robot: RobotModel, solver: Any, target: Float64, q: Float64
) -> tuple[dict[str, Any], Float64]:
    """Solve one target; return its record, and the state after it."""
    problem = ik_problem(
        robot,
        target,
        group=args.group,
        base_link=args.base,
        tip_link=args.tip,
        state=q,
        position_tolerance=args.position_tolerance,
        orientation_tolerance=args.orientation_tolerance,
        deadline=time.monotonic() + args.timeout,
        random_seed=args.random_seed,
    )
    result = solver.solve_ik(problem)
    reached = bool(result.success[0])
    following = q.copy()
    if reached:
        following[problem.variables] = result.q[0, 0]
    position = result.position_error[0, 0] if reached else result.attempt_position_error[0]
    orientation = result.orientation_error[0, 0] if reached else result.attempt_orientation_error[0]
    record = {
        "status": Status(int(result.status[0])).name,
        "message": result.messages[0],
        "position_error_m": float(position),
        "orientation_error_rad": float(orientation),
        "iterations": int(result.iterations[0]),
        "largest_joint_step": float(np.abs(following - q).max(initial=0.0)),
        "solve_time_s": result.solve_time,
    }
    return record, following
