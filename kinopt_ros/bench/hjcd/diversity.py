"""Table III: how like solutions are to those of an independent solver from random starts, by maximum mean discrepancy.

The bandwidth is the median distance of the reference's points; the paper gives neither kernel nor bandwidth. Two
samples of the same distribution do not give 0, and one of them is as good a reference as another: so there are three,
figures are means over them, and what they give among themselves is the floor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kinopt_ros.bench.hjcd.arms import Arm
from kinopt_ros.bench.hjcd.mmd import Sample, bandwidth
from kinopt_ros.bench.hjcd.solution_sets import (
    SolutionSet,
    beam_solutions,
    hjcd_solutions,
    reference_solutions,
)
from kinopt_ros.errors import KinoptError

REFERENCE_SEEDS = (1, 2, 3)
BEAM = "ik_beam"
"""IK-Beam, of the plugin jax_lm."""


@dataclass(frozen=True)
class DiversityRow:
    """Figures of one algorithm."""

    robot: str
    algorithm: str
    targets: int
    seeds: int
    """Starts per target."""
    solutions: int
    """Most solutions compared per target: those with the least errors."""
    fewest: int
    """Fewest solutions that a target had."""
    bandwidth: float
    mmd: float
    """Discrepancy of the solutions from the reference, all targets together."""
    mmd_per_target: float
    """Discrepancy of the solutions from the reference, mean over targets."""
    floor: float
    """Discrepancy of two samples of the reference, all targets together."""
    floor_per_target: float


def measure_diversity(
    arm: Arm,
    algorithms: tuple[str, ...],
    seeds: int,
    solutions: int,
    device: str,
    failed: Callable[[str], None] | None = None,
) -> list[DiversityRow]:
    """Measure algorithms (those of the plugin hjcd, and ``ik_beam``); return one row each.

    Args:
        arm: the arm and its targets.
        algorithms: names.
        seeds: starts per target.
        solutions: per target, at most.
        device: where the plugins compute.
        failed: told why an algorithm could not be measured; the others are. None: that is raised.

    Raises:
        KinoptError: a solver, or its device, is not there.
    """
    sets = [reference_solutions(arm, solutions, seed) for seed in REFERENCE_SEEDS]
    h = bandwidth(np.concatenate(sets[0]))
    references = [_Sets(each, h) for each in sets]
    floors = np.array([a.discrepancies(b) for a, b in combinations(references, 2)])
    floor, floor_per_target = floors.mean(axis=0).tolist()
    rows = []
    for algorithm in algorithms:
        try:
            if algorithm == BEAM:
                found = beam_solutions(arm, seeds, solutions, device)
            else:
                found = hjcd_solutions(arm, algorithm, seeds, solutions, device)
        except KinoptError as error:
            if failed is None:
                raise
            failed(f"{algorithm}: {error}")
            continue
        own = _Sets(found, h)
        pooled, per_target = np.mean([own.discrepancies(reference) for reference in references], axis=0)
        rows.append(
            DiversityRow(
                robot=arm.name,
                algorithm=algorithm,
                targets=len(arm.T_base_target),
                seeds=seeds,
                solutions=solutions,
                fewest=min(map(len, found)),
                bandwidth=h,
                mmd=float(pooled),
                mmd_per_target=float(per_target),
                floor=floor,
                floor_per_target=floor_per_target,
            )
        )
    return rows


class _Sets:
    """Solutions of all targets, together and one by one."""

    def __init__(self, found: list[SolutionSet], h: float) -> None:
        self.all = Sample(np.concatenate(found), h)
        self.each = [Sample(q, h) if len(q) else None for q in found]

    def discrepancies(self, other: "_Sets") -> tuple[float, float]:
        """Return the discrepancy of all targets together, and the mean over the targets that have solutions."""
        pairs = zip(self.each, other.each, strict=True)
        single = [a.mmd(b) for a, b in pairs if a is not None and b is not None]
        return self.all.mmd(other.all), float(np.mean(single))
