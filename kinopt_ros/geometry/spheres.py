"""Sets of balls."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Immutable, taken_over
from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.shapes import LARGEST


@dataclass(frozen=True, eq=False)
class SphereSet(Immutable):
    """Set of balls in one frame, metres. May be empty."""

    centers: Annotated[Float64, "N 3"]
    radii: Annotated[Float64, "N"]

    def __post_init__(self) -> None:
        if self.centers.shape != (len(self.radii), 3) or self.radii.ndim != 1:
            raise InvalidShapeError(
                f"centers {self.centers.shape} and radii {self.radii.shape} of spheres do not fit together; "
                "allowed are (N, 3) and (N,)"
            )
        if not (np.isfinite(self.centers).all() and np.isfinite(self.radii).all()):
            raise InvalidShapeError("spheres have values that are not finite")
        if len(self.radii) and (
            self.radii.min() <= 0.0 or max(self.radii.max(), np.abs(self.centers).max()) > LARGEST
        ):
            raise InvalidShapeError(
                f"spheres have radii from {self.radii.min():g} to {self.radii.max():g} m; allowed are radii above 0, "
                f"and no value above {LARGEST:g}"
            )
        taken_over(self, "centers", "radii")

    def contain(self, points: Annotated[Float64, "P 3"], margin: float = 0.0) -> Annotated[Bool, "P"]:
        """Check whether points are in one of the balls, or at most ``margin`` (m) outside."""
        inside = np.zeros(len(points), dtype=np.bool_)
        for center, radius in zip(self.centers, self.radii, strict=True):
            inside |= ((points - center) ** 2).sum(axis=1) <= (radius + margin) ** 2
        return inside
