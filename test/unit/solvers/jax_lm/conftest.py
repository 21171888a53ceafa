"""All of these need JAX; none of them leaves programs in the user's cache."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.kept_compilations import kept_compilations

from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver


@pytest.fixture(autouse=True)
def _needs_jax() -> None:
    reason = JaxLmSolver.unavailable_reason()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def compiled_once(kept_folder: Path) -> Iterator[None]:
    """For tests of formulas, whose compilation says nothing, and takes most of the time."""
    pytest.importorskip("jax")
    with kept_compilations(kept_folder / "xla"):
        yield


@pytest.fixture(scope="session")
def planar_arm() -> RobotModel:
    """Three joints about z, 0.4 m apart: quick to compile for."""
    return robot_from_urdf(planar_arm_text())


@pytest.fixture
def planar_arm_file(tmp_path: Path) -> Path:
    """File with the URDF of the planar arm."""
    file = tmp_path / "planar_arm.urdf"
    file.write_text(planar_arm_text(), encoding="utf-8")
    return file


def planar_arm_text() -> str:
    """Return the URDF of the planar arm."""
    limit = '<limit lower="-2.5" upper="2.5" velocity="2" effort="1"/>'
    links = "".join(f'<link name="l{i}"/>' for i in range(5))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="{0.4 if i else 0} 0 0"/><axis xyz="0 0 1"/>{limit}</joint>'
        for i in range(3)
    )
    tool = '<joint name="t" type="fixed"><parent link="l3"/><child link="l4"/><origin xyz="0.2 0 0"/></joint>'
    return f'<robot name="planar_arm">{links}{joints}{tool}</robot>'


SolverMaker = Callable[..., JaxLmSolver]
SMALL: dict[str, object] = {"groups": "", "batch_sizes": "4", "escalation.rounds": 2}
"""Options of solvers whose programs are small."""


@pytest.fixture
def solver_for(kept_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SolverMaker]:
    """Makes solvers that compile small programs only, when they need them."""
    made = []

    def make(robot: RobotModel, cache: Path = kept_folder, **options: object) -> JaxLmSolver:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        solver = JaxLmSolver()
        solver.configure(robot, SMALL | options)
        made.append(solver)
        return solver

    yield make
    for solver in made:
        solver.close()
