"""Plugins are found by entry point, loaded when used, and a broken one hurts nobody else."""

from importlib.metadata import EntryPoint

import pytest

from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError, UnknownSolverError
from kinopt_ros.solvers import registry
from kinopt_ros.solvers.base import Option


def fake_entry_points(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    points = [EntryPoint(name, value, registry.GROUP) for name, value in values.items()]
    found = {point.name: point for point in points}
    monkeypatch.setattr(registry, "_entry_points", lambda: found)


def test_cpu_is_registered_and_available() -> None:
    info = {info.name: info for info in registry.list_solvers()}["cpu"]
    assert info.unavailable_reason is None
    assert info.capabilities is not None


def test_auto_takes_cpu() -> None:
    assert registry.solver_class("auto").name == "cpu"


def test_unknown_solver_comes_with_the_known_ones() -> None:
    with pytest.raises(UnknownSolverError, match="cpu"):
        registry.solver_class("ikfast")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module_anywhere:Solver", "ModuleNotFoundError"),
        ("kinopt_ros.solvers.base:NoSuchClass", "AttributeError"),
        ("kinopt_ros.solvers.base:Option", "not a subclass"),
    ],
)
def test_a_broken_plugin_is_listed_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, value: str, reason: str
) -> None:
    fake_entry_points(monkeypatch, broken=value)
    (info,) = registry.list_solvers()
    assert info.name == "broken"
    assert reason in (info.unavailable_reason or "")
    with pytest.raises(SolverUnavailableError, match=reason):
        registry.solver_class("broken")


def test_auto_skips_what_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_entry_points(
        monkeypatch, a_broken="no_such_module_anywhere:Solver", cpu="kinopt_ros.solvers.cpu.plugin:CpuSolver"
    )
    assert registry.solver_class("auto").name == "cpu"


def test_without_any_plugin_auto_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_entry_points(monkeypatch)
    with pytest.raises(SolverUnavailableError, match="none is installed"):
        registry.create_solver("auto", seven_revolute())


def test_options_are_checked() -> None:
    option = Option("damping", 0.5, "", 0.0, 1.0)
    assert option.check(1) == 1.0
    for wrong in ("a lot", True, 1.5, float("nan"), None):
        with pytest.raises(InvalidRequestError, match="damping"):
            option.check(wrong)
    assert Option("name", "x", "").check("y") == "y"
    with pytest.raises(InvalidRequestError, match="whole number"):
        Option("count", 3, "").check(3.0)
    with pytest.raises(InvalidRequestError, match="quotes"):
        Option("name", "x", "").check(1)


def test_a_text_may_be_one_of_some() -> None:
    option = Option("device", "auto", "", choices=("auto", "cuda", "cuda:N"))
    for right in ("auto", "cuda", "cuda:0", "cuda:12"):
        assert option.check(right) == right
    for wrong in ("", "cpu", "cuda:N", "cuda:", "cuda:x", "auto:1", "cuda:\u00b2", "x" * 10_000):
        with pytest.raises(InvalidRequestError, match="allowed are auto, cuda, cuda:N") as raised:
            option.check(wrong)
        assert len(str(raised.value)) < 300


def test_what_was_given_is_cut() -> None:
    for given in (10**5000, [10**5000] * 3, "x" * 10**6, ["x" * 10**6] * 9, {1: {2: {}}}):
        with pytest.raises(InvalidRequestError, match="damping takes a float") as raised:
            Option("damping", 0.5, "").check(given)
        assert len(str(raised.value)) < 300
