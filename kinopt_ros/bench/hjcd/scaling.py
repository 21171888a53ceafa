"""Tables I and II: time and error by number of seeds and of joints.

``targets`` are those of one call, ``seeds`` the starts per target; what the paper calls batch is seeds. One round,
nothing is tried again. Errors are float64's, of all targets: of those that failed that of the best attempt.
"""

import time
from dataclasses import dataclass

import numpy as np

from kinopt_ros.bench.hjcd.arms import Arm
from kinopt_ros.bench.progress import Report, no_report
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.solvers.registry import create_solver

TOLERANCE = 1e-6
"""Largest errors that count as success, m and rad."""
MOST_REFINED = 32
"""Most of its starts that ``screened_lm`` refines."""
LEAST_SEEDS = {"screened_lm": 2, "hjcd_ik": 1}
SUFFIX = "_graphs"
GRAPHS = tuple(name + SUFFIX for name in LEAST_SEEDS)
"""Names of the algorithms when they run with CUDA graphs."""


@dataclass(frozen=True)
class ScalingRow:
    """Figures of one arm, algorithm, and size."""

    robot: str
    joints: int
    algorithm: str
    targets: int
    seeds: int
    calls: int
    success: float
    median_ms: float
    """Median time of a call, checks of the request and verification included."""
    p99_ms: float
    position_error_mean_m: float
    position_error_median_m: float
    position_error_max_m: float
    orientation_error_mean_rad: float
    orientation_error_median_rad: float
    orientation_error_max_rad: float


def measure(
    arm: Arm, algorithm: str, seeds: int, targets: int, device: str, report: Report = no_report
) -> ScalingRow:
    """Measure all of the arm's targets, so many per call; ``report`` is told of every call.

    Those of ``GRAPHS`` need a device that has CUDA graphs.

    Raises:
        KinoptError: the plugin, or its device, is not there.
    """
    options: dict[str, object] = {"device": device, "rounds": 1, "groups": ""}
    options |= {"graphs": algorithm in GRAPHS, "algorithm": algorithm.removesuffix(SUFFIX)}
    if options["algorithm"] == "hjcd_ik":
        options["coarse.num_seeds"] = seeds
    else:
        options |= {"screen.num_starts": seeds, "screen.keep": min(seeds, MOST_REFINED)}
    solver = create_solver("hjcd", arm.robot, options)
    T = arm.T_base_target
    problems = [
        ik_problem(
            arm.robot,
            T[first : first + targets],
            base_link=arm.chain.base_link,
            tip_link=arm.chain.tip_link,
            position_tolerance=TOLERANCE,
            orientation_tolerance=TOLERANCE,
        )
        for first in range(0, len(T), targets)
    ]
    solver.solve_ik(problems[0])
    times, results = [], []
    for problem in problems:
        begin = time.perf_counter()
        results.append(solver.solve_ik(problem))
        times.append(1e3 * (time.perf_counter() - begin))
        report(f"{arm.name}, {algorithm}, {seeds} seeds", 1)
    solver.close()
    success = np.concatenate([result.success for result in results])
    position = np.concatenate(
        [np.where(r.success, r.position_error[:, 0], r.attempt_position_error) for r in results]
    )
    orientation = np.concatenate(
        [np.where(r.success, r.orientation_error[:, 0], r.attempt_orientation_error) for r in results]
    )
    return ScalingRow(
        robot=arm.name,
        joints=len(arm.chain.variables),
        algorithm=algorithm,
        targets=targets,
        seeds=seeds,
        calls=len(problems),
        success=float(success.mean()),
        median_ms=float(np.median(times)),
        p99_ms=float(np.percentile(times, 99)),
        position_error_mean_m=float(position.mean()),
        position_error_median_m=float(np.median(position)),
        position_error_max_m=float(position.max()),
        orientation_error_mean_rad=float(orientation.mean()),
        orientation_error_median_rad=float(np.median(orientation)),
        orientation_error_max_rad=float(orientation.max()),
    )
