"""How programs of objectives are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from kinopt_ros.costs.smoothness import Smoothness
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.robot.model import RobotModel

if TYPE_CHECKING:
    from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver

pytestmark = pytest.mark.slow
SharedMaker = Callable[[RobotModel], "JaxLmSolver"]


@pytest.mark.parametrize("rewritten", [False, True])
def test_no_operation_is_left_to_a_library_that_crashes(
    shared: SharedMaker, panda: RobotModel, monkeypatch: pytest.MonkeyPatch, rewritten: bool
) -> None:
    """One of four new processes ended with a segmentation fault at its first path with an objective."""
    solver = shared(panda)
    problem = objective_problem(panda, Objective([Smoothness(weight=1.0)]), num_points=25)
    from kinopt_ros.solvers.jax_lm.objectives import program

    if rewritten:  # as XLA does by itself: what the test looks for is there
        left_out = tuple(name for name in program._NOT_FOR_OBJECTIVES if name != "dot-library-rewriter")
        monkeypatch.setattr(program, "_NOT_FOR_OBJECTIVES", left_out)
    import jax

    if jax.default_backend() != "cpu":
        pytest.skip("of programs for CPUs")
    search = solver._objective_search()
    [key] = [key for key in search.needed(problem) if key.kind == program.POLISH]
    with jax.enable_x64(True):
        text = program.objective_compilation(solver._runtime, key).compiled().as_text()
    if rewritten and "__ynn_fusion" not in text:
        pytest.skip("this XLA rewrites nothing for that library")
    assert ("__ynn_fusion" in text) == rewritten
