"""Errors per axis: what is free does not count, what is not counts as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pin = pytest.importorskip("pinocchio")

from kinopt_ros.kinematics.pose_errors import axis_errors, orientation_errors
from kinopt_ros.kinematics.se3 import pose, so3_exp

ANGLES = st.floats(-3.1, 3.1)


def turned(axis: int, angle: float) -> np.ndarray:
    return so3_exp(angle * np.eye(3)[axis])


@given(st.tuples(ANGLES, ANGLES, ANGLES))
def test_nothing_free_is_the_rotation_vector(w: tuple[float, float, float]) -> None:
    R = so3_exp(np.array(w))
    np.testing.assert_allclose(so3_exp(orientation_errors(R, (False, False, False))), R, atol=1e-12)
    np.testing.assert_allclose(
        np.linalg.norm(pin.log3(R)), np.linalg.norm(orientation_errors(R, (False,) * 3)), atol=1e-7
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
@given(tilt=st.tuples(ANGLES, ANGLES), twist=ANGLES)
def test_a_free_axis_leaves_the_swing(axis: int, tilt: tuple[float, float], twist: float) -> None:
    swing = np.zeros(3)
    swing[(axis + 1) % 3], swing[(axis + 2) % 3] = np.array(tilt) * 0.7
    free = tuple(i == axis for i in range(3))
    errors = orientation_errors(so3_exp(swing) @ turned(axis, twist), free)
    np.testing.assert_allclose(errors, swing, atol=1e-9)


@pytest.mark.parametrize("axis", [0, 1, 2])
@given(tilt=st.tuples(ANGLES, ANGLES), twist=ANGLES)
def test_two_free_axes_leave_the_twist(axis: int, tilt: tuple[float, float], twist: float) -> None:
    swing = np.zeros(3)
    swing[(axis + 1) % 3], swing[(axis + 2) % 3] = np.array(tilt) * 0.6
    free = tuple(i != axis for i in range(3))
    errors = orientation_errors(so3_exp(swing) @ turned(axis, twist), free)
    np.testing.assert_allclose(errors[axis], twist, atol=1e-9)
    assert (np.delete(errors, axis) == 0.0).all()


def test_half_turns_never_pass_for_no_error() -> None:
    for axis in range(3):
        other = turned((axis + 1) % 3, np.pi)
        assert np.linalg.norm(orientation_errors(other, tuple(i == axis for i in range(3)))) == pytest.approx(
            np.pi
        )
        assert abs(
            orientation_errors(turned(axis, np.pi), tuple(i != axis for i in range(3)))[axis]
        ) == pytest.approx(np.pi)


def test_all_free_is_no_error_and_positions_are_in_the_targets_frame() -> None:
    T_target = pose(turned(2, np.pi / 2), np.array([1.0, 2.0, 3.0]))
    T_tip = pose(np.eye(3), np.array([1.0, 2.5, 3.25]))
    position, orientation = axis_errors(T_target, T_tip, (False, False, True), (True, True, True))
    np.testing.assert_allclose(position, [0.5, 0.0, 0.0], atol=1e-15)
    assert (orientation == 0.0).all()
