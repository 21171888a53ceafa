"""Axes that nearly are parallel or nearly meet become so; others stay where they are."""

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import six_revolute, three_parallel
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.solvers.analytic.rounding import Axes, axes_of, rounded

TILT, GAP = 2e-3, 1e-3


def turned(direction: tuple[float, float, float], angle: float) -> Float64:
    """Return a unit vector tilted towards x."""
    h = np.array(direction) / np.linalg.norm(direction)
    return np.asarray(np.cos(angle) * h + np.sin(angle) * np.array([1.0, 0.0, 0.0]))


def test_axes_are_those_of_the_chain() -> None:
    robot = three_parallel()
    chain = chain_between(robot, "l0", "l6")
    axes, T_tip = axes_of(chain)
    np.testing.assert_allclose(T_tip, chain_pose(chain, np.zeros(6)), atol=1e-15)
    q = np.zeros(6)
    q[2] = 0.7  # turning a joint leaves its own axis where it is
    moved = chain_pose(chain, q) @ np.linalg.inv(T_tip)
    np.testing.assert_allclose(moved[:3, :3] @ axes.direction[2], axes.direction[2], atol=1e-12)
    np.testing.assert_allclose((moved @ [*axes.point[2], 1.0])[:3], axes.point[2], atol=1e-12)


def test_nearly_parallel_neighbours_become_parallel_and_point_the_same_way() -> None:
    direction = np.array(
        [[0, 0, 1], turned((0, 1, 0), 0.0), turned((0, -1, 0), 1e-3), turned((0, 1, 0), 5e-4)]
    )
    point = np.array([[0.0, 0, 0], [0.1, 0, 0.3], [0.5, 0, 0.3], [0.9, 0.1, 0.3]])
    axes, sign = rounded(Axes(direction, point), TILT, GAP)
    assert sign.tolist() == [1, 1, -1, 1]
    assert (axes.direction[1] == axes.direction[2]).all()
    assert (axes.direction[1] == axes.direction[3]).all()
    np.testing.assert_allclose(sign[:, None] * axes.direction, direction, atol=1e-3)


def test_axes_that_are_not_near_stay() -> None:
    direction = np.array([[0, 0, 1], turned((0, 0, 1), 0.01), turned((0, 1, 0), 0.0)])
    point = np.array([[0.0, 0, 0], [0, 0.5, 0], [0.05, 0, 0.002]])
    axes, sign = rounded(Axes(direction, point), TILT, GAP)
    np.testing.assert_array_equal(axes.direction, direction)
    np.testing.assert_array_equal(axes.point, point)
    assert (sign == 1).all()


def test_axes_that_nearly_meet_meet() -> None:
    direction = np.array([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]])
    point = np.array([[0.0, 0, 0], [4e-4, 0.3, 0.5], [-0.2, 6e-4, 0.5 - 3e-4]])
    axes, _ = rounded(Axes(direction, point), TILT, GAP)
    np.testing.assert_allclose(axes.point[1], [0, 0, 0.5], atol=1e-15)
    np.testing.assert_array_equal(axes.point[1], axes.point[2])  # all three in one point
    assert (
        np.linalg.norm(np.cross(axes.point - point, direction), axis=1).max() <= GAP
    )  # and no axis moved far


def test_two_meetings_on_one_axis_stay_apart() -> None:
    direction = np.array([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]])
    point = np.array([[0.0, 0, 0], [0, 0, 0.5], [0, 0.2, 0.5 + 5e-4]])
    axes, _ = rounded(Axes(direction, point), TILT, GAP)
    np.testing.assert_allclose(axes.point, [[0, 0, 0], [0, 0, 0.5], [0, 0.2, 0.5]], atol=1e-15)


@pytest.mark.parametrize("robot", [six_revolute(), three_parallel()], ids=lambda robot: robot.name)
def test_an_exact_arm_does_not_change(robot: object) -> None:
    axes, _ = axes_of(chain_between(robot, "l0", "l6"))  # type: ignore[arg-type]
    near, sign = rounded(axes, TILT, GAP)
    np.testing.assert_allclose(sign[:, None] * near.direction, axes.direction, atol=1e-15)
    np.testing.assert_allclose(np.cross(near.point - axes.point, near.direction), 0.0, atol=1e-12)
