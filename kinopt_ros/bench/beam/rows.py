"""Figures of the comparison: answers judged by Pinocchio in float64, times as ratios to PyRoki's."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.beam.process import ANALYTIC, AUTODIFF, PYROKI, Batches, Outcome, Variant
from kinopt_ros.bench.judge import Judge
from kinopt_ros.bench.targets import IkTask

LOOSE, TIGHT = (5e-3, 0.05), (1e-4, 1e-3)
"""Errors that count as success, m and rad. The loose one is that of PyRoki's and cuRobo's benchmarks."""
SLIGHTLY = 1e-6
"""Distance outside the limits that is more than what rounding to float32 makes of a limit, rad or m."""
PERCENTILE = 98


@dataclass(frozen=True)
class Row:
    """One solver at one batch size."""

    solver: str
    jacobian: str | None
    device: str
    targets: int
    """Number of targets per call."""
    calls: int
    ms: float
    """Median wall time per call."""
    cpu_ms: float
    """Median CPU time of the process per call."""
    max_ms: float
    times_faster: float | None
    """Speed relative to PyRoki's analytic row of this size, by wall time."""
    times_faster_cpu: float | None
    """Speed relative to the same row by CPU time, which other programs on the machine disturb less."""
    compile_s: float
    """Compile time. PyRoki: what its first call of this size took longer than the others. Ours: import, configuration
    and warm-up with empty caches, once for all sizes."""
    first_ms: float
    """Wall time of the first call of this size."""
    compiled_late: int | None
    """Number of programs that were compiled after the solver was ready."""
    success_loose: float
    success_tight: float
    position_error_p98_m: float
    """98th percentile of the position error over all answers; a missing answer counts as infinite."""
    orientation_error_p98_rad: float
    outside_limits: float
    """Share of answers outside the joint limits, by however little."""
    outside_limits_1e6: float
    """Share of answers outside the joint limits by more than 1e-6 rad or m."""
    limit_violation_max: float
    solved_by_beam: float | None
    """Share of requests that the first beam solved, without escalation."""
    answered_by: str
    """Solvers that the results name; one other than ``solver`` means that it delegated."""


def rows_of(variant: Variant, outcome: Outcome, task: IkTask) -> list[Row]:
    """Return one row per size."""
    return [_row(variant, outcome, batches, task) for batches in outcome.batches]


def _row(variant: Variant, outcome: Outcome, batches: Batches, task: IkTask) -> Row:
    record, q = batches.record, batches.q
    asked = replace(task, T_base_target=task.T_base_target[: len(q)])
    verdict = Judge(asked)(q)
    answered = np.isfinite(q).all(axis=1)

    def share(tolerances: tuple[float, float]) -> float:
        near = (verdict.position_error <= tolerances[0]) & (verdict.orientation_error <= tolerances[1])
        return float(near.mean())

    def outside(by: float) -> float:
        return float((verdict.limit_violation[answered] > by).mean()) if answered.any() else 0.0

    wall, cpu = (1e3 * np.array(record[key]) for key in ("wall_s", "cpu_s"))
    return Row(
        solver=variant.solver,
        jacobian=variant.jacobian,
        device=outcome.about["device"],
        targets=batches.size,
        calls=len(wall),
        ms=float(np.median(wall)),
        cpu_ms=float(np.median(cpu)),
        max_ms=float(wall.max()),
        times_faster=None,
        times_faster_cpu=None,
        compile_s=outcome.about.get("ready_s", max(0.0, record["first_s"] - 1e-3 * float(np.median(wall)))),
        first_ms=1e3 * record["first_s"],
        compiled_late=record.get("compiled_late"),
        success_loose=share(LOOSE),
        success_tight=share(TIGHT),
        position_error_p98_m=_percentile(verdict.position_error),
        orientation_error_p98_rad=_percentile(verdict.orientation_error),
        outside_limits=outside(0.0),
        outside_limits_1e6=outside(SLIGHTLY),
        limit_violation_max=float(verdict.limit_violation.max()),
        solved_by_beam=record.get("solved_by_beam"),
        answered_by=", ".join(record.get("solvers", [variant.solver])),
    )


def with_ratios(rows: list[Row]) -> list[Row]:
    """Return the rows with how many times faster than PyRoki each is."""
    base = {row.targets: row for row in rows if row.solver == PYROKI and row.jacobian == ANALYTIC}
    return [
        replace(
            row,
            times_faster=base[row.targets].ms / row.ms,
            times_faster_cpu=base[row.targets].cpu_ms / row.cpu_ms if row.cpu_ms > 0.0 else None,
        )
        if row.targets in base
        else row
        for row in rows
    ]


def jacobian_table(rows: list[Row]) -> list[dict[str, Any]]:
    """Return what differentiation costs (the paper's Table III): ms per call of solvers that ran with both
    Jacobians."""
    by_key = {(row.solver, row.targets, row.jacobian): row for row in rows}
    table = []
    for (solver, targets, jacobian), analytic in by_key.items():
        autodiff = by_key.get((solver, targets, AUTODIFF))
        if jacobian == ANALYTIC and autodiff is not None:
            table.append(
                {
                    "solver": solver,
                    "device": analytic.device,
                    "targets": targets,
                    "analytic_ms": analytic.ms,
                    "autodiff_ms": autodiff.ms,
                    "ratio": autodiff.ms / analytic.ms,
                }
            )
    return table


def as_record(row: Row) -> dict[str, Any]:
    """Return the row as a dictionary for JSON, with None in place of infinity and NaN."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(row).items()
    }


def _percentile(errors: Float64) -> float:
    # No interpolation: between a number and infinity there is none.
    return float(np.percentile(errors, PERCENTILE, method="higher"))
