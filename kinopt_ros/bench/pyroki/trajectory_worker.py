"""PyRoki's side of ``kinopt bench trajectory --pyroki``: its trajectory optimization, timed, in a process of its own.

A script for the Python of PyRoki's environment; it imports nothing of kinopt_ros. ``python trajectory_worker.py
FOLDER`` reads ``job.json`` there, writes ``paths.npy`` (N, T, n), and reports in lines of JSON on stdout.

The problem is the one of PyRoki's own example (its repository, 07_trajopt): 50 points; costs on the distance from the
rest posture (0.01), on steps (1) and on five-point accelerations (0.1); constraints, by the augmented Lagrangian
method, on joint limits, on velocities, on the first two and the last two points, and on capsules that shall keep 1 cm
off the obstacle; it begins with the straight line. Start and goal are given, which spares inverse kinematics.

The example builds and compiles its problem at every call. ``compiled`` calls one program, compiled once, that takes
start, goal, obstacle and time step; ``as shipped`` builds the problem anew.
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

POINTS = 50
REST_WEIGHT, STEP_WEIGHT, ACCELERATION_WEIGHT = 0.01, 1.0, 0.1
MARGIN = 0.01


def say(**record: object) -> None:
    """One line for whoever started this."""
    print(json.dumps(record), flush=True)


def joined_ends(values: Any, points: Any, wanted: Any) -> Any:
    """Residual of points that are to be at a configuration."""
    return (values[points] - wanted).flatten()


def optimizer(robot: Any, shapes: Any, linear_solver: str) -> Any:
    """Function of start, goal (n,), time step (s), and pose (wxyz, xyz) and size of a box, to a path (POINTS, n)."""
    points = robot.joint_var_cls
    pinned = jaxls.Cost.factory(kind="constraint_eq_zero")(joined_ends)
    batched, batched_shapes = (jax.tree.map(lambda leaf: leaf[None], tree) for tree in (robot, shapes))

    def solve(start: Any, goal: Any, dt: Any, pose: Any, size: Any) -> Any:
        wall = pyroki.collision.Box(pose=jaxlie.SE3(pose), size=size / 2.0)
        every = points(jnp.arange(POINTS))

        def moved(first: int, last: int) -> Any:
            return points(jnp.arange(first, POINTS + last))

        costs = [
            pyroki.costs.rest_cost(every, every.default_factory()[None], jnp.array([[REST_WEIGHT]])),
            pyroki.costs.smoothness_cost(moved(1, 0), moved(0, -1), jnp.array([[STEP_WEIGHT]])),
            pyroki.costs.five_point_acceleration_cost(
                moved(2, -2), moved(4, 0), moved(3, -1), moved(1, -3), moved(0, -4), dt,
                jnp.array([[ACCELERATION_WEIGHT]]),
            ),
            pyroki.costs.limit_constraint(batched, every),
            pyroki.costs.limit_velocity_constraint(batched, moved(1, 0), moved(0, -1), dt),
            pinned(points(jnp.arange(0, 2)), start[None]),
            pinned(points(jnp.arange(POINTS - 2, POINTS)), goal[None]),
            pyroki.costs.world_collision_constraint(
                batched, batched_shapes, every, jax.tree.map(lambda leaf: leaf[None], wall), MARGIN
            ),
        ]  # fmt: skip
        first = jnp.linspace(start, goal, POINTS)
        found = (
            jaxls.LeastSquaresProblem(costs, [every])
            .analyze()
            .solve(
                initial_vals=jaxls.VarValues.make((every.with_value(first),)),
                linear_solver=linear_solver,
                verbose=False,
            )
        )
        return found[every]

    return solve


def main() -> None:
    """Do the job of a folder."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    urdf = yourdfpy.URDF.load(StringIO(job["urdf"]), load_meshes=False, load_collision_meshes=False)
    robot = pyroki.Robot.from_urdf(urdf)
    shapes = pyroki.collision.RobotCollision.from_urdf(urdf)
    say(
        joints=list(robot.joints.actuated_names),
        versions={name: version(name) for name in ("almond-pyroki", "almond-jaxls", "jax", "numpy")},
    )
    names = ("start", "goal", "dt", "pose", "size")
    tasks = [[np.asarray(task[name], dtype=np.float32) for name in names] for task in job["tasks"]]

    def run(solve: Any, task: list[Any]) -> tuple[Any, float, float]:
        begin, cpu = time.perf_counter(), time.process_time()
        path = np.asarray(solve(*task), dtype=np.float64)
        return path, time.perf_counter() - begin, time.process_time() - cpu

    compiled = jax.jit(optimizer(robot, shapes, job["linear_solver"]))
    _, first, _ = run(compiled, tasks[0])
    say(first_s=first)
    paths = []
    for task in tasks:
        path, wall, cpu = run(compiled, task)
        paths.append(path)
        say(done="compiled", wall_s=wall, cpu_s=cpu)
    np.save(folder / "paths.npy", np.array(paths))
    # jax.jit of another function, so that nothing is remembered; as it is for whoever calls the example.
    for task in tasks[: job["as_shipped"]]:
        _, wall, cpu = run(optimizer(robot, shapes, "conjugate_gradient"), task)
        say(done="as shipped", wall_s=wall, cpu_s=cpu)


if __name__ == "__main__":
    main()
