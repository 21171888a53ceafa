"""Arguments and output of ``kinopt bench hjcd``."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kinopt_ros.bench.hjcd.arms import arm
from kinopt_ros.bench.hjcd.diversity import BEAM, DiversityRow, measure_diversity
from kinopt_ros.bench.hjcd.plot import plot_accuracy
from kinopt_ros.bench.hjcd.scaling import GRAPHS, LEAST_SEEDS, SUFFIX, ScalingRow, measure
from kinopt_ros.bench.machine import machine
from kinopt_ros.bench.plots import check_plot
from kinopt_ros.bench.progress import progress_bar
from kinopt_ros.errors import InvalidRequestError, KinoptError
from kinopt_ros.solvers.registry import solver_class

TABLES = ("seeds", "joints", "diversity")
ALGORITHMS = ("screened_lm", "hjcd_ik", BEAM, *GRAPHS)
USUAL = ALGORITHMS[:3]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``kinopt bench hjcd``."""
    parser.add_argument(
        "--tables", type=_names(TABLES), default=TABLES, help="of seeds,joints,diversity (all)"
    )
    parser.add_argument(
        "--algorithms",
        type=_names(ALGORITHMS),
        default=USUAL,
        help="of screened_lm,hjcd_ik,ik_beam (these), and screened_lm_graphs,hjcd_ik_graphs, which are the first two "
        "with CUDA graphs; ik_beam, of the plugin jax_lm, is in the table diversity only, graphs are in the others",
    )
    parser.add_argument("--device", default="auto", help="as the parameter hjcd.device (auto)")
    parser.add_argument(
        "--targets", type=_count, default=100, metavar="N", help="Halton targets per arm (100)"
    )
    parser.add_argument(
        "--per-call", type=_numbers, default=(1,), metavar="B,...", help="targets per call (1)"
    )
    parser.add_argument("--robots", default="panda,fetch", help="arms of the table seeds (panda,fetch)")
    parser.add_argument(
        "--seeds",
        type=_numbers,
        default=(1, 10, 100, 1000, 2000),
        metavar="M,...",
        help="(1,10,100,1000,2000)",
    )
    parser.add_argument(
        "--joints", type=_numbers, default=(7, 12, 18, 24), metavar="J,...", help="(7,12,18,24)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the targets (0)")
    parser.add_argument(
        "--plot",
        metavar="FILE.png",
        help="draw time per target against error by numbers of seeds (the table seeds)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; 0 if everything could be measured."""
    scaling: list[ScalingRow] = []
    diversity: list[DiversityRow] = []
    failures: list[str] = []
    plan = _plan(args)
    device = ""
    try:
        compared = tuple(
            name for name in args.algorithms if name not in GRAPHS and "diversity" in args.tables
        )
        if not plan and not compared:
            raise InvalidRequestError(
                f"nothing to measure: the tables {','.join(args.tables)} have no rows of {','.join(args.algorithms)}"
            )
        picture = None if args.plot is None else _picture(args)
        device, has_graphs = _device(args.device)
        with_graphs = [name for name in args.algorithms if name in GRAPHS]
        if with_graphs and not has_graphs:
            raise InvalidRequestError(f"{with_graphs[0]} needs a CUDA device; this is {device}")
        calls = sum(-(-args.targets // per_call) for *_, per_call in plan)
        with progress_bar("measuring", calls, enabled=not args.json and sys.stderr.isatty()) as report:
            for name, algorithm, seeds, per_call in plan:
                try:
                    here = arm(name, args.targets, args.seed)
                    scaling.append(measure(here, algorithm, seeds, per_call, args.device, report))
                except KinoptError as error:
                    failures.append(f"{name}: {error}")
            if compared:
                here = arm("panda", args.targets, args.seed)
                diversity = measure_diversity(here, compared, 2000, 50, args.device, failures.append)
        if picture is not None:
            drawn = [row for row in scaling if row.robot in _robots(args)]
            plot_accuracy(drawn, f"{args.targets} Halton targets, hjcd on {device}", picture)
    except KinoptError as error:
        failures.append(str(error))
    failures = list(dict.fromkeys(failures))
    if args.json:
        rows = {"scaling": [asdict(r) for r in scaling], "diversity": [asdict(r) for r in diversity]}
        record = {"device": device, "machine": machine(), **rows, "failures": failures}
        print(json.dumps(record, indent=2, allow_nan=False))
    else:
        _show(device, scaling, diversity, failures)
    return 1 if failures else 0


def _plan(args: argparse.Namespace) -> list[tuple[str, str, int, int]]:
    """Arm, algorithm, seeds, and targets per call of every row."""
    sizes = []
    if "seeds" in args.tables:
        sizes += [(name, seeds) for name in _robots(args) for seeds in args.seeds]
    if "joints" in args.tables:
        sizes += [(f"panda_{joints}", 1000) for joints in args.joints]
    return [
        (name, algorithm, seeds, per_call)
        for name, seeds in sizes
        for algorithm in args.algorithms
        if seeds >= LEAST_SEEDS.get(algorithm.removesuffix(SUFFIX), seeds + 1)
        for per_call in args.per_call
    ]


def _robots(args: argparse.Namespace) -> list[str]:
    """Arms of the table by seeds."""
    return [name.strip() for name in args.robots.split(",")]


def _picture(args: argparse.Namespace) -> Path:
    if "seeds" not in args.tables:
        raise InvalidRequestError(f"--plot draws the table seeds; --tables is {','.join(args.tables)}")
    return check_plot(args.plot)


def _device(name: str) -> tuple[str, bool]:
    """Return what Warp calls the device, and whether it has CUDA graphs."""
    solver_class("hjcd")  # or why it cannot run
    from kinopt_ros.solvers.hjcd.runtime import start

    device = start(name)
    return "CPU (Warp's kernels, one thread)" if device.is_cpu else str(device.name), device.is_cuda


def _show(device: str, scaling: list[ScalingRow], diversity: list[DiversityRow], failures: list[str]) -> None:
    console = Console()
    console.width = max(console.width, 160)
    if scaling:
        headings = (
            "algorithm",
            "targets",
            "seeds",
            "calls",
            "success",
            "median ms",
            "p99",
            "error m",
            "median",
            "max",
        )
        table = Table("robot", "joints", *headings, "error rad", "median", "max", title=f"hjcd on {device}")
        for r in scaling:
            errors = (
                r.position_error_mean_m, r.position_error_median_m, r.position_error_max_m,
                r.orientation_error_mean_rad, r.orientation_error_median_rad, r.orientation_error_max_rad,
            )  # fmt: skip
            sizes = (str(r.joints), r.algorithm, str(r.targets), str(r.seeds), str(r.calls))
            times = (f"{100 * r.success:.1f} %", f"{r.median_ms:.2f}", f"{r.p99_ms:.2f}")
            table.add_row(r.robot, *sizes, *times, *(f"{error:.1e}" for error in errors))
        console.print(table)
    if diversity:
        columns = ("algorithm", "targets", "seeds", "solutions", "fewest", "bandwidth", "MMD", "floor")
        table = Table("robot", *columns, "MMD per target", "floor", title=f"diversity, hjcd on {device}")
        for d in diversity:
            counts = (str(d.targets), str(d.seeds), str(d.solutions), str(d.fewest))
            values = (d.bandwidth, d.mmd, d.floor, d.mmd_per_target, d.floor_per_target)
            table.add_row(d.robot, d.algorithm, *counts, *(f"{value:.4f}" for value in values))
        console.print(table)
    for failure in failures:
        console.print(failure, markup=False)


def _names(allowed: tuple[str, ...]) -> Any:
    def names(text: str) -> tuple[str, ...]:
        given = tuple(part.strip() for part in text.split(","))
        for name in given:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
        return given

    return names


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in text.split(","))


def _count(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)
