"""A program that breaks its CUDA device as a faulty kernel does, between requests to ``hjcd``."""

import json

import numpy as np
import warp as wp

from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.solvers.registry import create_solver

TARGETS = 50
NOWHERE = 64
"""Address at which no memory is."""


@wp.kernel(module="unique")
def write_nowhere(values: wp.array(dtype=float)) -> None:
    """Write where nothing is."""
    values[wp.tid()] = 1.0


def break_device(device: str) -> str:
    """Return what Warp says of the device from now on."""
    nowhere = wp.array(ptr=NOWHERE, dtype=float, shape=(32,), device=device)
    try:
        wp.launch(write_nowhere, dim=32, inputs=[nowhere], device=device)
        wp.synchronize_device(device)
    except RuntimeError as error:
        return str(error)
    return ""


def main() -> None:
    """Ask before and after."""
    robot = seven_revolute()
    tip = robot.link_names[-1]
    T = forward_kinematics(robot, random_configurations(robot, TARGETS, 0), links=(tip,))[:, 0]
    problem = ik_problem(robot, T, tip_link=tip)
    solver = create_solver("hjcd", robot, {"groups": "", "device": "cuda"})
    before = solver.solve_ik(problem)
    said = break_device("cuda:0")
    after = [solver.solve_ik(problem) for _ in range(2)]
    solver.close()
    record = {
        "before": float(before.success.mean()),
        "error": said,
        "after": [float(result.success.mean()) for result in after],
        "seconds": [result.solve_time for result in after],
        "farthest": float(np.abs(after[1].q - after[0].q).max()),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
