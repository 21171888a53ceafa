"""`kinopt doctor --collision`: how well spheres fit the robot, and which pairs of links are checked."""

import argparse
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinopt_ros.bench.plots import check_plot
from kinopt_ros.commands.arguments import robot_of

if TYPE_CHECKING:
    from kinopt_ros.collision.fit_report import FitReport

_LISTED = 30
"""Most suspicious pairs that are shown; --json has all."""


def examine(args: argparse.Namespace) -> "FitReport":
    """Make the report, and the picture if one is asked for."""
    # Here, not above: these compile, which takes a second.
    from kinopt_ros.collision.fit_report import report_fit
    from kinopt_ros.collision.spheres import read_spheres, robot_spheres
    from kinopt_ros.commands.doctor_plot import plot_collision

    plot = check_plot(args.plot) if args.plot else None
    robot = robot_of(args)
    spheres = robot_spheres(robot, read_spheres(args.spheres) if args.spheres else {})
    report = report_fit(robot, spheres)
    if plot is not None:
        plot_collision(robot, spheres, plot)
    return report


def show(report: "FitReport") -> None:
    """Print the report."""
    console = Console()
    console.print("\n[bold]collision model[/]")
    table = Table("link", "shapes", "spheres", "volume ratio", "uncovered points")
    for fit in report.links:
        uncovered = f"{fit.uncovered} of {fit.points}" if fit.points else ""
        table.add_row(
            escape(fit.link),
            escape(fit.shapes) or "[yellow]not checked[/]",
            f"{fit.spheres} {fit.source}" if fit.spheres else "",
            "" if fit.volume_ratio is None else f"{fit.volume_ratio:.2f}",
            f"[red]{uncovered}[/]" if fit.uncovered else uncovered,
        )
    console.print(table)
    console.print(f"{sum(fit.spheres for fit in report.links)} spheres in all")
    for fit in report.links:
        if fit.unchecked:
            console.print(
                f"  [yellow]not checked[/]: {escape(fit.link)}: {escape(fit.unchecked)}", soft_wrap=True
            )
        if fit.hull:
            console.print(f"  [dim]note[/]: {escape(fit.link)}: {escape(fit.hull)}", soft_wrap=True)
    reasons = ", ".join(f"{count} {reason}" for reason, count in report.excluded)
    console.print(
        f"{report.checked} pairs of links are checked; not checked: {reasons or 'none'}", soft_wrap=True
    )
    for finding in report.suspicious[:_LISTED]:
        console.print(
            f"  [yellow]look at[/] {escape(finding.first)} and {escape(finding.second)}: {finding.what} "
            f"({100.0 * finding.share:.3g} % of {report.samples} configurations)",
            soft_wrap=True,
        )
    if len(report.suspicious) > _LISTED:
        console.print(f"  ... and {len(report.suspicious) - _LISTED} more; --json has all")
    if report.srdf:
        console.print(
            "lines for an SRDF, which is then taken at its word; look at those that are comments, and uncomment "
            "what may touch:",
            soft_wrap=True,
        )
    for line in report.srdf:
        console.print(f"  {escape(line)}", soft_wrap=True, highlight=False)
