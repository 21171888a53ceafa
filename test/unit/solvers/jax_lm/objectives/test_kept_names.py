"""What was traced once is not traced again, in any process, unless something has changed that a trace follows from."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.odd_costs import Height

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.self_collision import SelfCollision
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.robot.model import RobotModel

for package in ("jax", "jaxlie", "jaxls"):
    pytest.importorskip(package)

from kinopt_ros.solvers.jax_lm.objectives import program
from kinopt_ros.solvers.jax_lm.objectives.layout import layout_of
from kinopt_ros.solvers.jax_lm.objectives.program import (
    POLISH,
    SEARCH,
    ObjectiveKey,
    objective_compilation,
    sources_of,
)
from kinopt_ros.solvers.jax_lm.programs import Programs
from kinopt_ros.solvers.jax_lm.runtime import start

if TYPE_CHECKING:
    Made = Callable[..., Programs[ObjectiveKey]]


def key_of(
    robot: RobotModel, *costs: Cost, num_points: int = 1, kind: str = POLISH, lanes: int = 1
) -> ObjectiveKey:
    layout = layout_of(robot, objective_problem(robot, Objective(costs), num_points=num_points))
    return ObjectiveKey(kind, lanes, layout.text, sources_of(layout), layout)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Kinds of programs that are traced."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found: list[str] = []
    trace = program._traced

    def noted(key: ObjectiveKey) -> Any:
        found.append(key.kind)
        return trace(key)

    monkeypatch.setattr(program, "_traced", noted)
    return found


def programs() -> Programs[ObjectiveKey]:
    """Those of a new process."""
    return Programs(start("cpu", True), objective_compilation)


def test_what_is_kept_is_not_traced(
    traced: list[str], arm: RobotModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = programs()
    first.get(key_of(arm, Rest(weight=0.5)))
    assert (traced, first.compiled) == ([POLISH], 1)
    again = programs()
    again.get(key_of(replace(arm), Rest(weight=0.1)))  # the same robot, another object; another number
    assert (traced, again.compiled) == ([POLISH], 0)
    # Elsewhere: traced, and found to be the same.
    monkeypatch.setattr(program, "package_stamp", lambda *packages: b"other sources")
    other = programs()
    other.get(key_of(arm, Rest(weight=0.5)))
    assert (traced, other.compiled) == ([POLISH] * 2, 0)
    # A name that somebody has damaged is found out anew.
    for file in tmp_path.rglob("*.name"):
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    after = programs()
    after.get(key_of(arm, Rest(weight=0.5)))
    assert (traced, after.compiled) == ([POLISH] * 3, 0)


PROCESS = """
import sys
import numpy as np
import kinopt_ros as ko
from kinopt_ros.costs.rest import Rest
from kinopt_ros.solvers.jax_lm.objectives import program
robot = ko.load_robot(sys.argv[1])
solver = ko.create_solver("jax_lm", robot, {"groups": ""})
costs = [Rest(q=robot.default_q + 0.2, tolerance=1e-4), Rest(weight=0.01)]
traced, trace = [], program._traced
program._traced = lambda key: (traced.append(key.kind), trace(key))[1]
result = solver.solve_objective(ko.objective_problem(robot, ko.Objective(costs), num_starts=0))
print(len(traced), result.success[0], result.q[0, 0].tolist())
solver.close()
"""


@pytest.mark.slow
def test_a_second_process_runs_what_it_has_not_traced(planar_arm_file: Path, tmp_path: Path) -> None:
    """It ended by a segmentation fault: JAX looks LAPACK up when it lowers what calls it."""
    command = [sys.executable, "-c", PROCESS, str(planar_arm_file)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    said = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split(
            " ", 1
        )
        for _ in range(2)
    ]
    assert [int(count) for count, _ in said] == [1, 0]
    assert said[0][1] == said[1][1]
    assert said[0][1].startswith("True"), said


def test_what_a_trace_follows_from_is_in_what_its_name_is_kept_by(arm: RobotModel, panda: RobotModel) -> None:
    runtime = start("cpu", True)

    def known(key: ObjectiveKey) -> str | None:
        return objective_compilation(runtime, key).known_as

    keys = [
        key_of(arm, Rest()),
        key_of(arm, Rest(tolerance=0.1)),
        key_of(arm, Rest(weight=tuple([1.0] * 4))),
        key_of(arm, Rest(), Rest()),
        key_of(arm, Rest(), num_points=3),
        key_of(arm, VelocityLimits(), num_points=3),
        key_of(arm, Rest(), lanes=16),
        key_of(arm, Rest(), kind=SEARCH),
        key_of(replace(arm, default_q=arm.default_q + 0.01), Rest()),
        key_of(panda, Rest()),
    ]
    names = [known(key) for key in keys]
    assert None not in names
    assert len(set(names)) == len(keys)
    other = replace(runtime, fingerprint="another version")
    assert objective_compilation(other, keys[0]).known_as not in names


def test_code_of_others_shapes_and_changed_sources_are_traced(
    arm: RobotModel, panda: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = start("cpu", True)
    for key in (key_of(panda, Height(link="panda_hand", wanted=0.5)), key_of(panda, Rest(), SelfCollision())):
        assert objective_compilation(runtime, key).known_as is None
    monkeypatch.setattr(program, "package_stamp", lambda *packages: None)
    assert objective_compilation(runtime, key_of(arm, Rest())).known_as is None
