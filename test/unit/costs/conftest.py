"""Robots and paths that costs are tested on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cost_cases import ROBOTS, smooth_path

from kinopt_ros.robot.model import RobotModel


@pytest.fixture(scope="session")
def robots() -> dict[str, RobotModel]:
    """The robots by name."""
    return {name: made[0]() for name, made in ROBOTS.items()}


@pytest.fixture(scope="session")
def paths(robots: dict[str, RobotModel]) -> dict[str, np.ndarray]:
    """A smooth path for each."""
    return {name: smooth_path(robot) for name, robot in robots.items()}


@pytest.fixture(scope="session")
def pin() -> Any:
    """Pinocchio, if it is installed."""
    return pytest.importorskip("pinocchio")
