"""Every installed and available plugin passes the conformance suite."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from kinopt_ros.conformance.ik import IkConformance
from kinopt_ros.solvers.hjcd.plugin import HjcdSolver
from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver

no_warp = pytest.mark.skipif(
    HjcdSolver.unavailable_reason() is not None, reason=str(HjcdSolver.unavailable_reason())
)


class TestCpu(IkConformance):
    solver = "cpu"
    minimum_success = 1.0
    targets = 500


@pytest.mark.skipif(
    JaxLmSolver.unavailable_reason() is not None, reason=str(JaxLmSolver.unavailable_reason())
)
class TestJaxLm(IkConformance):
    solver = "jax_lm"
    minimum_success = 1.0
    targets = 100
    options: ClassVar[Mapping[str, Any]] = {"groups": "", "batch_sizes": "16"}
    """Programs are compiled as tests need them, and few."""
    robots = ("continuous_and_prismatic", "with_mimic")
    """Six and seven revolute joints: test/ros/test_jax_lm.py and test/unit/solvers/jax_lm/."""


@no_warp
class TestHjcd(IkConformance):
    solver = "hjcd"
    minimum_success = 1.0
    targets = 100
    options: ClassVar[Mapping[str, Any]] = {"groups": "", "device": "cpu"}


@no_warp
@pytest.mark.slow  # kernels for three chains
class TestHjcdAsPublished(IkConformance):
    solver = "hjcd"
    minimum_success = 1.0
    targets = 20
    options: ClassVar[Mapping[str, Any]] = {"groups": "", "device": "cpu", "algorithm": "hjcd_ik"}
    robots = ("continuous_and_prismatic",)
