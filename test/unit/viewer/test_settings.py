"""Sliders: one table of names, ranges and defaults."""

import math

import pytest

from kinopt_ros.errors import InvalidRequestError, UnknownNameError
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.trajectory import CostWeights
from kinopt_ros.viewer.settings import SETTINGS, Settings


def test_defaults_are_the_librarys() -> None:
    settings = Settings()
    assert settings.pose_weights == PoseWeights()
    assert settings.cost_weights == CostWeights()
    for setting in SETTINGS:
        assert setting.check(setting.default) == setting.default


def test_all_ranges_can_be_asked() -> None:
    for end in ("minimum", "maximum"):
        settings = Settings()
        for setting in SETTINGS:
            settings.set(setting.name, getattr(setting, end))
        assert settings.pose_weights.all
        assert settings.cost_weights.smoothness >= 0.0


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, 1e9])
def test_what_is_out_of_range_is_refused(value: float) -> None:
    settings = Settings()
    with pytest.raises(InvalidRequestError, match=r"allowed is 0.01 to 1"):
        settings.set("velocity_scaling", value)
    assert settings["velocity_scaling"] == 0.1


def test_reset_sets_all_to_their_defaults() -> None:
    settings = Settings()
    settings.set("cost_jerk", 7.0)
    settings.set("clearance", 0.02)
    settings.reset()
    assert all(settings[setting.name] == setting.default for setting in SETTINGS)
    with pytest.raises(UnknownNameError, match="jork"):
        settings.set("jork", 1.0)
