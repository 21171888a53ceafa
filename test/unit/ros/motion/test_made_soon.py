"""Brakes that are made for the moment at which they are sent."""

from kinopt_ros import pauses
from kinopt_ros.ros.motion.made_soon import made_soon


def test_what_takes_long_is_made_once_more_for_when_it_is_done() -> None:
    times = iter([0, 40_000_000, 100_000_000, 150_000_000])
    asked: list[int] = []

    def make(ahead: int) -> int:
        asked.append(ahead)
        return ahead

    assert made_soon(make, lambda: next(times)) == 40_000_000
    assert asked == [0, 40_000_000]


def test_others_give_way() -> None:
    assert made_soon(lambda ahead: bool(pauses._urgent), lambda: 0)
    assert not pauses._urgent
