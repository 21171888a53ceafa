"""`kinopt ik`: solve one pose and show the verified answer."""

import argparse
import time

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinopt_ros.commands import updown
from kinopt_ros.commands.arguments import add_json, add_robot, check_timeout, print_json, robot_of
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError
from kinopt_ros.kinematics.se3 import pose, quaternion_to_matrix, rpy_to_matrix
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import ORIENTATION_TOLERANCE, POSITION_TOLERANCE, IkProblem
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.solvers.registry import AUTO, create_solver
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.status import Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot(parser)
    parser.add_argument(
        "--group", help="joint group (default: the first with a tip, or the chain base to tip)"
    )
    parser.add_argument("--base", metavar="LINK", help="frame of the pose (default: the group's base)")
    parser.add_argument("--tip", metavar="LINK", help="link to place (default: the group's tip)")
    parser.add_argument(
        "--xyz", nargs=3, type=float, metavar=("X", "Y", "Z"), help="position, m (needed without --demo)"
    )
    rotation = parser.add_mutually_exclusive_group()
    rotation.add_argument("--rpy", nargs=3, type=float, metavar=("R", "P", "Y"), help="roll pitch yaw, rad")
    rotation.add_argument(
        "--quaternion", nargs=4, type=float, metavar=("X", "Y", "Z", "W"), help="unit quaternion in ROS order"
    )
    parser.add_argument("--seed-state", metavar="NAME", help="named state of the group to start from")
    parser.add_argument(
        "--position-tolerance",
        type=float,
        default=POSITION_TOLERANCE,
        metavar="M",
        help="how near the place has to be (default %(default)s)",
    )
    parser.add_argument(
        "--orientation-tolerance",
        type=float,
        default=ORIENTATION_TOLERANCE,
        metavar="RAD",
        help="how near the orientation has to be (default %(default)s)",
    )
    add_nearest(parser)
    parser.add_argument(
        "--timeout", type=float, default=1.0, metavar="S", help="time for the search (default 1)"
    )
    parser.add_argument("--random-seed", type=int, default=0, metavar="N", help="of the starts (default 0)")
    parser.add_argument("--solver", default=AUTO, help="solver plugin (default auto)")
    updown.add_arguments(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; return 0 if the pose is reached, or what is as near as possible is found as asked, 2 if not."""
    robot = robot_of(args)
    check_timeout(args.timeout)
    weights = weights_of(args)
    if args.demo:
        if args.nearest:
            raise InvalidRequestError("--nearest goes with one pose, not with --demo")
        return updown.run(args, robot)
    if args.display:
        raise InvalidRequestError("--display goes with --demo updown")
    if args.xyz is None:
        raise InvalidRequestError("give a position by --xyz X Y Z, or --demo updown")
    solver = create_solver(args.solver, robot)
    arguments = {
        "group": args.group,
        "base_link": args.base,
        "tip_link": args.tip,
        "state": None if args.seed_state is None else named_configuration(robot, args.seed_state),
        "position_tolerance": args.position_tolerance,
        "orientation_tolerance": args.orientation_tolerance,
        "nearest": weights,
        "random_seed": args.random_seed,
    }
    target = pose(_rotation(args), np.array(args.xyz))
    if args.nearest:
        solver.warm_up()  # no deadline waits for a compiler
    for _ in range(2):  # the first one warms up, so that the time shown is that of solving
        problem = ik_problem(robot, target, deadline=time.monotonic() + args.timeout, **arguments)
        result = solver.solve_ik(problem)
        if result.failed[0] and len(problem.variables) < 6:
            solver.warm_up()  # what says which axis to leave free
    solver.close()
    if args.json:
        print_json(_record(robot, problem, result))
    else:
        _show(Console(), robot, problem, result)
    return 2 if result.failed[0] else 0


def add_nearest(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for what is as near as possible."""
    parser.add_argument(
        "--nearest",
        action="store_true",
        help="come as near as possible in place of reaching the pose: the answer says what is met",
    )
    for kind, unit, default in (
        ("position", "1/m", PoseWeights().position),
        ("orientation", "1/rad", PoseWeights().orientation),
    ):
        parser.add_argument(
            f"--{kind}-weight",
            nargs="+",
            type=float,
            metavar="W",
            help=f"with --nearest: one number or three ({unit}) for the axes of the pose; 0 frees an axis (default "
            f"{default})",
        )


def weights_of(args: argparse.Namespace) -> PoseWeights | None:
    """Return the weights that arguments give; None without --nearest."""
    given = {
        kind: getattr(args, f"{kind}_weight")
        for kind in ("position", "orientation")
        if getattr(args, f"{kind}_weight") is not None
    }
    for kind, weights in given.items():
        if not args.nearest:
            raise InvalidRequestError(f"--{kind}-weight goes with --nearest")
        if len(weights) not in (1, 3):
            raise InvalidRequestError(f"--{kind}-weight has {len(weights)} numbers; allowed are one or three")
    if not args.nearest:
        return None
    return PoseWeights(
        **{kind: weights[0] if len(weights) == 1 else weights for kind, weights in given.items()}
    )


def _rotation(args: argparse.Namespace) -> np.ndarray:
    for given in (args.rpy, args.quaternion):
        if given is not None and not np.isfinite(given).all():
            raise InvalidGoalError(f"a rotation must be finite, not {given}")
    if args.rpy is not None:
        return rpy_to_matrix(np.array(args.rpy))
    if args.quaternion is not None:
        x, y, z, w = args.quaternion
        length = float(np.linalg.norm(args.quaternion))
        if not abs(length - 1.0) <= 0.01:
            raise InvalidGoalError(f"--quaternion has length {length:.6g}; allowed is 1 within 0.01")
        return quaternion_to_matrix(np.array([w, x, y, z]) / length)
    return np.eye(3)


def _record(robot: RobotModel, problem: IkProblem, result: IkResult) -> dict[str, object]:
    solved = bool(result.success[0])
    return {
        "robot": robot.name,
        "base": problem.base_link,
        "tip": problem.targets[0].link,
        "status": Status(int(result.status[0])).name,
        "message": result.messages[0],
        "notes": list(result.notes),
        "joint_names": list(result.joint_names),
        "positions": result.q[0, 0].tolist() if solved else [],
        "attempt": [] if solved else result.attempt[0].tolist(),
        "position_error_m": float(
            result.position_error[0, 0] if solved else result.attempt_position_error[0]
        ),
        "orientation_error_rad": float(
            result.orientation_error[0, 0] if solved else result.attempt_orientation_error[0]
        ),
        "solver": result.solver,
        "algorithm": result.algorithm,
        "solve_time_s": result.solve_time,
        "checks": list(result.checks),
        "not_checked": list(result.not_checked),
    }


def _solver(result: IkResult) -> str:
    return f"{result.solver} ({result.algorithm})" if result.algorithm else result.solver


def _show(console: Console, robot: RobotModel, problem: IkProblem, result: IkResult) -> None:
    solved = bool(result.success[0])
    values = result.q[0, 0] if solved else result.attempt[0]
    title = f"{robot.name}: {problem.targets[0].link} in {problem.base_link}"
    if solved:
        console.print(
            f"[green]solved[/] by {_solver(result)} in {result.solve_time * 1e3:.2f} ms, verification included"
        )
        position, orientation = result.position_error[0, 0], result.orientation_error[0, 0]
    elif result.nearest[0]:
        console.print(
            f"[yellow]as near as possible[/] by {_solver(result)} in {result.solve_time * 1e3:.2f} ms, checks "
            f"included: {escape(result.messages[0])}",
            highlight=False,
        )
        title += " (no solution)"
        position, orientation = result.attempt_position_error[0], result.attempt_orientation_error[0]
    else:
        console.print(
            f"[red]{Status(int(result.status[0])).name}[/]: {escape(result.messages[0])}", highlight=False
        )
        title += " (best attempt, no answer)"
        position, orientation = result.attempt_position_error[0], result.attempt_orientation_error[0]
    table = Table("joint", "position", "lower", "upper", title=escape(title))
    for name, value, index in zip(result.joint_names, values, problem.variables, strict=True):
        lower, upper = robot.limits.lower[index], robot.limits.upper[index]
        table.add_row(escape(name), f"{value:.6f}", f"{lower:.4f}", f"{upper:.4f}")
    console.print(table)
    console.print(f"position error {position:.2e} m, orientation error {orientation:.2e} rad")
    if not result.failed[0]:
        for note in result.notes:
            console.print(f"[yellow]note[/]: {escape(note)}", highlight=False, soft_wrap=True)
        console.print(
            f"verified: {', '.join(result.checks)}; not checked: {', '.join(result.not_checked)}",
            soft_wrap=True,
        )
