"""What a robot has done, judged by where it was and by what its controller has told it, each ms."""

from dataclasses import dataclass, fields

import numpy as np

from kinopt_ros.robot.model import RobotModel

_STILL = 2e-3
"""Share of its limit of velocity at which a joint stands."""
_SECONDS = 1e-3
"""Time between two looks, s."""


@dataclass(frozen=True)
class Verdict:
    """How a robot has come to rest."""

    rest: float
    """Time from the order to rest, s."""
    travel: float
    """How far a joint was then from where it was when the order came, rad or m."""
    acceleration: float
    """Largest acceleration of a joint since the first order, as a share of its limit; what steps has an endless one,
    seen at 1 kHz."""
    velocity: float
    """The same of velocity."""
    told_acceleration: float
    """Largest acceleration that the controller told a joint: drives that lag make less of it."""
    beyond: float
    """How far a joint was beyond where its motion leads, rad or m."""
    outside: float
    """How far a joint was beyond a limit of position, rad or m."""


MEASURES = tuple(field.name for field in fields(Verdict))


def verdict(
    robot: RobotModel,
    joints: tuple[str, ...],
    truth: tuple[np.ndarray, np.ndarray, np.ndarray],
    places: np.ndarray,
    begun: int,
    ordered: int,
) -> Verdict:
    """Return how a robot has come to rest.

    Args:
        robot: the robot.
        joints: that moved.
        truth: as of ``World.truth``.
        places: on the way of the motion that was stopped.
        begun: when the first order came, ns.
        ordered: when the order came from which on it has to stop, ns.
    """
    times, told, there = truth
    index = [robot.variable_index[name] for name in joints]
    limits = robot.limits
    since = max(int(np.searchsorted(times, begun)) - 1, 0)
    velocity = np.diff(there[since:], axis=0) / _SECONDS
    moves = (np.abs(np.diff(there, axis=0)) / _SECONDS > _STILL * limits.velocity[index]).any(axis=1)
    first = min(int(np.searchsorted(times, ordered)), len(times) - 1)
    last = int(np.flatnonzero(moves)[-1]) + 1 if moves.any() else first
    rest = max(last - first, 0) * _SECONDS
    low, high = places.min(axis=0), places.max(axis=0)
    return Verdict(
        rest=rest,
        travel=float(np.abs(there[-1] - there[first]).max()),
        acceleration=_hardest(there[since:], limits.acceleration[index]),
        velocity=float((np.abs(velocity) / limits.velocity[index]).max(initial=0.0)),
        told_acceleration=_hardest(told[since:], limits.acceleration[index]),
        beyond=float(max(0.0, np.maximum(there - high, low - there).max())),
        outside=float(max(0.0, np.maximum(there - limits.upper[index], limits.lower[index] - there).max())),
    )


def _hardest(places: np.ndarray, limits: np.ndarray) -> float:
    """Return the largest acceleration on a way, as a share of limits."""
    acceleration = np.diff(places, n=2, axis=0) / _SECONDS**2
    return float((np.abs(acceleration) / limits).max(initial=0.0))
