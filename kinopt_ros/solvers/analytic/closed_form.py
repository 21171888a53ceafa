"""Closed forms of chains, found and tried by themselves; or why there is none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import quoted
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.refold import refold
from kinopt_ros.kinematics.search_ranges import variable_rows
from kinopt_ros.robot.chain import KinematicChain, Motion
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import shortest
from kinopt_ros.solvers.analytic.redundancy import is_redundant
from kinopt_ros.solvers.analytic.rounding import Axes, axes_of, rounded
from kinopt_ros.solvers.kernels.layout import COLUMN, KIND_SIZE

MOST_JOINTS = 6
_NAMES = {
    "THREE_PARALLEL": "three parallel axes",
    "THREE_INNER_PARALLEL": "three parallel axes",
    "SPHERICAL": "three axes that meet",
}
"""Words for families of 6R arms, by the beginning of EAIK's name."""
_TRIALS = 32
"""Configurations that a closed form is tried with."""
_MOST_MISSED = 3
"""Trials that may fail: a random configuration may lie beside a singular one."""
_ROUNDING = 1e-9
"""Tilt (rad) and gap (m) of axes that are where they are meant to be."""
_SAME = 0.1
"""Largest difference from the configuration of a trial, rad: axes may have been moved a little."""

Claims = Callable[[Annotated[Float64, "4 4"]], Annotated[Float64, "n N"]]


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """A chain that has one, packed for ``kernels/branches.py``.

    ``numbers``: base, tip and motions as ``kinematics.refold`` has them, limits and periods of the variables, and per
    motion factor and addend that make a value of its variable of an angle of the closed form. ``shape``: rows of the
    motions' kinds, see ``solvers.kernels.layout``.
    """

    name: str
    """What makes it one, in words."""
    claims: Claims
    """Returns angles that may bring the tip to a pose, a column for each claim."""
    numbers: Annotated[Float64, "len"]
    shape: Annotated[Int64, "len"]
    variables: Annotated[Int64, "n"]
    """Indices in the robot's q."""


@dataclass(frozen=True, eq=False)
class NoClosedForm:
    """A chain that has none."""

    sentence: str
    """Which chain, why, and what to take instead, as the rest of a sentence about the solver."""
    variables: Annotated[Int64, "n"]
    """Indices in the robot's q."""


def closed_form(
    robot: RobotModel, chain: KinematicChain, tilt: float, gap: float
) -> ClosedForm | NoClosedForm:
    """Find the closed form of a chain, if it has one.

    Args:
        robot: the robot.
        chain: what moves the tip, held joints folded away.
        tilt: angle up to which axes count as parallel, rad.
        gap: distance at which axes that pass each other count as meeting, m.
    """
    reason = _not_simple(robot, chain)
    if reason:
        return _none(chain, reason)
    reason = "three neighbouring axes have to be parallel, or the first or last three have to meet in a point"
    given, T_tip = axes_of(chain)
    for most_tilt, most_gap in ((_ROUNDING, _ROUNDING), (tilt, gap)):
        axes, sign = rounded(given, most_tilt, most_gap)
        if is_redundant(axes, T_tip[:3, 3]):
            return _none(chain, "they can move while the tip rests, as with four parallel axes")
        known = _family(axes, sign, T_tip)
        if known is None:
            continue
        form = _packed(robot, chain, *known)
        missed = _missed(form, chain)
        if missed <= _MOST_MISSED:
            return form
        reason = f"that for {form.name} missed {missed} of {_TRIALS} configurations that it was tried with"
    return _none(chain, reason)


def _none(chain: KinematicChain, reason: str) -> NoClosedForm:
    n = len(chain.variables)
    joints = "the joint" if n == 1 else f"the {n} joints"
    return NoClosedForm(
        f"has no closed form for {joints} from {quoted(chain.base_link)} to {quoted(chain.tip_link)}: {reason}; "
        "solver cpu takes any chain",
        chain.variables,
    )


def _packed(
    robot: RobotModel, chain: KinematicChain, name: str, claims: Claims, sign: Annotated[Float64, "n"]
) -> ClosedForm:
    base, tip, motions = refold(chain)
    lower, upper = robot.limits.lower[chain.variables], robot.limits.upper[chain.variables]
    variables = variable_rows(chain, lower, upper)
    parts = (base, tip, motions, variables, sign / chain.multiplier, -chain.offset / chain.multiplier)
    kinds = np.zeros((len(chain.motion), KIND_SIZE), dtype=np.int64)
    kinds[:, COLUMN] = chain.column
    return ClosedForm(
        name, claims, np.concatenate([part.reshape(-1) for part in parts]), kinds.reshape(-1), chain.variables
    )


def _not_simple(robot: RobotModel, chain: KinematicChain) -> str:
    """Return why a chain is not one of single revolute joints, six at most; empty if it is."""
    if len(chain.motion) == 0:
        return "nothing moves its tip"
    if (chain.motion != Motion.ROTATION).any():
        return "not all of them turn"
    names = [robot.variable_names[i] for i in chain.variables]
    for column, name in enumerate(names):
        if (chain.column == column).sum() > 1:
            return f"{name!r} turns more than one of its axes (a mimic joint follows it)"
    for column, multiplier in zip(chain.column.tolist(), chain.multiplier.tolist(), strict=True):
        if abs(multiplier) != 1.0:
            return f"its axis turns {multiplier:g} times as far as {names[column]!r} (a mimic joint)"
    if len(names) > MOST_JOINTS:
        return f"closed forms move {MOST_JOINTS} joints at most; lock {len(names) - MOST_JOINTS} of them"
    return ""


def _family(
    axes: Axes, sign: Annotated[Float64, "n"], T_tip: Annotated[Float64, "4 4"]
) -> tuple[str, Claims, Annotated[Float64, "n"]] | None:
    """Return name and closed form of an arm's family, and which way its axes point; None if EAIK knows none.

    Give it no redundant ones: by those it may end the process.
    """
    from eaik.pybindings.EAIK import Robot

    places = np.concatenate([np.zeros((1, 3)), axes.point, T_tip[None, :3, 3]])
    try:
        arm = Robot(axes.direction.T, np.diff(places, axis=0).T, T_tip[:3, :3], [], True)
    except RuntimeError:  # so it says that it cannot tell where axes meet
        return None
    family = str(arm.get_kinematic_family())
    if not arm.has_known_decomposition() or "Unknown" in family:
        return None
    return _in_words(family), _claims_of(arm, len(sign)), sign


def _in_words(family: str) -> str:
    joints, _, kind = family.partition("-")
    for beginning, words in _NAMES.items():
        if joints == "6R" and kind.startswith(beginning):
            return words
    return f"{joints[:-1]} revolute joints"


def _claims_of(arm: Any, num_joints: int) -> Claims:
    solve, none = arm.calculate_IK, np.empty((num_joints, 0))

    def claims(T_base_target: Annotated[Float64, "4 4"]) -> Annotated[Float64, "n N"]:
        # Whether EAIK calls some of them least-squares solutions makes no difference: where a pose is at the end of
        # the reach such a one can be within the tolerance, and what is not is found out.
        found = np.array(solve(T_base_target).Q.T, order="C")  # EAIK's own is read-only
        return found if found.size else none

    return claims


def _missed(form: ClosedForm, chain: KinematicChain) -> int:
    """Return how many random configurations are not among the claims for their own poses."""
    n = len(form.variables)
    scale, shift = form.numbers[-2 * n : -n], form.numbers[-n:]
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (_TRIALS, n))
    missed = 0
    for one, T in zip(q, chain_pose(chain, q), strict=True):
        claimed = scale[:, None] * form.claims(np.ascontiguousarray(T)) + shift[:, None]
        difference = shortest(claimed - one[chain.column][:, None], True)
        missed += not (np.abs(difference).max(axis=0) <= _SAME).any()
    return missed
