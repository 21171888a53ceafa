"""The numbers that sliders set: tolerances, weights, scalings. One table, from which page, reset and checks follow."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from kinopt_ros.errors import InvalidRequestError, UnknownNameError, shown
from kinopt_ros.problems.ik import ORIENTATION_TOLERANCE, POSITION_TOLERANCE
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.trajectory import CostWeights

SOLVING, NEAREST, PLANNING = "Tolerances", "As near as possible", "Plan"
"""Folders of the page."""
COSTS = tuple(cost.name for cost in fields(CostWeights))
"""Costs of motions; the setting of each is called ``cost_<name>``."""


@dataclass(frozen=True)
class Setting:
    """A number to set."""

    name: str
    label: str
    folder: str
    default: float
    minimum: float
    maximum: float
    step: float
    unit: float = 1.0
    """One of what the label says, in the library's units (m, rad, s)."""

    def check(self, value: object) -> float:
        """Return a value in the library's units, if it is allowed; InvalidRequestError if not."""
        if not isinstance(value, int | float) or not self.minimum <= value <= self.maximum:
            raise InvalidRequestError(
                f"{self.name} is {shown(value)}; allowed is {self.minimum:g} to {self.maximum:g}"
            )
        return float(value)


class UnknownSettingError(UnknownNameError):
    """A setting that there is not."""

    kind = "setting"


def _shown(
    name: str,
    label: str,
    folder: str,
    default: float,
    low: float,
    high: float,
    step: float,
    unit: float = 1.0,
) -> Setting:
    """Return a setting from numbers as the page shows them, but for the default."""
    return Setting(name, label, folder, default, low * unit, high * unit, step * unit, unit)


_MILLI = 1e-3
_WEIGHTS = PoseWeights()
assert isinstance(_WEIGHTS.position, float)
assert isinstance(_WEIGHTS.orientation, float)

SETTINGS: tuple[Setting, ...] = (
    _shown("position_tolerance", "position, mm", SOLVING, POSITION_TOLERANCE, 0.01, 20.0, 0.01, _MILLI),
    _shown("orientation_tolerance", "angle, mrad", SOLVING, ORIENTATION_TOLERANCE, 0.1, 200.0, 0.1, _MILLI),
    _shown("clearance", "clearance, mm", SOLVING, 0.0, 0.0, 100.0, 1.0, _MILLI),
    _shown("timeout", "time to solve, ms", SOLVING, 0.1, 10.0, 2000.0, 10.0, _MILLI),
    _shown("manipulability_weight", "manipulability", SOLVING, 0.0, 0.0, 100.0, 0.01),
    _shown("position_weight", "position, 1/m", NEAREST, _WEIGHTS.position, 0.01, 100.0, 0.01),
    _shown("orientation_weight", "angle, 1/rad", NEAREST, _WEIGHTS.orientation, 0.01, 100.0, 0.01),
    _shown("velocity_scaling", "velocity scaling", PLANNING, 0.1, 0.01, 1.0, 0.01),
    _shown("acceleration_scaling", "acceleration scaling", PLANNING, 0.1, 0.01, 1.0, 0.01),
    _shown("planning_time", "time to plan, s", PLANNING, 10.0, 1.0, 60.0, 1.0),
    *(
        _shown(f"cost_{name}", f"{name} cost", PLANNING, getattr(CostWeights(), name), 0.0, 100.0, 0.01)
        for name in COSTS
    ),
)


class Settings:
    """Values of all settings, in the library's units. Not changed by anything but ``set`` and ``reset``."""

    def __init__(self) -> None:
        self._table: Mapping[str, Setting] = MappingProxyType({setting.name: setting for setting in SETTINGS})
        self._values = {setting.name: setting.default for setting in SETTINGS}

    def __getitem__(self, name: str) -> float:
        self._known(name)
        return self._values[name]

    def set(self, name: str, value: float) -> None:
        """Set a value; UnknownSettingError or InvalidRequestError if that is not possible."""
        self._values[name] = self._known(name).check(value)

    def reset(self) -> None:
        """Set all values to their defaults."""
        self._values = {setting.name: setting.default for setting in SETTINGS}

    @property
    def pose_weights(self) -> PoseWeights:
        """Weights of what is as near as possible."""
        return PoseWeights(self["position_weight"], self["orientation_weight"])

    @property
    def cost_weights(self) -> CostWeights:
        """Weights of the costs of motions."""
        return CostWeights(**{name: self[f"cost_{name}"] for name in COSTS})

    def _known(self, name: str) -> Setting:
        if name not in self._table:
            raise UnknownSettingError(name, self._table)
        return self._table[name]
