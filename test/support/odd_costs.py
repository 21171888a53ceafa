"""Costs as users write them, with what goes wrong in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.point import Point


@dataclass(frozen=True, eq=False, kw_only=True)
class Height(Cost):
    """Height of a link: the least is lowest."""

    name: ClassVar[str] = "height"
    formula: ClassVar[str] = "r = z - wanted"
    units: ClassVar[str] = "m"

    link: str
    wanted: float = 0.0

    def residual(self, point: Point) -> Annotated[Any, "1"]:
        """Compute the height beyond what is wanted."""
        return point.pose(self.link)[2:3, 3] - self.wanted


@dataclass(frozen=True, eq=False, kw_only=True)
class Odd(Cost):
    """Does what ``what`` says."""

    name: ClassVar[str] = "odd"
    formula: ClassVar[str] = "r = whatever"
    units: ClassVar[str] = "1"

    what: str

    def residual(self, point: Point) -> Any:
        """Do something wrong."""
        xp = point.xp
        match self.what:
            case "raises":
                raise RuntimeError("no such thing")
            case "exits":
                raise SystemExit(3)
            case "branches":
                return point.q[:1] if point.q[0] > 0.0 else -point.q[:1]
            case "matrix":
                return xp.zeros((2, 2))
            case "number":
                return xp.asarray(1.0)
            case "flags":
                return point.q[:1] > 0.0
            case "complex":
                return 1j * point.q[:1]
            case "text":
                return "one"
            case "nan":
                return xp.sqrt(xp.asarray([-1.0]) - point.q[:1] ** 2)
            case "nan somewhere":
                return xp.log(point.q[:1] + 0.5)
            case "longer":
                return xp.zeros(2 + (point.index if isinstance(point.index, int) else 0))
            case "numpy alone":
                return np.asarray(point.q)[:2]
        return point.q[:2]

    def magnitudes(self, residual: Annotated[Float64, "... m"]) -> Annotated[Float64, "... k"]:
        """Return what tolerances bound, or something wrong."""
        if self.what == "magnitudes raise":
            raise RuntimeError("no magnitude")
        if self.what == "magnitudes nan":
            return np.full_like(residual, np.nan)
        if self.what == "magnitudes short":
            return np.zeros(3)
        return super().magnitudes(residual)
