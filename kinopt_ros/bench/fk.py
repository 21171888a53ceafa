"""``kinopt bench fk``: forward kinematics of a tip link from Python, configurations per second at several batch sizes.

A call takes an array of configurations and ends when the poses are on the host as a numpy array (..., 4, 4).
``pinocchio_loop`` is the loop that people write, without even keeping the poses; ``pinocchio`` keeps them. Solvers
take turns, so that what else the machine does meets all of them; the figure is the median over the rounds. Poses are
compared with Pinocchio's.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.judge import Judge
from kinopt_ros.bench.peers import require_plain_chain
from kinopt_ros.bench.progress import Report, no_report, progress_bar
from kinopt_ros.bench.targets import IkTask, ik_task
from kinopt_ros.errors import InvalidRequestError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import build_chain

BATCHES = "1,256,1024,4096"
REFERENCE = "pinocchio"
ROUND_SECONDS = 0.05
"""Time that calls of a round go on, s; there is at least one call."""

Poses = Callable[[Float64], Any]
Row = dict[str, Any]


def run_fk_bench(
    robot: str | Path = "panda",
    base: str | None = None,
    tip: str | None = None,
    batches: Sequence[int] = (1, 256, 1024, 4096),
    rounds: int = 15,
    report: Report = no_report,
) -> list[Row]:
    """Measure every way; return one row per way and batch size. ``note`` says why one could not run.

    Args:
        robot: URDF file or known name.
        base: link in which poses are given; default: that of the robot's first group.
        tip: link whose pose is computed; likewise.
        batches: configurations per call.
        rounds: measurements of each, in turn.
        report: told of every measurement, ``count_rounds`` of them.

    Raises:
        SolverUnavailableError: Pinocchio is not installed.
        UnsupportedFeatureError: a chain with mimic joints, or whose base moves with it.
    """
    if rounds < 1 or not batches or min(batches) < 1:
        raise InvalidRequestError(
            f"rounds is {rounds}, batches are {list(batches)}; allowed are numbers of 1 or more"
        )
    task = ik_task(robot, base, tip, 1, "random", 0)
    ways, notes = _ways(task)
    rows: list[Row] = []
    for batch in batches:
        q = random_configurations(task.robot, batch, 1)
        expected = np.asarray(ways[REFERENCE](q))
        first: dict[str, float] = {}
        worst: dict[str, float] = {}
        for name, way in ways.items():
            start = time.perf_counter()
            poses = way(q)
            first[name] = time.perf_counter() - start
            worst[name] = 0.0 if poses is None else float(np.abs(np.asarray(poses) - expected).max())
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                rates[name].append(batch * _calls_per_second(way, q))
                report(f"{name}, batch {batch:,}", 1)
        loop = float(np.median(rates["pinocchio_loop"]))
        for name in ways:
            rate = float(np.median(rates[name]))
            rows.append(
                {
                    "robot": task.robot.name,
                    "way": name,
                    "batch": batch,
                    "per_second": rate,
                    "over_pinocchio_loop": rate / loop,
                    "first_call_s": first[name],
                    "pose_difference_max": worst[name],
                }
            )
    rows += [{"robot": task.robot.name, "way": name, "note": note} for name, note in notes.items()]
    return rows


def count_rounds(batches: Sequence[int], rounds: int) -> int:
    """Return how many rounds ``run_fk_bench`` reports in all, if every way can run."""
    return len(batches) * rounds * 4


def _ways(task: IkTask) -> tuple[dict[str, Poses], dict[str, str]]:
    """Return functions of configurations of the whole robot, (B, nq), and reasons of those that cannot run."""
    ways: dict[str, Poses] = {}
    notes: dict[str, str] = {}
    if find_spec("jax") is None:
        notes["differentiable"] = "the package jax is not installed (pip install jax)"
    else:
        from kinopt_ros import differentiable

        fk = differentiable.forward_kinematics(task.robot, links=[task.tip_link], base_link=task.base_link)
        ways["differentiable"] = lambda q: np.asarray(fk(q))[..., 0, :, :]
    variables = task.variables
    ways["numpy"] = lambda q: chain_pose(task.chain, q[:, variables])
    return ways | _pinocchio(task), notes


def _pinocchio(task: IkTask) -> dict[str, Poses]:
    require_plain_chain(task)
    above = build_chain(task.robot, task.robot.root_link, task.base_link)
    if set(above.variables.tolist()) & set(task.variables.tolist()):
        raise UnsupportedFeatureError("cannot measure a chain whose base moves with it")
    judge = Judge(task)
    import pinocchio

    # Joints that do not move the tip are taken out of its model: nothing is computed that is not asked for.
    full, default = judge.model, judge.configuration(np.zeros(0), ())
    needed = {full.getJointId(name) for name in task.names}
    others = [i for i in range(1, full.njoints) if i not in needed]
    model = pinocchio.buildReducedModel(full, others, default)
    data = model.createData()
    tip = model.getFrameId(task.tip_link, pinocchio.FrameType.BODY)
    base = model.getFrameId(task.base_link, pinocchio.FrameType.BODY)
    joints = [model.joints[model.getJointId(name)] for name in task.names]
    pinocchio.framesForwardKinematics(model, data, pinocchio.neutral(model))
    T_base_root = data.oMf[base].inverse().homogeneous

    def configurations(q: Float64) -> Float64:
        own = np.zeros((len(q), model.nq))
        for joint, variable in zip(joints, task.variables, strict=True):
            if joint.nq == 2:  # continuous: a point on the unit circle
                own[:, joint.idx_q], own[:, joint.idx_q + 1] = np.cos(q[:, variable]), np.sin(q[:, variable])
            else:
                own[:, joint.idx_q] = q[:, variable]
        return own

    def loop(q: Float64) -> None:
        for row in configurations(q):
            pinocchio.forwardKinematics(model, data, row)
            pinocchio.updateFramePlacement(model, data, tip)

    def keep(q: Float64) -> Float64:
        poses = np.empty((len(q), 4, 4))
        for i, row in enumerate(configurations(q)):
            pinocchio.forwardKinematics(model, data, row)
            poses[i] = pinocchio.updateFramePlacement(model, data, tip).homogeneous
        moved: Float64 = T_base_root @ poses
        return moved

    return {"pinocchio_loop": loop, REFERENCE: keep}


def _calls_per_second(way: Poses, q: Float64) -> float:
    calls = 0
    start = time.perf_counter()
    while (spent := time.perf_counter() - start) < ROUND_SECONDS or not calls:
        way(q)
        calls += 1
    return calls / spent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench fk``."""
    parser.add_argument(
        "--robot", default="panda", metavar="NAME|FILE", help="URDF file or known name (panda)"
    )
    parser.add_argument("--base", metavar="LINK", help="link in which poses are given (of the first group)")
    parser.add_argument("--tip", metavar="LINK", help="link whose pose is computed (of the first group)")
    parser.add_argument(
        "--batches", default=BATCHES, metavar="N,M", help=f"configurations per call ({BATCHES})"
    )
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="measurements of each (15)")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if all could run."""
    try:
        batches = [int(batch) for batch in args.batches.split(",")]
    except ValueError:
        raise InvalidRequestError(f"batches are {args.batches!r}; allowed are numbers and commas") from None
    total = count_rounds(batches, args.rounds)
    with progress_bar("measuring", total, enabled=not args.json and sys.stderr.isatty()) as report:
        rows = run_fk_bench(args.robot, args.base, args.tip, batches, args.rounds, report)
    if args.json:
        print(json.dumps(rows, indent=2, allow_nan=False))
    else:
        _print(rows)
    return 1 if any("note" in row for row in rows) else 0


def _print(rows: list[Row]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{rows[0]['robot']}, forward kinematics of one link", box=SIMPLE)
    for heading in ("batch", "", "per second", "/ loop", "first call s", "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        if "note" not in row:
            table.add_row(
                f"{row['batch']:,}",
                row["way"],
                f"{row['per_second']:,.0f}",
                f"{row['over_pinocchio_loop']:.2f}",
                f"{row['first_call_s']:.2f}",
                f"{row['pose_difference_max']:.1e}",
            )
    console = Console()
    console.print(table)
    for row in rows:
        if "note" in row:
            console.print(f"{row['way']}: {row['note']}", markup=False)
