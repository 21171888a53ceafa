"""Costs that users write: their numbers change without compiling, their mistakes are said, and their source counts."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.odd_costs import Height, Odd
from support.pages import ROOT

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.rest import Rest
from kinopt_ros.errors import NotReadyError
from kinopt_ros.objectives.cost_error import CostError
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.status import Status

if TYPE_CHECKING:
    from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_llvm")]
JOINTS = ("j0", "j1", "j2", "j3")
SharedMaker = Callable[[RobotModel], "JaxLmSolver"]


def solved(solver: JaxLmSolver, *costs: Cost, **options: Any) -> Any:
    return solver.solve_objective(objective_problem(solver.robot, Objective(costs), **options))


def goes_on(solver: JaxLmSolver) -> bool:
    """Whether it answers what is right, by programs that do not search."""
    return bool(solved(solver, Rest(), joints=JOINTS, num_starts=0).status[0] == Status.NEAREST)


def test_numbers_change_the_answer_without_compiling(shared: SharedMaker, panda: RobotModel) -> None:
    solver = shared(panda)
    found = []
    solved(solver, Height(link="panda_hand", wanted=0.5, tolerance=1e-6), Rest(weight=0.1))
    before = solver._objectives[1].compiled  # type: ignore[index]
    for wanted in (0.3, 0.5, 0.7):
        result = solved(solver, Height(link="panda_hand", wanted=wanted, tolerance=1e-6), Rest(weight=0.1))
        assert result.success[0], result.messages
        found.append(result.q[0, 0])
    assert solver._objectives[1].compiled == before  # type: ignore[index]
    assert np.abs(found[0] - found[1]).max() > 0.01
    assert np.abs(found[2] - found[1]).max() > 0.01


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("raises", "no such thing"),
        ("exits", "SystemExit"),
        ("branches", "TracerBoolConversionError"),
        ("numpy alone", "TracerArrayConversionError"),
        ("matrix", "shape (2, 2)"),
        ("number", "shape ()"),
        ("text", "TypeError"),
        ("flags", "type bool"),
        ("complex", "type complex"),
    ],
)
def test_what_cannot_be_traced_is_said_and_the_solver_goes_on(
    shared: SharedMaker, arm: RobotModel, what: str, said: str
) -> None:
    solver = shared(arm)
    with pytest.raises(CostError) as error:
        solved(solver, Odd(what=what, label="mine"), Rest(), joints=JOINTS)
    assert "'mine'" in str(error.value)
    assert "odd_costs.py" in str(error.value)
    assert said in str(error.value)
    assert goes_on(solver)


def test_wrong_numbers_of_weights_are_said(shared: SharedMaker, arm: RobotModel) -> None:
    with pytest.raises(CostError, match="height"):
        solved(shared(arm), Height(link="hand", weight=(1.0, 2.0)), joints=JOINTS)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_nan_at_some_states_is_an_error_or_a_status(shared: SharedMaker, arm: RobotModel) -> None:
    """log(q + 0.5) is NaN on one side of the range: nothing that is NaN is ever an answer."""
    solver = shared(arm)
    for q0 in (0.4, -1.5):
        state = np.array([q0, 0.0, 0.0, 0.0])
        for tolerance in (1e-6, None):
            costs = (Odd(what="nan somewhere", tolerance=tolerance), Rest(weight=0.1))
            # Of the two structures, one has a program that searches.
            more = {"num_starts": 0} if tolerance is None else {}
            try:
                result = solved(solver, *costs, joints=JOINTS, state=state, **more)
            except CostError as error:
                message = str(error)
            else:
                message = ""
                assert np.isfinite(result.best).all()
                assert result.success[0] == (tolerance is not None)
            assert not message or "not finite" in message
    with pytest.raises(CostError, match="not finite"):
        solved(solver, *costs, joints=JOINTS, state=state, num_starts=0)
    assert goes_on(solver)


SOURCE = '''
from dataclasses import dataclass
from typing import Any, ClassVar

from kinopt_ros.costs.base import Cost


@dataclass(frozen=True, eq=False, kw_only=True)
class Mine(Cost):
    """One joint at a number that is written in the source."""

    name: ClassVar[str] = "mine"
    formula: ClassVar[str] = "r = q - NUMBER"
    units: ClassVar[str] = "rad"

    def residual(self, point: Any) -> Any:
        """Compute the distance."""
        return point.q[:1] - NUMBER
'''


def loaded(path: Path, number: str) -> Any:
    path.write_text(SOURCE.replace("NUMBER", number))
    spec = importlib.util.spec_from_file_location("mine", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mine"] = module
    # Not by the cached code of a source of the same second and length.
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module.Mine


def test_a_changed_source_is_never_answered_by_the_old_program(
    shared: SharedMaker, arm: RobotModel, tmp_path: Path
) -> None:
    """Neither in a process that loads it anew, nor by what is on disk."""
    solver = shared(arm)
    for number in ("0.25", "0.75", "0.25"):
        kind = loaded(tmp_path / "mine.py", number)
        result = solved(solver, kind(tolerance=1e-6), Rest(weight=0.1), joints=JOINTS)
        assert result.success[0]
        assert result.q[0, 0, 0] == pytest.approx(float(number), abs=1e-6)
    first = kind.residual
    kind.residual = lambda self, point: point.q[:1] - 0.5  # what reloading tools of notebooks do
    result = solved(solver, kind(tolerance=1e-6), Rest(weight=0.1), joints=JOINTS)
    assert result.q[0, 0, 0] == pytest.approx(0.5, abs=1e-6)
    kind.residual = first


PROGRAM = """
import sys
import numpy as np
import kinopt_ros as ko
from kinopt_ros.costs.rest import Rest
from kinopt_ros.errors import NotReadyError
sys.path.insert(0, sys.argv[2])
from mine import Mine
solver = ko.create_solver("jax_lm", ko.load_robot(sys.argv[1]), {"groups": ""})
problem = ko.objective_problem(solver.robot, ko.Objective([Mine(tolerance=1e-6), Rest(weight=0.1)]))
result = solver.solve_objective(problem)
print(solver._objectives[1].compiled, result.q[0, 0, 0])
solver.close()
"""


def test_a_second_process_compiles_nothing(planar_arm_file: Path, tmp_path: Path) -> None:
    """What is on disk is used, unless the source of a cost is another one."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    (tmp_path / "cache").mkdir()
    found = []
    for number in ("0.25", "0.25", "0.7500"):
        (tmp_path / "mine.py").write_text(SOURCE.replace("NUMBER", number))
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(planar_arm_file), str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        assert ran.returncode == 0, ran.stderr
        compiled, q = ran.stdout.split()[-2:]
        found.append((int(compiled), round(float(q), 5)))
    assert found[0][0] >= 1
    assert found[1:] == [(0, 0.25), (found[0][0], 0.75)]


def test_with_a_deadline_it_is_said_when_asked_again(shared: SharedMaker, arm: RobotModel) -> None:
    """It was said for ever that a program is compiled; it was traced anew, and each such structure stayed in memory."""
    solver = shared(arm)
    end = time.monotonic() + 300.0

    def ask() -> None:
        deadline = time.monotonic() + 1.0
        solved(solver, Odd(what="raises", label="late"), Rest(), joints=JOINTS, deadline=deadline)

    def ask_again() -> None:
        while time.monotonic() < end:
            try:
                ask()
            except NotReadyError:
                time.sleep(0.05)

    with pytest.raises(NotReadyError):
        ask()
    with pytest.raises(CostError, match="no such thing"):
        ask_again()
    programs = solver._objectives[1]  # type: ignore[index]
    while programs._making:  # its other programs
        assert time.monotonic() < end
        time.sleep(0.05)
