"""``kinopt bench ik``: inverse kinematics, one target per call, every solver at the same boundary.

A call takes a 4x4 float64 pose and returns joint values, Python call included. ``mean_us`` is the process's CPU time
over a loop of nothing but calls (time.process_time, so that helper threads count), per call. ``median_us``,
``p99_us`` and ``max_us`` are single calls by time.perf_counter_ns: CPU clocks are too coarse for microseconds, so
these contain whatever else the machine did. The first calls warm up and do not count. Success: Pinocchio finds the
answer within 1e-6 m and 1e-6 rad of the target, and inside the limits. Error maxima are over the successes.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.judge import Judge
from kinopt_ros.bench.peers import PEERS, Peer, build_peer
from kinopt_ros.bench.plots import SolverRun, check_plot, plot_runs
from kinopt_ros.bench.progress import Report, no_report, progress_bar, timed_loop
from kinopt_ros.bench.table import print_table
from kinopt_ros.bench.targets import SAMPLINGS, IkTask, ik_task
from kinopt_ros.errors import SolverUnavailableError, UnknownSolverError, UnsupportedFeatureError

POSITION_TOLERANCE = 1e-6
"""Position tolerance, m."""
ORIENTATION_TOLERANCE = 1e-6
"""Orientation tolerance, rad."""
WARM_UP = 20
"""Number of calls before the clock starts."""
PASSES = 2
"""Number of passes over the targets per solver: one for the mean, one for single calls."""
DEFAULT_SOLVERS = "cpu,rtb_ik_lm,trac_ik,pinocchio_lm"
KEYS = (
    "robot", "solver", "version", "targets", "seeds", "success", "mean_us", "median_us", "p99_us", "max_us",
    "position_error_max_m", "orientation_error_max_rad", "limit_violation_max",
)  # fmt: skip
"""Keys of a row. A solver that could not run has null figures and, as one more key, a ``note`` that says why."""

Row = dict[str, Any]


def run_ik_bench(
    robot: str | Path,
    base: str | None = None,
    tip: str | None = None,
    solvers: Sequence[str] = tuple(DEFAULT_SOLVERS.split(",")),
    targets: int = 1000,
    sampling: str = "random",
    seed: int = 0,
    report: Report = no_report,
    runs: list[SolverRun] | None = None,
) -> list[Row]:
    """Measure every solver; return one row each.

    ``cpu`` brings a second row, ``cpu:solve_ik``, for the public interface.

    Args:
        robot: URDF file or known name.
        base: link in which targets are given; default: that of the robot's first group.
        tip: link to place; likewise.
        solvers: names of peers.
        targets: number of targets.
        sampling: ``random`` or ``halton``.
        seed: of the targets.
        report: told a solver's name and how many of its calls were made, ``count_calls`` of them in all.
        runs: takes what each solver did, call by call, for pictures.
    """
    names = _with_public_rows(solvers)
    for name in names:
        if name not in PEERS:
            raise UnknownSolverError(name, PEERS)
    task = ik_task(robot, base, tip, targets, sampling, seed)
    judge = Judge(task)
    rows = []
    for name in names:
        report(name, 0)
        row: Row = dict.fromkeys(KEYS) | {"robot": task.robot.name, "solver": name, "targets": targets}
        try:
            peer = build_peer(name, task)
        except (SolverUnavailableError, UnsupportedFeatureError) as error:
            rows.append(row | {"note": str(error)})
            report(name, PASSES * targets)
            continue
        figures, run = _measure(peer, task, judge, report)
        rows.append(row | figures)
        if runs is not None:
            runs.append(run)
    return rows


def count_calls(solvers: Sequence[str], targets: int) -> int:
    """Return the number of timed calls of ``run_ik_bench``."""
    return PASSES * targets * len(_with_public_rows(solvers))


def _with_public_rows(solvers: Sequence[str]) -> list[str]:
    names = []
    for name in solvers:
        names.append(name)
        if name == "cpu" and "cpu:solve_ik" not in solvers:
            names.append("cpu:solve_ik")
    return names


def _measure(peer: Peer, task: IkTask, judge: Judge, report: Report) -> tuple[Row, SolverRun]:
    poses = list(task.T_base_target)
    solve = peer.solve
    for T in poses[:WARM_UP]:
        solve(T)
    answers, seconds = timed_loop(solve, poses, peer.name, report)
    calls = _single_calls(peer, poses, report)
    q = np.array(answers, dtype=np.float64).reshape(len(poses), len(task.variables))
    verdict = judge(q)
    solved = (
        (verdict.position_error <= POSITION_TOLERANCE)
        & (verdict.orientation_error <= ORIENTATION_TOLERANCE)
        & (verdict.limit_violation <= 0.0)
    )
    run = SolverRun(peer.name, 1e-3 * calls, solved, task.T_base_target[:, :3, 3])
    figures: Row = {
        "version": peer.version,
        "seeds": peer.seeds,
        "success": float(solved.mean()),
        "mean_us": 1e6 * seconds / len(poses),
        "median_us": 1e-3 * float(np.median(calls)),
        "p99_us": 1e-3 * float(np.percentile(calls, 99)),
        "max_us": 1e-3 * float(calls.max()),
        "position_error_max_m": _largest(verdict.position_error[solved]),
        "orientation_error_max_rad": _largest(verdict.orientation_error[solved]),
        "limit_violation_max": _largest(verdict.limit_violation),
    }
    return figures, run


def _single_calls(peer: Peer, poses: list[Float64], report: Report) -> Float64:
    """Measure the nanoseconds of every call, in a second pass, so that reading the clock does not burden the mean."""
    clock, solve = time.perf_counter_ns, peer.solve

    def timed(T: Float64) -> int:
        before = clock()
        solve(T)
        return clock() - before

    return np.array(timed_loop(timed, poses, peer.name, report)[0], dtype=np.float64)


def _largest(values: Float64) -> float | None:
    return float(values.max()) if values.size and math.isfinite(values.max()) else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench ik``."""
    parser.add_argument(
        "--robot", default="panda", metavar="NAME|FILE", help="URDF file or known name (panda)"
    )
    parser.add_argument("--base", metavar="LINK", help="link in which targets are given (of the first group)")
    parser.add_argument("--tip", metavar="LINK", help="link to place (of the first group)")
    parser.add_argument(
        "--solver", default=DEFAULT_SOLVERS, metavar="A,B", help=f"of {', '.join(PEERS)} ({DEFAULT_SOLVERS})"
    )
    parser.add_argument("--targets", type=int, default=1000, metavar="N", help="number of targets (1000)")
    parser.add_argument("--sampling", choices=SAMPLINGS, default="random", help="of the targets (random)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the sampling (0)")
    parser.add_argument(
        "--plot", metavar="FILE.png", help="draw times of calls, and where targets were solved and missed"
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if every solver asked for could run."""
    solvers = [name.strip() for name in args.solver.split(",") if name.strip()]
    if not solvers:
        raise UnknownSolverError(args.solver, PEERS)
    picture = None if args.plot is None else check_plot(args.plot)
    runs: list[SolverRun] = []
    total = count_calls(solvers, args.targets)
    with progress_bar("measuring", total, enabled=not args.json and sys.stderr.isatty()) as report:
        rows = run_ik_bench(
            args.robot, args.base, args.tip, solvers, args.targets, args.sampling, args.seed, report, runs
        )
    if args.json:
        print(json.dumps(rows, indent=2, allow_nan=False))
    else:
        print_table(rows)
    if picture is not None:
        plot_runs(runs, f"{rows[0]['robot']}, {args.targets:,} {args.sampling} targets", picture)
    return 1 if any("note" in row for row in rows) else 0
