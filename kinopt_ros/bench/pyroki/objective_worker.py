"""PyRoki's side of ``kinopt bench objective``: the same costs, timed, in a process of its own.

A script for the Python of PyRoki's environment; it imports nothing of kinopt_ros. ``objective_worker.py FOLDER``
reads ``job.json`` and ``targets.npy`` (N, L, 7: wxyz, xyz) there, writes ``answers_<size>.npy``, and reports in lines
of JSON on stdout.

Costs and settings are those of PyRoki's own examples (its repository, 01_basic_ik, 02_bimanual_ik,
05_ik_with_manipulability): poses (50 per m, 10 per rad), limits (100), rest, manipulability of translations;
Levenberg-Marquardt by dense Cholesky from the default configuration, damping from 1.
"""

import json
import sys
import time
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxlie
import jaxls
import numpy as np
import pyroki
import yourdfpy

POSITION_WEIGHT, ORIENTATION_WEIGHT, LIMIT_WEIGHT = 50.0, 10.0, 100.0


def say(**record: object) -> None:
    """One line for the process that started this one."""
    print(json.dumps(record), flush=True)


def solver(robot: Any, links: list[int], rest: float, manipulability: float) -> Any:
    """Function of targets (L, 7) of some links to joint values."""

    def solve(targets: Any) -> Any:
        joints = robot.joint_var_cls(0)
        costs = [
            pyroki.costs.pose_cost_analytic_jac(
                robot,
                joints,
                jaxlie.SE3(targets[k]),
                jnp.array(link),
                pos_weight=POSITION_WEIGHT,
                ori_weight=ORIENTATION_WEIGHT,
            )
            for k, link in enumerate(links)
        ]
        costs.append(pyroki.costs.limit_cost(robot, joints, weight=LIMIT_WEIGHT))
        costs.append(pyroki.costs.rest_cost(joints, joints.default_factory(), weight=rest))
        if manipulability:
            costs += [
                pyroki.costs.manipulability_cost(robot, joints, jnp.array(link), manipulability)
                for link in links
            ]
        found = (
            jaxls.LeastSquaresProblem(costs, [joints])
            .analyze()
            .solve(
                verbose=False,
                linear_solver="dense_cholesky",
                trust_region=jaxls.TrustRegionConfig(lambda_initial=1.0),
            )
        )
        return found[joints]

    return solve


def main() -> None:
    """Do the job of a folder."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    targets = np.load(folder / "targets.npy").astype(np.float32)
    urdf = yourdfpy.URDF.load(StringIO(job["urdf"]), load_meshes=False)
    robot = pyroki.Robot.from_urdf(urdf)
    say(
        joints=list(robot.joints.actuated_names),
        rest=np.asarray(robot.joint_var_cls(0).default_factory()).tolist(),
        versions={name: version(name) for name in ("almond-pyroki", "almond-jaxls", "jax", "numpy")},
    )
    links = [robot.links.names.index(name) for name in job["links"]]
    batch = jax.jit(jax.vmap(solver(robot, links, job["rest"], job["manipulability"])))
    for size, calls in job["sizes"]:
        start = time.perf_counter()
        np.asarray(batch(targets[:size]))
        first = time.perf_counter() - start
        answers, wall, cpu = [], [], []
        for call in range(calls):
            start, start_cpu = time.perf_counter(), time.process_time()
            answers.append(np.asarray(batch(targets[call * size : (call + 1) * size])))
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - start_cpu)
        np.save(folder / f"answers_{size}.npy", np.concatenate(answers).astype(np.float64))
        say(size=size, first_s=first, wall_s=wall, cpu_s=cpu)


if __name__ == "__main__":
    main()
