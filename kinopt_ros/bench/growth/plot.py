"""Picture of the curves: CPU time over size, both logarithmic, a panel for each thing that there is ever more of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kinopt_ros.bench.growth.series import Series
from kinopt_ros.bench.plots import save_plot

_COLUMNS = 2


def plot_series(series: Sequence[Series], file: Path) -> None:
    """Draw all series.

    Raises:
        InvalidRequestError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    of = list(dict.fromkeys(one.of for one in series))
    rows = -(-len(of) // _COLUMNS)
    figure = Figure(figsize=(11.0, 4.2 * rows), layout="constrained")
    panels: Any = figure.subplots(rows, _COLUMNS, squeeze=False)
    for axes, what in zip(panels.flat, of, strict=False):
        for one in series:
            if one.of == what:
                _curve(axes, one)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(what)
        axes.set_ylabel("CPU time, ms (median; band: up to 95 %)")
        axes.legend(fontsize="small", frameon=False)
        axes.grid(alpha=0.3, which="both")
    for axes in list(panels.flat)[len(of) :]:
        axes.set_visible(False)
    save_plot(figure, file)


def _curve(axes: Any, one: Series) -> None:
    sizes = [cost.size for cost in one.costs]
    medians = [1e3 * cost.median for cost in one.costs]
    (line,) = axes.plot(sizes, medians, marker="o", markersize=3.5, label=one.thing)
    axes.fill_between(
        sizes,
        medians,
        [1e3 * cost.p95 for cost in one.costs],
        color=line.get_color(),
        alpha=0.12,
        linewidth=0.0,
    )
