"""``kinopt bench trajectory``: motions from a start to a goal around obstacles, one problem per call.

A success counts as rejected if the judge, Pinocchio and coal on the original shapes, objects to what a controller
would command (``judge.py``). Feasible are problems that OMPL solves with our collision check, given time
(``feasible.py``), and those that were solved and accepted.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from kinopt_ros.bench.machine import machine
from kinopt_ros.bench.progress import Report, no_report, progress_bar
from kinopt_ros.bench.trajectory import pyroki
from kinopt_ros.bench.trajectory.feasible import FILE, SAMPLING_TIME, Feasibility
from kinopt_ros.bench.trajectory.judge import MotionJudge
from kinopt_ros.bench.trajectory.rows import SHOWN, Measured, TrajectoryRow, as_json, fill, print_rows, total
from kinopt_ros.bench.trajectory.scenes import FAMILIES
from kinopt_ros.bench.trajectory.tasks import ARMS, Task, TaskMaker
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.errors import InvalidRequestError, KinoptError, SolverUnavailableError
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.readiness import prepare_collisions, prepare_scene
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.solvers.trajectory_result import TrajectoryResult

DEADLINE = 10.0
"""Time that a problem may take, s: what the sampling planner has, too."""
WARM_UP = 2
"""Number of problems of every family, of another seed, that are solved before the clock runs."""
WARM_UP_SEED = 424242


class TrajectoryBench:
    """Benchmark of one robot and one solver."""

    def __init__(self, name: str, solver: str, seed: int, feasibility: Feasibility, scaling: float) -> None:
        for package, remedy in (("pinocchio", "pin"), ("coal", "coal")):
            if find_spec(package) is None:
                raise SolverUnavailableError(
                    f"motions are judged by {package}; install it with `pip install {remedy}`"
                )
        self.maker = TaskMaker(name)
        robot, arm = self.maker.robot, self.maker.arm
        subject = Subject(name, find_robot(name)[0].read_text(encoding="utf-8"), robot, arm.base, (arm.tip,))
        self.judge = MotionJudge(subject, self.maker.joints)
        self._seed, self._scaling, self._feasibility = seed, scaling, feasibility
        prepare_collisions(robot)
        self.solver: Solver = create_solver(solver, robot)
        self.solver.warm_up()

    def close(self) -> None:
        """Release the solver."""
        self.solver.close()

    def problem(self, task: Task) -> TrajectoryProblem:
        """Return what the solver is asked."""
        maker = self.maker
        return trajectory_problem(
            maker.robot,
            task.T_base_tip if task.is_pose else task.goal[maker.variables],
            joints=maker.joints,
            base_link=maker.arm.base,
            tip_link=maker.arm.tip,
            start=task.start,
            scene=task.scene,
            velocity_scaling=self._scaling,
            acceleration_scaling=self._scaling,
        )

    def warm_up(self, family: str, deadline: float) -> None:
        """Let everything be compiled and read that is on first use."""
        for task in self.maker.tasks(family, WARM_UP, WARM_UP_SEED):
            prepare_scene(self.maker.robot, task.scene)
            self.solve(task, deadline)

    def run(
        self, family: str, problems: int, deadline: float, sampling: float, report: Report = no_report
    ) -> tuple[TrajectoryRow, list[Measured]]:
        """Ask, judge and count.

        Args:
            family: of scenes.
            problems: how many.
            deadline: s for each.
            sampling: s that the sampling planner gets for what it has not been asked before; 0: it is not asked.
            report: told of every problem.
        """
        row = TrajectoryRow(self.maker.name, family, self.solver.name, self._seed)
        calls = []
        scene = None
        collides = poses = 0
        for task in self.maker.tasks(family, problems, self._seed):
            if task.scene is not scene:
                scene = task.scene
                prepare_scene(
                    self.maker.robot, scene
                )  # as whoever changes a scene does, before it is in service
            call = self._one(row, task, deadline, sampling)
            calls.append(call)
            collides += task.straight_collides
            poses += task.is_pose
            report(f"{row.robot} {family}", 1)
        row.straight_collides, row.poses = collides / problems, poses / problems
        fill(row, calls)
        return row, calls

    def solve(self, task: Task, deadline: float) -> tuple[TrajectoryResult, TrajectoryProblem, float, float]:
        """Solve a problem; return answer, problem, wall and CPU time (s)."""
        problem = self.problem(task)
        start, cpu = time.perf_counter(), time.process_time()
        problem = replace(problem, deadline=time.monotonic() + deadline)
        result = plan_trajectory(self.solver, problem)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - start
        return result, problem, wall, cpu

    def _one(self, row: TrajectoryRow, task: Task, deadline: float, sampling: float) -> Measured:
        result, problem, wall, cpu = self.solve(task, deadline)
        call = Measured(wall, cpu, dict(result.stages), result.status.name)
        wrong: list[str] = []
        if result.trajectory is not None:
            wrong = self.judge(problem, result.trajectory)
        solved = result.trajectory is not None and not wrong
        sampled = self._feasibility.find(
            self.maker, task, replace(problem, deadline=None), self.solver, sampling
        )
        row.problems += 1
        row.solved += solved
        row.rejected += bool(wrong)
        row.sampled += sampled is not None
        feasible = solved or (sampled is not None and sampled.length is not None)
        call.feasible = feasible
        row.feasible += feasible
        if feasible and not solved:
            row.unsolved.append(task.number)
        if wrong and len(row.objections) < SHOWN:
            row.objections.append(f"problem {task.number}: {wrong[0]}")
        if result.trajectory is not None and not wrong:
            call.length, call.duration = result.length, result.trajectory.duration
            call.clearance = min(result.clearance, 1.0)
            call.sampled_length = None if sampled is None else sampled.length
        return call


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench trajectory``."""
    parser.add_argument("--robot", choices=sorted(ARMS), help="one robot (default: all that are installed)")
    parser.add_argument("--family", choices=FAMILIES, help="one family of scenes (default: all)")
    parser.add_argument("--solver", default="cpu", metavar="NAME", help="registered solver (cpu)")
    parser.add_argument("--problems", type=int, default=25, metavar="N", help="per robot and family (25)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of scenes and ends (0)")
    parser.add_argument("--deadline", type=float, default=DEADLINE, metavar="S", help="s per problem (10)")
    parser.add_argument(
        "--scaling", type=float, default=0.1, metavar="X", help="of velocity and acceleration limits (0.1)"
    )
    parser.add_argument(
        "--sampling-time",
        type=float,
        default=SAMPLING_TIME,
        metavar="S",
        help="s that OMPL gets for a problem it has not been asked before (10); 0: only what is solved or known "
        "counts as feasible",
    )
    parser.add_argument(
        "--feasible",
        type=Path,
        default=FILE,
        metavar="FILE",
        help=f"what OMPL found out, read and written ({FILE})",
    )
    parser.add_argument(
        "--pyroki",
        type=int,
        default=0,
        metavar="N",
        help="instead: so many problems of the Panda around a wall, at full speed, beside PyRoki's trajectory "
        "optimization; takes minutes",
    )
    parser.add_argument(
        "--pyroki-python",
        default=".venv-pyroki/bin/python",
        metavar="FILE",
        help="interpreter of an environment with almond-pyroki (.venv-pyroki/bin/python)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if every robot could be measured and no success was rejected."""
    if args.problems < 1 or args.seed < 0:
        raise InvalidRequestError(
            f"problems is {args.problems} and seed {args.seed}; allowed are 1 or more, and 0 or more"
        )
    if not (args.deadline > 0.0 and args.sampling_time >= 0.0 and 0.0 < args.scaling <= 1.0):
        raise InvalidRequestError(
            f"deadline is {args.deadline}, sampling-time {args.sampling_time} and scaling {args.scaling}; allowed "
            "are above 0, 0 or more, and above 0 up to 1"
        )
    if args.pyroki < 0:
        raise InvalidRequestError(f"pyroki is {args.pyroki}; allowed is 0 or more problems")
    if args.pyroki:
        return _beside_pyroki(args)
    robots = [args.robot] if args.robot else list(ARMS)
    families = [args.family] if args.family else list(FAMILIES)
    feasibility = Feasibility(args.feasible)
    rows: list[TrajectoryRow] = []
    calls: list[Measured] = []
    failures: list[str] = []
    count = args.problems * len(robots) * len(families)
    with progress_bar("measuring", count, enabled=not args.json and sys.stderr.isatty()) as report:
        for name in robots:
            report(name, 0)
            try:
                bench = TrajectoryBench(name, args.solver, args.seed, feasibility, args.scaling)
                try:
                    for family in families:
                        bench.warm_up(family, args.deadline)
                        row, found = bench.run(
                            family, args.problems, args.deadline, args.sampling_time, report
                        )
                        rows.append(row)
                        calls += found
                        feasibility.save()
                finally:
                    bench.close()
            except KinoptError as error:
                failures.append(f"{name}: {error}")
    if len(rows) > 1:
        rows.append(total(rows, calls))
    if args.json:
        record = {"machine": machine(), "rows": [as_json(row) for row in rows], "failures": failures}
        print(json.dumps(record, indent=1))
    else:
        print_rows(rows, failures)
    return 1 if failures or not rows or any(row.rejected for row in rows) else 0


def _beside_pyroki(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if PyRoki could be run."""
    bench = TrajectoryBench(pyroki.ROBOT, args.solver, args.seed, Feasibility(None), 1.0)
    try:
        # Goals are configurations for both.
        tasks = [
            replace(task, is_pose=False) for task in pyroki.suitable(bench.maker, args.pyroki, args.seed)
        ]
        bench.warm_up(pyroki.FAMILY, args.deadline)
        ours, problems = [], []
        for task in tasks:
            prepare_scene(bench.maker.robot, task.scene)
            result, problem, wall, cpu = bench.solve(task, args.deadline)
            ours.append((result, wall, cpu))
            problems.append(problem)
        total_calls = len(tasks) + min(len(tasks), pyroki.AS_SHIPPED)
        shown = not args.json and sys.stderr.isatty()
        with progress_bar("measuring", total_calls, enabled=shown) as report:
            rows = pyroki.compare(
                bench.maker, bench.judge, tasks, problems, ours, Path(args.pyroki_python), report
            )
    finally:
        bench.close()
    if args.json:
        print(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    else:
        pyroki.print_comparison(rows)
    return 0
