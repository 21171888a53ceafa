"""Picture of the benchmark: how many problems are solved in what time, and how long motions are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kinopt_ros.bench.mbm.rows import ALL, MbmRow
from kinopt_ros.bench.plots import save_plot
from kinopt_ros.errors import InvalidRequestError


def plot_rows(rows: Sequence[MbmRow], file: Path) -> None:
    """Draw a row of pictures for each robot: share solved over CPU time, and durations.

    Raises:
        InvalidRequestError: there is nothing to draw, or the file cannot be written.
    """
    whole = [row for row in rows if row.family == ALL]
    if not whole:
        raise InvalidRequestError("no planner could be measured: there is nothing to draw")
    from matplotlib.figure import Figure

    robots = list(dict.fromkeys(row.robot for row in whole))
    figure = Figure(figsize=(12.0, 4.5 * len(robots)), layout="constrained")
    panels: Any = figure.subplots(len(robots), 2, squeeze=False)
    for (left, right), robot in zip(panels, robots, strict=True):
        of_robot = [row for row in whole if row.robot == robot]
        _solved(left, of_robot)
        _durations(right, of_robot)
        left.set_title(f"{robot}: solved and accepted by the judge")
        right.set_title(f"{robot}: duration of the accepted motions")
    save_plot(figure, file)


def _solved(axes: Any, rows: Sequence[MbmRow]) -> None:
    for row in rows:
        times = np.sort(
            [ms for ms, length in zip(row.cpus_ms, row.lengths, strict=True) if length is not None]
        )
        share = 100.0 * np.arange(1, len(times) + 1) / row.problems
        axes.step(times, share, where="post", label=f"{row.planner}, timed by {row.timing}")
    axes.set_xscale("log")
    axes.set_ylim(0.0, 102.0)
    axes.set_xlabel("CPU time, ms")
    axes.set_ylabel("problems, %")
    axes.legend(fontsize="small", frameon=False)
    axes.grid(alpha=0.3)


def _durations(axes: Any, rows: Sequence[MbmRow]) -> None:
    known = [[value for value in row.durations if value is not None] for row in rows]
    axes.boxplot(known, orientation="horizontal", whis=(5, 95), showfliers=False)
    axes.set_yticks(range(1, len(rows) + 1), [f"{row.planner},\ntimed by {row.timing}" for row in rows])
    axes.set_xlabel("s; box: quartiles, whiskers: 5 and 95 %")
    axes.grid(alpha=0.3)
