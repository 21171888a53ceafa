"""Pictures of a benchmark: how long calls take, and where targets are missed."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError

_PERCENTILES = (50, 99)
_SOLVED, _MISSED = "#4c8f5f", "#c8452f"


@dataclass(frozen=True, eq=False)
class SolverRun:
    """What one solver did."""

    solver: str
    microseconds: Annotated[Float64, "N"]
    """Of every call."""
    solved: Annotated[Bool, "N"]
    position: Annotated[Float64, "N 3"]
    """Of the targets in the base link, m."""


def check_plot(file: str) -> Path:
    """The file of a picture.

    Raises:
        SolverUnavailableError: matplotlib is not installed.
        InvalidRequestError: the name does not end in .png, or its folder does not exist.
    """
    if find_spec("matplotlib") is None:
        raise SolverUnavailableError("plots need matplotlib; install it with `pip install matplotlib`")
    path = Path(file)
    if path.suffix.lower() != ".png" or not path.parent.is_dir():
        raise InvalidRequestError(
            f"--plot is {file!r}; allowed is a name that ends in .png in an existing folder"
        )
    return path


def plot_runs(runs: Sequence[SolverRun], title: str, file: Path) -> None:
    """One picture: a histogram of all times, and for each solver a map of targets from the side and from above."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    rows = 1 + len(runs)
    figure = plt.figure(figsize=(10.0, 3.6 + 3.8 * len(runs)), layout="constrained")
    grid = figure.add_gridspec(rows, 2, height_ratios=[1.0, *[1.1] * len(runs)])
    _histogram(figure.add_subplot(grid[0, :]), runs)
    reach = max(float(np.abs(run.position[:, :2]).max()) for run in runs) * 1.05
    for row, run in enumerate(runs, start=1):
        for column, (i, j, names) in enumerate(((0, 2, "xz"), (0, 1, "xy"))):
            _map(figure.add_subplot(grid[row, column]), run, i, j, names, reach)
    figure.suptitle(title)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _histogram(axes: Any, runs: Sequence[SolverRun]) -> None:
    low = min(float(run.microseconds.min()) for run in runs)
    high = max(float(np.percentile(run.microseconds, 99.9)) for run in runs)
    bins = np.geomspace(max(low, 0.1), max(high, 2.0 * low), 90)
    for number, run in enumerate(runs):
        colour = f"C{number}"
        times = np.clip(run.microseconds, bins[0], bins[-1])
        marks = np.percentile(run.microseconds, _PERCENTILES)
        label = f"{run.solver}: " + ", ".join(
            f"p{p} {value:.3g} µs" for p, value in zip(_PERCENTILES, marks, strict=True)
        )
        weights = np.full(len(times), 100.0 / len(times))
        axes.hist(times, bins=bins, weights=weights, histtype="stepfilled", alpha=0.25, color=colour)
        axes.hist(times, bins=bins, weights=weights, histtype="step", color=colour, label=label)
        for mark, style in zip(marks, ("-", ":"), strict=True):
            axes.axvline(mark, color=colour, linestyle=style, linewidth=1.0)
    axes.set_xscale("log")
    axes.set_xlabel("time of a call, µs")
    axes.set_ylabel("calls, %")
    axes.legend(frameon=False)


def _map(axes: Any, run: SolverRun, i: int, j: int, names: str, reach: float) -> None:
    hits, misses = run.position[run.solved], run.position[~run.solved]
    axes.scatter(hits[:, i], hits[:, j], s=2.0, color=_SOLVED, alpha=0.35, linewidths=0, rasterized=True)
    axes.scatter(misses[:, i], misses[:, j], s=14.0, color=_MISSED, marker="x", linewidths=1.0)
    axes.set_aspect("equal")
    axes.set_xlim(-reach, reach)
    axes.set_xlabel(f"{names[0]}, m")
    axes.set_ylabel(f"{names[1]}, m")
    share = 100.0 * float(run.solved.mean())
    axes.set_title(
        f"{run.solver}: {share:.2f} % solved, {len(misses)} missed (×)" if names == "xz" else "from above",
        fontsize="medium",
    )
