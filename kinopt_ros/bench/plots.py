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
_MISSED = "#e0341f"
_PROJECTIONS = ((0, 2), (0, 1))


@dataclass(frozen=True, eq=False)
class SolverRun:
    """Times and outcomes of one solver."""

    solver: str
    microseconds: Annotated[Float64, "N"]
    """Time of every call."""
    solved: Annotated[Bool, "N"]
    position: Annotated[Float64, "N 3"]
    """Position of every target in the base link, m."""


def check_plot(file: str) -> Path:
    """Return the file of a picture.

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


def save_plot(figure: Any, file: Path) -> None:
    """Write a picture of matplotlib.

    Raises:
        InvalidRequestError: the file cannot be written.
    """
    try:
        figure.savefig(file, format="png", dpi=110)
    except OSError as error:
        raise InvalidRequestError(f"the plot {str(file)!r} cannot be written: {error}") from error


def plot_runs(runs: Sequence[SolverRun], title: str, file: Path) -> None:
    """Draw a histogram of all times, and for each solver a map of targets from the side and from above.

    Raises:
        InvalidRequestError: there are no runs, or the file cannot be written.
    """
    if not runs:
        raise InvalidRequestError("no solver could be measured: there is nothing to draw")
    from matplotlib.figure import Figure

    heights = (4.2, 4.3 * len(runs))
    figure = Figure(figsize=(11.0, sum(heights)), layout="constrained")
    figure.suptitle(title)
    # Two figures in one, so that the legend does not take the maps' width.
    parts: Any = figure.subfigures(2, 1, height_ratios=heights)
    top, bottom = parts
    _histogram(top.subplots(), runs)
    panels = bottom.subplots(len(runs), 2, squeeze=False)
    edges = _edges(np.concatenate([run.position for run in runs]), len(runs[0].solved))
    for row, run in zip(panels, runs, strict=True):
        for axes, (i, j) in zip(row, _PROJECTIONS, strict=True):
            mesh = _map(axes, run, i, j, edges)
    bar = bottom.colorbar(mesh, ax=panels, aspect=30, shrink=0.9 / len(runs))
    bar.set_label("solved in a cell, %; red cross: a missed target")
    save_plot(figure, file)


def _histogram(axes: Any, runs: Sequence[SolverRun]) -> None:
    """Up to the slowest call, which is why the counts are logarithmic."""
    low = min(float(run.microseconds.min()) for run in runs)
    high = max(float(run.microseconds.max()) for run in runs)
    low = max(low, 0.1)
    bins = np.geomspace(low, max(1.01 * high, 2.0 * low), 90)
    for number, run in enumerate(runs):
        colour = f"C{number}"
        times = np.maximum(run.microseconds, low)
        marks = np.percentile(run.microseconds, _PERCENTILES)
        label = f"{run.solver}: " + ", ".join(
            f"p{p} {_duration(value)}" for p, value in zip(_PERCENTILES, marks, strict=True)
        )
        axes.hist(times, bins=bins, histtype="stepfilled", alpha=0.15, color=colour)
        axes.hist(times, bins=bins, histtype="step", color=colour, label=label)
        for mark, style in zip(marks, ("-", ":"), strict=True):
            axes.axvline(mark, color=colour, linestyle=style, linewidth=1.2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.7)
    axes.set_xlabel("time of a call, µs; lines: p50 solid, p99 dotted")
    axes.set_ylabel("calls")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False)


def _duration(microseconds: float) -> str:
    return f"{microseconds:.1f} µs" if microseconds < 1e3 else f"{1e-3 * microseconds:.2f} ms"


def _edges(position: Annotated[Float64, "N 3"], targets: int) -> list[Float64]:
    """Return cell edges along x, y and z, equally wide, so many that a cell has a few targets."""
    low, high = position.min(axis=0), position.max(axis=0)
    width = max(float((high - low).max()), 1e-3) / float(np.clip(np.sqrt(targets / 4), 8, 40))
    return [np.arange(a - 0.5 * width, b + 1.5 * width, width) for a, b in zip(low, high, strict=True)]


def _map(axes: Any, run: SolverRun, i: int, j: int, edges: list[Float64]) -> Any:
    """Draw the share of targets solved per cell, whatever their third coordinate, and crosses at the missed ones."""
    bins = [edges[i], edges[j]]
    asked = np.histogram2d(run.position[:, i], run.position[:, j], bins)[0]
    hits, misses = run.position[run.solved], run.position[~run.solved]
    solved = np.histogram2d(hits[:, i], hits[:, j], bins)[0]
    share = np.divide(100.0 * solved, asked, out=np.full(asked.shape, np.nan), where=asked > 0)
    mesh = axes.pcolormesh(*bins, share.T, vmin=0.0, vmax=100.0, cmap="cividis", rasterized=True)
    # Smaller where there are many, so that the cells stay visible.
    size = float(np.clip(4000 / max(len(misses), 1), 4, 36))
    axes.scatter(misses[:, i], misses[:, j], s=size, color=_MISSED, marker="x", linewidths=1.1)
    axes.set_aspect("equal")
    axes.set_xlabel(f"{'xyz'[i]}, m")
    axes.set_ylabel(f"{'xyz'[j]}, m")
    seen = "from the side" if (i, j) == _PROJECTIONS[0] else "from above"
    axes.set_title(f"{run.solver}, {seen}: {len(misses)} of {len(run.solved)} missed", fontsize="medium")
    return mesh
