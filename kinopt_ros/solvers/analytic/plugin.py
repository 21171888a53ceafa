"""The ``analytic`` plugin: all solutions of arms that have closed forms. Importing this module imports neither EAIK nor
numba."""

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar

from kinopt_ros.errors import UnsupportedFeatureError, quoted
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.index import IndexPreference
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers.analytic.closed_form import MOST_JOINTS, ClosedForm, NoClosedForm, closed_form
from kinopt_ros.solvers.base import Capabilities, Feature, Option, Solver
from kinopt_ros.solvers.locked_joints import (
    DEFAULT_GROUP,
    Prepared,
    PreparedChains,
    group_chain,
    named_groups,
    solve_in_parts,
)
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.version import package_version


class AnalyticSolver(Solver):
    """All solutions of arms of up to six revolute joints that have closed forms, by EAIK.

    Source: D. Ostermeier, J. Külz, M. Althoff, "Automatic Geometric Decomposition for Analytical Inverse Kinematics",
    IEEE Robotics and Automation Letters 10 (2025).

    The closed form of a chain is found when it is first asked for, and tried. What it claims is turned into the joint
    limits and polished; a problem's state and seeds are claims, too, which matters where a pose is singular and has
    infinitely many solutions. Chains without a closed form are refused by name.
    """

    name: ClassVar[str] = "analytic"
    version: ClassVar[str] = package_version()
    capabilities: ClassVar[Capabilities] = Capabilities(
        joint_types=frozenset({JointType.REVOLUTE, JointType.CONTINUOUS}),
        features=frozenset(
            {
                Feature.SEVERAL_SOLUTIONS,
                Feature.TOOL,
                Feature.POSTURE,
                Feature.TURNS,
                Feature.MANIPULABILITY,
            }
        ),
        max_variables=MOST_JOINTS,
        indices=(IndexPreference,),
    )
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "tilt",
            2e-3,
            "Angle, rad, up to which neighbouring axes count as parallel in search of a closed form; answers are "
            "polished for the axes as they are",
            0.0,
            0.02,
        ),
        Option(
            "gap",
            1e-3,
            "Distance, m, up to which neighbouring axes that pass each other count as meeting; as above",
            0.0,
            0.02,
        ),
        Option(
            "groups",
            DEFAULT_GROUP,
            "Groups that must have closed forms, separated by commas, or the solver is refused when the robot is "
            "loaded; default: the group that requests mean which name none; empty: none, so that what a request asks "
            "for decides, as for arms of seven joints of which requests lock one",
        ),
    )
    prompt: ClassVar[bool] = True

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Return why the plugin cannot run here; None if it can."""
        for package in ("eaik", "numba"):
            if find_spec(package) is None:
                return f"the package {package} is not installed (pip install {package})"
        return None

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        tilt, gap = options["tilt"], options["gap"]
        for group in named_groups(robot, options["groups"]):
            _require(robot, group, tilt, gap)

        from kinopt_ros.solvers.analytic.kernels import branches  # noqa: F401  (compiles, or loads what was compiled)

        self._forms: PreparedChains[ClosedForm | NoClosedForm] = PreparedChains(
            robot, lambda chains: closed_form(robot, chains[0], tilt, gap)
        )

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        return self._solved(problem, problem.preference is not None and problem.preference.index is not None)

    def _solve_pool(self, problem: IkProblem) -> IkCandidates:
        return self._solved(problem, True)

    def _solved(self, problem: IkProblem, every: bool) -> IkCandidates:
        return solve_in_parts(problem, self._forms, partial(self._part, every))

    def _part(
        self, every: bool, problem: IkProblem, prepared: Prepared[ClosedForm | NoClosedForm]
    ) -> IkCandidates:
        """Solve requests with the same held values."""
        from kinopt_ros.solvers.analytic.solve import solve

        form = prepared.packed
        if isinstance(form, NoClosedForm):
            raise UnsupportedFeatureError(f"solver {self.name} {form.sentence}")
        return solve(problem, form, prepared, self.robot, every)


def _require(robot: RobotModel, group: str, tilt: float, gap: float) -> None:
    """Raise UnsupportedFeatureError unless the plain requests of a group have a closed form."""
    chain = group_chain(robot, group)
    if chain is None:
        raise UnsupportedFeatureError(
            f"solver {AnalyticSolver.name} cannot serve group {quoted(group)}, which has no tip or does not move it"
        )
    form = closed_form(robot, chain, tilt, gap)
    if isinstance(form, NoClosedForm):
        raise UnsupportedFeatureError(
            f"solver {AnalyticSolver.name} {form.sentence} (asked for by its option groups, for group {quoted(group)})"
        )
