"""Evaluation of costs at an answer in float64, by numpy and nothing that a solver uses."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.objectives.cost_error import CostError, blamed, where
from kinopt_ros.objectives.numpy_point import NumpyPath
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True)
class Term:
    """One cost at an answer."""

    title: str
    value: float
    """Sum of the squares of its weighted residual: its share of what is minimized."""
    residual: Annotated[Float64, "P m"]
    """Residual, unweighted, at each of P points, in the cost's units."""
    magnitude: Annotated[Float64, "k"]
    """The largest magnitudes over the points."""
    tolerance: Annotated[Float64, "k"] | None
    """What they may be at most; None: anything."""

    @property
    def met(self) -> bool:
        """Whether the cost holds, if it has to."""
        return self.tolerance is None or bool((self.magnitude <= self.tolerance).all())

    @property
    def ratio(self) -> float:
        """Largest share of a tolerance that is used up; above 1 it does not hold. 0 without a tolerance."""
        if self.tolerance is None:
            return 0.0
        used = self.magnitude / np.maximum(self.tolerance, 1e-300)
        return float(np.where(self.magnitude == 0.0, 0.0, used).max(initial=0.0))


def evaluate(
    robot: RobotModel, objective: Objective, q: Annotated[Float64, "T nq"], dt: float
) -> tuple[Term, ...]:
    """Evaluate all costs of an objective. Raises as ``evaluate_along`` does."""
    return evaluate_along(NumpyPath(robot, np.asarray(q, dtype=np.float64), dt), objective)


def evaluate_along(path: NumpyPath, objective: Objective) -> tuple[Term, ...]:
    """Evaluate all costs of an objective along a path.

    Raises:
        CostError: a cost raises, or its residual is no finite vector of one length.
    """
    return tuple(
        _term(path, cost, title, objective.points_of(cost, len(path)))
        for cost, title in zip(objective.costs, objective.titles, strict=True)
    )


def _term(path: NumpyPath, cost: Cost, title: str, points: tuple[int, ...]) -> Term:
    residuals = [residual_of(cost, title, path, t) for t in points]
    lengths = {len(residual) for residual in residuals}
    if len(lengths) > 1:
        raise CostError(
            f"{where(cost, title)} returned {min(lengths)} numbers at one point and {max(lengths)} at another"
        )
    residual = np.array(residuals)
    counted = np.maximum(residual, 0.0) if cost.one_sided else residual
    weighted = (np.asarray(cost.weight) * counted).ravel()
    return term_of(cost, title, residual, float(weighted @ weighted))


def term_of(cost: Cost, title: str, residual: Annotated[Float64, "P m"], value: float) -> Term:
    """Return what became of a cost whose residuals at P points, and their weighted sum of squares, are known.

    Raises:
        CostError: its magnitudes are no numbers of at least 0, or fewer or more than its tolerances.
    """
    magnitude = magnitudes_of(cost, title, residual)
    tolerance = None
    if cost.tolerance is not None:
        bounds = np.asarray(cost.tolerance, dtype=np.float64)
        if bounds.shape not in ((), magnitude.shape):
            raise CostError(
                f"{where(cost, title)} has {len(bounds)} tolerances for {len(magnitude)} magnitudes; allowed are 1, "
                "or one for each"
            )
        tolerance = np.broadcast_to(bounds, magnitude.shape)
    return Term(title, value, residual, magnitude, tolerance)


def magnitudes_of(cost: Cost, title: str, residual: Annotated[Float64, "P m"]) -> Annotated[Float64, "k"]:
    """Compute the largest magnitudes over P points; whatever the cost's code does wrong becomes a CostError."""
    with blamed(cost, title, "failed in magnitudes"):
        found = np.asarray(cost.magnitudes(residual), dtype=np.float64)
    if found.ndim != 2 or len(found) != len(residual) or not (found >= 0.0).all():
        raise CostError(
            f"{where(cost, title)} returned magnitudes of shape {found.shape} for residuals of shape "
            f"{residual.shape}; allowed are numbers of at least 0, one row for each point"
        )
    largest: Float64 = found.max(axis=0, initial=0.0)
    return largest


def residual_of(cost: Cost, title: str, path: NumpyPath, t: int) -> Annotated[Float64, "m"]:
    """Compute one residual; whatever the cost's code does wrong becomes a CostError."""
    with blamed(cost, title):
        residual = np.asarray(cost.residual(path[t]))
    if residual.ndim != 1 or residual.dtype.kind not in "fiu":
        raise CostError(
            f"{where(cost, title)} returned an array of shape {residual.shape} and type {residual.dtype}; "
            "allowed is a vector of numbers"
        )
    weight = np.shape(cost.weight)
    if weight not in ((), residual.shape):
        raise CostError(
            f"{where(cost, title)} has {weight[0]} weights for a residual of {len(residual)} numbers"
        )
    if not np.isfinite(residual).all():
        raise CostError(
            f"{where(cost, title)} returned {residual[~np.isfinite(residual)][0]}, which is not finite"
        )
    return residual.astype(np.float64)
