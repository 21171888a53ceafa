"""Tables of the comparison for the terminal."""

from collections.abc import Mapping
from typing import Any

NEEDED_WIDTH = 165
COLUMNS = (
    "solver", "Jacobian", "device", "ms", "CPU ms", "× PyRoki", "× CPU", "ready s", "≤ 5 mm", "≤ 0.1 mm", "p98 mm",
    "p98 rad", "outside", "> 1e-6", "by beam",
)  # fmt: skip


def print_tables(result: Mapping[str, Any]) -> None:
    """Print one table per batch size, what the Jacobians cost, and who could not run."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.width = max(console.width, NEEDED_WIDTH)  # rather broken lines than figures cut off
    rows = result["rows"]
    for targets in dict.fromkeys(row["targets"] for row in rows):
        table = Table(title=f"{result['robot']}, {targets:,} target(s) per call", box=SIMPLE)
        for column in COLUMNS:
            table.add_column(column, justify="left" if column in COLUMNS[:3] else "right", no_wrap=True)
        for row in rows:
            if row["targets"] == targets:
                table.add_row(*_cells(row))
        console.print(table)
    if result["jacobians"]:
        table = Table(title="Jacobians, ms per call", box=SIMPLE)
        for column in ("solver", "device", "targets", "analytic", "autodiff", "ratio"):
            table.add_column(column, justify="right")
        for line in result["jacobians"]:
            figures = (f"{line[key]:.3g}" for key in ("analytic_ms", "autodiff_ms", "ratio"))
            table.add_row(line["solver"], line["device"], f"{line['targets']:,}", *figures)
        console.print(table)
    for name, about in result["solvers"].items():
        if about["restart_s"] is not None:
            console.print(
                f"{name}: first answer of a new process after {about['restart_s']:.1f} s, programs on disk"
            )
    console.print(
        "ms: median wall time of a call; ready s: seconds of compiling, caches empty (PyRoki: for "
        "this size; ours: for all sizes, JAX's import included)\n≤ 5 mm: and 0.05 rad; ≤ 0.1 mm: and 1e-3 rad; "
        "outside: share of answers beyond limits, by however little in float64"
    )
    if result["gpu"] == "unmeasured":
        console.print("GPU: unmeasured (kinopt bench beam --device cuda, or make bench-gpu)")
    for name, note in result["notes"].items():
        console.print(f"{name}: {note}", markup=False)


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [
        row["solver"],
        row["jacobian"] or "",
        row["device"],
        *(_number(row[key]) for key in ("ms", "cpu_ms", "times_faster", "times_faster_cpu", "compile_s")),
        *(_share(row[key]) for key in ("success_loose", "success_tight")),
        _number(None if row["position_error_p98_m"] is None else 1e3 * row["position_error_p98_m"]),
        _number(row["orientation_error_p98_rad"]),
        *(_share(row[key]) for key in ("outside_limits", "outside_limits_1e6", "solved_by_beam")),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000.0 else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100.0 * value:.1f} %"
