"""Figures of the benchmark, and how they look."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

SHOWN = 20
"""Most objections that are kept."""


@dataclass
class TrajectoryRow:
    """Figures of one robot and family."""

    robot: str
    family: str
    solver: str
    seed: int
    problems: int = 0
    straight_collides: float = 0.0
    """Share of the problems whose straight line of joint values is in collision."""
    poses: float = 0.0
    """Share of the problems whose goal is a pose."""
    feasible: int = 0
    """Problems that the sampling planner found a path for, or that were solved."""
    sampled: int = 0
    """Problems that were given to the sampling planner at all."""
    solved: int = 0
    """Successes that the judge accepts."""
    share: float = 0.0
    """Share of the feasible problems that were solved."""
    rejected: int = 0
    """Successes that the judge does not accept."""
    unsolved: list[int] = field(default_factory=list)
    """Numbers of the feasible problems that were not solved."""
    wall_ms: dict[str, float] = field(default_factory=dict)
    """Wall time of the feasible problems, solved or not: median, p95, p99, max."""
    cpu_ms: dict[str, float] = field(default_factory=dict)
    """CPU time of the process on all cores for the feasible problems: median, p95, p99, max."""
    stages_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    """Wall time of each stage for the feasible problems: median, p95, p99, max. A stage not entered counts as 0."""
    others_wall_ms: dict[str, float] = field(default_factory=dict)
    """Wall time of the problems that nobody solved: median, p95, p99, max."""
    length_rad: float | None = None
    """Median length of the way in joint space."""
    length_ratio: float | None = None
    """Median of its ratio to that of the sampling planner's shortened path, where both have one."""
    clearance_min_m: float | None = None
    """Least clearance of all motions, lower bounds."""
    clearance_median_m: float | None = None
    duration_s: float | None = None
    """Median duration of the motions."""
    codes: dict[str, int] = field(default_factory=dict)
    objections: list[str] = field(default_factory=list)


@dataclass
class Measured:
    """Figures of one call."""

    wall: float
    cpu: float
    stages: Mapping[str, float]
    code: str
    feasible: bool = False
    length: float | None = None
    """Length of the motion in joint space; this and what follows is None unless the judge accepted it."""
    sampled_length: float | None = None
    clearance: float | None = None
    duration: float | None = None


def fill(row: TrajectoryRow, calls: Sequence[Measured]) -> None:
    """Compute what follows from the calls."""
    row.share = row.solved / max(row.feasible, 1)
    feasible = [call for call in calls if call.feasible]
    row.wall_ms = _quantiles([call.wall for call in feasible])
    row.cpu_ms = _quantiles([call.cpu for call in feasible])
    names = dict.fromkeys(name for call in feasible for name in call.stages)
    row.stages_ms = {name: _quantiles([call.stages.get(name, 0.0) for call in feasible]) for name in names}
    row.others_wall_ms = _quantiles([call.wall for call in calls if not call.feasible])
    for call in calls:
        row.codes[call.code] = row.codes.get(call.code, 0) + 1
    row.length_rad = _median([call.length for call in calls])
    row.length_ratio = _median(
        [call.length / call.sampled_length for call in calls if call.length and call.sampled_length]
    )
    row.duration_s = _median([call.duration for call in calls])
    row.clearance_median_m = _median([call.clearance for call in calls])
    known = [call.clearance for call in calls if call.clearance is not None]
    row.clearance_min_m = min(known, default=None)


def total(rows: Sequence[TrajectoryRow], calls: Sequence[Measured]) -> TrajectoryRow:
    """Sum all rows into one."""
    counts = ("problems", "feasible", "sampled", "solved", "rejected")
    row = TrajectoryRow("all", "all", rows[0].solver, rows[0].seed)
    for name in counts:
        setattr(row, name, sum(getattr(part, name) for part in rows))
    for name in ("straight_collides", "poses"):
        weighted = sum(getattr(part, name) * part.problems for part in rows)
        setattr(row, name, weighted / max(row.problems, 1))
    fill(row, calls)
    return row


def as_json(row: TrajectoryRow) -> dict[str, Any]:
    """Return the row as a dictionary."""
    return asdict(row)


def print_rows(rows: Sequence[TrajectoryRow], failures: Sequence[str]) -> None:
    """Print tables, objections, and who could not be measured."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.width = max(console.width, 165)  # rather broken lines than figures cut off
    table = Table(
        "robot", "family", "problems", "feasible", "solved", "share", "rejected", "wall ms", "p95", "p99",
        "CPU ms", "p95", "p99", "way rad", "× OMPL", "gap m", "s",
    )  # fmt: skip
    for row in rows:
        table.add_row(
            row.robot,
            row.family,
            str(row.problems),
            str(row.feasible),
            str(row.solved),
            f"{100 * row.share:.1f} %",
            str(row.rejected),
            *(_number(row.wall_ms.get(key), 1) for key in ("median", "p95", "p99")),
            *(_number(row.cpu_ms.get(key), 1) for key in ("median", "p95", "p99")),
            _number(row.length_rad),
            _number(row.length_ratio),
            _number(row.clearance_min_m, 4),
            _number(row.duration_s),
        )
    console.print(table)
    if rows:
        stages = Table("stage", "median ms", "p95", "p99", "max", title=f"{rows[-1].robot}, wall time")
        for name, figures in rows[-1].stages_ms.items():
            stages.add_row(name, *(f"{figures[key]:.2f}" for key in ("median", "p95", "p99", "max")))
        console.print(stages)
    for row in rows:
        for objection in row.objections:
            console.print(f"{row.robot} {row.family}, {objection}", markup=False)
        if row.sampled < row.problems:
            console.print(
                f"{row.robot} {row.family}: {row.problems - row.sampled} problems were not given to the sampling "
                "planner; of these only the solved ones count as feasible"
            )
    for failure in failures:
        console.print(failure, markup=False)


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {}
    median, p95, p99 = (1e3 * float(value) for value in np.quantile(seconds, (0.5, 0.95, 0.99)))
    return {"median": median, "p95": p95, "p99": p99, "max": 1e3 * max(seconds)}


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
