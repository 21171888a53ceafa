"""``kinopt bench collision``: targets that a clear configuration reaches, among obstacles, one request per call.

A success counts as rejected if Pinocchio's poses or coal on the original shapes object to it (``judge.py``). Feasible
are requests that were solved and accepted, and those others for which random restarts, judged the same way, find a
clear solution. As targets come from clear configurations, all are feasible in truth.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from kinopt_ros.array import Float64
from kinopt_ros.bench.collision.judge import CollisionJudge
from kinopt_ros.bench.collision.scenes import SceneMaker
from kinopt_ros.bench.collision.settled import settled
from kinopt_ros.bench.progress import Report, no_report, progress_bar
from kinopt_ros.bench.verify.judge import Judge
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.errors import (
    InvalidRequestError,
    KinoptError,
    SolverUnavailableError,
    UnsupportedFeatureError,
)
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import sampling_range
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.problems.builder import ik_problem, resolve_chain
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.sources import find_robot, load_robot, robot_names
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import check_collisions

ARMS = {
    "panda": ("panda_link0", "panda_link8"),
    "ur5": ("base_link", "tool0"),
    "tiago": ("base_link", "arm_tool_link"),
    "tiago_pro": ("torso_lift_link", "arm_left_tool_link"),
}
"""Arms with 7, 6, 8 (with a lift) and 7 joints."""
PER_SCENE = 20
"""Number of requests in one scene."""
DRAWS = 200
"""Number of configurations that are drawn for them; a scene that leaves too few free is passed over."""
RESTARTS_AT_ONCE = 250
SHOWN = 20
"""Most objections that are kept."""


@dataclass
class CollisionRow:
    """Figures of one robot."""

    robot: str
    solver: str
    seed: int
    requests: int
    scenes: int = 0
    passed_over: int = 0
    """Scenes that left too few configurations clear."""
    solved: int = 0
    """Successes that the judge accepts."""
    rejected: int = 0
    feasible: int = 0
    share: float = 0.0
    """Share of the feasible requests that were solved."""
    share_clear_at_once: float = 0.0
    """Share of all requests for which the same call without obstacles gives a collision-free solution."""
    median_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    cpu_ms: float = 0.0
    """Mean CPU time of a call, on all cores."""
    codes: dict[str, int] = field(default_factory=dict)
    objections: list[str] = field(default_factory=list)
    """First objections of the judge."""


class CollisionBench:
    """Benchmark of one robot and one solver."""

    def __init__(self, name: str, base: str, tip: str, solver: str, seed: int) -> None:
        for package, remedy in (("pinocchio", "pin"), ("coal", "coal")):
            if find_spec(package) is None:
                raise SolverUnavailableError(
                    f"answers are judged by {package}; install it with `pip install {remedy}`"
                )
        if name not in robot_names():
            raise UnsupportedFeatureError(f"{name}: not installed (pip install example-robot-data)")
        robot = load_robot(name)
        _, _, joints = resolve_chain(robot, None, base, tip)
        self.moved = [i for joint in joints for i in robot.variables_of(joint)]
        self.robot = settled(robot, self.moved)
        self.base, self.tip = base, tip
        subject = Subject(name, find_robot(name)[0].read_text(encoding="utf-8"), self.robot, base, (tip,))
        self._poses = Judge(subject)
        self._judge = CollisionJudge(subject, self._poses)
        self._rng = np.random.default_rng(seed)
        self._maker = SceneMaker(self.robot, tip, self.moved, self._rng)
        prepare_collisions(self.robot)
        self.solver: Solver = create_solver(solver, self.robot)
        self.solver.warm_up()
        self.row = CollisionRow(name, solver, seed, 0)
        self.seconds: list[float] = []
        """Wall time of every request."""

    def run(self, requests: int, restarts: int, report: Report = no_report) -> CollisionRow:
        """Ask, judge and count.

        Args:
            requests: how many.
            restarts: random starts for each request that is not solved, to see whether it can be.
            report: told of every request.
        """
        row, cpus = self.row, []
        at_once = 0
        for scene, targets in self._requests(requests):
            answers = []
            for T in targets:  # one after the other: the judge's work is not between them
                problem = self._problem(T, scene=scene)
                start, cpu = time.perf_counter(), time.process_time()
                result = self.solver.solve_ik(problem)
                cpus.append(time.process_time() - cpu)
                self.seconds.append(time.perf_counter() - start)
                answers.append((problem, result))
            for T, (problem, result) in zip(targets, answers, strict=True):
                row.feasible += self._accepted(problem, result) or self._can_be_solved(T, restarts)
                plain = self.solver.solve_ik(self._problem(T))
                at_once += bool(plain.success[0]) and not self._collision(plain.q[0, 0], plain.joint_names)
                report(row.robot, 1)
        row.share = row.solved / max(row.feasible, 1)
        row.share_clear_at_once = at_once / row.requests
        row.median_ms, row.p99_ms = (1e3 * float(v) for v in np.quantile(self.seconds, (0.5, 0.99)))
        row.max_ms, row.cpu_ms = 1e3 * max(self.seconds), 1e3 * float(np.mean(cpus))
        return row

    def close(self) -> None:
        """Release the solver."""
        self.solver.close()

    def _accepted(self, problem: IkProblem, result: IkResult) -> bool:
        """Count an answer; return whether it is a success that the judge accepts."""
        row = self.row
        row.requests += 1
        code = Status(int(result.status[0])).name
        row.codes[code] = row.codes.get(code, 0) + 1
        if not result.success[0]:
            return False
        wrong = [o.reason for o in self._poses(problem, result, self.robot.variable_names, {})]
        collision = self._collision(result.q[0, 0], result.joint_names)
        if collision:
            wrong.append(f"in collision: {collision}")
        row.rejected += bool(wrong)
        row.solved += not wrong
        if wrong and len(row.objections) < SHOWN:
            row.objections.append(f"request {row.requests - 1}: {wrong[0]}")
        return not wrong

    def _requests(self, count: int) -> Iterator[tuple[Scene, Annotated[Float64, "k 4 4"]]]:
        """Yield scenes, and poses of the tip in the base at configurations that are free in them."""
        number = made = 0
        while made < count:
            scene = self._maker.scene(number)
            number += 1
            low, high = sampling_range(self.robot)
            q = np.repeat(self.robot.default_q[None], DRAWS, axis=0)
            q[:, self.moved] = self._rng.uniform(low[self.moved], high[self.moved], (DRAWS, len(self.moved)))
            self._judge.enter(scene)
            wanted = min(PER_SCENE, count - made)
            clear: list[Float64] = []
            for values in q:
                if len(clear) == wanted:
                    break
                if (
                    not self._collision(values, self.robot.variable_names)
                    and check_collisions(self.robot, scene, values[None], contacts=False).free[0]
                ):
                    clear.append(values)
            if len(clear) < wanted:
                self.row.passed_over += 1
                if self.row.passed_over > 20 + 2 * self.row.scenes:
                    raise InvalidRequestError(
                        f"{self.row.robot}: hardly any configuration is clear in these scenes"
                    )
                continue
            self.row.scenes += 1
            poses = forward_kinematics(self.robot, np.array(clear), (self.base, self.tip))
            made += len(poses)
            yield scene, np.array([inverse(T_root_base) @ T_root_tip for T_root_base, T_root_tip in poses])

    def _problem(self, T: Float64, **more: Any) -> IkProblem:
        return ik_problem(self.robot, T, base_link=self.base, tip_link=self.tip, **more)

    def _collision(self, q: Float64, names: tuple[str, ...]) -> str:
        values = dict(zip(self.robot.variable_names, self.robot.default_q.tolist(), strict=True))
        return self._judge.collision(values | dict(zip(names, q.tolist(), strict=True)))

    def _can_be_solved(self, T: Float64, restarts: int) -> bool:
        """Check whether one of so many random starts leads to a solution that the judge finds free."""
        low, high = sampling_range(self.robot)
        for first in range(0, restarts, RESTARTS_AT_ONCE):
            count = min(RESTARTS_AT_ONCE, restarts - first)
            state = np.repeat(self.robot.default_q[None], count, axis=0)
            state[:, self.moved] = self._rng.uniform(
                low[self.moved], high[self.moved], (count, len(self.moved))
            )
            result = self.solver.solve_ik(self._problem(np.repeat(T[None], count, axis=0), state=state))
            for b in np.flatnonzero(result.success):
                if not self._collision(result.q[b, 0], result.joint_names):
                    return True
        return False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench collision``."""
    parser.add_argument("--robot", choices=sorted(ARMS), help="one robot (default: all that are installed)")
    parser.add_argument("--solver", default="cpu", metavar="NAME", help="registered solver (cpu)")
    parser.add_argument("--requests", type=int, default=250, metavar="N", help="per robot (250)")
    parser.add_argument(
        "--restarts",
        type=int,
        default=10_000,
        metavar="N",
        help="random starts for what is not solved (10000)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of scenes and targets (0)")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if every robot could be measured and no success was rejected."""
    if args.requests < 1 or args.restarts < 0:
        raise InvalidRequestError(
            f"requests is {args.requests} and restarts {args.restarts}; allowed are 1 or more, and 0 or more"
        )
    robots = [args.robot] if args.robot else list(ARMS)
    rows, failures, seconds = [], [], list[float]()
    total = args.requests * len(robots)
    with progress_bar("measuring", total, enabled=not args.json and sys.stderr.isatty()) as report:
        for name in robots:
            report(name, 0)
            try:
                bench = CollisionBench(name, *ARMS[name], args.solver, args.seed)
                try:
                    rows.append(bench.run(args.requests, args.restarts, report))
                    seconds += bench.seconds
                finally:
                    bench.close()
            except KinoptError as error:
                failures.append(str(error))
    median_ms = 1e3 * float(np.median(seconds)) if seconds else None
    if args.json:
        shown = {"rows": [asdict(row) for row in rows], "median_ms": median_ms, "failures": failures}
        print(json.dumps(shown, indent=2))
    else:
        _show(rows, median_ms, failures)
    return 1 if failures or not rows or any(row.rejected for row in rows) else 0


def _show(rows: list[CollisionRow], median_ms: float | None, failures: list[str]) -> None:
    columns = ("robot", "requests", "clear at once", "feasible", "solved", "share", "rejected")
    table = Table(*columns, "median ms", "p99 ms", "CPU ms")
    for row in rows:
        table.add_row(
            row.robot,
            str(row.requests),
            f"{100 * row.share_clear_at_once:.0f} %",
            str(row.feasible),
            str(row.solved),
            f"{100 * row.share:.2f} %",
            str(row.rejected),
            f"{row.median_ms:.2f}",
            f"{row.p99_ms:.1f}",
            f"{row.cpu_ms:.2f}",
        )
    console = Console()
    console.print(table)
    if median_ms is not None and len(rows) > 1:
        console.print(f"median of all requests: {median_ms:.2f} ms")
    for row in rows:
        for objection in row.objections:
            console.print(f"{row.robot}, {objection}")
    for failure in failures:
        console.print(failure)
