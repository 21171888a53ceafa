"""``kinopt bench beam``: PyRoki's IK-Beam and our solvers on the same targets, in batches.

Every solver runs in a process of its own, one after the other, and gets the same targets. A time is that of one call
with a batch of targets, until the answers are numpy arrays on the host. Ours contain the check of the problem, the
float64 polish, escalation where the beam fails, and the float64 verification; PyRoki's is its algorithm alone, in
float32, which knows of no failure. All answers are judged by Pinocchio in float64.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kinopt_ros.bench.beam.process import ANALYTIC, AUTODIFF, PYROKI, Variant, run_variant
from kinopt_ros.bench.beam.rows import Row, as_record, jacobian_table, rows_of, with_ratios
from kinopt_ros.bench.beam.tables import print_tables
from kinopt_ros.bench.machine import machine
from kinopt_ros.bench.progress import Report, no_report, progress_bar
from kinopt_ros.bench.targets import ik_task
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError, UnsupportedFeatureError
from kinopt_ros.solvers.registry import solver_names

SOLVERS = "jax_lm:analytic,jax_lm:autodiff,pyroki:analytic,pyroki:autodiff,cpu"
SIZES = "1,10,100,1000"
DEVICES = ("cpu", "cuda")
FEWEST_CALLS = 2
UNMEASURED = "unmeasured"


def run_beam_bench(
    robot: str = "panda",
    base: str | None = None,
    tip: str | None = None,
    variants: Sequence[Variant] = (),
    sizes: Sequence[int] = (1, 10, 100, 1000),
    targets: int = 200,
    device: str = "cpu",
    pyroki_python: Path = Path(".venv-pyroki/bin/python"),
    seed: int = 0,
    report: Report = no_report,
) -> dict[str, Any]:
    """Measure all solvers; return rows, versions, notes of those that could not run, and the table of Jacobians.

    Args:
        robot: URDF file or known name.
        base: link in which targets are given; default: that of the robot's first group.
        tip: link to place; likewise.
        variants: solvers and their Jacobians; default: ``SOLVERS``.
        sizes: targets per call.
        targets: at least so many per size, in at least two calls.
        device: ``cpu`` or ``cuda``.
        pyroki_python: interpreter of PyRoki's environment.
        seed: of the targets.
        report: told the solver and the number of targets that it was given, ``count_targets`` in all.

    Raises:
        SolverUnavailableError: figures of a graphics card are asked for, and there is none.
    """
    plan = calls_of(sizes, targets)
    task = ik_task(robot, base, tip, max(size * calls for size, calls in plan), "random", seed)
    rows: list[Row] = []
    notes: dict[str, str] = {}
    about: dict[str, Any] = {}
    for variant in variants or parse_variants(SOLVERS):
        report(variant.name, 0)

        def progress(count: int, name: str = variant.name) -> None:
            report(name, count)

        try:
            outcome = run_variant(variant, robot, task, plan, device, pyroki_python, progress)
        except (SolverUnavailableError, UnsupportedFeatureError) as error:
            notes[variant.name] = str(error)
            report(variant.name, sum(size * calls for size, calls in plan))
            continue
        rows += rows_of(variant, outcome, task)
        about[variant.name] = {
            "versions": outcome.about["versions"],
            "device": outcome.about["device"],
            "device_kind": outcome.about.get("device_kind"),
            "restart_s": outcome.restart_s,
        }
    if device != "cpu" and all(row.device == "cpu" for row in rows):
        reasons = "; ".join(f"{name}: {note}" for name, note in notes.items())
        raise SolverUnavailableError(f"nothing was measured on a {device} device: {reasons}")
    rows = with_ratios(rows)
    return {
        "machine": machine(),
        "robot": task.robot.name,
        "base_link": task.base_link,
        "tip_link": task.tip_link,
        "device": device,
        "gpu": UNMEASURED if device == "cpu" else "measured",
        "solvers": about,
        "notes": notes,
        "rows": [as_record(row) for row in rows],
        "jacobians": jacobian_table(rows),
    }


def calls_of(sizes: Sequence[int], targets: int) -> list[tuple[int, int]]:
    """Return batch sizes, each with its number of calls."""
    if not sizes or min(sizes) < 1:
        raise InvalidRequestError(f"sizes are {list(sizes)}; allowed are numbers of 1 or more")
    if targets < 1:
        raise InvalidRequestError(f"targets is {targets}; allowed is 1 or more")
    return [(size, max(FEWEST_CALLS, -(-targets // size))) for size in sizes]


def count_targets(sizes: Sequence[int], targets: int, variants: int) -> int:
    """Return how many targets ``run_beam_bench`` reports in all."""
    return variants * sum(size * calls for size, calls in calls_of(sizes, targets))


def parse_variants(text: str) -> list[Variant]:
    """Parse ``SOLVER[:JACOBIAN],...``; PyRoki's Jacobians are analytic unless autodiff is said."""
    variants = []
    known = (PYROKI, *solver_names())
    for name in (part.strip() for part in text.split(",")):
        solver, _, jacobian = name.partition(":")
        if solver not in known or jacobian not in ("", ANALYTIC, AUTODIFF):
            raise InvalidRequestError(
                f"solver is {name!r}; allowed are {', '.join(known)}, each with :{ANALYTIC} or :{AUTODIFF}, "
                "where it has this option"
            )
        variants.append(Variant(solver, jacobian or (ANALYTIC if solver == PYROKI else None)))
    return variants


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench beam``."""
    parser.add_argument(
        "--robot", default="panda", metavar="NAME|FILE", help="URDF file or known name (panda)"
    )
    parser.add_argument("--base", metavar="LINK", help="link in which targets are given (of the first group)")
    parser.add_argument("--tip", metavar="LINK", help="link to place (of the first group)")
    parser.add_argument("--solver", default=SOLVERS, metavar="A,B:JACOBIAN", help=f"({SOLVERS})")
    parser.add_argument("--sizes", default=SIZES, metavar="N,M", help=f"targets per call ({SIZES})")
    parser.add_argument(
        "--targets",
        type=int,
        default=200,
        metavar="N",
        help="at least so many per size, in two calls or more (200)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the targets (0)")
    parser.add_argument(
        "--device",
        choices=DEVICES,
        default="cpu",
        help="where all of them compute, but for the solver cpu (cpu)",
    )
    parser.add_argument(
        "--pyroki-python",
        default=".venv-pyroki/bin/python",
        metavar="FILE",
        help="interpreter of an environment with almond-pyroki (.venv-pyroki/bin/python)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if every solver asked for could run."""
    try:
        sizes = [int(size) for size in args.sizes.split(",")]
    except ValueError:
        raise InvalidRequestError(f"sizes are {args.sizes!r}; allowed are numbers and commas") from None
    variants = parse_variants(args.solver)
    total = count_targets(sizes, args.targets, len(variants))
    with progress_bar("measuring", total, enabled=not args.json and sys.stderr.isatty()) as report:
        result = run_beam_bench(
            args.robot,
            args.base,
            args.tip,
            variants,
            sizes,
            args.targets,
            args.device,
            Path(args.pyroki_python),
            args.seed,
            report,
        )
    if args.json:
        print(json.dumps(result, indent=2, allow_nan=False))
    else:
        print_tables(result)
    return 1 if result["notes"] else 0
