"""The command: measures, prints tables, draws curves."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from kinopt_ros.bench.growth.plot import plot_series
from kinopt_ros.bench.growth.series import SERIES, Plan, Series, steps
from kinopt_ros.bench.machine import machine
from kinopt_ros.bench.plots import check_plot
from kinopt_ros.bench.progress import progress_bar
from kinopt_ros.errors import InvalidRequestError, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench growth``."""
    parser.add_argument(
        "--of",
        default=",".join(SERIES),
        metavar="A,B",
        help=f"what there is more and more of: {', '.join(SERIES)} (default: all)",
    )
    parser.add_argument(
        "--most", type=int, metavar="N", help="leave out sizes above N, for a quick look (default: none)"
    )
    parser.add_argument(
        "--requests", type=int, default=Plan.requests, metavar="N", help="of each size (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of scenes and targets (0)")
    parser.add_argument("--plot", metavar="FILE", help="draw the curves into a PNG")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if every request of inverse kinematics without obstacles was solved."""
    names = [name for name in args.of.split(",") if name]
    if not names:
        raise InvalidRequestError(f"--of is {shown(args.of)}; allowed are {', '.join(SERIES)}")
    for name in names:
        if name not in SERIES:
            raise InvalidRequestError(f"--of has {shown(name)}; allowed are {', '.join(SERIES)}")
    if args.requests < 1:
        raise InvalidRequestError(f"--requests is {args.requests}; allowed is 1 or more")
    if args.seed < 0:
        raise InvalidRequestError(f"--seed is {args.seed}; allowed is 0 or more")
    plot = None if args.plot is None else check_plot(args.plot)
    plan = _plan(args)
    for name in names:
        if not steps(plan, [name]):
            raise InvalidRequestError(f"--most is {args.most}; nothing is left of {name}")
    found: list[Series] = []
    enabled = not args.json and sys.stderr.isatty()
    with progress_bar("measuring", steps(plan, names), enabled=enabled) as report:
        for name in names:
            found += SERIES[name](plan, report)
    if plot is not None:
        plot_series(found, plot)
    if args.json:
        print(json.dumps({"machine": machine(), "series": [_record(one) for one in found]}, indent=1))
    else:
        _print(found)
    return 0 if all(cost.solved == 1.0 for one in found if one.exact for cost in one.costs) else 2


def _plan(args: argparse.Namespace) -> Plan:
    plan = Plan(requests=args.requests, seed=args.seed)
    if args.most is None:
        return plan

    def kept(sizes: Sequence[int]) -> tuple[int, ...]:
        return tuple(size for size in sizes if size <= args.most)

    return replace(
        plan,
        obstacles=kept(plan.obstacles),
        points=kept(plan.points),
        joints=kept(plan.joints),
        spheres=kept(plan.spheres),
        batches=kept(plan.batches),
    )


def _record(one: Series) -> dict[str, Any]:
    return {**asdict(one), "exponents": one.exponents}


def _print(series: Sequence[Series]) -> None:
    console = Console()
    for one in series:
        table = Table(title=f"{one.thing}, by {one.of}", title_justify="left")
        for heading in (one.of, "CPU ms", "p95", "wall ms", "solved", "grows by power"):
            table.add_column(heading, justify="right")
        for cost, power in zip(one.costs, (None, *one.exponents), strict=False):
            table.add_row(
                f"{cost.size:,}",
                f"{1e3 * cost.median:.4g}",
                f"{1e3 * cost.p95:.4g}",
                f"{1e3 * cost.wall:.4g}",
                f"{cost.solved:.1%}",
                "" if power is None else f"{power:.2f}",
            )
        console.print(table)
