"""PyRoki's trajectory optimization on the same problems, in a process and an environment of its own."""

import json
import os
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import kinopt_ros.bench.pyroki
from kinopt_ros.array import Float64
from kinopt_ros.bench.progress import Report, no_report
from kinopt_ros.bench.trajectory.interpolation import commands, straight_commands
from kinopt_ros.bench.trajectory.judge import STEP, MotionJudge, Violations
from kinopt_ros.bench.trajectory.tasks import Task, TaskMaker
from kinopt_ros.errors import SolverUnavailableError
from kinopt_ros.geometry.shapes import Box
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.solvers.trajectory_result import TrajectoryResult

ROBOT, FAMILY = "panda", "wall"
"""Robot and family as in PyRoki's example: over or around a wall."""
AS_SHIPPED = 2
"""Problems that are also built and compiled anew, which takes minutes each."""
POINTS = 50
SHORTEST_STEP = 0.02
"""Shortest time step, s, as in the example."""
MEMORY = 16 << 30
"""Bytes of address space that the process may take."""
WORKER = Path(next(iter(kinopt_ros.bench.pyroki.__path__))) / "trajectory_worker.py"


@dataclass
class Side:
    """Figures of one of the two on all problems."""

    name: str
    problems: int = 0
    wall_s: float | None = None
    """Median of a call."""
    cpu_s: float | None = None
    answers: int = 0
    in_collision: int = 0
    """Answers that the judge finds in collision."""
    velocity_max: float | None = None
    """Largest share of a velocity limit."""
    outside_max: float | None = None
    """Farthest outside of the position limits, rad."""
    ends_max: float | None = None
    """Farthest from start and goal, rad."""
    compile_s: float | None = None
    """First call of all less a later one."""
    about: dict[str, Any] = field(default_factory=dict)


def suitable(maker: TaskMaker, count: int, seed: int) -> list[Task]:
    """The first problems around one wall: PyRoki's program is compiled for as many obstacles."""
    found: list[Task] = []
    for task in maker.tasks(FAMILY, 40 * count, seed):
        if len(task.scene.objects) == 1:
            found.append(task)
        if len(found) == count:
            break
    return found


def compare(
    maker: TaskMaker,
    judge: MotionJudge,
    tasks: Sequence[Task],
    problems: Sequence[TrajectoryProblem],
    ours: Sequence[tuple[TrajectoryResult, float, float]],
    python: Path,
    report: Report = no_report,
) -> list[dict[str, Any]]:
    """Figures of both on the same problems.

    Args:
        maker: of the problems.
        judge: of the answers of both.
        tasks: the problems.
        problems: what our solver was asked.
        ours: its answers, with wall and CPU time (s). PyRoki gets as much time for its motion as ours takes.
        python: interpreter of PyRoki's environment.
        report: told of every call.

    Raises:
        SolverUnavailableError: PyRoki cannot run here.
    """
    gaps = [
        max(SHORTEST_STEP, result.trajectory.duration / (POINTS - 1)) if result.trajectory else SHORTEST_STEP
        for result, _, _ in ours
    ]
    said, paths = _run(python, maker, tasks, gaps, report)
    judged = [
        judge.violations(problem, commands(result.trajectory, STEP))
        for problem, (result, _, _) in zip(problems, ours, strict=True)
        if result.trajectory is not None
    ]
    mine = _side("kinopt_ros", [wall for _, wall, _ in ours], [cpu for _, _, cpu in ours], judged)
    theirs = [
        judge.violations(problem, straight_commands(path, gap, STEP))
        for problem, path, gap in zip(problems, paths, gaps, strict=True)
    ]
    sides = [mine]
    for name in ("compiled", "as shipped"):
        calls = [row for row in said if row.get("done") == name]
        part = theirs if name == "compiled" else []
        side = _side(
            f"PyRoki, {name}", [row["wall_s"] for row in calls], [row["cpu_s"] for row in calls], part
        )
        sides.append(side)
    first = next(row["first_s"] for row in said if "first_s" in row)
    if sides[1].wall_s is not None:
        sides[1].compile_s = first - sides[1].wall_s
    sides[1].about = next(row for row in said if "versions" in row)["versions"]
    rows = []
    for side in sides:
        row = asdict(side)
        for key in ("wall_s", "cpu_s"):
            other, own = getattr(side, key), getattr(mine, key)
            row[key.replace("_s", "_times_ours")] = other / own if other and own else None
        rows.append(row)
    return rows


def print_comparison(rows: Sequence[dict[str, Any]]) -> None:
    """The table."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.width = max(console.width, 130)
    columns = ("problems", "wall s", "× ours", "CPU s", "× ours", "answers", "in collision")
    table = Table(
        "solver", *columns, "velocity / limit", "ends off rad", "compile s", title=f"{ROBOT}, {FAMILY}"
    )
    for row in rows:
        keys = ("wall_s", "wall_times_ours", "cpu_s", "cpu_times_ours")
        table.add_row(
            row["name"],
            str(row["problems"]),
            *(_number(row[key], 3 if key.endswith("_s") else 0) for key in keys),
            str(row["answers"]) if row["answers"] else "-",
            str(row["in_collision"]) if row["answers"] else "-",
            _number(row["velocity_max"], 3),
            "-" if row["ends_max"] is None else f"{row['ends_max']:.1e}",
            _number(row["compile_s"], 1),
        )
    console.print(table)


def _side(name: str, wall: list[float], cpu: list[float], judged: Sequence[Violations]) -> Side:
    side = Side(name, len(wall), answers=len(judged))
    if wall:
        side.wall_s, side.cpu_s = float(np.median(wall)), float(np.median(cpu))
    if judged:
        side.in_collision = sum(bool(found.collision) for found in judged)
        side.velocity_max = max(found.velocity for found in judged)
        side.outside_max = max(found.position for found in judged)
        side.ends_max = max(max(found.start, found.goal) for found in judged)
    return side


def _run(
    python: Path, maker: TaskMaker, tasks: Sequence[Task], gaps: Sequence[float], report: Report
) -> tuple[list[dict[str, Any]], Float64]:
    if not python.is_file():
        raise SolverUnavailableError(
            f"PyRoki's environment is missing (no {python}): `make bench-beam` makes it, or name a Python that has "
            "the package almond-pyroki with --pyroki-python"
        )
    moved = maker.variables
    rows = [
        {"start": task.start[moved].tolist(), "goal": task.goal[moved].tolist(), "dt": gap} | _wall(task)
        for task, gap in zip(tasks, gaps, strict=True)
    ]
    urdf = find_robot(maker.name)[0].read_text(encoding="utf-8")
    job = {
        "urdf": _with_fixed_joints(urdf, maker.joints),
        "tasks": rows,
        "linear_solver": "dense_cholesky",  # the quicker one
        "as_shipped": AS_SHIPPED,
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    with tempfile.TemporaryDirectory(prefix="kinopt_pyroki_") as name:
        folder = Path(name)
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        environment = kept | {"JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(folder / "cache")}
        said = []
        with (
            open(folder / "stderr", "w+", encoding="utf-8", errors="replace") as errors,
            subprocess.Popen(
                ["/bin/sh", "-c", f'ulimit -v {MEMORY >> 10}; exec "$0" "$@"', python, WORKER, folder],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            ) as process,
        ):
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if line.startswith("{"):  # libraries print, too
                        said.append(json.loads(line))
                        report("PyRoki", 1 if "done" in said[-1] else 0)
            except BaseException:
                process.kill()
                raise
            if process.wait() != 0:
                errors.seek(0)
                last = [line.strip() for line in errors.read().splitlines() if line.strip()][-1:]
                raise SolverUnavailableError(
                    f"PyRoki's process ended with status {process.returncode}: {last or 'it said nothing'}"
                )
        joints = next(row["joints"] for row in said if "joints" in row)
        paths = np.load(folder / "paths.npy")[:, :, [joints.index(name) for name in maker.joints]]
    return said, paths


def _wall(task: Task) -> dict[str, list[float]]:
    [thing] = task.scene.objects.values()
    [placed] = thing.shapes
    assert isinstance(placed.shape, Box)
    T = thing.T_root_object @ placed.T_frame_shape
    return {
        "pose": [*matrix_to_quaternion(T[:3, :3]).tolist(), *T[:3, 3].tolist()],
        "size": [placed.shape.x, placed.shape.y, placed.shape.z],
    }


def _with_fixed_joints(urdf_text: str, moving: Sequence[str]) -> str:
    """The description with all other joints fixed, and without what is only seen."""
    root = ElementTree.fromstring(urdf_text)
    for link in root.iter("link"):
        for visual in link.findall("visual"):
            link.remove(visual)
    for joint in root.findall("joint"):
        if joint.get("name") not in moving:
            joint.set("type", "fixed")
            for tag in ("axis", "limit", "mimic", "dynamics", "safety_controller", "calibration"):
                for child in joint.findall(tag):
                    joint.remove(child)
    return ElementTree.tostring(root, encoding="unicode")


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
