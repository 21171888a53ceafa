"""The ``cpu`` plugin: float64, microseconds per solve. Importing this module does not import numba."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import NotReadyError, UnsupportedFeatureError
from kinopt_ros.kinematics.angled_robot import angled_robot
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveCandidates
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.index import IndexPreference
from kinopt_ros.problems.rows import rows_of
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import Joint, JointType, RobotModel
from kinopt_ros.robot.variables import quaternion_columns
from kinopt_ros.solvers.base import Capabilities, Feature, Option, Solver
from kinopt_ros.solvers.cpu.climb import climbed
from kinopt_ros.solvers.cpu.floating import closed_form_joint, floating_joints, solve_floating
from kinopt_ros.solvers.cpu.floating_angles import filled_in, solve_by_angles
from kinopt_ros.solvers.cpu.objectives.kinds import KINDS
from kinopt_ros.solvers.cpu.objectives.solve import ObjectiveSearch
from kinopt_ros.solvers.cpu.objectives.solve import load_or_compile as load_or_compile_objectives
from kinopt_ros.solvers.cpu.plain import solve_plain
from kinopt_ros.solvers.cpu.search import Cores
from kinopt_ros.solvers.cpu.several import solve_several
from kinopt_ros.solvers.failures import hopeless_requests
from kinopt_ros.solvers.locked_joints import solve_in_parts
from kinopt_ros.solvers.paths import PathCandidates, PathRequest, Report
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.version import package_version

if TYPE_CHECKING:
    from kinopt_ros.solvers.cpu.quick import ChainIk

NEAREST_STARTS = 14
"""Starts of a search of what is as near as possible: more find less and less."""


class CpuSolver(Solver):
    """Damped least squares from many seeds, compiled with numba.

    Attempts of a request in order: the problem's state, its seeds, the nearest of a table of configurations with
    known tip poses, random configurations. The first that succeeds is the answer, unless several solutions or a
    preferred one are asked for; joints that could make full turns take the turn nearest to the state. A floating joint
    has a closed form; where that does not do, angles take the place of its quaternion. What is as near as possible is
    searched downhill from many starts.
    """

    name: ClassVar[str] = "cpu"
    version: ClassVar[str] = package_version()
    capabilities: ClassVar[Capabilities] = Capabilities(
        joint_types=frozenset(JointType) - {JointType.FIXED},
        features=frozenset(Feature),
        max_variables=64,
        indices=(IndexPreference,),
        objective_costs=frozenset(KINDS),
        objective_points=1,
    )
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "max_restarts",
            1500,
            "Random restarts per request after its seeds and the table of seeds; bounds the time spent on "
            "targets that cannot be reached",
            0,
            1_000_000,
        ),
        Option(
            "branch_attempts",
            300,
            "Random restarts per request for several solutions, as long as some are missing",
            0,
            1_000_000,
        ),
        Option(
            "nearest_starts",
            NEAREST_STARTS,
            "Configurations that a search of what is as near as possible begins from, besides state and seeds",
            1,
            1000,
        ),
        Option("threads", 0, "Threads that share large batches; 0: as many as the process has cores", 0, 256),
    )
    prompt: ClassVar[bool] = True
    finds_poses: ClassVar[bool] = True

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Return why the plugin cannot run here; None if it can."""
        if find_spec("numba") is None:
            return "the package numba is not installed (pip install numba)"
        return None

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        from kinopt_ros.solvers.cpu import nearest
        from kinopt_ros.solvers.cpu.kernels import plain  # noqa: F401  (compiles, or loads what was compiled before)
        from kinopt_ros.solvers.cpu.prepared import prepared_chains, prepared_trees

        self._max_restarts: int = options["max_restarts"]
        self._branch_attempts: int = options["branch_attempts"]
        self._nearest_starts: int = options["nearest_starts"]
        self._chains = prepared_chains(robot, self._max_restarts)
        self._trees = prepared_trees(robot)
        self._cores = Cores(options["threads"])
        self._objectives = ObjectiveSearch(robot, self._cores)
        _load_general()
        nearest.load_or_compile(may_compile=False)
        load_or_compile_objectives(may_compile=False)

    def warm_up(self) -> None:
        """Compile what requests beyond the plain kind need, if it was not compiled on this machine before."""
        from kinopt_ros.solvers.cpu import nearest

        self.warm_up_motions()
        nearest.load_or_compile(may_compile=True)
        load_or_compile_objectives(may_compile=True)

    def warm_up_motions(self) -> None:
        """Compile what motions need: a third less, on a new machine, than all."""
        from kinopt_ros.solvers.cpu.paths.compiling import load_or_compile
        from kinopt_ros.trajectory import path_timing

        _compile_general()
        load_or_compile(may_compile=True)
        path_timing.warm_up()

    def close(self) -> None:
        """Release what the solver holds. It cannot be used afterwards."""
        if self._robot is not None:
            self._cores.close()
        super().close()

    def _solve_objective(self, problem: ObjectiveProblem) -> ObjectiveCandidates:
        if not load_or_compile_objectives(may_compile=problem.deadline is None):
            raise NotReadyError(
                f"objectives have to be compiled once per machine for solver {self.name}, which no deadline waits for; "
                "call its warm_up() before"
            )
        return self._objectives.solve(problem)

    def _prepare_objective(self, problem: ObjectiveProblem) -> None:
        load_or_compile_objectives(may_compile=True)

    def chain_ik(self, base_link: str, tip_link: str, held: Mapping[int, float] | None = None) -> "ChainIk":
        """Return the quick path to one unverified answer per call; ``held`` as in ``build_chain``."""
        from kinopt_ros.solvers.cpu.prepared import whole_chain
        from kinopt_ros.solvers.cpu.quick import ChainIk

        return ChainIk(whole_chain(self.robot, base_link, tip_link, held, self._max_restarts))

    def _optimize_trajectory(
        self, problem: TrajectoryProblem, request: PathRequest, report: Report | None
    ) -> PathCandidates:
        from kinopt_ros.solvers.cpu.paths.optimize import optimize_paths

        return optimize_paths(self.robot, problem, request, report)

    def path_scores(
        self, problem: TrajectoryProblem, paths: Annotated[Float64, "S T n"], margin: float
    ) -> Annotated[Float64, "S"]:
        """Score how hopeful it is to begin from paths, the less the better; see ``paths.optimize.path_scores``."""
        from kinopt_ros.solvers.cpu.paths.optimize import path_scores

        return path_scores(self.robot, problem, paths, margin)

    def rough_path(
        self,
        problem: TrajectoryProblem,
        ends: Annotated[Float64, "G n"],
        margin: float,
        looks: int,
        seed: int,
        go_on: Callable[[], bool],
    ) -> Annotated[Float64, "K n"] | None:
        """Search a path that seems free to begin from; return its corners, or None; see ``paths.rough_path``."""
        from kinopt_ros.solvers.cpu.paths.rough_path import rough_path

        return rough_path(self.robot, problem, ends, margin, looks, seed, go_on)

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        robot = self.robot
        if problem.nearest:
            return self._nearest(problem, several=False)
        floating = floating_joints(problem, robot) if robot.floating_joints else []
        if floating:
            return self._with_floating_joints(problem, floating)
        plain = _plain_tolerances(problem)
        if plain is not None:
            return solve_in_parts(
                problem,
                self._chains,
                lambda part, prepared: solve_plain(
                    part, plain, prepared, robot, self._max_restarts, self._cores
                ),
            )
        index = None if problem.preference is None else problem.preference.index
        if index is not None:
            return climbed(problem, index, robot, self._solve_ik)
        if problem.deadline is None:
            _compile_general()
        elif not _ready:
            raise NotReadyError(
                "several links, tolerances per axis, several solutions and postures have to be compiled once per "
                f"machine for solver {self.name}, which no deadline waits for; call its warm_up() before"
            )
        return solve_in_parts(
            problem,
            self._trees,
            lambda part, prepared: solve_several(
                part,
                prepared,
                robot,
                self._max_restarts,
                self._branch_attempts,
                partial(hopeless_requests, robot, part),
                self._cores,
            ),
        )

    def _with_floating_joints(self, problem: IkProblem, floating: list[Joint]) -> IkCandidates:
        """Solve in closed form where there is one, else by angles instead of quaternions."""
        robot = self.robot
        closed = closed_form_joint(problem, floating)
        found, missing = None, np.arange(problem.batch_size)
        if closed is not None:
            found = solve_floating(problem, robot, closed)
            missing = np.flatnonzero(np.isnan(found.q).any(axis=2).min(axis=1))
            if not len(missing) or len(problem.variables) == 7:
                return found
        angled = angled_robot(robot)
        by_angles = solve_by_angles(
            rows_of(problem, missing),
            angled,
            quaternion_columns(robot, problem.variables),
            self.for_robot(angled.robot)._solve_ik,
        )
        return by_angles if found is None else filled_in(found, missing, by_angles)

    def _solve_pool(self, problem: IkProblem) -> IkCandidates:
        return self._nearest(problem, several=True) if problem.nearest else self._solve_ik(problem)

    def _nearest(self, problem: IkProblem, several: bool) -> IkCandidates:
        """Return the nearest configurations found, or if ``several`` all that attempts ended with."""
        from kinopt_ros.solvers.cpu.nearest import load_or_compile, solve_nearest

        floating = floating_joints(problem, self.robot) if self.robot.floating_joints else []
        if floating:
            raise UnsupportedFeatureError(
                f"solver {self.name} does not solve for the floating joint {floating[0].name!r} where targets have "
                "weights; lock it"
            )
        if not load_or_compile(may_compile=problem.deadline is None):
            raise NotReadyError(
                "searching what is as near as possible has to be compiled once per machine for solver "
                f"{self.name}, which no deadline waits for; call its warm_up() before"
            )
        return solve_in_parts(
            problem,
            self._trees,
            lambda part, prepared: solve_nearest(
                part, prepared, self.robot, self._nearest_starts, several, self._cores
            ),
        )


_compiling = threading.Lock()
_ready = False


def _compile_general() -> None:
    """Compile the general kernel once per process, or wait until another thread has done it."""
    global _ready
    if not _ready:
        from kinopt_ros.solvers.cpu.kernels.general import load_or_compile

        with _compiling:
            _ready = load_or_compile(may_compile=True)


def _load_general() -> None:
    """Load the general kernel if it lies on disk, unless another thread is at it."""
    global _ready
    if not _ready and _compiling.acquire(blocking=False):
        from kinopt_ros.solvers.cpu.kernels.general import load_or_compile

        try:
            _ready = load_or_compile(may_compile=False)
        finally:
            _compiling.release()


def _plain_tolerances(problem: IkProblem) -> tuple[float, float] | None:
    """Return tolerances (m, rad) of a problem that the quicker kernel can solve, else None."""
    return problem.targets[0].plain if problem.is_plain else None
