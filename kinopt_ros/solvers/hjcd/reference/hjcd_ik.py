"""Algorithm 2: HJCD-IK as a whole (Sec. IV)."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.solvers.hjcd.reference.arm import Arm
from kinopt_ros.solvers.hjcd.reference.noise import normal, uniform
from kinopt_ros.solvers.hjcd.reference.pj_ik import RefineSettings, pj_ik
from kinopt_ros.solvers.hjcd.reference.po_ccd import CoarseSettings, po_ccd
from kinopt_ros.solvers.hjcd.reference.residual import residual, score

STARTS, COARSE, COPIES, REFINE = range(4)
"""Kinds of random numbers: each takes a seed of its own."""


@dataclass(frozen=True)
class Selection:
    """Lines 3 to 8: who goes on. By the number of starts M, what the authors are known to use."""

    keep: int
    """Number K of the best starts that go on."""
    copies: int
    """Number floor(B / K) of copies of each; the first one is not perturbed."""
    noise: float
    """Standard deviation of the perturbation of the copies, as a part of each variable's range."""


def usual_selection(starts: int) -> Selection:
    """Return the schedule for a number of starts.

    Raises:
        InvalidRequestError: less than one start.
    """
    if starts < 1:
        raise InvalidRequestError(f"number of starts is {starts}; at least 1 is needed")
    for most, share, copies, noise in (
        (8, 1.0, 24, 0.25),
        (16, 0.5, 16, 0.25),
        (128, 0.2, 5, 0.15),
        (1024, 0.02, 5, 0.15),
        (2048, 0.01, 5, 0.15),
    ):
        if starts <= most:
            return Selection(max(1, round(share * starts)), copies, noise)
    return Selection(round(0.01 * starts), 2, 0.15)


@dataclass(frozen=True)
class HjcdSettings:
    """Parameters of Algorithms 2 to 4."""

    starts: int = 100
    """Number M of starts."""
    selection: Selection | None = None
    """Selection of those who go on; None for the usual one."""
    coarse: CoarseSettings = field(default_factory=CoarseSettings)
    refine: RefineSettings = field(default_factory=RefineSettings)


def stream(seed: int, kind: int) -> int:
    """Return the seed of one kind of random numbers."""
    return (seed * 4 + kind) & 0xFFFFFFFF


def hjcd_ik(
    arm: Arm, T_target: Annotated[Float64, "4 4"], settings: HjcdSettings, seed: int = 0
) -> Annotated[Float64, "B n"]:
    """Return refined candidates (rad, m), best first by ``residual.score``. None of them is verified.

    Args:
        arm: the chain and its limits.
        T_target: pose of its tip in its base.
        settings: see there.
        seed: same seed, same answer.
    """
    n = len(arm.lower)
    chosen = settings.selection or usual_selection(settings.starts)
    coarse = []
    for m in range(settings.starts):
        start = arm.sample_lower + arm.span * uniform(stream(seed, STARTS), m, 0, n)
        coarse.append(po_ccd(arm, T_target, start, settings.coarse, stream(seed, COARSE), m)[0])
    scores = score(residual(T_target, arm.poses(np.array(coarse))))
    kept = np.array(coarse)[np.argsort(scores, kind="stable")[: chosen.keep]]
    refined = []
    for copy in range(chosen.copies):
        for k, candidate in enumerate(kept):
            lane = copy * len(kept) + k
            start = candidate
            if copy:
                start = arm.clamped(
                    start + chosen.noise * arm.span * normal(stream(seed, COPIES), lane, 0, n)
                )
            refined.append(pj_ik(arm, T_target, start, settings.refine, stream(seed, REFINE), lane)[0])
    scores = score(residual(T_target, arm.poses(np.array(refined))))
    return np.array(refined)[np.argsort(scores, kind="stable")]
