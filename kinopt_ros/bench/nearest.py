"""``kinopt bench nearest``: what is as near as possible, beside scipy's bounded least squares from many starts.

Of each three targets one is a place that can be reached in another orientation, one is anywhere up to twice as far
away, and one is near to a pose that can be reached. Both answers are judged by Pinocchio: the sum of the squares of the
weighted errors, inside the limits.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from kinopt_ros.array import Float64
from kinopt_ros.bench.judge import Judge
from kinopt_ros.bench.peers import require
from kinopt_ros.bench.progress import Report, no_report, progress_bar, timed_loop
from kinopt_ros.bench.targets import IkTask, ik_task
from kinopt_ros.errors import InvalidRequestError, KinoptError, UnsupportedFeatureError
from kinopt_ros.kinematics.se3 import so3_exp
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.robot.sources import robot_names
from kinopt_ros.solvers.registry import create_solver

ARMS = {"so100": ("base", "gripper"), "so101": ("base_link", "gripper_frame_link")}
"""Arms of five joints, with base and tip."""
WEIGHTS = ((1.0, 0.1), (1.0, 1.0), (10.0, 0.1))
"""Weights of position (1/m) and orientation (1/rad)."""
SAME = 1e-6
"""Relative difference of costs up to which one is as near as the other."""
ROUNDING = 1e-14
"""Cost up to which a target is reached."""
_TOLERANCE = 1e-11
_MOST_CALLS = 200


@dataclass(frozen=True)
class NearestRow:
    """Figures of one robot with one pair of weights."""

    robot: str
    position_weight: float
    orientation_weight: float
    targets: int
    as_near: float
    """Share of targets that our answer is as near to as scipy's best, or nearer."""
    nearer: float
    """Share of targets that it is nearer to."""
    farther: float
    """Largest ratio of the square roots of the costs where it is farther; 1 if it never is."""
    us_per_call: float
    """CPU time of solve_ik per target, one per call."""
    us_per_target: float
    """CPU time per target of all in one call."""
    scipy_ms: float
    """CPU time of scipy per target, all starts together."""


def hard_targets(task: IkTask, seed: int) -> IkTask:
    """Return a task whose targets are mostly not reached (see the module)."""
    rng = np.random.default_rng(seed)
    T = task.T_base_target.copy()
    middle = T[:, :3, 3].mean(axis=0)
    for k in range(len(T)):
        turn = rng.normal(size=3)
        turn *= rng.uniform(0.05, np.pi) / np.linalg.norm(turn)
        if k % 3 == 0:
            T[k, :3, :3] = T[k, :3, :3] @ so3_exp(turn)
        elif k % 3 == 1:
            T[k, :3, :3] = so3_exp(turn)
            T[k, :3, 3] = middle + (T[k, :3, 3] - middle) * rng.uniform(1.0, 2.0)
        else:
            T[k, :3, :3] = T[k, :3, :3] @ so3_exp(0.15 * turn)
            T[k, :3, 3] += rng.normal(size=3) * 0.05
    return replace(task, T_base_target=T)


def run_nearest_bench(
    robot: str,
    base: str,
    tip: str,
    weights: Sequence[tuple[float, float]],
    targets: int,
    starts: int,
    seed: int = 0,
    report: Report = no_report,
) -> list[NearestRow]:
    """Compare both on one robot, a row for each pair of weights; ``report`` is told of two calls per target and row.

    Raises:
        SolverUnavailableError: scipy or Pinocchio is not installed.
    """
    require("scipy", "scipy")
    task = hard_targets(ik_task(robot, base, tip, targets, "random", seed), seed + 1)
    judge = Judge(task)
    solver = create_solver("cpu", task.robot)
    solver.warm_up()
    rows = []
    for position, orientation in weights:
        asked: dict[str, Any] = {
            "base_link": base,
            "tip_link": tip,
            "nearest": PoseWeights(position, orientation),
        }
        problems = [ik_problem(task.robot, T, **asked) for T in task.T_base_target]
        solver.solve_ik(problems[0])
        what = f"{robot} {position:g} : {orientation:g}"
        answers, single = timed_loop(solver.solve_ik, problems, f"{what}, ours", report)
        _, batch = timed_loop(
            solver.solve_ik, [ik_problem(task.robot, task.T_base_target, **asked)], what, no_report
        )
        oracle = _Oracle(task, judge, position, orientation, starts)
        best, spent = timed_loop(oracle, list(range(targets)), f"{what}, scipy", report)
        ours = np.array([oracle.cost(answers[k].attempt[0], k) for k in range(targets)])
        theirs = np.array(best)
        as_near = ours <= theirs * (1.0 + SAME) + ROUNDING
        rows.append(
            NearestRow(
                task.robot.name,
                position,
                orientation,
                targets,
                float(as_near.mean()),
                float((ours < theirs * (1.0 - SAME) - ROUNDING).mean()),
                float(np.sqrt((ours / (theirs + ROUNDING))[~as_near].max(initial=1.0))),
                1e6 * single / targets,
                1e6 * batch / targets,
                1e3 * spent / targets,
            )
        )
    solver.close()
    return rows


class _Oracle:
    """Bounded least squares of scipy on Pinocchio's kinematics, from random starts."""

    def __init__(self, task: IkTask, judge: Judge, position: float, orientation: float, starts: int) -> None:
        import pinocchio

        self._pin: Any = pinocchio
        joints = [judge.model.joints[judge.model.getJointId(name)] for name in task.names]
        self._columns = [joint.idx_v for joint in joints]
        self._task, self._judge, self._starts = task, judge, starts
        self._weights = np.repeat([position, orientation], 3)

    def __call__(self, k: int) -> float:
        """Return the least cost found for target k."""
        from scipy.optimize import least_squares

        lower, upper = self._task.lower, self._task.upper
        low, high = np.maximum(lower, -np.pi), np.minimum(upper, np.pi)
        rng = np.random.default_rng(k)
        options: dict[str, Any] = {"jac": self._jacobian, "bounds": (lower, upper), "args": (k,)}
        options |= dict.fromkeys(("xtol", "ftol", "gtol"), _TOLERANCE) | {"max_nfev": _MOST_CALLS}
        ends = [
            least_squares(self._errors, rng.uniform(low, high), **options).cost for _ in range(self._starts)
        ]
        return float(2.0 * min(ends))

    def cost(self, q: Annotated[Float64, "n"], k: int) -> float:
        """Return the cost of an answer to target k; infinity outside the limits."""
        if not ((q >= self._task.lower) & (q <= self._task.upper)).all():
            return float("inf")
        return float((self._errors(q, k) ** 2).sum())

    def _errors(self, q: Annotated[Float64, "n"], k: int) -> Annotated[Float64, "6"]:
        T, reached = self._task.T_base_target[k], self._judge.pose(q)
        R = T[:3, :3].T
        along, about = R @ (reached.translation - T[:3, 3]), self._pin.log3(R @ reached.rotation)
        return np.asarray(self._weights * np.concatenate([along, about]))

    def _jacobian(self, q: Annotated[Float64, "n"], k: int) -> Annotated[Float64, "6 n"]:
        """Compute the derivatives of the errors of an arm whose base stands still."""
        judge, pin = self._judge, self._pin
        full = judge.configuration(q, self._task.variables)
        J = pin.computeFrameJacobian(judge.model, judge.data, full, judge.tip, pin.LOCAL)[:, self._columns]
        R = self._task.T_base_target[k, :3, :3].T @ judge.pose(q).rotation
        return np.asarray(self._weights[:, None] * np.concatenate([R @ J[:3], pin.Jlog3(R) @ J[3:]]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench nearest``."""
    parser.add_argument("--robot", choices=sorted(ARMS), help="one arm (default: all that are installed)")
    parser.add_argument("--targets", type=int, default=300, metavar="N", help="targets per arm (300)")
    parser.add_argument("--starts", type=int, default=50, metavar="S", help="of scipy, per target (50)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the targets (0)")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if every arm could be measured."""
    if args.starts < 1:
        raise InvalidRequestError(f"--starts is {args.starts}; allowed is 1 or more")
    known = robot_names()
    rows: list[NearestRow] = []
    failures = []
    robots = [args.robot] if args.robot else sorted(ARMS)
    total = 2 * args.targets * len(WEIGHTS) * len(robots)
    with progress_bar("measuring", total, enabled=not args.json and sys.stderr.isatty()) as report:
        for robot in robots:
            try:
                if robot not in known:
                    raise UnsupportedFeatureError(f"{robot}: not installed (pip install example-robot-data)")
                rows += run_nearest_bench(
                    robot, *ARMS[robot], WEIGHTS, args.targets, args.starts, args.seed, report
                )
            except KinoptError as error:
                failures.append(str(error))
    failures = list(dict.fromkeys(failures))
    if args.json:
        record = {"rows": [asdict(row) for row in rows], "failures": failures}
        print(json.dumps(record, indent=2, allow_nan=False))
    else:
        _show(rows, failures)
    return 1 if failures or not rows else 0


def _show(rows: list[NearestRow], failures: list[str]) -> None:
    table = Table(
        "robot", "weights", "targets", "as near", "nearer", "farthest", "µs/call", "µs/target", "scipy ms"
    )
    for row in rows:
        table.add_row(
            row.robot,
            f"{row.position_weight:g} : {row.orientation_weight:g}",
            str(row.targets),
            f"{100 * row.as_near:.1f} %",
            f"{100 * row.nearer:.1f} %",
            f"{row.farther:.2f}",
            f"{row.us_per_call:.0f}",
            f"{row.us_per_target:.0f}",
            f"{row.scipy_ms:.0f}",
        )
    console = Console()
    console.print(table)
    for failure in failures:
        console.print(failure)
