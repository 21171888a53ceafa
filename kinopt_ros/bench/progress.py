"""A progress bar that does not disturb what is measured, and timed loops that keep it moving."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Report = Callable[[str, int], object]
"""Function that is called with what is under way and the number of calls since the last report."""

REFRESH = 0.25
"""Least time between two pictures of the bar, s."""
PARTS = 50
"""Number of reports per timed loop."""


def no_report(what: str, count: int) -> None:
    """Ignore a report."""


@contextmanager
def progress_bar(title: str, total: int, enabled: bool) -> Iterator[Report]:
    """Show a bar on stderr that counts to ``total`` calls, or nothing.

    Rich's own refreshing thread would burden the process's CPU time, by which benchmarks are told. This bar is
    drawn by its reports only, which callers make while no clock runs.
    """
    if not enabled:
        yield no_report
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
        task = bar.add_task(title, total=total)
        drawn = 0.0

        def report(what: str, count: int) -> None:
            nonlocal drawn
            bar.update(task, advance=count, description=f"{title} {what}")
            if time.monotonic() - drawn >= REFRESH:
                bar.refresh()
                drawn = time.monotonic()

        yield report


def timed_loop(
    call: Callable[[Item], Answer], items: Sequence[Item], what: str, report: Report
) -> tuple[list[Answer], float]:
    """Return the answers of one call per item, and the process's CPU time (s) for the calls alone, without reports."""
    answers: list[Answer] = []
    spent = 0.0
    size = max(1, len(items) // PARTS)
    for first in range(0, len(items), size):
        part = items[first : first + size]
        start = time.process_time()
        answers += [call(item) for item in part]
        spent += time.process_time() - start
        report(what, len(part))
    return answers, spent
