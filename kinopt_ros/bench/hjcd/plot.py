"""Accuracy and latency by number of seeds, as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kinopt_ros.bench.hjcd.scaling import ScalingRow
from kinopt_ros.bench.plots import save_plot
from kinopt_ros.errors import InvalidRequestError

LEAST_ERROR = 1e-17
"""Least error that is drawn, m and rad: a logarithmic axis has no 0."""
_MARKERS = "osD^v<>p"
_UNITS = {"position": "m", "orientation": "rad"}


def plot_accuracy(rows: Sequence[ScalingRow], title: str, file: Path) -> None:
    """Draw one line per algorithm and number of targets per call, in a row of panels per robot: position and
    orientation.

    Points are numbers of seeds, across is the time per target, upwards the error of all targets: solid the mean, which
    missed targets decide, dotted the median.

    Raises:
        InvalidRequestError: there are no rows, or the file cannot be written.
    """
    if not rows:
        raise InvalidRequestError("nothing was measured by numbers of seeds: there is nothing to draw")
    from matplotlib.figure import Figure

    robots = list(dict.fromkeys(row.robot for row in rows))
    lines = list(dict.fromkeys((row.algorithm, row.targets) for row in rows))
    figure = Figure(figsize=(12.0, 4.6 * len(robots)), layout="constrained")
    figure.suptitle(title)
    for panels, robot in zip(figure.subplots(len(robots), 2, squeeze=False), robots, strict=True):
        for axes, (name, unit) in zip(panels, _UNITS.items(), strict=True):
            for number, line in enumerate(lines):
                some = [row for row in rows if (row.robot, row.algorithm, row.targets) == (robot, *line)]
                if some:
                    _draw(axes, sorted(some, key=lambda row: row.seeds), name, number)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("time per target, ms (median of calls)")
            axes.set_ylabel(f"{name} error, {unit}: mean solid, median dotted")
            axes.set_title(robot, fontsize="medium")
            axes.grid(alpha=0.3)
        panels[-1].legend(fontsize="small")
    save_plot(figure, file)


def _draw(axes: Any, rows: Sequence[ScalingRow], kind: str, number: int) -> None:
    first = rows[0]
    times = [row.median_ms / row.targets for row in rows]
    per_call = f"{first.targets} target{'s' if first.targets > 1 else ''} per call"
    colour, marker = f"C{number}", _MARKERS[number % len(_MARKERS)]
    means = [max(getattr(row, f"{kind}_error_mean_{_UNITS[kind]}"), LEAST_ERROR) for row in rows]
    medians = [max(getattr(row, f"{kind}_error_median_{_UNITS[kind]}"), LEAST_ERROR) for row in rows]
    axes.plot(times, means, color=colour, marker=marker, label=f"{first.algorithm}, {per_call}")
    axes.plot(times, medians, color=colour, linestyle=":", linewidth=1.0)
    for row, x, y in zip(rows, times, means, strict=True):
        axes.annotate(f"{row.seeds}", (x, y), textcoords="offset points", xytext=(4, 4), fontsize="x-small")
