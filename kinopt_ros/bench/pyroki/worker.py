"""PyRoki's side of ``kinopt bench beam``: its IK-Beam, timed, in a process of its own.

A script for the Python of PyRoki's environment; it imports nothing of kinopt_ros. ``python worker.py FOLDER`` reads
``job.json`` and ``targets.npy`` there, writes ``answers_<size>.npy``, and reports in lines of JSON on stdout.

IK-Beam is what PyRoki's own benchmark does (Kim et al. 2025, V-C, and its repository's benchmark): 64 starts from
Roberts' sequence inside the limits, 6 Levenberg-Marquardt steps with damping from 10, the 4 of lowest cost go on for
10 steps with the damping they had, the best of them is the answer. Costs: pose (10 per m, 5 per rad), limits (50).
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
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

STARTS, KEPT = 64, 4
FIRST_STEPS, ALL_STEPS = 6, 16
POSITION_WEIGHT, ORIENTATION_WEIGHT, LIMIT_WEIGHT = 10.0, 5.0, 50.0
FIRST_DAMPING = 10.0


def roberts_sequence(count: int, dimensions: int) -> Any:
    """Quasi-random points of the unit cube, (count, dimensions): multiples of the powers of a root, modulo 1."""
    root = 1.5
    for _ in range(200):  # fixed-point iteration for x^(d + 1) = x + 1
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1.0)
    return np.outer(np.arange(count), 1.0 - steps) % 1.0


def ik_beam(robot: Any, tip: int, analytic: bool) -> Callable[[Any, Any], Any]:
    """Function of a target (quaternion wxyz, position in the root link) that returns joint values."""
    tip_index = jnp.array(tip)
    pose_cost = pyroki.costs.pose_cost_analytic_jac if analytic else pyroki.costs.pose_cost
    low, high = robot.joints.lower_limits, robot.joints.upper_limits
    starts = low + roberts_sequence(STARTS, robot.joints.num_actuated_joints) * (high - low)
    starts = jnp.asarray(starts, dtype=jnp.float32)

    def solve(wxyz: Any, position: Any) -> Any:
        target = jaxlie.SE3.from_rotation_and_translation(jaxlie.SO3(wxyz), position)

        def descend(q: Any, damping: Any, steps: int) -> Any:
            joints = robot.joint_var_cls(0)
            costs = [
                pose_cost(
                    robot,
                    joints,
                    target,
                    tip_index,
                    pos_weight=POSITION_WEIGHT,
                    ori_weight=ORIENTATION_WEIGHT,
                ),
                pyroki.costs.limit_cost(robot, joints, weight=LIMIT_WEIGHT),
            ]
            found, summary = (
                jaxls.LeastSquaresProblem(costs, [joints])
                .analyze()
                .solve(
                    initial_vals=jaxls.VarValues.make([joints.with_value(q)]),
                    verbose=False,
                    linear_solver="dense_cholesky",
                    termination=jaxls.TerminationConfig(max_iterations=steps, early_termination=False),
                    trust_region=jaxls.TrustRegionConfig(lambda_initial=damping),
                    return_summary=True,
                )
            )
            return found[joints], summary.cost_history[-1], summary.lambda_history[-1]

        many = jax.vmap(descend, in_axes=(0, 0, None))
        q, cost, damping = many(starts, jnp.full(STARTS, FIRST_DAMPING), FIRST_STEPS)
        best = jnp.argsort(cost)[:KEPT]
        q, cost, _ = many(q[best], damping[best], ALL_STEPS - FIRST_STEPS)
        return q[jnp.argmin(cost)]

    return solve


def say(**record: object) -> None:
    """One line for the process that started this one."""
    print(json.dumps(record), flush=True)


def timed(solve: Callable[[int], Any], size: int, calls: int) -> tuple[Sequence[Any], dict[str, object]]:
    """Answers of calls 0, 1, ... and their times: a first one by itself, which compiles, then all of them."""
    start = time.perf_counter()
    solve(0)
    first = time.perf_counter() - start
    answers, wall, cpu = [], [], []
    said, told = 0.0, 0
    for call in range(calls):
        start, start_cpu = time.perf_counter(), time.process_time()
        answers.append(solve(call))
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
        # To write to another process between all calls would take longer than short ones do, and slow them down.
        if start - said > 0.1 or len(answers) == calls:
            say(done=size * (len(answers) - told))
            said, told = start, len(answers)
    return answers, {"first_s": first, "wall_s": wall, "cpu_s": cpu}


def main() -> None:
    """Do the job of a folder."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    targets = np.load(folder / "targets.npy").astype(np.float32)
    urdf = yourdfpy.URDF.load(StringIO(job["urdf"]), load_meshes=False)
    robot = pyroki.Robot.from_urdf(urdf)
    say(
        joints=list(robot.joints.actuated_names),
        versions={name: version(name) for name in ("almond-pyroki", "almond-jaxls", "jax", "numpy")},
        device_kind=jax.devices()[0].device_kind,
    )
    solve_batch = jax.jit(jax.vmap(ik_beam(robot, robot.links.names.index(job["tip_link"]), job["analytic"])))
    for size, calls in job["sizes"]:

        def solve(call: int, size: int = size) -> Any:
            batch = targets[call * size : (call + 1) * size]
            return np.asarray(solve_batch(batch[:, :4], batch[:, 4:]))

        answers, times = timed(solve, size, calls)
        np.save(folder / f"answers_{size}.npy", np.concatenate(answers).astype(np.float64))
        say(size=size, **times)


if __name__ == "__main__":
    main()
