"""Plugins are found by entry point, loaded when used, and a broken one hurts nobody else."""

import re
from importlib.metadata import EntryPoint
from pathlib import Path

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


def test_own_plugins_are_of_the_agreed_form() -> None:
    for name, info in {info.name: info for info in registry.list_solvers()}.items():
        assert info.capabilities is not None or name not in ("cpu", "jax_lm", "hjcd"), info.unavailable_reason


def test_cpu_is_preferred_where_nobody_says_which() -> None:
    assert registry.by_preference(["jax_lm", "analytic", "cpu"]) == ("cpu", "analytic", "jax_lm")
    assert registry.by_preference({"mine": 1, "analytic": 2}) == ("analytic", "mine")


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


_HEAD = """
from kinopt_ros.solvers.base import Capabilities, Option, Solver
class Plugin(Solver):
    name = "broken"
    version = "1"
    capabilities = Capabilities(frozenset())
    def _configure(self, robot, options): ...
    def _solve_ik(self, problem): ...
"""


_MUTE = "class Mute(Exception):\n    def __str__(self): raise OSError\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("class Panic(BaseException): ...\nraise Panic('no device')", "Panic: no device"),
        (_HEAD + "    def unavailable_reason(): raise RuntimeError('no driver')", "RuntimeError: no driver"),
        (_HEAD + "    version = None", "its version is None"),
        (_HEAD + "    capabilities = None", "its capabilities is None"),
        (_HEAD + "    name = 'cpu'", "calls itself 'cpu'"),
        (_HEAD + "    options = ('speed',)", "one of its options is 'speed'"),
        (_HEAD + "    options = (Option('a b/c', 1, ''),)", "an option is called 'a b/c'"),
        (_HEAD + "    options = (Option('list', [1], ''),)", "option list is"),
        (_HEAD + "    options = (Option('low', 1, '', minimum=2.0),)", "low is 1"),
        (_HEAD + "    options = (Option('low', 1, '', minimum='0'),)", "option low has the limit '0'"),
        (_HEAD + "    options = (Option('most', 1, '', 0, float('inf')),)", "option most has the limit inf"),
        (_HEAD + "    options = (Option('most', 10**30, ''),)", "option most has a whole number"),
        (_HEAD + "    options = (Option('kind', 'x', '', choices=('x', 3)),)", "option kind has choices"),
        (
            _HEAD + "    options = (Option('kind', chr(0xD800), ''),)",
            "option kind has a text that is no UTF-8",
        ),
        (_HEAD + "    options = (Option('kind', 'x' * 200_000, ''),)", "a default of 200000 characters"),
        (_HEAD + "    options = (Option('most', 1, '', 0.0, 1e30),)", "option most has a whole number"),
        (_HEAD + "    options = (Option('kind', 'x', '', choices=None),)", "option kind has choices None"),
        (_HEAD + "    options = (Option('speed', 1, None),)", "option speed has no text"),
        (_HEAD + "    options = (Option(None, 1, ''),)", "an option is called None"),
        (_HEAD + "    options = (Option('speed', 1, ''), Option('speed', 2, ''))", "two options are called"),
        (_HEAD + "    version = chr(0xD800)", "its version is"),
        (
            _HEAD + "    capabilities = Capabilities(frozenset(), frozenset({'poses'}))",
            "capabilities.features",
        ),
        (
            _HEAD + "    capabilities = Capabilities(frozenset(), costs=None)",
            "its capabilities.costs is None",
        ),
        (_HEAD + "    capabilities = Capabilities(frozenset(), rows=None)", "its capabilities.rows is None"),
        (
            _HEAD + "    capabilities = Capabilities(frozenset(), rows=frozenset({'poses'}))",
            "a set of kinds of ConstraintRow",
        ),
        (
            _HEAD + "    capabilities = Capabilities(frozenset(), indices=(Option,))",
            "a tuple of kinds of IndexPreference",
        ),
        (_HEAD + "    capabilities = Capabilities(frozenset(), max_variables='x')", "max_variables is 'x'"),
        (_HEAD + "    capabilities = Capabilities(frozenset(), max_variables=0)", "max_variables is 0"),
        (_HEAD + "    prompt = 'no'", "its prompt is 'no'"),
        (_HEAD + "    @classmethod\n    def solves_ik(cls): raise OSError", "must leave solves_ik as it is"),
        (
            _MUTE + _HEAD + "    @classmethod\n    def unavailable_reason(cls): raise Mute",
            "Mute: it does not say",
        ),
        (_MUTE + "raise Mute", "Mute: it does not say why"),
        (_MUTE.replace("OSError", "SystemExit") + "raise Mute", "Mute: it does not say why"),
        (_HEAD + "    @classmethod\n    def unavailable_reason(cls): return chr(0xD800)", "\\ud800"),
    ],
    ids=lambda text: "" if "\n" in text else text,
)
def test_a_plugin_that_is_not_of_the_agreed_form_takes_nobody_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, reason: str
) -> None:
    """The node, which declares parameters of all plugins, did not start, and `kinopt doctor` neither."""
    module = f"broken_{abs(hash(source))}"
    (tmp_path / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    fake_entry_points(monkeypatch, broken=f"{module}:Plugin", cpu="kinopt_ros.solvers.cpu.plugin:CpuSolver")
    infos = {info.name: info for info in registry.list_solvers()}
    assert reason in (infos["broken"].unavailable_reason or "")
    assert infos["cpu"].unavailable_reason is None
    assert registry.solver_class("auto").name == "cpu"
    with pytest.raises(SolverUnavailableError, match=re.escape(reason)):
        registry.solver_class("broken")


@pytest.mark.parametrize("name", sorted(registry.RESERVED))
def test_a_plugin_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Parameters of one called "ik" would be the node's own, and the node did not start."""
    fake_entry_points(monkeypatch, **{name: "kinopt_ros.solvers.cpu.plugin:CpuSolver"})
    (info,) = registry.list_solvers()
    assert "agreed is a name of its own" in (info.unavailable_reason or "")


def test_a_module_that_fails_is_run_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """/diagnostics lists the solvers every second, on the thread that takes requests in."""
    count = tmp_path / "count"
    (tmp_path / "fails_slowly.py").write_text(f"open({str(count)!r}, 'a').write('.')\nraise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    fake_entry_points(monkeypatch, slow="fails_slowly:Plugin")
    for _ in range(3):
        registry.list_solvers()
    assert count.read_text() == "."


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


@pytest.mark.parametrize("name", ["jax_lm.beam", "a b/c", "", "1st"])
def test_the_name_of_a_plugin_can_begin_those_of_parameters(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Options of one called "jax_lm.beam" met those of jax_lm, and the node did not start."""
    fake_entry_points(monkeypatch, **{name: "kinopt_ros.solvers.cpu.plugin:CpuSolver"})
    (info,) = registry.list_solvers()
    assert "agreed are letters, digits and _" in (info.unavailable_reason or "")
