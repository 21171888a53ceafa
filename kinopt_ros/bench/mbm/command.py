"""``kinopt bench mbm FOLDER``: MotionBenchMaker's problems, one call each, beside other planners.

Every motion is judged by Pinocchio and coal on the URDF's meshes every 4 ms of what a controller commands
(``bench.trajectory.judge``). With our time law they have to be perfect; with a peer's, which knows no jerk limits, they
have to be free of collisions, within position limits, and where they should begin and end. How far it goes beyond
limits of velocity and acceleration is told.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from kinopt_ros.bench.machine import machine
from kinopt_ros.bench.mbm.attempt import Attempt, Peer
from kinopt_ros.bench.mbm.peers.ompl import OmplPeer
from kinopt_ros.bench.mbm.peers.roboplan import RoboPlanPeer
from kinopt_ros.bench.mbm.plot import plot_rows
from kinopt_ros.bench.mbm.problems import Family, ProblemFiles, RobotFiles, families_of, load_mbm_problem
from kinopt_ros.bench.mbm.rows import ALL, Judged, MbmRow, print_rows, row_of
from kinopt_ros.bench.plots import check_plot
from kinopt_ros.bench.progress import Report, no_report, progress_bar
from kinopt_ros.bench.trajectory.interpolation import commands
from kinopt_ros.bench.trajectory.judge import MotionJudge
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.errors import InvalidRequestError, KinoptError, SolverUnavailableError, quoted, shortened
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.trajectory import JointGoal, TrajectoryProblem
from kinopt_ros.robot.sources import read_description
from kinopt_ros.solvers.readiness import prepare_collisions, prepare_scene
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.solvers.trajectory_gate import TIMING, path_length
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.path_timing import time_path
from kinopt_ros.verification.motion import motion_limits

JUDGED_EVERY = 4e-3
"""Time between commands that are judged, s."""
OURS = "kinopt"
"""Name of the library among planners and time laws."""
TOPPRA = "toppra"
"""RoboPlan's time law."""
PEERS = ("ompl", "roboplan")
DEADLINE = 10.0
"""s for each problem and planner."""
WARM_UP = 2
"""Problems of each family that are solved before the clock runs."""
_AWAY = 1e-4
"""Distance of a peer's ends from those that were asked for, rad."""


class MbmBench:
    """Benchmark of one robot."""

    def __init__(
        self, files: RobotFiles, solver: str, peers: Sequence[str], problem: TrajectoryProblem
    ) -> None:
        """
        Args:
            files: the robot.
            solver: registered solver.
            peers: names of planners to compare with.
            problem: one of its problems; all move the same joints.
        """
        for package, remedy in (("pinocchio", "pin"), ("coal", "coal")):
            if find_spec(package) is None:
                raise SolverUnavailableError(
                    f"motions are judged by {package}; install it with `pip install {remedy}`"
                )
        self.files, self.robot, self._joints = files, files.robot, problem.joints
        prepare_collisions(self.robot)
        text = read_description(files.urdf, "URDF")
        subject = Subject(str(files.urdf), text, self.robot, self.robot.root_link, (self.robot.root_link,))
        self.judge = MotionJudge(subject, self._joints, JUDGED_EVERY)
        self.solver = create_solver(solver, self.robot)
        self.solver.warm_up()
        self.missing: list[str] = []
        """Why peers are left out."""
        self._roboplan: RoboPlanPeer | None = None
        self._peers: list[Peer] = []
        for name in peers:
            try:
                if name == "roboplan":
                    self._roboplan = RoboPlanPeer(files, self._joints)
                    self._peers.append(self._roboplan)
                else:
                    self._peers.append(OmplPeer(self.robot))
            except SolverUnavailableError as error:
                self.missing.append(f"{files.name}: {name} is left out: {error}")
        self.versions = {OURS: self.solver.name, **{peer.name: peer.version for peer in self._peers}}

    def close(self) -> None:
        """Release the solver."""
        self.solver.close()

    def wrong_end(self, problem: TrajectoryProblem) -> str:
        """Return why no motion can be an answer, by the exact shapes; empty if both ends are free."""
        assert problem.scene is not None
        self.judge.enter(problem.scene)
        [goal] = problem.goals
        assert isinstance(goal, JointGoal)
        for what, q in (("start", problem.start), ("goal", problem.whole(goal.q))):
            values = dict(zip(self.robot.variable_names, q.tolist(), strict=True))
            found = self.judge.collision(values)
            if found:
                return f"the {what} is in collision: {found}"
        return ""

    def attempts(self, problem: TrajectoryProblem, deadline: float, seed: int) -> Iterator[Attempt]:
        """Yield what everybody makes of a problem, ours first."""
        assert problem.scene is not None
        prepare_scene(self.robot, problem.scene)  # as whoever changes a scene does, before it is in service
        yield self._ours(problem, deadline)
        for peer in self._peers:
            yield from self._theirs(peer, problem, deadline, seed)

    def judged(self, name: str, problem: TrajectoryProblem, attempt: Attempt) -> Judged:
        """Judge an attempt."""
        motion = attempt.motion
        if motion is None:
            return Judged(name, attempt, "", None, None)
        judge = self.judge if attempt.timing == OURS else self._wrong_of_peer
        wrong = judge(problem, motion)
        limits = motion_limits(self.robot, problem)
        share = max(
            float((np.abs(motion.velocity) / limits.velocity).max()),
            float((np.abs(motion.acceleration) / limits.acceleration).max()),
        )
        return Judged(name, attempt, wrong[0] if wrong else "", path_length(motion), share)

    def _ours(self, problem: TrajectoryProblem, deadline: float) -> Attempt:
        start, cpu = time.perf_counter(), time.process_time()
        result = plan_trajectory(self.solver, replace(problem, deadline=time.monotonic() + deadline))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - start
        return Attempt(OURS, OURS, result.status.name, wall, cpu, dict(result.stages), result.trajectory)

    def _theirs(
        self, peer: Peer, problem: TrajectoryProblem, deadline: float, seed: int
    ) -> Iterator[Attempt]:
        """Yield a peer's path with its own time law, if there is one, and with ours."""
        peer.enter(problem)
        if self._roboplan is not None:
            self._roboplan.enter(problem)
        start, cpu = time.perf_counter(), time.process_time()
        found = peer.plan(problem, deadline, seed)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - start
        for timing in (TOPPRA, OURS) if self._roboplan is not None else (OURS,):
            motion, code, stages = None, found.why, dict(found.stages)
            more_wall, more_cpu = time.perf_counter(), time.process_time()
            if found.corners is not None:
                try:
                    motion, code = self._timed(timing, problem, found.corners), Status.SUCCESS.name
                except KinoptError as error:
                    code = str(error)
            more_wall, more_cpu = time.perf_counter() - more_wall, time.process_time() - more_cpu
            stages[TIMING] = more_wall
            yield Attempt(peer.name, timing, code, wall + more_wall, cpu + more_cpu, stages, motion)

    def _timed(self, timing: str, problem: TrajectoryProblem, corners: np.ndarray) -> JointTrajectory:
        if timing == TOPPRA:
            assert self._roboplan is not None
            return self._roboplan.timed(problem, corners)
        limits = motion_limits(self.robot, problem)
        corners = corners.copy()
        [goal] = problem.goals
        assert isinstance(goal, JointGoal)
        corners[0], corners[-1] = problem.start[problem.variables], goal.q  # but for rounding
        return time_path(
            problem.joints, corners, limits.velocity, limits.acceleration, limits.jerk, corners=True
        )

    def _wrong_of_peer(self, problem: TrajectoryProblem, motion: JointTrajectory) -> list[str]:
        found = self.judge.violations(problem, commands(motion, JUDGED_EVERY))
        wrong = [found.collision] if found.collision else []
        for what, value in (("start", found.start), ("goal", found.goal), ("position limit", found.position)):
            if value > _AWAY:
                wrong.append(f"the {what} is missed by {value:.3g} rad")
        return wrong


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``kinopt bench mbm``."""
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, help="with robots (URDF and SRDF) and families of problems"
    )
    parser.add_argument("--families", metavar="A,B", help="folders of problems, by comma (default: all)")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="every N-th problem of each family (1)"
    )
    parser.add_argument("--solver", default="cpu", metavar="NAME", help="registered solver (cpu)")
    parser.add_argument(
        "--peers",
        default=",".join(PEERS),
        metavar="A,B",
        help=f"planners beside it, where installed: {', '.join(PEERS)}, or none (all)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the peers' planners (0)")
    parser.add_argument("--deadline", type=float, default=DEADLINE, metavar="S", help="s per problem (10)")
    parser.add_argument(
        "--scaling", type=float, default=1.0, metavar="X", help="of velocity and acceleration limits (1)"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw times and durations into a PNG")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if every robot could be measured and no motion of ours was rejected."""
    if args.every < 1 or args.seed < 0:
        raise InvalidRequestError(
            f"every is {args.every} and seed {args.seed}; allowed are 1 or more, and 0 or more"
        )
    if not (0.0 < args.deadline <= 1e4 and 0.0 < args.scaling <= 1.0):
        raise InvalidRequestError(
            f"deadline is {args.deadline} and scaling {args.scaling}; allowed are above 0 up to 10000, and above 0 up "
            "to 1"
        )
    peers = _names("peers", "" if args.peers == "none" else args.peers, PEERS)
    plot = None if args.plot is None else check_plot(args.plot)
    families = families_of(args.folder)
    wanted = [family.name for family in families]
    if args.families is not None:
        wanted = _names("families", args.families, wanted)
    chosen = [family for family in families if family.name in wanted]
    rows: list[MbmRow] = []
    wrong: list[str] = []
    failures: list[str] = []
    count = sum(len(family.problems[:: args.every]) for family in chosen)
    with progress_bar("measuring", count, enabled=not args.json and sys.stderr.isatty()) as report:
        for name in dict.fromkeys(family.robot.name for family in chosen):
            of_robot = [family for family in chosen if family.robot.name == name]
            try:
                found, said = _measure(of_robot, args, peers, wrong, report)
                rows += found
                failures += said
            except KinoptError as error:
                failures.append(f"{name}: {error}")
    missed = [row for row in rows if row.planner == OURS and row.rejected]
    if plot is not None:
        plot_rows(rows, plot)
    if args.json:
        record = {
            "machine": machine(),
            "rows": [asdict(row) for row in rows],
            "left_out": wrong,
            "failures": failures,
        }
        print(json.dumps(record, indent=1))
    else:
        print_rows(rows, wrong, failures)
    return 1 if missed or not any(row.planner == OURS for row in rows) else 0


def _measure(
    families: Sequence[Family],
    args: argparse.Namespace,
    peers: Sequence[str],
    wrong: list[str],
    report: Report = no_report,
) -> tuple[list[MbmRow], list[str]]:
    """Return the rows of one robot, and why peers are left out; what is wrong with problems is added to ``wrong``."""
    files = families[0].robot
    report(files.name, 0)
    bench = MbmBench(
        files, args.solver, peers, load_mbm_problem(families[0].problems[0], files.robot, args.scaling)
    )
    rows: list[MbmRow] = []
    every: dict[tuple[str, str], list[Judged]] = {}
    try:
        for family in families:
            found: dict[tuple[str, str], list[Judged]] = {}
            problems = family.problems[:: args.every]
            for _, problem in _loaded(problems[:WARM_UP], files, args.scaling, []):
                list(bench.attempts(problem, args.deadline, args.seed))
            for one, problem in _loaded(problems, files, args.scaling, wrong):
                reason = bench.wrong_end(problem)
                if reason:
                    wrong.append(f"{one.name}: {reason}")
                for attempt in () if reason else bench.attempts(problem, args.deadline, args.seed):
                    judged = bench.judged(one.name, problem, attempt)
                    found.setdefault((attempt.planner, attempt.timing), []).append(judged)
                report(family.name, 1)
            for key, some in found.items():
                rows.append(row_of(files.name, family.name, bench.versions[key[0]], some))
                every.setdefault(key, []).extend(some)
    finally:
        bench.close()
    rows += [row_of(files.name, ALL, bench.versions[key[0]], some) for key, some in every.items()]
    return rows, bench.missing


def _loaded(
    problems: Sequence[ProblemFiles], files: RobotFiles, scaling: float, wrong: list[str]
) -> Iterator[tuple[ProblemFiles, TrajectoryProblem]]:
    """Yield what can be read; what cannot is added to ``wrong``."""
    for one in problems:
        try:
            yield one, load_mbm_problem(one, files.robot, scaling)
        except KinoptError as error:
            wrong.append(f"{one.name}: {error}")


def _names(what: str, given: str, known: Sequence[str]) -> list[str]:
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise InvalidRequestError(f"{what} has {quoted(name)}; allowed are {shortened(list(known), 40)}")
    return names
