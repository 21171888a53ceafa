"""Every installed and available plugin passes the conformance suite."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import pytest

from kinopt_ros.conformance.ik import IkConformance
from kinopt_ros.conformance.robots import three_parallel
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.analytic.plugin import AnalyticSolver
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
    AnalyticSolver.unavailable_reason() is not None, reason=str(AnalyticSolver.unavailable_reason())
)
class TestAnalytic(IkConformance):
    solver = "analytic"
    minimum_success = 1.0
    targets = 500
    options: ClassVar[Mapping[str, Any]] = {"groups": ""}
    """Some tests configure a solver for a robot that they ask nothing of."""
    robots = ("six_revolute",)
    """The others have seven joints or mimic joints, which have no closed form."""


class TestAnalyticThreeParallel(TestAnalytic):
    @pytest.fixture
    def robot(self) -> RobotModel:
        """The other kind of arm that has one."""
        return three_parallel()


class FewPrograms:
    """Leaves out tests that say what others say, of a plugin that compiles for each of them."""

    one_robot: ClassVar[Collection[str]] = ()
    """Tests of which the first robot is enough."""
    one_of_each: ClassVar[Mapping[str, Collection[object]]] = {}
    """Parameter -> the values that are used."""

    @pytest.fixture(autouse=True)
    def few_where_each_costs_programs(self, request: pytest.FixtureRequest) -> None:
        """Leave out what ``one_robot`` and ``one_of_each`` say."""
        asked = request.node.callspec.params if hasattr(request.node, "callspec") else {}
        if request.function.__name__ in self.one_robot and asked["robot"] == "with_mimic":
            pytest.skip("one robot shows it")
        for name, few in self.one_of_each.items():
            if name in asked and asked[name] not in few:
                pytest.skip("others show it")


@pytest.mark.skipif(
    JaxLmSolver.unavailable_reason() is not None, reason=str(JaxLmSolver.unavailable_reason())
)
class TestJaxLm(FewPrograms, IkConformance):
    solver = "jax_lm"
    minimum_success = 1.0
    targets = 100
    options: ClassVar[Mapping[str, Any]] = {"groups": "", "batch_sizes": "16", "escalation.rounds": 0}
    """Programs are compiled as tests need them, and few: beams alone solve all that can be reached here."""
    robots = ("continuous_and_prismatic", "with_mimic")
    """Six and seven revolute joints: test/ros/test_jax_lm.py and test/unit/solvers/jax_lm/."""
    one_robot: ClassVar[Collection[str]] = (
        "test_a_tool_reaches_the_target",
        "test_every_axis_has_its_own_tolerance",
        "test_free_axes_are_free_and_the_others_are_not",
        "test_held_joints_stay",
        "test_objectives_are_solved_or_refused_by_name",
        "test_targets_in_another_base",
        "test_what_is_not_declared_is_refused_by_name",
    )
    """Of tools, rows and costs, each with programs of its own, in which joints are not told apart. What moves is
    told apart by all other tests, of both robots."""

    one_of_each: ClassVar[Mapping[str, Collection[object]]] = {
        "freed": (("rz",), ("x",)),
        "locked": ((), ("base/theta",)),
    }
    """Of what is free one rotation and one translation, of what is locked a rotation or nothing: each has a program of
    its own, of the same code. ``test/unit/solvers/jax_lm/test_forward.py`` has the formulas of others."""


@no_warp
class TestHjcd(IkConformance):
    solver = "hjcd"
    minimum_success = 1.0
    targets = 100
    options: ClassVar[Mapping[str, Any]] = {"groups": "", "device": "cpu"}


class OnCuda:
    """Tests that need a CUDA device."""

    @pytest.fixture(scope="class", autouse=True)
    def there_is_a_cuda_device(self) -> None:
        """Skip where there is none."""
        import warp

        if warp.get_cuda_device_count() == 0:
            pytest.skip("no CUDA device here: hjcd on GPUs is untested")


@no_warp
@pytest.mark.slow  # kernels for four chains
class TestHjcdOnCuda(OnCuda, IkConformance):
    solver = "hjcd"
    minimum_success = 1.0
    targets = 100
    options: ClassVar[Mapping[str, Any]] = {"groups": "", "device": "cuda"}


@no_warp
@pytest.mark.slow
class TestHjcdOnCudaByGraphs(OnCuda, IkConformance):
    solver = "hjcd"
    minimum_success = 1.0
    targets = 100
    options: ClassVar[Mapping[str, Any]] = {"groups": "", "device": "cuda", "graphs": True}
    robots = ("seven_revolute",)


@no_warp
@pytest.mark.slow
class TestHjcdAsPublishedOnCuda(OnCuda, IkConformance):
    solver = "hjcd"
    minimum_success = 1.0
    targets = 20
    options: ClassVar[Mapping[str, Any]] = {"groups": "", "device": "cuda", "algorithm": "hjcd_ik"}
    robots = ("continuous_and_prismatic",)


@no_warp
@pytest.mark.slow  # kernels for three chains
class TestHjcdAsPublished(FewPrograms, IkConformance):
    solver = "hjcd"
    minimum_success = 1.0
    targets = 20
    options: ClassVar[Mapping[str, Any]] = {"groups": "", "device": "cpu", "algorithm": "hjcd_ik"}
    robots = ("continuous_and_prismatic",)
    one_of_each: ClassVar[Mapping[str, Collection[object]]] = {"locked": ((),)}
    """How joints are locked is no matter of the algorithm: TestHjcd has all of them."""
