"""``kinopt bench branches``: all inverse-kinematics branches of 6R arms, by search, by the plugin ``analytic``, and by
EAIK as it comes.

A branch is a configuration inside the joint limits that reaches the target to 1e-6 m and 1e-6 rad by our float64
forward kinematics; two that differ by less than ``SEPARATION`` in every joint, whole turns aside, are one. All
answers pass the same check. The branches that exist are those that any of them found.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from kinopt_ros.array import Float64
from kinopt_ros.bench.peers import require
from kinopt_ros.bench.progress import Report, no_report, progress_bar, timed_loop
from kinopt_ros.bench.targets import IkTask, ik_task
from kinopt_ros.errors import KinoptError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.robot.chain import Motion
from kinopt_ros.robot.sources import robot_names
from kinopt_ros.solvers.analytic.rounding import axes_of
from kinopt_ros.solvers.registry import create_solver

TOLERANCE = 1e-6
"""Tolerance of the target, m and rad."""
SEPARATION = 0.01
"""Least difference of two branches, rad."""
MOST = 16
"""Number of solutions asked for per pose: 6R arms have at most 16."""
ARMS = {"ur5": ("base_link", "tool0"), "ur10": ("base_link", "tool0"), "ur3": ("base_link", "tool0")}


@dataclass(frozen=True)
class BranchRow:
    """Figures of one robot."""

    robot: str
    poses: int
    branches: int
    """Branches that exist, all poses together."""
    found: int
    """Branches that ``cpu`` found."""
    found_analytic: int
    """Branches that ``analytic`` found."""
    found_eaik: int
    share: float
    complete_poses: float
    """Share of poses of which ``cpu`` found every branch."""
    us_per_pose: float
    """CPU time of ``cpu`` per pose, checks of the request and verification included."""
    analytic_us_per_pose: float
    """The same of ``analytic``."""
    analytic_inner_us_per_pose: float
    """The same without what every solver's answer goes through: the plugin alone."""
    eaik_us_per_pose: float


def run_branch_bench(
    robot: str, base: str, tip: str, poses: int, seed: int = 0, report: Report = no_report
) -> BranchRow:
    """Compare both solvers on random reachable poses; ``report`` is told of four calls per pose.

    Raises:
        SolverUnavailableError: EAIK is not installed.
        UnsupportedFeatureError: it cannot decompose the arm.
    """
    require("eaik", "eaik")
    task = ik_task(robot, base, tip, poses, "random", seed)
    eaik = _eaik(task)
    problems = [
        ik_problem(
            task.robot,
            T,
            base_link=base,
            tip_link=tip,
            position_tolerance=TOLERANCE,
            orientation_tolerance=TOLERANCE,
            num_solutions=MOST,
            min_separation=SEPARATION,
        )
        for T in task.T_base_target
    ]
    answers, times = [], []
    for name in ("cpu", "analytic"):
        solver = create_solver(name, task.robot, {"groups": ""} if name == "analytic" else None)
        solver.warm_up()
        solver.solve_ik(problems[0])
        results, took = timed_loop(solver.solve_ik, problems, f"{robot}, {name}", report)
        answers.append([result.q[0] for result in results])
        times.append(took)
        if name == "analytic":
            times.append(timed_loop(solver._solve_ik, problems, f"{robot}, {name} alone", report)[1])
        solver.close()
    theirs, took = timed_loop(eaik, list(task.T_base_target), f"{robot}, EAIK", report)
    answers.append(theirs)
    times.append(took)

    branches = complete = 0
    found = [0, 0, 0]
    for T, *given in zip(task.T_base_target, *answers, strict=True):
        good = [_distinct(_good(task, T, q)) for q in given]
        union = _distinct(np.concatenate(good))
        branches += len(union)
        found = [before + len(q) for before, q in zip(found, good, strict=True)]
        complete += len(good[0]) == len(union)
    microseconds = [1e6 * took / poses for took in times]
    return BranchRow(
        robot=task.robot.name,
        poses=poses,
        branches=branches,
        found=found[0],
        found_analytic=found[1],
        found_eaik=found[2],
        share=found[0] / max(branches, 1),
        complete_poses=complete / poses,
        us_per_pose=microseconds[0],
        analytic_us_per_pose=microseconds[1],
        analytic_inner_us_per_pose=microseconds[2],
        eaik_us_per_pose=microseconds[3],
    )


def _eaik(task: IkTask) -> Any:
    """Return all analytic solutions of a pose, (N, 6), inside the limits where whole turns can bring them there."""
    from eaik.IK_HP import HPRobot

    chain = task.chain
    if len(chain.motion) != 6 or (chain.motion != Motion.ROTATION).any():
        raise UnsupportedFeatureError(f"{task.robot.name}: EAIK takes six revolute joints")
    axes, T_tip = axes_of(chain)
    places = np.concatenate([np.zeros((1, 3)), axes.point, T_tip[None, :3, 3]])
    R_tip = T_tip[:3, :3]
    robot = HPRobot(axes.direction, np.diff(places, axis=0))
    if not robot.hasKnownDecomposition():
        raise UnsupportedFeatureError(f"{task.robot.name}: EAIK knows no decomposition")

    def solve(T: Float64) -> Float64:
        pose = T.copy()
        pose[:3, :3] = T[:3, :3] @ R_tip.T
        q = np.asarray(robot.IK(pose).Q, dtype=np.float64).reshape(-1, 6)
        q = (q - chain.offset) / chain.multiplier
        return q[:, np.argsort(chain.column)]

    return solve


def _good(
    task: IkTask, T: Annotated[Float64, "4 4"], q: Annotated[Float64, "N n"]
) -> Annotated[Float64, "M n"]:
    """Return the answers that reach the pose inside the limits, each at the turn nearest to the middle of them."""
    q = q[np.isfinite(q).all(axis=1)]
    middle = np.where(np.isfinite(task.upper - task.lower), 0.5 * (task.upper + task.lower), 0.0)
    q = q - 2.0 * np.pi * np.rint((q - middle) / (2.0 * np.pi))
    distance, angle = pose_error(T, chain_pose(task.chain, q))
    inside = np.asarray(((q >= task.lower) & (q <= task.upper)).all(axis=1))
    return np.asarray(q[inside & (distance <= TOLERANCE) & (angle <= TOLERANCE)])


def _distinct(q: Annotated[Float64, "N n"]) -> Annotated[Float64, "M n"]:
    """Return one of every set of answers that are one branch."""
    kept: list[Float64] = []
    for row in q:
        difference = np.array(kept).reshape(-1, len(row)) - row
        difference -= 2.0 * np.pi * np.rint(difference / (2.0 * np.pi))
        if not (np.abs(difference) < SEPARATION).all(axis=1).any():
            kept.append(row)
    return np.array(kept).reshape(-1, q.shape[1])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench branches``."""
    parser.add_argument("--robot", choices=sorted(ARMS), help="one arm (default: all that are installed)")
    parser.add_argument("--poses", type=int, default=500, metavar="N", help="random poses per arm (500)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the poses (0)")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if every arm could be measured."""
    known = robot_names()
    rows, failures = [], []
    robots = [args.robot] if args.robot else sorted(ARMS)
    total = 4 * args.poses * len(robots)
    with progress_bar("measuring", total, enabled=not args.json and sys.stderr.isatty()) as report:
        for robot in robots:
            report(robot, 0)
            try:
                if robot not in known:
                    raise UnsupportedFeatureError(f"{robot}: not installed (pip install example-robot-data)")
                rows.append(run_branch_bench(robot, *ARMS[robot], args.poses, args.seed, report))
            except KinoptError as error:
                failures.append(str(error))
    failures = list(dict.fromkeys(failures))
    if args.json:
        _print_json({"rows": [asdict(row) for row in rows], "failures": failures})
    else:
        _show(rows, failures)
    return 1 if failures or not rows else 0


def _show(rows: list[BranchRow], failures: list[str]) -> None:
    table = Table("robot", "poses", "branches", "solver", "found", "share", "µs/pose", "of these the plugin")
    for row in rows:
        solvers = (
            ("cpu", row.found, row.us_per_pose, ""),
            (
                "analytic",
                row.found_analytic,
                row.analytic_us_per_pose,
                f"{row.analytic_inner_us_per_pose:.0f}",
            ),
            ("EAIK", row.found_eaik, row.eaik_us_per_pose, ""),
        )
        for number, (solver, found, took, inner) in enumerate(solvers):
            whose = ("", "", "") if number else (row.robot, str(row.poses), str(row.branches))
            share = f"{100 * found / max(row.branches, 1):.2f} %"
            table.add_row(*whose, solver, str(found), share, f"{took:.0f}", inner)
    console = Console()
    console.print(table)
    for failure in failures:
        console.print(failure)


def _print_json(record: dict[str, Any]) -> None:
    print(json.dumps(record, indent=2, allow_nan=False))
