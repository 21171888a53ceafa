"""Stand-in for the machine's clock, which tests wind, so that nothing depends on how quick the machine is."""

from types import ModuleType, SimpleNamespace

import pytest

from kinopt_ros.problems.ik import IkProblem


class Clock:
    """``time.monotonic`` of some modules. It stands still unless it is wound, and is days ahead of the machine's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        self.now = 1e9
        for module in modules:
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))


def late_after(looks: int, monkeypatch: pytest.MonkeyPatch) -> list[IkProblem]:
    """Let the deadlines of all requests pass after so many looks at them; the looks that were taken so far."""
    taken: list[IkProblem] = []

    def late(problem: IkProblem) -> bool:
        taken.append(problem)
        return len(taken) > looks

    monkeypatch.setattr(IkProblem, "late", property(late))
    return taken
