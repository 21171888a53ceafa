"""``kinopt bench objective``: the objectives of PyRoki's examples, solved by ``cpu``, ``jax_lm`` and PyRoki.

All start from the same default configuration and get the same targets, which can be reached. Ours are asked for poses
that hold (0.1 mm, 1 mrad) with the other costs weighed; PyRoki weighs all. Ours contain the starts from inverse
kinematics, the float64 steps and the float64 verdict; PyRoki's time is that of its compiled program. Answers are judged
by Pinocchio.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.console import Console
from rich.table import Table

import kinopt_ros.bench.pyroki
from kinopt_ros.array import Float64
from kinopt_ros.bench.machine import machine
from kinopt_ros.bench.objective.index import SMALLEST, run_index_bench
from kinopt_ros.bench.progress import Report, no_report, progress_bar
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.rest import Rest
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem, with_objectives
from kinopt_ros.planning.objectives import solve_objective
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.solvers.registry import create_solver, solver_class

WORKER = Path(next(iter(kinopt_ros.bench.pyroki.__path__))) / "objective_worker.py"
SOLVERS = ("cpu", "jax_lm")
"""Ours."""
DEVICES = ("cpu", "cuda")
SOLVED = (1e-3, 1e-2)
"""Distance (m) and angle (rad) up to which an answer counts as solved: PyRoki's bias is left room."""


@dataclass(frozen=True)
class Task:
    """One of PyRoki's examples."""

    name: str
    robot: str
    links: tuple[str, ...]
    rest: float
    manipulability: float = 0.0


TASKS = (
    Task("pose", "panda", ("panda_hand",), 0.01),
    Task("manipulability", "panda", ("panda_hand",), 0.01, 0.05),
    Task("two arms", "baxter", ("left_gripper", "right_gripper"), 0.01),
)


@dataclass
class Row:
    """Figures of one solver for one task and size."""

    task: str
    solver: str
    size: int
    answers: int
    solved: float
    """Share of answers within ``SOLVED`` and the limits."""
    position_error: float
    """Median, m."""
    orientation_error: float
    """Median, rad."""
    manipulability: float
    """Mean index of the first link, where both ask for it; else NaN."""
    wall_us: float
    """Median time of a call by its size, us."""
    cpu_us: float
    first_s: float
    """Time of the first call, which compiles."""


def run_objective_bench(
    tasks: Sequence[Task] = TASKS,
    sizes: Sequence[int] = (1, 10, 100),
    targets: int = 200,
    pyroki_python: Path = Path(".venv-pyroki/bin/python"),
    seed: int = 0,
    report: Report = no_report,
    solvers: Sequence[str] = SOLVERS,
    device: str = "cpu",
) -> list[Row]:
    """Measure all on all tasks.

    Args:
        tasks: what to solve.
        sizes: targets per call.
        targets: targets per size, at least two calls.
        pyroki_python: interpreter of PyRoki's environment.
        seed: of the targets.
        report: told of every size of every task.
        solvers: ours.
        device: ``cpu`` or ``cuda``: where all of them compute, but for the solver ``cpu``.

    Raises:
        SolverUnavailableError: PyRoki cannot run here, or there is no such device.
    """
    rows = []
    for task in tasks:
        robot = load_robot(task.robot)
        plan = [(size, max(2, targets // size)) for size in sizes]
        count = max(size * calls for size, calls in plan)
        T = forward_kinematics(robot, random_configurations(robot, count, seed), task.links)
        rows += _theirs(task, robot, plan, T, pyroki_python, report, device)
        for name in solvers:
            rows += _ours(name, task, robot, plan, T, report, device)
    return rows


def _ours(
    name: str,
    task: Task,
    robot: RobotModel,
    plan: Sequence[tuple[int, int]],
    T: Annotated[Float64, "N L 4 4"],
    report: Report,
    device: str,
) -> list[Row]:
    has_devices = any(option.name == "device" for option in solver_class(name).options)
    solver = create_solver(name, robot, {"device": device} if has_devices else None)
    ik_solver = create_solver("cpu", robot)
    joints, weighed = _joints(robot, task.links), _weighed(task)
    rows = []
    for size, calls in plan:
        # Made once, as PyRoki's program is traced once: what differs from call to call are the targets.
        made = objective_problem(
            robot, [_objective(task, T[i], weighed) for i in range(size)], joints=joints, num_starts=0
        )
        q, wall, cpu = [], [], []
        first = 0.0
        for call in range(-1, calls):
            at = range(max(call, 0) * size, (max(call, 0) + 1) * size)
            start, start_cpu = time.perf_counter(), time.process_time()
            problem = with_objectives(robot, made, [_at(task, made.objective, T[i]) for i in at])
            result = solve_objective(solver, problem, ik_solver)
            if call < 0:
                first = time.perf_counter() - start
                continue
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - start_cpu)
            q.append(result.best[:, 0])
        rows.append(_row(task, robot, name, size, np.concatenate(q), T, wall, cpu, first))
        report(f"{task.name}, {name}", 1)
    solver.close()
    ik_solver.close()
    return rows


def _weighed(task: Task) -> list[Cost]:
    """Return the costs that are the same for all targets: made once, as PyRoki's are when its program is traced."""
    costs: list[Cost] = [Rest(weight=task.rest)]
    if task.manipulability:
        costs += [Manipulability(link=link, weight=task.manipulability) for link in task.links]
    return costs


def _objective(task: Task, T: Annotated[Float64, "L 4 4"], weighed: Sequence[Cost]) -> Objective:
    poses = [
        LinkPose(link=link, T_base_target=T[k], tolerance=(1e-4, 1e-3)) for k, link in enumerate(task.links)
    ]
    return Objective([*poses, *weighed])


def _at(task: Task, objective: Objective, T: Annotated[Float64, "L 4 4"]) -> Objective:
    """Return an objective with other targets."""
    for k, title in enumerate(objective.titles[: len(task.links)]):
        objective = objective.replace(title, T_base_target=T[k])
    return objective


def _joints(robot: RobotModel, links: Sequence[str]) -> tuple[str, ...]:
    moving = {int(i) for link in links for i in chain_between(robot, robot.root_link, link).variables}
    return tuple(name for name in robot.active_joints if moving & set(robot.variables_of(name)))


def _theirs(
    task: Task,
    robot: RobotModel,
    plan: Sequence[tuple[int, int]],
    T: Annotated[Float64, "N L 4 4"],
    python: Path,
    report: Report,
    device: str,
) -> list[Row]:
    if not python.is_file():
        raise SolverUnavailableError(
            f"PyRoki's environment is missing (no {python}): `make bench-beam` makes it, or name a Python that has "
            "almond-pyroki with --pyroki-python"
        )
    with tempfile.TemporaryDirectory(prefix="kinopt_objective_") as name:
        folder = Path(name)
        pose = np.concatenate([matrix_to_quaternion(T[..., :3, :3]), T[..., :3, 3]], axis=-1)
        np.save(folder / "targets.npy", pose)
        job = {
            "urdf": find_robot(task.robot)[0].read_text(encoding="utf-8"),
            "links": list(task.links),
            "rest": task.rest,
            "manipulability": task.manipulability,
            "sizes": list(plan),
        }
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
        done = subprocess.run(
            [str(python), str(WORKER), str(folder)],
            capture_output=True,
            text=True,
            env=kept | {"JAX_PLATFORMS": device, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        )
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
            raise SolverUnavailableError(f"PyRoki's process ended with status {done.returncode}: {said[-1]}")
        records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        joints = records[0]["joints"]
        columns = [robot.variable_index[joint] for joint in joints]
        rows = []
        for record in records[1:]:
            found = np.load(folder / f"answers_{record['size']}.npy")
            q = np.repeat(robot.default_q[None], len(found), axis=0)
            q[:, columns] = found
            rows.append(
                _row(
                    task,
                    robot,
                    "PyRoki",
                    record["size"],
                    q,
                    T,
                    record["wall_s"],
                    record["cpu_s"],
                    record["first_s"],
                )
            )
            report(f"{task.name}, PyRoki", 1)
        return rows


def _row(
    task: Task,
    robot: RobotModel,
    solver: str,
    size: int,
    q: Annotated[Float64, "N nq"],
    T: Annotated[Float64, "N L 4 4"],
    wall: Sequence[float],
    cpu: Sequence[float],
    first: float,
) -> Row:
    position, orientation, index = _judged(task, robot, q, T[: len(q)])
    beyond = np.maximum(robot.limits.lower - q, q - robot.limits.upper).max(axis=1)
    solved = (position <= SOLVED[0]) & (orientation <= SOLVED[1]) & (beyond <= 1e-4)
    return Row(
        task.name,
        solver,
        size,
        len(q),
        float(solved.mean()),
        float(np.median(position)),
        float(np.median(orientation)),
        float(index[solved].mean()) if task.manipulability and solved.any() else float("nan"),
        float(np.median(wall)) / size * 1e6,
        float(np.median(cpu)) / size * 1e6,
        first,
    )


def _judged(
    task: Task, robot: RobotModel, q: Annotated[Float64, "N nq"], T: Annotated[Float64, "N L 4 4"]
) -> tuple[Annotated[Float64, "N"], Annotated[Float64, "N"], Annotated[Float64, "N"]]:
    """Return by Pinocchio the distance and angle of the worst link, and the index of translations of the first."""
    import pinocchio as pin

    model = pin.buildModelFromXML(find_robot(task.robot)[0].read_text(encoding="utf-8"))
    data = model.createData()
    position, orientation, index = (np.zeros(len(q)) for _ in range(3))
    frames = [model.getFrameId(link) for link in task.links]
    for i, row in enumerate(q):
        full = pin.neutral(model)
        for joint in range(1, model.njoints):
            name = model.names[joint]
            value = _joint_value(robot, name, row)
            at = model.joints[joint].idx_q
            if model.joints[joint].nq == 2:
                full[at : at + 2] = np.cos(value), np.sin(value)
            else:
                full[at] = value
        pin.framesForwardKinematics(model, data, full)
        for k, frame in enumerate(frames):
            error = pin.log6(pin.SE3(T[i, k]).actInv(data.oMf[frame])).vector
            distance = np.linalg.norm(T[i, k][:3, 3] - data.oMf[frame].translation)
            position[i], orientation[i] = (
                max(position[i], distance),
                max(orientation[i], np.linalg.norm(error[3:])),
            )
        J = pin.computeFrameJacobian(model, data, full, frames[0], pin.LOCAL_WORLD_ALIGNED)[:3]
        index[i] = np.sqrt(max(np.linalg.det(J @ J.T), 0.0))
    return position, orientation, index


def _joint_value(robot: RobotModel, name: str, q: Annotated[Float64, "nq"]) -> float:
    joint = robot.joint(name)
    return float(joint.multiplier * q[joint.first_variable] + joint.offset)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--tasks", default=",".join(task.name for task in TASKS), help="names, separated by commas"
    )
    parser.add_argument("--sizes", default="1,10,100", help="targets per call (default 1,10,100)")
    parser.add_argument("--targets", type=int, default=200, help="targets per size (default 200)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the targets (0)")
    parser.add_argument(
        "--device",
        choices=DEVICES,
        default="cpu",
        help="where all of them compute, but for the solver cpu (cpu)",
    )
    parser.add_argument(
        "--pyroki-python",
        type=Path,
        default=Path(".venv-pyroki/bin/python"),
        metavar="FILE",
        help="interpreter of an environment with almond-pyroki (.venv-pyroki/bin/python)",
    )
    parser.add_argument(
        "--solvers",
        default=",".join(SOLVERS),
        help=f"ours, separated by commas (default {','.join(SOLVERS)})",
    )
    parser.add_argument(
        "--index",
        action="store_true",
        help="measure instead how often a higher weight of manipulability lowers the index, at met poses, by the first "
        "of --solvers",
    )
    parser.add_argument(
        "--starts", default="16,64,128", help="random starts of --index, a row for each (default 16,64,128)"
    )
    parser.add_argument("--cases", type=int, default=1000, help="steps of weight of --index (default 1000)")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")


def main(args: argparse.Namespace) -> int:
    """Measure and print; return 0 if all could be measured, with ``--index`` if no index fell from the most starts."""
    solvers = [name.strip() for name in args.solvers.split(",")]
    if not set(solvers) <= set(SOLVERS) or args.cases < 1:
        raise InvalidRequestError(
            f"solvers are {solvers}, cases {args.cases}; allowed are {', '.join(SOLVERS)}, and 1 or more"
        )
    if args.index:
        return _main_index(args, solvers[0])
    names = [name.strip() for name in args.tasks.split(",")]
    unknown = sorted(set(names) - {task.name for task in TASKS})
    if unknown or args.targets < 1:
        raise InvalidRequestError(
            f"tasks {unknown} do not exist, or targets is {args.targets}; allowed are "
            f"{', '.join(task.name for task in TASKS)}, and 1 or more"
        )
    tasks = [task for task in TASKS if task.name in names]
    sizes = [int(size) for size in args.sizes.split(",")]
    shown = not args.json and sys.stderr.isatty()
    with progress_bar("objectives", (1 + len(solvers)) * len(tasks) * len(sizes), enabled=shown) as report:
        rows = run_objective_bench(
            tasks, sizes, args.targets, args.pyroki_python, args.seed, report, solvers, args.device
        )
    if args.json:
        print(json.dumps({"machine": machine(), "objective": [asdict(row) for row in rows]}, indent=2))
        return 0
    table = Table(
        "task", "solver", "size", "solved", "error m", "error rad", "index", "wall us", "CPU us", "first s"
    )
    for row in rows:
        table.add_row(
            row.task,
            row.solver,
            str(row.size),
            f"{100.0 * row.solved:.1f} %",
            f"{row.position_error:.1e}",
            f"{row.orientation_error:.1e}",
            f"{row.manipulability:.4f}",
            f"{row.wall_us:.0f}",
            f"{row.cpu_us:.0f}",
            f"{row.first_s:.1f}",
        )
    Console().print(table)
    return 0


def _main_index(args: argparse.Namespace, solver: str) -> int:
    rows = run_index_bench(solver, [int(number) for number in args.starts.split(",")], args.cases, args.seed)
    if args.json:
        print(json.dumps({"machine": machine(), "index": [asdict(row) for row in rows]}, indent=2))
    else:
        table = Table("solver", "starts", "steps", f"falls beyond {SMALLEST:g}", "largest fall", "mean rise")
        for row in rows:
            table.add_row(
                row.solver,
                str(row.starts),
                str(row.steps),
                str(row.falls),
                f"{row.largest_fall:.1e}",
                f"{row.mean_rise:.4f}",
            )
        Console().print(table)
    return 0 if max(rows, key=lambda row: row.starts).falls == 0 else 2
