"""`kinopt objective`: solve what a file of costs describes, and show what became of each."""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from kinopt_ros.commands.arguments import add_json, add_robot, print_json, robot_of
from kinopt_ros.costs.registry import cost_kind, cost_names
from kinopt_ros.errors import InvalidRequestError, quoted
from kinopt_ros.files import read_text
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.reading import LONGEST_TEXT, objective_problem_from_text
from kinopt_ros.objectives.result import ObjectiveResult
from kinopt_ros.planning.objectives import solve_objective, solver_for
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.states import named_configuration
from kinopt_ros.solvers.registry import AUTO, create_solver, solver_class
from kinopt_ros.status import Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot(parser)
    parser.add_argument("file", nargs="?", type=Path, help="YAML: a list of costs, each with 'cost: NAME'")
    parser.add_argument("--list", action="store_true", help="list the kinds of costs instead")
    parser.add_argument("--group", help="joint group to move (default: that of the file, else the first)")
    parser.add_argument("--lock", nargs="+", metavar="NAME", help="directions or joints that do not move")
    parser.add_argument("--seed-state", metavar="NAME", help="named state to start from")
    parser.add_argument(
        "--points", type=int, metavar="T", help="points of a trajectory (default: the file's, else 1)"
    )
    parser.add_argument(
        "--dt", type=float, metavar="S", help="time between points (default: the file's, else 0.1)"
    )
    parser.add_argument(
        "--starts",
        type=int,
        metavar="N",
        help="random starts (default: the file's, else 16, or 128 where manipulability is weighed)",
    )
    parser.add_argument("--random-seed", type=int, default=0, metavar="N", help="of the starts (default 0)")
    parser.add_argument(
        "--solver", help="solver plugin (default: the first that solves objectives of these costs)"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; return 0 for a success, 3 for the nearest, 2 if something does not hold."""
    if args.list:
        print_json({"costs": kinds()}) if args.json else _list(Console())
        return 0
    if args.file is None:
        raise InvalidRequestError("name a file of costs, or --list")
    robot = robot_of(args)
    given = {
        "group": args.group,
        "locked": None if args.lock is None else tuple(args.lock),
        "num_points": args.points,
        "dt": args.dt,
        "num_starts": args.starts,
        "state": None if args.seed_state is None else named_configuration(robot, args.seed_state),
    }
    problem = objective_problem_from_text(
        robot,
        read_text(args.file, LONGEST_TEXT, f"the objective {quoted(str(args.file))}"),
        random_seed=args.random_seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    name = args.solver or solver_for(problem.objective, problem.num_points)
    # Programs of plain poses, which some solvers compile for groups before they are ready, serve nobody here.
    spared = {option.name: "" for option in solver_class(name).options if option.name == "groups"}
    solver = create_solver(name, robot, spared)
    ik_solver = create_solver(AUTO, robot)
    try:
        if not args.json and solver.capabilities.objective_costs is None:
            Console(stderr=True).print(
                "Compiling what this structure needs, if it is new here ...", style="dim"
            )
        result = solve_objective(solver, problem, ik_solver)
    finally:
        ik_solver.close()
        solver.close()
    if args.json:
        print_json(record(problem, result))
    else:
        _show(Console(), robot, problem, result)
    return {Status.SUCCESS: 0, Status.NEAREST: 3}.get(Status(int(result.status[0])), 2)


def record(problem: ObjectiveProblem, result: ObjectiveResult) -> dict[str, object]:
    """Return an answer as plain data."""
    return {
        "status": Status(int(result.status[0])).name,
        "message": result.messages[0],
        "variables": list(result.variable_names),
        "q": result.best[0].tolist(),
        "dt": result.dt if problem.num_points > 1 else None,
        "costs": [
            {
                "title": term.title,
                "value": term.value,
                "magnitude": term.magnitude.tolist(),
                "tolerance": None if term.tolerance is None else term.tolerance.tolist(),
                "met": term.met,
                "multipliers": multipliers[0].tolist(),
            }
            for term, multipliers in zip(result.terms[0], result.multipliers, strict=True)
        ],
        "iterations": int(result.iterations[0]),
        "history": result.history[0][np.isfinite(result.history[0])].tolist(),
        "solver": result.solver,
        "solve_time": result.solve_time,
        "checks": list(result.checks),
        "not_checked": list(result.not_checked),
        "notes": list(result.notes),
    }


def _show(console: Console, robot: RobotModel, problem: ObjectiveProblem, result: ObjectiveResult) -> None:
    code = Status(int(result.status[0]))
    style = {"SUCCESS": "bold green", "NEAREST": "bold yellow"}.get(code.name, "bold red")
    console.print(f"[{style}]{code.name}[/]  {escape(result.messages[0])}")
    table = Table("cost", "value", "off by", "allowed", "holds")
    for term in result.terms[0]:
        allowed = "-" if term.tolerance is None else ", ".join(f"{x:.3g}" for x in term.tolerance)
        holds = "-" if term.tolerance is None else ("yes" if term.met else "[red]no[/]")
        off = ", ".join(f"{x:.3g}" for x in term.magnitude[:6]) + (" ..." if len(term.magnitude) > 6 else "")
        table.add_row(escape(term.title), f"{term.value:.6g}", off, allowed, holds)
    console.print(table)
    if problem.num_points == 1:
        for name, value in zip(result.variable_names, result.best[0, 0], strict=True):
            console.print(f"  {escape(name)}: {value:.6f}")
    else:
        console.print(f"{problem.num_points} points, {problem.dt} s apart (--json writes them)")
    console.print(
        f"[dim]{result.solver}, {result.solve_time * 1e3:.2f} ms, {int(result.iterations[0])} steps; "
        f"checked: {', '.join(result.checks)}; not checked: {', '.join(result.not_checked)}[/]"
    )


def kinds() -> list[dict[str, str]]:
    """Return the kinds of costs as plain data."""
    return [
        {"cost": name, "residual": kind.formula, "units": kind.units, "what it is": _first_line(kind.__doc__)}
        for name, kind in ((name, cost_kind(name)) for name in cost_names())
    ]


def _first_line(text: str | None) -> str:
    return next(iter((text or "").strip().splitlines()), "")


def _list(console: Console) -> None:
    table = Table(Column("cost", no_wrap=True), "residual", "units", "what it is")
    for kind in kinds():
        table.add_row(*map(escape, kind.values()))
    console.print(table)
