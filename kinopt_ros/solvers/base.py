"""The solver interface. A plugin implements ``_solve_ik``, ``_optimize_trajectory``, or both; what users call is
``solve_ik`` and ``optimize_trajectory``, which check the problem before and every claimed solution after, and which a
plugin cannot replace."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, Any, ClassVar, Self, cast, final

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.errors import (
    InvalidRequestError,
    NotReadyError,
    UnknownNameError,
    UnsupportedFeatureError,
    quoted,
    shown,
)
from kinopt_ros.kinematics.tangent import directions
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.result import ObjectiveCandidates, ObjectiveResult
from kinopt_ros.problems.constraints.rows import ConstraintRow, LineRow, PoseRow
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.index import IndexPreference
from kinopt_ros.problems.preferences.manipulability import Manipulability
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.problems.trajectory_validation import check_trajectory_problem
from kinopt_ros.problems.validation import check_ik_problem
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.variables import joint_named, quaternion_columns
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.asking import Asking, R
from kinopt_ros.solvers.choice import choose
from kinopt_ros.solvers.explanation import explain
from kinopt_ros.solvers.judgement import Case, judge, own_copy
from kinopt_ros.solvers.nearest import nearest_answer
from kinopt_ros.solvers.objective_gate import verified
from kinopt_ros.solvers.paths import PathCandidates, PathRequest, Report, check_path_request
from kinopt_ros.solvers.readiness import check_ready
from kinopt_ros.solvers.remedies import with_remedies
from kinopt_ros.solvers.result import IkCandidates, IkResult
from kinopt_ros.solvers.scene_ready import wait_for_scene
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.solvers.verified import answer, complete
from kinopt_ros.verification.configuration import prepared


class Feature(Enum):
    """Features that a problem may need beyond one pose of one link."""

    SEVERAL_TARGETS = "several targets"
    SEVERAL_SOLUTIONS = "several solutions"
    AXIS_TOLERANCES = "tolerances per axis and free axes"
    TOOL = "a tool offset"
    POSTURE = "a preferred posture"
    TURNS = "solutions that differ by whole turns"
    NEAREST = "weights, for what is as near as possible"
    MANIPULABILITY = "a preference for manipulability"
    TRAJECTORIES = "trajectories"
    OBJECTIVES = "objectives"


@dataclass(frozen=True)
class Capabilities:
    """Problems that a solver can honour. Everything else is refused by name before the solver sees it."""

    joint_types: frozenset[JointType]
    """Types of the joints that it can move; held and fixed joints may be of any type."""
    features: frozenset[Feature] = frozenset()
    max_variables: int = 64
    """Most variables that it can solve for."""
    indices: tuple[type[IndexPreference], ...] = (Manipulability,)
    """Kinds of indices that it can honour, with ``Feature.MANIPULABILITY``; ``(IndexPreference,)``: all, also those
    that come later."""
    rows: frozenset[type[ConstraintRow]] = frozenset({PoseRow, LineRow})
    """Kinds of rows, of constraints all along a motion, that it can honour where it optimizes trajectories."""
    costs: frozenset[str] = frozenset({"smoothness", "velocity", "acceleration", "jerk", "rest"})
    """Names of the costs of motions (fields of ``CostWeights``) that it can honour there."""
    objective_costs: frozenset[type[Cost]] | None = None
    """Kinds of costs that it can honour, with ``Feature.OBJECTIVES``; None: any, anybody's too."""
    objective_points: int | None = None
    """Most points of an objective, 1 for configurations alone; None: any number."""


@dataclass(frozen=True)
class Option:
    """One setting of a solver; becomes the ROS parameter ``<solver>.<name>``."""

    name: str
    default: bool | int | float | str
    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    """Texts that are allowed; ``cuda:N`` stands for ``cuda:`` and a whole number. Empty if any text is."""
    read_only: bool = False
    """Whether only the one who starts the process may set it, as with names of files and folders."""

    def check(self, given: object) -> Any:
        """Return the value given, if it is of the right type and in range; raise InvalidRequestError if not."""
        wanted = type(self.default)
        if wanted is float and type(given) is int and abs(given) < 1e300:
            given = float(given)
        if type(given) is not wanted:
            hint = "; quotes make a text of it" if wanted is str and isinstance(given, int | float) else ""
            raise InvalidRequestError(f"{self.name} takes {_WANTED[wanted]}, not {shown(given)}{hint}")
        if isinstance(given, str) and self.choices and not _is_one_of(self.choices, given):
            raise InvalidRequestError(
                f"{self.name} is {quoted(given)}; allowed are {', '.join(self.choices)}"
            )
        if isinstance(given, int | float) and not isinstance(given, bool):
            low = -float("inf") if self.minimum is None else self.minimum
            high = float("inf") if self.maximum is None else self.maximum
            if not low <= given <= high:
                raise InvalidRequestError(f"{self.name} is {shown(given)}; allowed is {low} to {high}")
        return given


_WANTED = {bool: "true or false", int: "a whole number", float: "a float", str: "a text"}


def _is_one_of(choices: tuple[str, ...], given: str) -> bool:
    kind, _, number = given.partition(":")
    if number.isascii() and number.isdecimal():
        return f"{kind}:N" in choices
    return given in choices and not given.endswith(":N")


@remembered
def _joint_of_other_type(
    robot: RobotModel, joints: tuple[str, ...], types: frozenset[JointType]
) -> tuple[str, JointType] | None:
    """Return the first of some joints that is of none of these types."""
    return next(
        ((name, type_) for name in joints if (type_ := joint_named(robot, name).type) not in types), None
    )


class UnknownOptionError(UnknownNameError):
    """An option that the solver does not have."""

    kind = "option"
    status = InvalidRequestError.status


class Solver(ABC):
    """Base class of all plugins. After ``configure``, ``solve_ik`` may be called from several threads."""

    name: ClassVar[str]
    version: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    options: ClassVar[tuple[Option, ...]] = ()
    finds_poses: ClassVar[bool] = False
    """Whether its searches for objectives find link poses that have to hold without starts from elsewhere."""
    prompt: ClassVar[bool] = False
    """Whether a deadline of milliseconds ends it for certain. Then the node may ask it on the thread that takes
    requests in, which saves 0.1 ms; all clients wait for a solver that does not come back from there."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for method in (
            "solve_ik",
            "optimize_trajectory",
            "solve_objective",
            "prepare_objective",
            "configure",
        ):
            if getattr(cls, method) is not getattr(Solver, method):
                raise TypeError(f"{cls.__name__} must implement _{method}, not replace {method}")
        if getattr(cls.solves_ik, "__func__", None) is not Solver.solves_ik.__func__:  # type: ignore[attr-defined]
            raise TypeError(f"{cls.__name__} must leave solves_ik as it is, which looks for _solve_ik")

    def __init__(self) -> None:
        self._robot: RobotModel | None = None
        self._values: Mapping[str, Any] = {}
        self._relative: Solver | None = None
        self._making = threading.Lock()

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Return why the plugin cannot run here, in one sentence; None if it can.

        Must be quick and import nothing heavy.
        """
        return None

    @property
    def robot(self) -> RobotModel:
        """The robot that the solver is configured for."""
        if self._robot is None:
            raise NotReadyError(f"solver {self.name} is not configured; call configure(robot) first")
        return self._robot

    @property
    def remark(self) -> str:
        """What a user should know of how the solver works at present, in a few words; empty if there is nothing."""
        return ""

    @final
    def configure(self, robot: RobotModel, options: Mapping[str, Any] | None = None) -> None:
        """Prepare for a robot. Options not given take their defaults; unknown or illegal ones raise."""
        known = {option.name: option for option in self.options}
        for given in options or {}:
            if given not in known:
                raise UnknownOptionError(given, known)
        values = {name: option.default for name, option in known.items()}
        values |= {name: known[name].check(value) for name, value in (options or {}).items()}
        if not self.solves_ik() and not self.capabilities.features & {
            Feature.TRAJECTORIES,
            Feature.OBJECTIVES,
        }:
            raise TypeError(
                f"{type(self).__name__} must implement _solve_ik, or have Feature.TRAJECTORIES or Feature.OBJECTIVES"
            )
        self._configure(robot, values)
        prepared()
        self._robot, self._values, self._relative = robot, values, None

    @final
    def for_robot(self, robot: RobotModel) -> Self:
        """Return a solver of the same kind and with the same options for another robot. The last one is kept, and
        closed with this one."""
        _ = self.robot  # raises if there is none
        with self._making:
            relative = self._relative
            if relative is None or relative.robot is not robot:
                relative = type(self)()
                relative.configure(robot, self._values)
                self._relative = relative
        return cast(Self, relative)

    @final
    def solve_ik(self, problem: IkProblem) -> IkResult:
        """Solve B requests. Raises for a malformed or unsupported problem; every other failure is a status."""
        start = time.perf_counter()
        self._check(problem)
        claims = self._claims(problem)
        case = Case(self.robot, problem, self.name)
        candidates = own_copy(case, claims)
        if problem.nearest:
            return nearest_answer(case, candidates, start)
        judgement = judge(case, candidates)
        if problem.scene is not None:
            judgement = self._answered(complete(case, judgement))
        choice = choose(case, judgement)
        explanation = explain(case, candidates, judgement)
        result = answer(case, judgement, choice, explanation, candidates.algorithm, start)
        if not judgement.all_solved and Feature.AXIS_TOLERANCES in self.capabilities.features:
            result = self._answered(with_remedies(case, result))
        return result

    @final
    def optimize_trajectory(
        self, problem: TrajectoryProblem, request: PathRequest, report: Report | None = None
    ) -> TrajectoryResult:
        """Improve paths from the start to goals, time and verify them: one attempt. ``planning.trajectories`` finds
        paths to begin from, and tries again.

        Raises for a malformed or unsupported problem; every other failure is a status.
        """
        from kinopt_ros.solvers.trajectory_gate import OPTIMIZE, Gate

        begin = time.perf_counter()
        self.check_optimizes()
        check_trajectory_problem(problem, self.robot)
        self.check_supported_trajectory(problem)
        if quaternion_columns(self.robot, problem.variables):
            raise InvalidRequestError(
                "paths with quaternions are not optimized as they are; plan_trajectory turns floating joints by angles"
            )
        check_path_request(problem, request)
        self._wait_for_scene(problem.scene, problem.deadline)
        candidates = self._optimize_trajectory(problem, request, report)
        gate = Gate(self.robot, problem, self.name)
        gate.stages[OPTIMIZE] = time.perf_counter() - begin
        result = gate.first_passing(request, candidates)
        return replace(
            result,
            iterations=int(candidates.iterations.sum()),
            attempts=len(request.paths),
            solve_time=time.perf_counter() - begin,
        )

    @final
    def solve_objective(self, problem: ObjectiveProblem) -> ObjectiveResult:
        """Solve B objectives of one structure.

        Raises for a malformed or unsupported problem, and for a cost whose own code fails; every other failure is a
        status.
        """
        start = time.perf_counter()
        self._check_objective(problem)
        return verified(self.robot, problem, self._solve_objective(problem), self.name, start)

    @final
    def prepare_objective(self, problem: ObjectiveProblem) -> None:
        """Compile now whatever requests of a problem's structure and batch size need, so that none of them waits."""
        self._check_objective(problem)
        self._prepare_objective(problem)

    def _check_objective(self, problem: ObjectiveProblem) -> None:
        self.check_supported_costs(problem.objective, problem.num_points)
        if problem.state.shape[1] != self.robot.nq or len(problem.free) != directions(self.robot).nv:
            raise InvalidRequestError(f"the objective problem is of another robot than {self.robot.name!r}")
        self._wait_for_scene(problem.scene, problem.deadline)

    def _wait_for_scene(self, scene: Scene | None, deadline: float | None) -> None:
        """Wait for what collision checks need while there is time; without a deadline they prepare it themselves."""
        if scene is not None and deadline is not None:
            check_ready(self.robot)
            wait_for_scene(self.robot, scene, deadline)

    def path_scores(
        self, problem: TrajectoryProblem, paths: Annotated[Float64, "S T n"], margin: float
    ) -> Annotated[Float64, "S"]:
        """Score how hopeful it is to begin from each of some paths; the least is tried first.

        Their lengths, unless a plugin knows better.
        """
        return np.asarray(np.linalg.norm(np.diff(paths, axis=1), axis=2).sum(axis=1))

    def rough_path(
        self,
        problem: TrajectoryProblem,
        ends: Annotated[Float64, "G n"],
        margin: float,
        looks: int,
        seed: int,
        go_on: Callable[[], bool],
    ) -> Annotated[Float64, "K n"] | None:
        """Search a path from the start to one of some ends that may well be free, to begin from; return its corners, or
        None.

        Returns None unless a plugin overrides it.

        Args:
            problem: what is asked, with a scene.
            ends: configurations of goals.
            margin: distance (m) that shapes shall keep in the plugin's model, beside the problem's clearance.
            looks: configurations to look at, at most.
            seed: same arguments, same seed, same path.
            go_on: asked at least every 50 ms; False ends the search.
        """
        return None

    @classmethod
    def solves_ik(cls) -> bool:
        """Return whether the plugin solves inverse kinematics; others optimize trajectories alone."""
        return cls._solve_ik is not Solver._solve_ik

    def check_solves_ik(self) -> None:
        """Raise UnsupportedFeatureError if this solver has no part in inverse kinematics."""
        if not self.solves_ik():
            raise UnsupportedFeatureError(
                f"solver {self.name} does not solve inverse kinematics: it optimizes trajectories alone"
            )

    def check_optimizes(self) -> None:
        """Raise UnsupportedFeatureError if this solver has no part in trajectories."""
        if Feature.TRAJECTORIES not in self.capabilities.features:
            raise UnsupportedFeatureError(f"solver {self.name} does not optimize trajectories")

    def check_supported_trajectory(self, problem: TrajectoryProblem) -> None:
        """Refuse by name what this solver cannot honour of a problem that fits itself (UnsupportedFeatureError)."""
        for constraint in problem.along:
            for row in constraint.rows_used - self.capabilities.rows:
                raise UnsupportedFeatureError(f"solver {self.name} does not support {row.words}")
        for cost in problem.weights.counting:
            if cost not in self.capabilities.costs:
                raise UnsupportedFeatureError(f"solver {self.name} does not support the cost {cost!r}")

    @classmethod
    def check_supported_costs(cls, costs: Iterable[Cost], num_points: int) -> None:
        """Refuse by name what this solver cannot honour of an objective (UnsupportedFeatureError)."""
        known = cls.capabilities
        if Feature.OBJECTIVES not in known.features:
            raise UnsupportedFeatureError(f"solver {cls.name} does not solve objectives")
        if known.objective_points is not None and num_points > known.objective_points:
            raise UnsupportedFeatureError(
                f"solver {cls.name} solves objectives of {known.objective_points} "
                f"{'point' if known.objective_points == 1 else 'points'}, not of {num_points}"
            )
        if known.objective_costs is None:
            return
        for cost in costs:
            if type(cost) not in known.objective_costs:
                raise UnsupportedFeatureError(
                    f"solver {cls.name} does not solve objectives with the cost {type(cost).name!r}"
                )

    def check_supported(self, problem: IkProblem) -> None:
        """Refuse by name what this solver cannot honour (UnsupportedFeatureError)."""
        self.check_solves_ik()
        targets, preference = problem.targets, problem.preference
        index = None if preference is None else preference.index
        if not problem.is_plain or targets[0].T_link_tool is not None:
            asked = (
                (len(targets) > 1, Feature.SEVERAL_TARGETS),
                (problem.num_solutions > 1, Feature.SEVERAL_SOLUTIONS),
                (problem.nearest, Feature.NEAREST),
                (any(target.plain is None for target in targets), Feature.AXIS_TOLERANCES),
                (any(target.T_link_tool is not None for target in targets), Feature.TOOL),
                (preference is not None and preference.posture is not None, Feature.POSTURE),
                (problem.turns, Feature.TURNS),
                (index is not None, Feature.MANIPULABILITY),
            )
            for wanted, feature in asked:  # no dictionary: an enum takes a microsecond to be a key
                if wanted and feature not in self.capabilities.features:
                    raise UnsupportedFeatureError(f"solver {self.name} does not support {feature.value}")
        if index is not None and not isinstance(index, self.capabilities.indices):
            raise UnsupportedFeatureError(
                f"solver {self.name} does not support a preference for {index.name}"
            )
        other = _joint_of_other_type(self.robot, problem.joints, frozenset(self.capabilities.joint_types))
        if other is not None:
            name, joint_type = other
            known = ", ".join(sorted(t.value for t in self.capabilities.joint_types))
            raise UnsupportedFeatureError(
                f"solver {self.name} does not move {joint_type.value} joints ({name!r}); it moves {known} ones"
            )
        if len(problem.variables) > self.capabilities.max_variables:
            raise UnsupportedFeatureError(
                f"solver {self.name} solves for at most {self.capabilities.max_variables} variables, "
                f"not {len(problem.variables)}; lock some joints, or take another solver"
            )

    def is_prepared_for(self, group: str) -> bool:
        """Return whether plain requests of a group never wait for a compiler, once the solver is configured.

        True, unless a plugin has an option that names such groups. The node asks for nothing beforehand that is not
        prepared.
        """
        return True

    def warm_up(self) -> None:  # noqa: B027  (most plugins have nothing to do)
        """Do now what some later request would have to wait for, such as compiling. Does nothing by default."""

    def warm_up_motions(self) -> None:
        """Do now what some later motion would have to wait for: all of ``warm_up``, unless a plugin knows better."""
        self.warm_up()

    def close(self) -> None:
        """Release what the solver holds. It cannot be used afterwards."""
        relative, self._relative = self._relative, None
        if relative is not None:
            relative.close()
        self._robot = None

    @abstractmethod
    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        """Prepare for a robot; options are complete and legal."""

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        """Return candidates for a problem that is checked and supported. Must be thread-safe and honour the
        deadline.

        Where targets have weights (``problem.nearest``, with ``Feature.NEAREST``), candidates are what is as near as
        possible; several of a request are several tries, of which the gate takes the nearest.

        To be implemented by all plugins but those that optimize trajectories alone.
        """
        raise NotImplementedError(f"{type(self).__name__} has no _solve_ik")

    def _solve_pool(self, problem: IkProblem) -> IkCandidates:
        """Return candidates for a problem with collision avoidance; of them the collision-free ones are taken.

        A plugin whose searches end with many solutions should give all of them, also if one is wanted.
        """
        return self._solve_ik(problem)

    def _check(self, problem: IkProblem) -> None:
        """Raise KinoptError for what cannot be asked, and wait for what collision checks need as long as there is
        time."""
        check_ik_problem(problem, self.robot)
        self.check_supported(problem)
        self._wait_for_scene(problem.scene, problem.deadline)

    def _claims(self, problem: IkProblem) -> IkCandidates:
        """Ask the plugin, which sees no scene."""
        if problem.scene is None:
            return self._solve_ik(problem)
        return self._solve_pool(replace(problem, scene=None, clearance=0.0))

    def _answered(self, asking: Asking[R]) -> R:
        """Return what steps end with that ask the plugin on their way. Its errors are raised where they ask."""
        try:
            question = next(asking)
            while True:
                try:
                    candidates = self._solve_ik(question)
                except Exception as error:
                    question = asking.throw(error)
                else:
                    question = asking.send(candidates)
        except StopIteration as end:
            return cast(R, end.value)

    def _optimize_trajectory(
        self, problem: TrajectoryProblem, request: PathRequest, report: Report | None
    ) -> PathCandidates:
        """Return improved paths for a problem that is checked. Must be thread-safe, and honour the deadline and
        ``report``.

        To be implemented by plugins that have ``Feature.TRAJECTORIES``.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has Feature.TRAJECTORIES, but not _optimize_trajectory"
        )

    def _solve_objective(self, problem: ObjectiveProblem) -> ObjectiveCandidates:
        """Return the best found for a problem that is checked. Must be thread-safe and honour the deadline.

        To be implemented by plugins that have ``Feature.OBJECTIVES``.
        """
        raise NotImplementedError(f"{type(self).__name__} has Feature.OBJECTIVES, but not _solve_objective")

    def _prepare_objective(self, problem: ObjectiveProblem) -> None:  # noqa: B027  (many have nothing to do)
        """Do now what requests of a problem's structure would have to wait for. Does nothing by default."""
