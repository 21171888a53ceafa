"""How often somebody comes to a place, by the distance from it."""

import pytest

from kinopt_ros.ros.motion.visits import Visits


def count(*distances: float) -> int:
    visits = Visits()
    for distance in distances:
        visits.take(distance, 3.0, 0.01, 0.03)
    return visits.count


@pytest.mark.parametrize(
    ("distances", "times"),
    [
        ((), 0),
        ((0.0, 0.0), 0),  # it was there all the time
        ((0.0, 0.02, 0.0), 0),  # too near to be away
        ((1.0, 0.5, 0.0), 1),
        ((1.0, 0.3, 0.2, 0.1, 0.05, 0.01, 0.0), 1),  # on one way there, however it is looked at
        ((0.0, 1.0, 0.0, 1.0, 0.0), 2),
        ((0.0, 1.0, 0.3, 1.0, 0.3), 2),  # drives that lag turn back before
        ((1.0, 0.3, 0.6, 0.3, 0.0), 1),  # it wavers
        ((0.0, 0.04, 0.0), 1),
    ],
)
def test_visits_are_counted(distances: tuple[float, ...], times: int) -> None:
    assert count(*distances) == times
