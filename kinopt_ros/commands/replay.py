"""`kinopt replay`: solves recorded problems again and compares the outcome."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinopt_ros.commands.arguments import add_json, print_json
from kinopt_ros.errors import InvalidRequestError, KinoptError, quoted, shortened
from kinopt_ros.files import is_file, is_folder
from kinopt_ros.problems.record import Record, load_record, recorded_problem, recorded_robot
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver, solver_class
from kinopt_ros.status import Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("records", nargs="+", metavar="FILE|FOLDER", help="records, or folders of them")
    parser.add_argument("--robot", metavar="NAME|FILE", help="solve for this robot, not for the recorded one")
    parser.add_argument("--solver", metavar="NAME", help="solve with this solver (default: the recorded one)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; return 0 if no outcome is worse than the recorded one, else 1."""
    files = _files(args.records)
    rows = [_replayed(file, args) for file in files]
    worse = sum(row["worse"] for row in rows)
    if args.json:
        print_json({"records": rows, "worse": worse})
    else:
        _show(rows)
    return 1 if worse else 0


def _files(given: list[str]) -> list[Path]:
    files: list[Path] = []
    for name in given:
        path = Path(name)
        if is_folder(path):
            files += sorted(path.glob("*.yaml"))
        elif is_file(path):
            files.append(path)
        else:
            raise InvalidRequestError(f"there is no record or folder {quoted(name, 300)}")
    if not files:
        raise InvalidRequestError(f"there is no record (*.yaml) in {shortened(given)}")
    return files


def _replayed(file: Path, args: argparse.Namespace) -> dict[str, Any]:
    row: dict[str, Any] = {"file": file.name, "robot": "", "recorded": []}
    try:
        record = load_record(file)
        row |= {"robot": record.robot, "recorded": _names(record.status)}
        robot = load_robot(args.robot) if args.robot else recorded_robot(record, file)
        return row | _solved(record, file, robot, args.solver or record.solver)
    except KinoptError as error:
        return row | {"now": [error.status.name], "message": str(error), "worse": True}


def _solved(record: Record, file: Path, robot: RobotModel, solver_name: str) -> dict[str, Any]:
    solver = create_solver(solver_name, robot, _options(record) if solver_name == record.solver else {})
    solver.warm_up()
    try:
        if record.has_scene:
            prepare_collisions(robot)  # before the recorded time begins to run
        result = solver.solve_ik(recorded_problem(record, robot, file))
    finally:
        solver.close()
    before = np.array([code in (Status.SUCCESS, Status.NEAREST) for code in record.status], dtype=bool)
    worse = len(before) == len(result.failed) and bool((before & result.failed).any())
    failed = [message for message in result.messages if message]
    return {
        "now": _names(result.status.tolist()),
        "message": failed[0] if failed else "",
        "solver": result.solver,
        "time_ms": 1e3 * result.solve_time,
        "worse": worse,
    }


def _options(record: Record) -> dict[str, Any]:
    """Return the recorded options, without names of files: what those are for changes no answer, and a record of
    somebody else opens none."""
    own = {option.name for option in solver_class(record.solver).options if option.read_only}
    return {name: value for name, value in record.options.items() if name not in own}


def _names(codes: Any) -> list[str]:
    """Return the names of codes, each once, in their order."""
    known = {int(status): status.name for status in Status}
    return list(dict.fromkeys(known.get(int(code), str(code)) for code in codes))


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table("record", "robot", "then", "now", "ms", "message")
    for row in rows:
        colour = "red" if row["worse"] else "green"
        time = f"{row['time_ms']:.2f}" if "time_ms" in row else ""
        table.add_row(
            escape(row["file"]),
            escape(row["robot"]),
            ", ".join(row["recorded"]),
            f"[{colour}]{', '.join(row['now'])}[/]",
            time,
            escape(row["message"]),
        )
    Console().print(table)
