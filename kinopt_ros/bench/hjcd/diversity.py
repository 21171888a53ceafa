"""Table III: how like solutions are to those of an independent solver from random starts, by maximum mean discrepancy.

MMD^2 = mean k(x, x') + mean k(y, y') - 2 mean k(x, y), k(a, b) = exp(-|a - b|^2 / (2 h^2)), all pairs, those of
a point with itself included (A. Gretton et al., "A kernel two-sample test", JMLR 13, 2012). h is the median distance
of the reference's points. The paper gives neither kernel nor bandwidth. Two samples of the same distribution do not
give 0: that floor is measured with a second sample of the reference.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.hjcd.arms import Arm
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.solvers.hjcd.chain import kernel_chain
from kinopt_ros.solvers.registry import create_solver, solver_class

EXACT = 1e-6
"""m and rad, of solutions."""
REFERENCE_SEEDS = (1, 2)
"""Of the reference, and of its second sample."""
CANDIDATES = 100
"""That ``screened_lm`` refines: as many as ``hjcd_ik`` does."""
_FOR_BANDWIDTH = 1000


@dataclass(frozen=True)
class DiversityRow:
    """Figures of one algorithm."""

    robot: str
    algorithm: str
    targets: int
    seeds: int
    """Starts per target."""
    solutions: int
    """Per target, those of the least errors ..."""
    fewest: int
    """... or so few where there are no more."""
    bandwidth: float
    mmd: float
    """Of all targets together."""
    mmd_per_target: float
    """Mean over targets."""
    floor: float
    """Of two samples of the reference, all targets together."""
    floor_per_target: float


def measure_diversity(
    arm: Arm, algorithms: tuple[str, ...], seeds: int, solutions: int, device: str
) -> list[DiversityRow]:
    """One row per algorithm.

    Raises:
        KinoptError: a solver, or its device, is not there.
    """
    reference, again = (_reference(arm, solutions, seed) for seed in REFERENCE_SEEDS)
    h = bandwidth(np.concatenate(reference))
    floor, floor_per_target = _both(again, reference, h)
    rows = []
    for algorithm in algorithms:
        found = _found(arm, algorithm, seeds, solutions, device)
        pooled, per_target = _both(found, reference, h)
        rows.append(
            DiversityRow(
                robot=arm.name,
                algorithm=algorithm,
                targets=len(arm.T_base_target),
                seeds=seeds,
                solutions=solutions,
                fewest=min(map(len, found)),
                bandwidth=h,
                mmd=pooled,
                mmd_per_target=per_target,
                floor=floor,
                floor_per_target=floor_per_target,
            )
        )
    return rows


def bandwidth(points: Annotated[Float64, "N n"]) -> float:
    """Median distance of different points, of at most some hundred thousand pairs."""
    some = points[:: max(1, len(points) // _FOR_BANDWIDTH)]
    squared = _squared(some, some)[np.triu_indices(len(some), 1)]
    return float(np.sqrt(np.median(squared)))


def mmd(x: Annotated[Float64, "N n"], y: Annotated[Float64, "M n"], h: float) -> float:
    """Maximum mean discrepancy of two samples, in [0, sqrt(2)]."""

    def mean(a: Float64, b: Float64) -> float:
        total = 0.0
        for first in range(0, len(a), 500):  # all pairs at once would take gigabytes
            total += float(np.exp(_squared(a[first : first + 500], b) / (-2.0 * h * h)).sum())
        return total / (len(a) * len(b))

    return float(np.sqrt(max(mean(x, x) + mean(y, y) - 2.0 * mean(x, y), 0.0)))


def _squared(a: Float64, b: Float64) -> Annotated[Float64, "N M"]:
    product = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1) - 2.0 * a @ b.T
    return np.asarray(np.maximum(product, 0.0))


def _both(x: list[Float64], y: list[Float64], h: float) -> tuple[float, float]:
    """Of all together, and the mean of the single ones."""
    single = [mmd(a, b, h) for a, b in zip(x, y, strict=True) if len(a)]
    return mmd(np.concatenate(x), np.concatenate(y), h), float(np.mean(single))


def _reference(arm: Arm, solutions: int, seed: int) -> list[Annotated[Float64, "s n"]]:
    """Solutions of the plugin cpu, each from a random state of its own."""
    count = len(arm.T_base_target)
    chain = arm.chain
    lower, upper = arm.robot.limits.lower[chain.variables], arm.robot.limits.upper[chain.variables]
    state = np.repeat(arm.robot.default_q[None], count * solutions, axis=0)
    spread = np.random.default_rng(seed).random((count * solutions, len(lower)))
    state[:, chain.variables] = lower + (upper - lower) * spread
    problem = ik_problem(
        arm.robot,
        np.repeat(arm.T_base_target, solutions, axis=0),
        base_link=chain.base_link,
        tip_link=chain.tip_link,
        state=state,
        position_tolerance=EXACT,
        orientation_tolerance=EXACT,
        random_seed=seed,
    )
    solver = create_solver("cpu", arm.robot)
    result = solver.solve_ik(problem)
    solver.close()
    place = {int(variable): k for k, variable in enumerate(problem.variables)}
    q = result.q[:, 0, [place[int(variable)] for variable in chain.variables]]
    return [row[np.isfinite(row[:, 0])] for row in q.reshape(count, solutions, -1)]


def _found(
    arm: Arm, algorithm: str, seeds: int, solutions: int, device: str
) -> list[Annotated[Float64, "s n"]]:
    """The solutions of least error among the candidates of one round, without any start of ours."""
    solver_class("hjcd")  # or why it cannot run
    from kinopt_ros.solvers.hjcd.device_chain import device_chain
    from kinopt_ros.solvers.hjcd.paper import PaperSearch, PaperSettings
    from kinopt_ros.solvers.hjcd.portion import Portion
    from kinopt_ros.solvers.hjcd.reference.pj_ik import RefineSettings
    from kinopt_ros.solvers.hjcd.reference.po_ccd import CoarseSettings
    from kinopt_ros.solvers.hjcd.runtime import start
    from kinopt_ros.solvers.hjcd.screened import ScreenedSearch, ScreenSettings
    from kinopt_ros.solvers.hjcd.search import Search

    there = start(device)
    search: Search
    if algorithm == "hjcd_ik":
        search = PaperSearch(PaperSettings(seeds, CoarseSettings(), RefineSettings()), there)
    else:
        search = ScreenedSearch(ScreenSettings(seeds, min(seeds, CANDIDATES), 16), there)
    packed = kernel_chain(arm.robot, arm.chain)
    chain = device_chain(packed, there)
    search.load(packed.shape)
    n = len(packed.variables)
    order = [packed.variables.tolist().index(variable) for variable in arm.chain.variables]
    targets = packed.packed_targets(arm.T_base_target)
    found = []
    for first in range(0, len(targets), search.most_targets):
        some = targets[first : first + search.most_targets]
        outcome = search.run(chain, Portion(some, np.empty((len(some), 0, n)), 0, 0, True, 3e-3))
        error = outcome.errors.max(axis=2)
        for q, e in zip(outcome.q, error, strict=True):
            best = np.argsort(e, kind="stable")[:solutions]
            found.append(q[best[e[best] <= EXACT]][:, order])
    return found
