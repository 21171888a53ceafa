"""``kinopt bench load``: the node under the load of many clients."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kinopt_ros.commands.arguments import add_json, print_json, require_ros
from kinopt_ros.errors import MissingPackageError

_OUTCOMES = ("right", "wrong", "lost", "refused", "unsolved")
_NEEDED_WIDTH = 130
_LONG = 300.0
"""Duration from which on the growth of memory says something, s."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench load``."""
    parser.add_argument("--clients", type=int, metavar="N", help="clients at once (64; 8 with --moveit)")
    parser.add_argument(
        "--duration", type=float, default=20.0, metavar="S", help="s (20); 1800 for a soak of half an hour"
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=2.0,
        metavar="HZ",
        help="requests per second of each client with small requests (2); 0: as fast as they are answered",
    )
    parser.add_argument(
        "--heavy-rate",
        type=float,
        default=1.0,
        metavar="HZ",
        help="likewise of each client that sends 1000 targets, or unreachable ones (1)",
    )
    parser.add_argument(
        "--no-unreachable", action="store_true", help="no clients that send targets which cannot be reached"
    )
    parser.add_argument(
        "--disturb",
        action="store_true",
        help="meanwhile change the scene ten times a second, send a description every minute, ask for motions and "
        "cancel half of them, set parameters; needs what `make bench` installs",
    )
    parser.add_argument(
        "--moveit",
        action="store_true",
        help="instead of all that: random requests under MoveIt's names, good and bad ones, to a node that moves a "
        "simulated robot; each must be answered (needs moveit_msgs and control_msgs, see `make interfaces`)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the requests of --moveit (0)")
    add_json(parser)
    parser.set_defaults(measure=main)


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if no answer was lost or wrong, else 2."""
    require_ros()
    if args.moveit:
        return _moveit(args)
    if args.disturb:
        for package in ("pinocchio", "coal"):
            if find_spec(package) is None:
                raise MissingPackageError(
                    f"--disturb has motions judged by {package}, which is not installed; `make bench` installs it"
                )
    from kinopt_ros.bench.node.load import faultless, measure

    with _bar(enabled=not args.json and sys.stderr.isatty()) as report:
        result = measure(
            64 if args.clients is None else args.clients,
            args.duration,
            args.rate,
            args.heavy_rate,
            not args.no_unreachable,
            args.disturb,
            report,
        )
    if args.json:
        print_json(result)
    else:
        _show(result)
    return 0 if faultless(result) else 2


def _moveit(args: argparse.Namespace) -> int:
    """Measure with random requests of MoveIt's clients; return 0 if each was answered, else 2."""
    from kinopt_ros.bench.node.moveit_load import answered_all, measure_moveit

    with _bar(enabled=not args.json and sys.stderr.isatty()) as report:
        clients = 8 if args.clients is None else args.clients
        result = measure_moveit(clients, args.duration, args.seed, report)
    if args.json:
        print_json(result)
    else:
        _show_moveit(result)
    return 0 if answered_all(result) else 2


def _show_moveit(result: dict[str, Any]) -> None:
    console = Console()
    title = f"{result['clients']} clients, {result['duration_s']:g} s, seed {result['seed']}"
    table = Table("name", "answered or sent", title=title)
    for name, count in result["answered"].items():
        table.add_row(name, str(count))
    console.print(table)
    codes = ", ".join(f"{count} times {code}" for code, count in result["codes"].items())
    sentences = [f"MoveItErrorCodes: {codes}", f"lost: {', '.join(result['lost']) or 'none'}"]
    for name, unit in (("memory", "_mib"), ("threads", ""), ("file_descriptors", "")):
        row = result[name]
        if row:
            sentences.append(
                f"{name} of the node: {row[f'first{unit}']:.0f} at first, {row[f'settled{unit}']:.0f} after a fifth of "
                f"the time, {row[f'last{unit}']:.0f} at last, at most {row[f'max{unit}']:.0f}"
                f"{' (MiB)' if unit else ''}"
            )
    state = "lives" if result["node_alive"] else "DIED"
    sentences += [f"the node {state}, internal errors: {result['internal_errors']}", *result["defects"]]
    for sentence in sentences:
        console.print(sentence, highlight=False, soft_wrap=True, markup=False)


@contextmanager
def _bar(enabled: bool) -> Iterator[Callable[[float], object]]:
    if not enabled:
        yield lambda share: None
        return
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("under load", total=1.0)
        yield lambda share: progress.update(task, completed=share)


def _show(result: dict[str, Any]) -> None:
    console = Console()
    console.width = max(console.width, _NEEDED_WIDTH)  # rather broken lines than figures cut off
    title = f"{result['clients']} clients, {result['duration_s']:g} s"
    table = Table(
        "request", "count", "per s", *_OUTCOMES, "p50 ms", "p95 ms", "p99 ms", "max ms", title=title
    )
    for kind, row in result["kinds"].items():
        outcomes = (str(row["outcomes"].get(name, 0)) for name in _OUTCOMES)
        table.add_row(kind, str(row["requests"]), f"{row['per_second']:.1f}", *outcomes, *_cells(row))
    table.add_row("~/ready", "", "", "", "", str(result["health"]["lost"]), "", "", *_cells(result["health"]))
    for name, row in result["idle"].items():
        table.add_row(f"{name}, without load", *[""] * 7, *_cells(row))
    console.print(table)
    for sentence in _sentences(result):
        console.print(sentence, highlight=False, soft_wrap=True, markup=False)


def _cells(row: dict[str, Any]) -> list[str]:
    return [f"{row[key]:.1f}" if key in row else "-" for key in ("p50_ms", "p95_ms", "p99_ms", "max_ms")]


def _sentences(result: dict[str, Any]) -> Iterator[str]:
    yield f"start of the process to the first answer: {result['start_to_first_answer_s']:.2f} s"
    cpu = result["cpu_cores"]
    yield f"processor time: node {cpu['node']:.2f} cores, clients {cpu['clients']:.2f}"
    diagnostics = result["diagnostics"]
    if "period_s" in diagnostics:
        yield (
            f"/diagnostics: {diagnostics['messages']} messages, one every {diagnostics['period_s']:.3f} s, "
            f"at most {diagnostics['jitter_max_ms']:.0f} ms off"
        )
    else:
        yield f"/diagnostics: {diagnostics['messages']} messages"
    memory = result["memory"]
    if memory:
        sentence = (
            f"memory of the node: {memory['first_mib']:.0f} MiB at first, {memory['settled_mib']:.0f} after a fifth "
            f"of the time, {memory['last_mib']:.0f} at the end"
        )
        if result["duration_s"] >= _LONG:
            sentence += f", growing by {memory['growth_mib_per_hour']:.1f} MiB per hour"
        yield sentence
    for name in ("threads", "file_descriptors"):
        row = result[name]
        if row:
            what = name.replace("_", " ")
            settled, last, most = (f"{row[key]:.0f}" for key in ("settled", "last", "max"))
            yield f"{what} of the node: {settled} after a fifth of the time, {last} at the end, {most} at most"
    for kind, row in result["kinds"].items():
        yield f"{kind}: longest wait in the node's queue {row['queue_time_max_ms']:.0f} ms, {row['batched']} batched"
        yield from (f"{kind}: {example}" for example in row["examples"])
    if not result["node_alive"] or result["internal_errors"]:
        yield f"the node {'lives' if result['node_alive'] else 'died'}, {result['internal_errors']} internal errors"
        yield from result["defects"]
