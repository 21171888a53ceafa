"""Which module times motions: pip's ruckig, else kinopt_ruckig of colcon; both plan the same."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kinopt_ros.errors import SolverUnavailableError
from kinopt_ros.trajectory import jerk_phases
from kinopt_ros.trajectory.jerk_phases import JerkPhases, MotionLimits, plan_phases
from kinopt_ros.trajectory.ruckig_module import MODULES, NAMES, ruckig_module


@pytest.fixture(autouse=True)
def _nothing_is_known_yet() -> Iterator[None]:
    ruckig_module.cache_clear()
    yield
    ruckig_module.cache_clear()


def module(name: str, names: tuple[str, ...] = NAMES) -> ModuleType:
    made = ModuleType(name)
    made.__file__ = f"{name}.so"
    for each in names:
        setattr(made, each, None)
    return made


def with_modules(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Have these alone be found."""
    there = {made.__name__: made for made in modules}
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, there.get(name))


def plan() -> JerkPhases | None:
    one = np.ones(1)
    return plan_phases(one, 0.0 * one, MotionLimits(one, one, one), 0.0)


def test_that_of_pip_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    pip, colcon = module("ruckig"), module("kinopt_ruckig")
    with_modules(monkeypatch, pip, colcon)
    assert ruckig_module() is pip


def test_that_of_colcon_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    colcon = module("kinopt_ruckig")
    with_modules(monkeypatch, colcon)
    assert ruckig_module() is colcon


def test_an_old_one_without_the_names_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    # ruckig 0.9 from pip has no RuckigError and no profiles.
    old, colcon = module("ruckig", NAMES[:2]), module("kinopt_ruckig")
    with_modules(monkeypatch, old, colcon)
    assert ruckig_module() is colcon


def test_motions_are_planned_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ruckig_module()
    ruckig_module.cache_clear()
    stand_in = module("kinopt_ruckig")
    for name in NAMES:
        setattr(stand_in, name, getattr(real, name))
    asked: list[int] = []

    def planner(coordinates: int) -> object:
        asked.append(coordinates)
        return real.Ruckig(coordinates)

    stand_in.Ruckig = planner  # type: ignore[attr-defined]
    with_modules(monkeypatch, stand_in)
    assert plan() is not None
    assert asked == [1]


def test_without_both_the_error_names_both_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    with_modules(monkeypatch)
    with pytest.raises(SolverUnavailableError) as caught:
        plan()
    for words in ("pip install ruckig", "colcon build", "kinopt_ruckig", "docs/install.md"):
        assert words in str(caught.value)


def test_the_folder_of_sources_is_no_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Python imports any folder, and that of the package is at the root of the repository."""
    (tmp_path / "kinopt_ruckig").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with_modules(monkeypatch)
    del sys.modules["kinopt_ruckig"]  # is looked for; afterwards, what was known before is put back
    with pytest.raises(
        SolverUnavailableError, match=r"kinopt_ruckig of .*kinopt_ruckig.* has no InputParameter"
    ):
        ruckig_module()


def test_both_plan_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both are installed; tools/colcon.sh sees to that."""
    pip, colcon = (pytest.importorskip(name) for name in MODULES)
    if not hasattr(colcon, "Ruckig"):
        pytest.skip("kinopt_ruckig is not built")
    rng = np.random.default_rng(1)
    for _ in range(2000):
        m = int(rng.integers(1, 9))
        move = rng.normal(size=m) * 10 ** rng.uniform(-6.0, 0.5)
        limits = MotionLimits(rng.uniform(0.3, 3, m), rng.uniform(0.5, 20, m), rng.uniform(5, 1000, m))
        velocity = rng.integers(0, 2) * rng.uniform(-1.2, 1.2, m) * limits.velocity
        minimum = rng.integers(0, 2) * rng.uniform(0.0, 8.0)
        planned = []
        for each in (pip, colcon):
            monkeypatch.setattr(jerk_phases, "ruckig_module", lambda each=each: each)
            planned.append(plan_phases(move, velocity, limits, minimum))
        one, other = planned
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            times = np.linspace(0.0, one.duration, 100)
            np.testing.assert_allclose(other.duration, one.duration, rtol=0, atol=1e-9)
            np.testing.assert_allclose(other.ends, one.ends, rtol=0, atol=1e-9)
            np.testing.assert_allclose(
                other.acceleration_at(times), one.acceleration_at(times), rtol=0, atol=1e-9
            )


def test_lengths_that_do_not_go_together_are_refused() -> None:
    """The library reads beyond the end of numbers that are too few."""
    colcon = pytest.importorskip("kinopt_ruckig")
    if not hasattr(colcon, "Ruckig"):
        pytest.skip("kinopt_ruckig is not built")
    request = colcon.InputParameter(2)
    request.max_jerk = [1.0]
    with pytest.raises(colcon.RuckigError, match="max_jerk has 1 coordinates, not 2"):
        colcon.Ruckig(2).calculate(request, colcon.Trajectory(2))
    with pytest.raises(colcon.RuckigError, match="the Trajectory has 3 coordinates, not 2"):
        colcon.Ruckig(2).calculate(colcon.InputParameter(2), colcon.Trajectory(3))
