"""Solvers that a module shares: programs are compiled once for all of its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver

SharedMaker = Callable[[RobotModel], JaxLmSolver]


def arm_text() -> str:
    """Return the URDF of an arm of three joints about z with two hands, one of them behind a fourth joint."""
    limit = '<limit lower="-2.5" upper="2.5" velocity="2" effort="1"/>'
    joints = [
        ("j0", "revolute", "l0", "l1", "0"),
        ("j1", "revolute", "l1", "l2", "0.4"),
        ("j2", "revolute", "l2", "l3", "0.4"),
        ("tool", "fixed", "l3", "hand", "0.2"),
        ("j3", "revolute", "l1", "l5", "0.3"),
        ("other_tool", "fixed", "l5", "other_hand", "0.4"),
    ]
    links = "".join(f'<link name="{link}"/>' for link in ("l0", *(child for _, _, _, child, _ in joints)))
    body = "".join(
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0"/><axis xyz="0 0 1"/>{limit if kind == "revolute" else ""}</joint>'
        for name, kind, parent, child, x in joints
    )
    return f'<robot name="two_hands">{links}{body}</robot>'


@pytest.fixture(scope="session")
def arm() -> RobotModel:
    """Four joints in a plane, quick to compile for."""
    return robot_from_urdf(arm_text())


@pytest.fixture(scope="session")
def panda() -> RobotModel:
    """Panda."""
    return load_robot("panda")


@pytest.fixture(scope="module")
def shared(kept_folder: Path) -> Iterator[SharedMaker]:
    """Makes solvers, one for each robot, that compile nothing but what objectives need."""
    for package in ("jax", "jaxlie", "jaxls"):
        pytest.importorskip(package)
    made: dict[int, JaxLmSolver] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(kept_folder))

        def make(robot: RobotModel) -> JaxLmSolver:
            if id(robot) not in made:
                made[id(robot)] = JaxLmSolver()
                made[id(robot)].configure(robot, {"groups": ""})
            return made[id(robot)]

        yield make
        for solver in made.values():
            solver.close()
