"""Points along straight lines."""

import numpy as np
import pytest

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.search.along_lines import along_lines


def test_corners_are_points_of_the_path() -> None:
    corners = np.array([[0.0, 0.0], [1e-9, 0.0], [1.0, 0.0], [1.0, 2.0], [1.0, 2.0]])
    path, at = along_lines(corners, 12)
    np.testing.assert_array_equal(path[at], corners)
    assert (np.diff(at) > 0).all()
    assert at[0] == 0
    assert at[-1] == 11


def test_points_are_about_evenly_spaced() -> None:
    path, at = along_lines(np.array([[0.0], [1.0], [4.0]]), 41)
    assert at.tolist() == [0, 10, 40]
    np.testing.assert_allclose(np.diff(path[:, 0]), 0.1)


def test_a_path_of_no_length_has_all_its_points() -> None:
    path, at = along_lines(np.zeros((3, 2)), 9)
    assert path.shape == (9, 2)
    assert at.tolist() == [0, 4, 8]


@pytest.mark.parametrize("corners", [1, 6])
def test_corners_must_fit(corners: int) -> None:
    with pytest.raises(KinoptError, match=f"{corners} corners do not fit on a path of 5 points"):
        along_lines(np.zeros((corners, 2)), 5)
