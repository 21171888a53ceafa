"""Figures of the benchmark, and how they look."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kinopt_ros.bench.mbm.attempt import Attempt

SHOWN = 10
"""Most objections that are kept of a row."""
QUICK = 1.0
"""Time within which every problem ought to be solved, s."""


@dataclass
class MbmRow:
    """Figures of one planner and time law at the problems of one robot and family."""

    robot: str
    family: str
    planner: str
    version: str
    timing: str
    """Whose time law the motions have."""
    problems: int = 0
    """Problems whose ends are free."""
    solved: int = 0
    """Motions that the judge accepts."""
    within_1_s: int = 0
    """Those of them that took no longer (wall time)."""
    rejected: int = 0
    """Motions that the judge does not accept."""
    wall_ms: dict[str, float] = field(default_factory=dict)
    """Wall time of all calls, solved or not: median, p95, max."""
    cpu_ms: dict[str, float] = field(default_factory=dict)
    stages_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    """Wall time of each stage: median, p95, max. One that was not entered counts as 0."""
    length_rad: float | None = None
    """Median length of the way in joint space of the accepted motions."""
    duration_s: float | None = None
    """Median duration of the accepted motions."""
    limit_share: float | None = None
    """Largest share of a limit of velocity or acceleration at the points of accepted motions."""
    codes: dict[str, int] = field(default_factory=dict)
    objections: list[str] = field(default_factory=list)
    """What the judge says of the first that it does not accept."""
    lengths: list[float | None] = field(default_factory=list)
    """Length (rad) by problem, in the order of ``names``; None where there is no accepted motion."""
    durations: list[float | None] = field(default_factory=list)
    """Duration (s) by problem."""
    walls_ms: list[float] = field(default_factory=list)
    cpus_ms: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Problems."""


@dataclass(frozen=True)
class Judged:
    """An attempt and what the judge says of it."""

    problem: str
    attempt: Attempt
    objection: str
    """Empty: accepted, if there is a motion."""
    length: float | None
    """Length of the way in joint space, rad."""
    limit_share: float | None
    """Largest share of a limit of velocity or acceleration at the points of the motion."""

    @property
    def accepted(self) -> bool:
        """Whether there is a motion, and nothing against it."""
        return self.attempt.motion is not None and not self.objection


def row_of(robot: str, family: str, version: str, judged: Sequence[Judged]) -> MbmRow:
    """Count the attempts of one planner and time law; at least one."""
    first = judged[0].attempt
    row = MbmRow(robot, family, first.planner, version, first.timing, len(judged))
    for one in judged:
        attempt = one.attempt
        row.codes[attempt.code] = row.codes.get(attempt.code, 0) + 1
        row.solved += one.accepted
        row.within_1_s += one.accepted and attempt.wall <= QUICK
        row.rejected += bool(one.objection)
        if one.objection and len(row.objections) < SHOWN:
            row.objections.append(f"{one.problem}: {one.objection}")
        motion = attempt.motion
        row.names.append(one.problem)
        row.walls_ms.append(round(1e3 * attempt.wall, 3))
        row.cpus_ms.append(round(1e3 * attempt.cpu, 3))
        row.lengths.append(one.length if one.accepted else None)
        row.durations.append(motion.duration if motion is not None and one.accepted else None)
    row.wall_ms = quantiles(row.walls_ms)
    row.cpu_ms = quantiles(row.cpus_ms)
    names = dict.fromkeys(name for one in judged for name in one.attempt.stages)
    row.stages_ms = {
        name: quantiles([1e3 * one.attempt.stages.get(name, 0.0) for one in judged]) for name in names
    }
    row.length_rad, row.duration_s = median(row.lengths), median(row.durations)
    shares = [one.limit_share for one in judged if one.accepted and one.limit_share is not None]
    row.limit_share = max(shares, default=None)
    return row


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Return median, p95 and max of at least one value."""
    middle, p95 = (round(float(value), 3) for value in np.quantile(values, (0.5, 0.95)))
    return {"median": middle, "p95": p95, "max": round(max(values), 3)}


def median(values: Sequence[float | None]) -> float | None:
    """Return the median of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def print_rows(rows: Sequence[MbmRow], wrong: Sequence[str], failures: Sequence[str]) -> None:
    """Print tables, what is wrong with problems and motions, and who could not be measured."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.width = max(console.width, 150)  # rather broken lines than figures cut off
    if rows:
        table = Table(
            "robot", "family", "planner", "timing", "problems", "solved", "in 1 s", "rejected", "wall ms", "p95",
            "CPU ms", "p95", "max", "way rad", "s", "× limit",
        )  # fmt: skip
        for row in rows:
            table.add_row(
                row.robot,
                row.family,
                row.planner,
                row.timing,
                *(str(count) for count in (row.problems, row.solved, row.within_1_s, row.rejected)),
                *(f"{row.wall_ms[key]:.1f}" for key in ("median", "p95")),
                *(f"{row.cpu_ms[key]:.1f}" for key in ("median", "p95", "max")),
                *(
                    "-" if value is None else f"{value:.2f}"
                    for value in (row.length_rad, row.duration_s, row.limit_share)
                ),
            )
        console.print(table)
        stages = Table(
            "robot", "planner", "timing", "stage", "median ms", "p95", "max", title="wall time, all families"
        )
        for row in rows:
            if row.family == ALL:
                for name, figures in row.stages_ms.items():
                    values = (f"{figures[key]:.2f}" for key in ("median", "p95", "max"))
                    stages.add_row(row.robot, row.planner, row.timing, name, *values)
        console.print(stages)
    for row in rows:
        if row.family != ALL:
            for objection in row.objections:
                console.print(f"{row.planner} ({row.timing}), {objection}", markup=False)
    for sentence in wrong:
        console.print(f"left out: {sentence}", markup=False)
    for failure in failures:
        console.print(failure, markup=False)


ALL = "all"
"""Family of the rows over all families."""
