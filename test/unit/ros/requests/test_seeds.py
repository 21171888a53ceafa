"""Seeds of a request: one row of numbers, shared by all targets or each target's own."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("kinopt_msgs", reason="kinopt_msgs is not built")

from kinopt_ros.errors import InvalidStateError
from kinopt_ros.ros.requests.ik import _seeds


@pytest.mark.parametrize(
    ("targets", "numbers", "num_seeds", "shape"),
    [
        (4, 7, 0, (1, 7)),
        (4, 28, 0, (4, 1, 7)),
        (4, 28, 1, (4, 1, 7)),
        (4, 28, 4, (4, 7)),
        (2, 42, 3, (2, 3, 7)),
        (1, 21, 3, (3, 7)),
    ],
)
def test_their_number_tells_whose_they_are(
    targets: int, numbers: int, num_seeds: int, shape: tuple[int, ...]
) -> None:
    request = SimpleNamespace(seeds=list(range(numbers)), num_seeds=num_seeds)
    seeds = _seeds(request, targets, 7)
    assert seeds is not None
    np.testing.assert_array_equal(seeds, np.arange(numbers).reshape(shape))


@pytest.mark.parametrize(("numbers", "num_seeds"), [(6, 0), (14, 0), (14, 3), (8, 1)])
def test_what_does_not_fit_is_refused(numbers: int, num_seeds: int) -> None:
    request = SimpleNamespace(seeds=[0.0] * numbers, num_seeds=num_seeds)
    with pytest.raises(InvalidStateError, match=f"seeds has {numbers}"):
        _seeds(request, 4, 7)


def test_none_are_none() -> None:
    assert _seeds(SimpleNamespace(seeds=[], num_seeds=0), 1, 7) is None
