"""``kinopt bench mobile``: poses that an arm reaches, moved aside; with the base standing still, planar and floating.

Poses are those of the tip at random configurations, each moved by up to ``SHIFT`` along x and y of the root link. One
start per pose is the default configuration; the solver draws its own when that leads nowhere. Every answer is judged
with the base's pose made by hand, apart from the joint that the solver moved.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
from rich.console import Console
from rich.table import Table

from kinopt_ros.array import Float64
from kinopt_ros.bench.hjcd.fetch import fetch
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose, pose_error, quaternion_to_matrix, rpy_to_matrix
from kinopt_ros.problems.builder import ik_problem, resolve_chain
from kinopt_ros.robot.base_joint import with_base
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.registry import create_solver

SHIFT = 1.0
"""Largest shift of a pose along x and along y, m."""
POSITION_TOLERANCE, ORIENTATION_TOLERANCE = 0.005, 0.05
"""Success, m and rad: those of the mobile base in C. M. Kim et al., "PyRoki: a modular toolkit for robot kinematic
optimization" (2025), section V-B."""


@dataclass(frozen=True)
class MobileRow:
    """Figures of one kind of base; errors are those of all poses, of the best attempt where there is no answer."""

    base: str
    poses: int
    solved: float
    """Share of poses with a verified answer that the judge finds within the tolerances, too."""
    position_mean_m: float
    position_std_m: float
    orientation_mean_rad: float
    orientation_std_rad: float
    ms_per_pose: float
    """Wall time per pose of one call with all poses, verification included."""


def run_mobile_bench(
    robot: RobotModel, tip: str, poses: int = 100, seed: int = 0, solver: str = "cpu"
) -> list[MobileRow]:
    """Solve the same poses on every kind of base; return a row for each.

    Args:
        robot: robot without a base that moves.
        tip: link to place.
        poses: number of poses, at least 1.
        seed: of configurations and shifts.
        solver: name of the plugin.

    Raises:
        InvalidRequestError: no poses.
        KinoptError: a link or a solver that is not there, or names of the base that the robot has.
    """
    if poses < 1:
        raise InvalidRequestError(f"poses is {poses}; allowed is 1 or more")
    T = forward_kinematics(robot, random_configurations(robot, poses, seed), [tip])[:, 0]
    T[:, :2, 3] += np.random.default_rng(seed).uniform(-SHIFT, SHIFT, (poses, 2))
    return [_row(robot, kind, tip, T, solver) for kind in ("static", "planar", "floating")]


def _row(robot: RobotModel, kind: str, tip: str, T: Annotated[Float64, "N 4 4"], solver: str) -> MobileRow:
    based = with_base(robot, kind) if kind in ("planar", "floating") else robot  # type: ignore[arg-type]
    problem = ik_problem(
        based,
        T,
        tip_link=tip,
        position_tolerance=POSITION_TOLERANCE,
        orientation_tolerance=ORIENTATION_TOLERANCE,
    )
    plugin = create_solver(solver, based)
    plugin.warm_up()
    result = plugin.solve_ik(problem)
    q = np.tile(based.default_q, (len(T), 1))
    q[:, problem.variables] = np.where(result.success[:, None], result.q[:, 0], result.attempt)
    position, orientation = pose_error(T, _poses(robot, kind, tip, q))
    right = result.success & (position <= POSITION_TOLERANCE) & (orientation <= ORIENTATION_TOLERANCE)
    return MobileRow(
        base=kind,
        poses=len(T),
        solved=float(right.mean()),
        position_mean_m=float(position.mean()),
        position_std_m=float(position.std()),
        orientation_mean_rad=float(orientation.mean()),
        orientation_std_rad=float(orientation.std()),
        ms_per_pose=1e3 * result.solve_time / len(T),
    )


def _poses(
    robot: RobotModel, kind: str, tip: str, q: Annotated[Float64, "N n"]
) -> Annotated[Float64, "N 4 4"]:
    """Return poses of the tip, with the pose of the base made here."""
    own = q[:, q.shape[1] - robot.nq :]
    T = forward_kinematics(robot, own, [tip])[:, 0]
    if kind == "planar":
        turns, at = np.zeros((len(q), 3)), np.zeros((len(q), 3))
        turns[:, 2], at[:, :2] = q[:, 2], q[:, :2]
        return pose(rpy_to_matrix(turns), at) @ T
    if kind == "floating":
        return pose(quaternion_to_matrix(q[:, 3:7]), q[:, :3]) @ T
    return T


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench mobile``."""
    parser.add_argument(
        "--robot",
        default="fetch",
        metavar="NAME|FILE",
        help="fetch (torso and arm), a URDF file or a known name",
    )
    parser.add_argument("--tip", metavar="LINK", help="link to place (of the first group)")
    parser.add_argument("--solver", default="cpu", metavar="NAME", help="plugin (cpu)")
    parser.add_argument("--poses", type=int, default=100, metavar="N", help="number of poses (100)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of configurations and shifts (0)")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if a moving base reaches all poses, else 2."""
    robot = fetch() if args.robot == "fetch" else load_robot(args.robot)
    tip = resolve_chain(robot, None, None, args.tip)[1]
    rows = run_mobile_bench(robot, tip, args.poses, args.seed, args.solver)
    if args.json:
        record = {"robot": robot.name, "tip": tip, "seed": args.seed, "rows": [asdict(row) for row in rows]}
        print(json.dumps(record, indent=2, allow_nan=False))
    else:
        _show(robot, tip, rows)
    return 0 if all(row.solved == 1.0 for row in rows if row.base != "static") else 2


def _show(robot: RobotModel, tip: str, rows: list[MobileRow]) -> None:
    title = f"{robot.name}, {tip}, {rows[0].poses} poses moved by up to {SHIFT:g} m along x and y"
    table = Table("base", "solved", "position m", "orientation rad", "ms/pose", title=title)
    for row in rows:
        table.add_row(
            row.base,
            f"{100 * row.solved:.1f} %",
            f"{row.position_mean_m:.1e} ± {row.position_std_m:.1e}",
            f"{row.orientation_mean_rad:.1e} ± {row.orientation_std_rad:.1e}",
            f"{row.ms_per_pose:.2f}",
        )
    Console().print(table)
