"""One of our plugins on the targets of ``kinopt bench beam``, timed, in a process of its own.

``python -m kinopt_ros.bench.beam.own_worker FOLDER`` reads a job from a folder, leaves its answers there, and reports
in lines of JSON on stdout. A call is ``solve_ik``, the check of the problem and the float64 verification of the answer
included, and so is the problem's construction.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.beam.job import JOB, TARGETS, answers_file
from kinopt_ros.errors import KinoptError
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.registry import create_solver, solver_class
from kinopt_ros.solvers.result import IkResult


def main() -> None:
    """Do the job of a folder; a solver that cannot is one line, not a traceback."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    try:
        _work(folder, job)
    except KinoptError as error:
        say(error=str(error))


def say(**record: object) -> None:
    """Print one line for the process that started this one."""
    print(json.dumps(record), flush=True)


def _work(folder: Path, job: dict[str, Any]) -> None:
    robot = load_robot(job["robot"])
    known = {option.name for option in solver_class(job["solver"]).options}
    options = dict(job["options"])
    if "device" in known:
        options["device"] = job["device"]
    start = time.perf_counter()
    solver = create_solver(job["solver"], robot, options)
    solver.warm_up()
    ready = time.perf_counter() - start
    targets = np.load(folder / TARGETS)
    say(
        ready_s=ready,
        versions={job["solver"]: solver.version},
        device=job["device"] if "device" in known else "cpu",
    )
    for size, calls in job["sizes"]:
        # A solver of its own for every size, so that what it counts belongs to this size. Its programs are there.
        solver = create_solver(job["solver"], robot, options)
        _measure(folder, job, robot, solver, size, [targets[k * size : (k + 1) * size] for k in range(calls)])
        solver.close()


def _measure(
    folder: Path, job: dict[str, Any], robot: RobotModel, solver: Solver, size: int, batches: list[Float64]
) -> None:
    def solve(T: Float64) -> IkResult:
        problem = ik_problem(robot, T, base_link=job["base_link"], tip_link=job["tip_link"])
        return solver.solve_ik(problem)

    start = time.perf_counter()
    solve(batches[0])
    first = time.perf_counter() - start
    results, wall, cpu = [], [], []
    said, told = 0.0, 0
    for T in batches:
        start, start_cpu = time.perf_counter(), time.process_time()
        results.append(solve(T))
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
        # To write to another process between all calls would take longer than they do, and slow them down.
        if start - said > 0.1 or len(results) == len(batches):
            say(done=size * (len(results) - told))
            said, told = start, len(results)
    names = results[0].joint_names
    order = [names.index(name) for name in job["joints"]]
    np.save(answers_file(folder, size), np.concatenate([result.q[:, 0] for result in results])[:, order])
    say(
        size=size,
        first_s=first,
        wall_s=wall,
        cpu_s=cpu,
        # Only some plugins count these. The first call counts as well.
        solved_by_beam=getattr(solver, "share_solved_by_beam", None),
        compiled_late=getattr(solver, "programs_compiled", None),
        solvers=sorted({result.solver for result in results}),
    )


if __name__ == "__main__":
    main()
