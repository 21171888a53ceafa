"""Algorithm 3: PO-CCD, greedy coordinate descent on position and orientation (Sec. IV-A)."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.solvers.hjcd.reference.arm import Arm
from kinopt_ros.solvers.hjcd.reference.coordinate_steps import annealed, orientation_steps, position_steps
from kinopt_ros.solvers.hjcd.reference.noise import normal
from kinopt_ros.solvers.hjcd.reference.residual import norms, residual

TIE = 1e-5
"""A later variable is better only if it is by this much (m or rad): parallel axes turn the tip alike, and who wins
shall not be a matter of rounding."""


@dataclass(frozen=True)
class CoarseSettings:
    """Parameters of Algorithm 3; the paper gives no numbers, these are what the authors are known to use."""

    iterations: int = 20
    position: float = 0.02
    """Position error that is good enough to end, epsilon, m."""
    orientation: float = 0.5 * float(np.pi)
    """Orientation error that is good enough to end, nu, rad."""
    gain: float = 1e-5
    """Least improvement of an accepted step, gamma, m or rad."""
    noise: float = 0.05
    """Standard deviation of the perturbation, as a part of each variable's range."""
    turn: float = float(np.radians(15.0))
    """Largest change of a rotation per step, rad."""


def po_ccd(
    arm: Arm,
    T_target: Annotated[Float64, "4 4"],
    q: Annotated[Float64, "n"],
    settings: CoarseSettings,
    seed: int = 0,
    lane: int = 0,
) -> tuple[Annotated[Float64, "n"], int]:
    """Bring one start near to the target.

    In every iteration all variables try their position step and their orientation step; the best of each kind are made,
    or the larger one if they are of the same variable. Line 11 prints a change that exceeds gamma, the text says
    improvement: of the position or of the orientation. Without one the start is perturbed. It ends by itself: other
    starts have no part in it, so that the answer does not depend on who is first.

    Args:
        arm: the chain and its limits.
        T_target: pose of its tip in its base.
        q: start (rad, m); brought inside the limits.
        settings: see there.
        seed: of the perturbations.
        lane: number of this start; every one has its own perturbations.

    Returns:
        The configuration, and how many iterations were made.
    """
    q = arm.clamped(q)
    n = len(q)
    largest = np.where(arm.turns, settings.turn, np.inf)
    for k in range(settings.iterations):
        r = residual(T_target, arm.poses(q))
        r_p, r_o = norms(r)
        if r_p < settings.position and r_o < settings.orientation:
            return q, k
        steps = np.stack(
            [
                position_steps(arm, q, T_target[:3, 3]),
                orientation_steps(arm, q, r[3:], annealed(k, settings.iterations)),
            ]
        )
        targets = arm.clamped(q + np.clip(steps, -largest, largest))
        trials = np.tile(q, (2, n, 1))
        trials[:, np.arange(n), np.arange(n)] = targets
        distance, angle = norms(residual(T_target, arm.poses(trials)))
        best_p, best_o = _least(distance[0]), _least(angle[1])
        stepped = q.copy()
        stepped[best_p] = targets[0, best_p]
        if best_o != best_p or abs(targets[1, best_o] - q[best_o]) > abs(targets[0, best_p] - q[best_p]):
            stepped[best_o] = targets[1, best_o]
        new_p, new_o = norms(residual(T_target, arm.poses(stepped)))
        if r_p - new_p > settings.gain or r_o - new_o > settings.gain:
            q = stepped
        else:
            q = arm.clamped(q + settings.noise * arm.span * normal(seed, lane, k, n))
    return q, settings.iterations


def _least(values: Annotated[Float64, "n"]) -> int:
    """Return the index of the least value; of the first one where it is a tie."""
    best = 0
    for j in range(1, len(values)):
        if values[j] < values[best] - TIE:
            best = j
    return best
