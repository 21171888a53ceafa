"""Which problems can be solved: those that OMPL's RRT-Connect solves with our collision check, given time.

What was found out is kept in a file by the digest of the problem: a run of all problems takes up to an hour.
"""

import json
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.trajectory.tasks import Task, TaskMaker
from kinopt_ros.planning.sampling import missing_sampler, sampled_path
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.solvers.base import Solver
from kinopt_ros.verification.sweep import free_segment

SAMPLING_TIME = 10.0
"""Time of the sampling planner for one problem, s."""
SHORTENING = 1.0
"""Time for shortening the path, s."""
ALTERNATIVES = 8
"""Number of configurations of a pose that it may end at, besides the one the pose was made from."""
FILE = Path("benchmarks") / "trajectory_feasible.json"


@dataclass(frozen=True)
class Sampled:
    """Result of the sampling planner for one problem."""

    problem: str
    """Robot, family and number, for people."""
    seconds: float
    """Time that OMPL was given, or took."""
    length: float | None
    """Length of OMPL's path after shortening, rad (and m); None if it found none."""
    sampler: str


class Feasibility:
    """Results that are known, and how to find out more."""

    def __init__(self, file: Path | None) -> None:
        """
        Args:
            file: where what was found out is kept; it need not exist. None: nowhere.
        """
        self._file = file
        self._known: dict[str, Sampled] = {}
        self._changed = False
        if file is not None and file.is_file():
            rows = json.loads(file.read_text(encoding="utf-8"))["problems"]
            self._known = {digest: Sampled(**row) for digest, row in rows.items()}

    def known(self, task: Task, seconds: float) -> Sampled | None:
        """Return what was found out about a problem in so much time, if it was; a path counts whatever time it took."""
        found = self._known.get(task.digest)
        return found if found is not None and (found.length is not None or found.seconds >= seconds) else None

    def find(
        self, maker: TaskMaker, task: Task, problem: TrajectoryProblem, solver: Solver, seconds: float
    ) -> Sampled | None:
        """Ask OMPL for so many seconds, unless the result is known; None if it is not and there is no OMPL (or no
        time)."""
        found = self.known(task, seconds)
        if found is not None or seconds <= 0.0 or missing_sampler():
            return found
        goals = self._goals(maker, task, solver)
        begin = time.monotonic()
        moved = maker.variables

        def free(a: Float64, b: Float64) -> bool:
            first, second = task.start.copy(), task.start.copy()
            first[moved], second[moved] = a, b
            return free_segment(maker.robot, task.scene, first, second)

        path = sampled_path(
            maker.robot, problem, goals, free, begin + seconds, 1 + task.number, shortening=SHORTENING
        )
        spent = min(time.monotonic() - begin, seconds)
        length = None if path is None else float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
        name = f"{task.robot} {task.family} {task.number}"
        found = Sampled(name, round(spent, 2), length and round(length, 4), f"ompl {version('ompl')}")
        self._known[task.digest] = found
        self._changed = True
        return found

    def save(self) -> None:
        """Write the file, if there is one and something new for it."""
        if self._file is not None and self._changed:
            rows = {digest: asdict(row) for digest, row in sorted(self._known.items(), key=_by_name)}
            self._file.parent.mkdir(parents=True, exist_ok=True)
            lines = ",\n".join(f"{json.dumps(digest)}: {json.dumps(row)}" for digest, row in rows.items())
            self._file.write_text(f'{{"problems": {{\n{lines}\n}}}}\n', encoding="utf-8")

    def _goals(self, maker: TaskMaker, task: Task, solver: Solver) -> Float64:
        """Return configurations at the goal."""
        goals = [task.goal[maker.variables]]
        if task.is_pose:
            result = solver.solve_ik(
                ik_problem(
                    maker.robot,
                    task.T_base_tip,
                    base_link=maker.arm.base,
                    tip_link=maker.arm.tip,
                    state=task.start,
                    num_solutions=ALTERNATIVES,
                    scene=task.scene,
                )
            )
            place = [result.joint_names.index(name) for name in maker.joints]
            goals += [q[place] for q in result.q[0] if np.isfinite(q).all()]
        return np.array(goals)


def _by_name(item: tuple[str, Sampled]) -> tuple[str, str, int]:
    robot, family, number = item[1].problem.split()
    return robot, family, int(number)
