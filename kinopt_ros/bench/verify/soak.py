"""Soak test: asks random requests, has the answers judged, and counts."""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from kinopt_ros.bench.verify.judge import Judge
from kinopt_ros.bench.verify.requests import KINDS, draw
from kinopt_ros.bench.verify.robots import subjects
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError, UnsupportedFeatureError
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status

_SHOWN = 20
"""Most objections that are kept."""


@dataclass
class Tally:
    """Counts of one robot."""

    requests: int = 0
    successes: int = 0
    solutions: int = 0
    rejected: int = 0
    """Successes that the judge rejects."""
    refused: int = 0
    """Number of requests for what the solver does not do, refused by name."""
    codes: Counter[str] = field(default_factory=Counter)
    by_kind: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of requests and successes of each kind."""
    worst: float = 0.0
    """Largest error of a success in units of its tolerance, as the judge sees it."""
    solver_seconds: float = 0.0
    """CPU time in solve_ik."""


@dataclass
class SoakReport:
    """Outcome of a run."""

    solver: str
    robots: dict[str, Tally]
    missing: list[str]
    objections: list[str]

    @property
    def rejected(self) -> int:
        """Successes that the judge rejects, over all robots."""
        return sum(tally.rejected for tally in self.robots.values())


def soak(
    solver_name: str,
    requests: int,
    seed: int = 0,
    minutes: float = float("inf"),
    advance: Callable[[int], object] = lambda count: None,
) -> SoakReport:
    """Ask random requests and judge every success.

    Args:
        solver_name: registered name of the solver.
        requests: how many, over all robots.
        seed: of the requests.
        minutes: stop after that time in any case.
        advance: called with the number of requests that are done.

    Raises:
        SolverUnavailableError: Pinocchio is not installed, or the solver cannot run.
        InvalidRequestError: a number is out of its range.
    """
    if find_spec("pinocchio") is None:
        raise SolverUnavailableError("answers are judged by Pinocchio; install it with `pip install pin`")
    if requests < 1 or seed < 0:
        raise InvalidRequestError(
            f"requests is {requests} and seed {seed}; allowed are 1 or more, and 0 or more"
        )
    found, missing = subjects()
    solvers = [create_solver(solver_name, subject.robot) for subject in found]
    for solver in solvers:
        solver.warm_up()
    judges = [Judge(subject) for subject in found]
    tallies = [Tally() for _ in found]
    objections: list[str] = []
    rng = np.random.default_rng(seed)
    names = list(KINDS)
    end = time.monotonic() + 60.0 * minutes
    done = 0
    turn = 0
    while done < requests and time.monotonic() < end:
        # The kind that is the farthest behind its share, so that large batches do not crowd out small ones.
        total = max(done, 1)
        asked = {name: sum(tally.by_kind.get(name, [0])[0] for tally in tallies) for name in names}
        kind = min(names, key=lambda name: asked[name] / (total * KINDS[name]) + 1e-9 * rng.random())
        index = turn % len(found)
        turn += 1
        subject, tally = found[index], tallies[index]
        drawn = draw(subject, rng, requests - done, kind)
        problem = drawn.problem
        B = problem.batch_size
        tally.requests += B
        counts = tally.by_kind.setdefault(kind, [0, 0])
        counts[0] += B
        done += B
        advance(B)
        start = time.process_time()
        try:
            result = solvers[index].solve_ik(problem)
        except UnsupportedFeatureError:
            tally.refused += B
            continue
        finally:
            tally.solver_seconds += time.process_time() - start
        successes = int(result.success.sum())
        counts[1] += successes
        tally.successes += successes
        tally.solutions += int(result.num_found.sum())
        tally.codes.update(Status(int(code)).name for code in result.status)
        wrong = judges[index](problem, result, subject.robot.variable_names, drawn.locked)
        tally.rejected += len({objection.request for objection in wrong})
        objections += [
            f"{subject.name}, {kind}, problem {turn - 1} of seed {seed}, request {one.request}, "
            f"solution {one.solution}: {one.reason}"
            for one in wrong[: max(0, _SHOWN - len(objections))]
        ]
    for solver, judge, tally in zip(solvers, judges, tallies, strict=True):
        solver.close()
        tally.worst = judge.worst
    by_name = {subject.name: tally for subject, tally in zip(found, tallies, strict=True)}
    return SoakReport(solver_name, by_name, missing, objections)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench verify``."""
    parser.add_argument("--requests", type=int, default=10_000, metavar="N", help="in all (10000)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the requests (0)")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), metavar="M", help="stop after that time"
    )
    parser.add_argument("--solver", default="cpu", help="solver plugin (cpu)")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Run and print; return 0 if the judge rejects nothing."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    shown = not args.json and sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("requests", total=args.requests)
        report = soak(
            args.solver,
            args.requests,
            args.seed,
            args.minutes,
            lambda count: progress.advance(task, count),
        )
    if args.json:
        _print_json(_record(report))
    else:
        _show(report)
    return 1 if report.rejected else 0


def _record(report: SoakReport) -> dict[str, Any]:
    return {
        "solver": report.solver,
        "requests": sum(tally.requests for tally in report.robots.values()),
        "successes": sum(tally.successes for tally in report.robots.values()),
        "solutions": sum(tally.solutions for tally in report.robots.values()),
        "rejected": report.rejected,
        "objections": report.objections,
        "not_installed": report.missing,
        "robots": {name: vars(tally) for name, tally in report.robots.items()},
    }


def _show(report: SoakReport) -> None:
    table = Table(
        "robot",
        "requests",
        "successes",
        "solutions",
        "rejected",
        "worst error / tolerance",
        "refused",
        "µs/request",
    )
    for name, tally in report.robots.items():
        table.add_row(
            name,
            f"{tally.requests:,}",
            f"{tally.successes:,}",
            f"{tally.solutions:,}",
            str(tally.rejected),
            f"{tally.worst:.6f}",
            str(tally.refused),
            f"{1e6 * tally.solver_seconds / max(tally.requests, 1):.0f}",
        )
    kinds = Table("kind", "requests", "successes")
    for kind in KINDS:
        counts = [tally.by_kind.get(kind, [0, 0]) for tally in report.robots.values()]
        asked, solved = (sum(values) for values in zip(*counts, strict=True))
        kinds.add_row(kind, f"{asked:,}", f"{solved:,} ({100 * solved / max(asked, 1):.2f} %)")
    console = Console()
    console.print(kinds)
    console.print(table)
    for name in report.missing:
        console.print(f"{name}: not installed (pip install example-robot-data)")
    for objection in report.objections:
        console.print(f"[red]rejected[/]: {objection}", highlight=False)
    console.print(f"{report.rejected} successes rejected by the judge")


def _print_json(record: dict[str, Any]) -> None:
    print(json.dumps(record, indent=2, allow_nan=False))
