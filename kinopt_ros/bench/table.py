"""Table of benchmark rows for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

HEADINGS = (
    "version",
    "success",
    "CPU mean µs",
    "median",
    "p99",
    "max",
    "error m",
    "error rad",
    "beyond limits",
)
NEEDED_WIDTH = 130


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print figures of every solver; one that could not run is there with its reason."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    first = rows[0]
    console = Console()
    console.width = max(console.width, NEEDED_WIDTH)  # rather broken lines than figures cut off
    table = Table(title=f"{first['robot']}, one target per call", box=SIMPLE)
    table.add_column("solver", no_wrap=True)
    table.add_column("targets", justify="right")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for row in rows:
        if "note" not in row:
            table.add_row(*_cells(row))
    console.print(table)
    for row in rows:
        if "note" in row:
            console.print(f"{row['solver']}: {row['note']}", markup=False)


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [
        str(row["solver"]),
        str(row["targets"]),
        str(row["version"]),
        f"{100 * row['success']:.2f} %",
        *(f"{row[key]:.1f}" for key in ("mean_us", "median_us", "p99_us", "max_us")),
        *(_error(row[key]) for key in ("position_error_max_m", "orientation_error_max_rad")),
        _error(row["limit_violation_max"]),
    ]


def _error(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
