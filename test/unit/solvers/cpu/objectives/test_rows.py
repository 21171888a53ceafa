"""Rows of the kernels are the residuals of the costs, and their derivatives those of the residuals."""

from types import FunctionType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
from support.cost_cases import ROBOTS, cost_cases

from kinopt_ros.costs.alignment import Alignment
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.look_at import LookAt
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.position_limits import PositionLimits
from kinopt_ros.costs.rest import Rest
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.tangent import directions, moved
from kinopt_ros.objectives.numpy_point import NumpyPath
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.objectives.kernels import (
    descent,
    linear,
    manipulability,
    places,
    rows,
    terms,
    turns,
)
from kinopt_ros.solvers.cpu.objectives.kinds import KINDS
from kinopt_ros.solvers.cpu.objectives.structure import pack_structure
from kinopt_ros.solvers.kernels import forward


def interpreted() -> dict[str, Any]:
    """The kernels' functions as Python runs them."""
    modules = forward, turns, linear, places, manipulability, rows, terms, descent
    names = {name: value for module in modules for name, value in vars(module).items()}
    for name, value in list(names.items()):
        if hasattr(value, "py_func"):
            names[name] = FunctionType(value.py_func.__code__, names)
    return names


PYTHON = interpreted()
NAMES = {kind.name for kind in KINDS}


def evaluated(
    robot: RobotModel, costs: list[Cost], free: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals and derivatives of some costs by the kernels."""
    objective = Objective(costs)
    structure = pack_structure(robot, objective, free)
    numbers = structure.pack([objective])[0][0]
    R, d = structure.num_rows, structure.num_directions
    r, J = np.full(R, np.nan), np.full((R, d), np.nan)
    room = PYTHON["new_room"](structure.model, robot.nq, d)
    PYTHON["evaluate"](structure.model, numbers, q, room.rows, r, J)
    again = np.full(R, np.nan)
    PYTHON["evaluate"](structure.model, numbers, q, room.rows, again, J[:0])
    np.testing.assert_array_equal(again, r)
    return r, J


def formulas(robot: RobotModel, costs: list[Cost], q: np.ndarray) -> np.ndarray:
    """Residuals of some costs by their own code."""
    point = NumpyPath(robot, q[None], 0.1)[0]
    return np.concatenate([cost.residual(point) for cost in costs])


def differences(
    robot: RobotModel, costs: list[Cost], free: np.ndarray, q: np.ndarray, h: float = 1e-6
) -> np.ndarray:
    """Derivatives of residuals by central differences."""
    columns = []
    for unit in np.eye(len(free))[free]:
        ends = [formulas(robot, costs, moved(directions(robot), q, sign * h * unit)) for sign in (1.0, -1.0)]
        columns.append((ends[0] - ends[1]) / (2.0 * h))
    return np.stack(columns, axis=1)


def assert_agree(robot: RobotModel, cost: Cost, q: np.ndarray) -> None:
    free = np.ones(directions(robot).nv, dtype=np.bool_)
    free[2] = False
    r, J = evaluated(robot, [cost], free, q)
    np.testing.assert_allclose(r, formulas(robot, [cost], q), rtol=1e-12, atol=1e-12)
    wanted = differences(robot, [cost], free, q)
    np.testing.assert_allclose(J, wanted, atol=1e-7 * max(1.0, np.abs(wanted).max() ** 2))


@pytest.mark.parametrize("kind", sorted(NAMES))
@pytest.mark.parametrize("name", sorted(ROBOTS))
def test_rows_are_the_formulas(name: str, kind: str) -> None:
    robot = ROBOTS[name][0]()
    for q in random_configurations(robot, 5, 11):
        assert_agree(robot, cost_cases(name, robot)[kind], q)


@pytest.mark.parametrize("part", ["translation", "rotation", "full"])
def test_parts_of_the_index(part: str) -> None:
    robot = ROBOTS["panda"][0]()
    some = tuple(f"panda_joint{k}" for k in range(2, 8))
    for q in random_configurations(robot, 3, 12):
        assert_agree(robot, Manipulability(link="panda_hand", part=part), q)
        assert_agree(robot, Manipulability(link="panda_hand", part=part, joints=some), q)


def test_all_directions_rest_and_keep_margins() -> None:
    """Quaternions turn the shorter way; what has no limits keeps none."""
    robot = ROBOTS["every_joint"][0]()
    q, other = random_configurations(robot, 2, 13)
    assert_agree(robot, Rest(q=other), q)
    assert_agree(robot, PositionLimits(margin=0.3), q)


def test_where_directions_agree_or_are_opposite() -> None:
    robot = ROBOTS["panda"][0]()
    free = np.ones(directions(robot).nv, dtype=np.bool_)
    q = random_configurations(robot, 1, 14)[0]
    R = forward_kinematics(robot, q[None], ["panda_hand"])[0, 0, :3, :3]
    for axis in ((0.0, 0.0, 1.0), (1.0, 2.0, -0.5), (-3.0, 0.1, 0.2)):
        along = R @ np.array(axis)
        agree = Alignment(link="panda_hand", axis=axis, direction=tuple(along))
        assert_agree(robot, agree, q)
        opposite = Alignment(link="panda_hand", axis=axis, direction=tuple(-along))
        r, J = evaluated(robot, [opposite], free, q)
        assert np.linalg.norm(r) == pytest.approx(np.pi)
        assert np.isfinite(J).all()
        # Some step makes the angle less: it is no place to stay at.
        assert np.abs(r @ J).max() > 0.1


def test_a_place_at_the_eye_has_no_direction() -> None:
    robot = ROBOTS["panda"][0]()
    free = np.ones(directions(robot).nv, dtype=np.bool_)
    q = random_configurations(robot, 1, 15)[0]
    p = forward_kinematics(robot, q[None], ["panda_hand"])[0, 0, :3, 3]
    r, J = evaluated(robot, [LookAt(link="panda_hand", place=tuple(p))], free, q)
    assert np.isfinite(r).all()
    assert np.isfinite(J).all()


def test_a_singular_robot_has_no_index() -> None:
    """Where the arm is stretched, the inverse is finite and does not change."""
    robot = ROBOTS["panda"][0]()
    free = np.ones(directions(robot).nv, dtype=np.bool_)
    r, J = evaluated(robot, [Manipulability(link="panda_link1")], free, robot.default_q)
    np.testing.assert_allclose(r, 1e6)
    assert (J == 0.0).all()
