"""What the page is about, without the page: a robot, poses for its tips, a scene, a solver, and what they give.

Methods may be called from any thread. What takes long (``prepare``, ``solve``, ``plan``) works on what was asked when
it was called, and keeps nobody waiting.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError, KinoptError, shown
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import is_pose
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.chains import default_group, resolve_joints
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.problems.trajectory import Goal, JointGoal, PoseGoal, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.states import joints_of_state, named_configuration
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene
from kinopt_ros.solvers.base import Feature, Solver
from kinopt_ros.solvers.paths import Report
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import AUTO, create_solver, solver_class, solver_names
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.verification.collision import clearance_of, is_free
from kinopt_ros.viewer.obstacles import Obstacles
from kinopt_ros.viewer.planned import PlannedMotion
from kinopt_ros.viewer.reach import reachable_points
from kinopt_ros.viewer.settings import Settings
from kinopt_ros.viewer.solution import Solution, solution_of
from kinopt_ros.viewer.solver_slot import SolverSlot

MOST_TIPS = 8
"""Most links that poses are asked for at once."""
ALL_SOLUTIONS = 8
"""Number of distinct solutions that are asked for when all are to be shown."""
DISTINCT = 0.5
"""Least difference of one joint, rad or m, of solutions that are shown beside one another."""
_DRAWS = 200
"""Number of random configurations that are tried for a reachable pose."""


@dataclass(frozen=True)
class Near:
    """The two bodies that are nearest to each other."""

    distance: float
    """m; negative in collision, infinite if there is nothing to compare."""
    a: str
    b: str


class Session:
    """One robot, and what is asked of it."""

    def __init__(
        self,
        robot: RobotModel,
        *,
        group: str | None = None,
        tips: Sequence[str] = (),
        solver: str = AUTO,
        scene: Scene = EMPTY_SCENE,
    ) -> None:
        """
        Args:
            robot: the robot.
            group: whose joints move; default: the robot's first group with a tip.
            tips: links to place, all at once; default: the group's tip.
            solver: name of a plugin.
            scene: what is around the robot at first.

        Raises:
            KinoptError: an unknown name, or no joint moves a tip.
        """
        self._lock = threading.RLock()
        self.robot = robot
        self.settings = Settings()
        self.obstacles = Obstacles(robot, scene)
        self.avoid_collisions = True
        self.nearest = False
        """Whether a pose that cannot be reached is to be come near to."""
        self.moves_robot = True
        """Whether a solution is where the robot is from now on; else it is a goal to plan to."""
        self._q: Annotated[Float64, "nq"] = robot.default_q.copy()
        self._solution: Solution | None = None
        self._motion: PlannedMotion | None = None
        self._solvers = SolverSlot()
        self._solver_name = solver
        self._unready: str = "solver and collision checks are being prepared"
        self._random = np.random.default_rng(0)
        self._group: str | None = None
        self._choose(group, tuple(tips))
        solver_class(solver)  # so that a mistake is heard now

    # What is asked.

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups with a tip, which can be chosen."""
        return tuple(name for name, group in self.robot.groups.items() if group.tip_link is not None)

    @property
    def group(self) -> str | None:
        """Group whose joints move; None: every joint between the root and a tip."""
        return self._group

    @property
    def tips(self) -> tuple[str, ...]:
        """Links that have a pose to reach."""
        return tuple(self._targets)

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints that move."""
        return self._joints

    @property
    def variables(self) -> Annotated[np.ndarray, "n"]:
        """Indices in q of what moves."""
        return self._variables

    @property
    def targets(self) -> Mapping[str, Annotated[Float64, "4 4"]]:
        """Pose of each tip in the robot's root link."""
        with self._lock:
            return dict(self._targets)

    @property
    def q(self) -> Annotated[Float64, "nq"]:
        """Where the robot is."""
        with self._lock:
            return self._q

    @property
    def solution(self) -> Solution | None:
        """The last answer."""
        return self._solution

    @property
    def motion(self) -> PlannedMotion | None:
        """The last motion that was planned."""
        return self._motion

    @property
    def solver_name(self) -> str:
        """The plugin that was asked for."""
        return self._solver_name

    @property
    def prefers_closest(self) -> bool:
        """Whether the solver can look for the solution that is closest to where the robot is; else it begins there."""
        return Feature.POSTURE in solver_class(self._solver_name).capabilities.features

    @property
    def scene(self) -> Scene | None:
        """What must not be touched; None if that is not looked at."""
        return self.obstacles.scene if self.avoid_collisions else None

    @property
    def states(self) -> tuple[str, ...]:
        """Named states of the robot, as ``group/state``."""
        return tuple(f"{name}/{state}" for name, group in self.robot.groups.items() for state in group.states)

    def choose_group(self, name: str) -> None:
        """Let another group's joints move, to place its tip; the gizmo goes to where that is."""
        self._choose(name, ())

    def set_target(self, tip: str, T_root_tip: Annotated[Float64, "4 4"]) -> None:
        """Ask for a pose of a tip.

        Raises:
            InvalidGoalError: no such tip, or no pose.
        """
        T = np.array(T_root_tip, dtype=np.float64)
        if T.shape != (4, 4) or not bool(is_pose(T)):
            raise InvalidGoalError(
                "the gizmo is at no pose: a number is not finite, or its quaternion not of length 1"
            )
        with self._lock:
            if tip not in self._targets:
                raise InvalidGoalError(
                    f"there is no gizmo for {shown(tip)}; there are: {', '.join(self._targets)}"
                )
            self._targets[tip] = T

    def set_q(self, q: Annotated[Float64, "nq"]) -> None:
        """Put the robot somewhere; gizmos stay where they are.

        Raises:
            InvalidStateError: not one finite number for each variable.
        """
        values = np.array(q, dtype=np.float64)
        if values.shape != self._q.shape or not np.isfinite(values).all():
            raise InvalidStateError(
                f"a configuration of {self.robot.name!r} is {self.robot.nq} finite numbers"
            )
        with self._lock:
            self._q = values

    def set_variable(self, name: str, value: float) -> None:
        """Put one joint somewhere, inside its limits, and the gizmos where the tips are then.

        Raises:
            KinoptError: an unknown name, or a value that is not allowed.
        """
        if name not in self.robot.variable_index:
            raise InvalidStateError(f"the robot has no variable {shown(name)}")
        i = self.robot.variable_index[name]
        lower, upper = self.robot.limits.lower[i], self.robot.limits.upper[i]
        if not lower - 1e-6 <= value <= upper + 1e-6:
            raise InvalidStateError(f"{name} is {value:g}; allowed is {lower:g} to {upper:g}")
        with self._lock:
            q = self._q.copy()
            q[i] = min(max(value, lower), upper)
            self._q = q
            self.targets_to_tips()

    def go_to_state(self, name: str) -> None:
        """Put the joints of a named state where it says, and the gizmos where the tips are then."""
        state = named_configuration(self.robot, name)
        with self._lock:
            q = self._q.copy()
            for joint in joints_of_state(self.robot, name):
                q[self.robot.variable_index[joint]] = state[self.robot.variable_index[joint]]
            self._q = q
            self.targets_to_tips()

    def targets_to_tips(self) -> None:
        """Put the gizmos where the tips are."""
        with self._lock:
            poses = forward_kinematics(self.robot, self._q, links=self.tips)
            self._targets = {tip: np.array(T) for tip, T in zip(self.tips, poses, strict=True)}

    def random_targets(self) -> None:
        """Put the gizmos where the tips can be: to a random configuration's, free of collisions if these are avoided.

        Raises:
            InvalidRequestError: no configuration of many is free.
        """
        seed = int(self._random.integers(2**31))
        states = np.repeat(self.q[None], _DRAWS, axis=0)
        states[:, self._variables] = random_configurations(self.robot, _DRAWS, seed)[:, self._variables]
        scene, clearance = self.scene, self.settings["clearance"]
        for q in states:
            if scene is None or is_free(self.robot, scene, q, clearance):
                poses = forward_kinematics(self.robot, q, links=self.tips)
                with self._lock:
                    self._targets = {tip: np.array(T) for tip, T in zip(self.tips, poses, strict=True)}
                return
        raise InvalidRequestError(f"none of {_DRAWS} random configurations is free of collisions")

    # What takes time.

    @property
    def ready(self) -> bool:
        """Whether ``prepare`` is done."""
        return not self._unready

    def prepare(self) -> None:
        """Make the solver ready, and what collision checks need: seconds, or a compiler's minute.

        Raises:
            KinoptError: this robot cannot be served; the sentence says why.
        """
        try:
            self.choose_solver(self._solver_name)
            prepare_collisions(self.robot)
            self._unready = ""
        except KinoptError as error:
            self._unready = str(error)
            raise

    def choose_solver(self, name: str) -> None:
        """Let another plugin answer, once it is ready; until then the one before does.

        Raises:
            KinoptError: there is none of that name, or it cannot serve the robot.
        """
        for_poses, for_plans = create_solver(name, self.robot), create_solver(name, self.robot)
        for_poses.warm_up()
        self._solver_name = name
        self._solvers.put(for_poses, for_plans)

    def solver_choices(self) -> tuple[str, ...]:
        """Return plugins that can run here and solve inverse kinematics."""
        return (AUTO, *(name for name in solver_names() if _solves_ik(name)))

    def ik_problem(self, num_solutions: int = 1) -> IkProblem:
        """Return the problem that the gizmos pose.

        Raises:
            KinoptError: settings that do not go together.
        """
        with self._lock:
            targets, q, settings = dict(self._targets), self._q, self.settings
            tips, T = tuple(targets), np.array(list(targets.values()))
        arguments: dict[str, Any] = {
            "group": self._group,
            "base_link": self.robot.root_link,
            "tip_link": tips[0] if len(tips) == 1 else tips,
            "state": q,
            "position_tolerance": settings["position_tolerance"],
            "orientation_tolerance": settings["orientation_tolerance"],
            "scene": self.scene,
            "clearance": settings["clearance"] if self.avoid_collisions else 0.0,
            "num_solutions": num_solutions,
        }
        if self.nearest:
            arguments |= {"nearest": settings.pose_weights, "num_solutions": 1}
        elif num_solutions > 1:  # the closest of an arm with a spare joint are hardly different
            arguments["min_separation"] = DISTINCT
        else:
            if self.prefers_closest:
                arguments["prefer"] = "closest"
            else:
                arguments["seeds"] = q[self._variables]
            if settings["manipulability_weight"] > 0.0:
                arguments["manipulability_weight"] = settings["manipulability_weight"]
        deadline = time.monotonic() + settings["timeout"]
        return ik_problem(self.robot, T[0] if len(tips) == 1 else T, deadline=deadline, **arguments)

    def solve(self, num_solutions: int = 1) -> Solution:
        """Answer the gizmos' poses, and put the robot there if solutions move it. What cannot be asked is an answer,
        too: a sentence."""
        before = self.q
        solution = self._answer(num_solutions)
        with self._lock:
            self._solution = solution
            # Who has put the robot elsewhere meanwhile is not undone.
            if self.moves_robot and solution.q is not None and self._q is before:
                self._q = solution.q
        return solution

    def _answer(self, num_solutions: int) -> Solution:
        try:
            with self._solvers.for_poses() as solver:
                if solver is None or self._unready:
                    raise InvalidRequestError(self._unready or "there is no solver")
                problem = self.ik_problem(num_solutions)
                return solution_of(problem, solver.solve_ik(problem))
        except KinoptError as error:
            nan = float("nan")
            none = np.empty((0, self.robot.nq))
            return Solution(error.status, str(error), None, None, none, nan, nan, self._solver_name, 0.0)

    def nearest_bodies(self, q: Annotated[Float64, "nq"]) -> Near | None:
        """Return the two bodies that are nearest in a configuration; None until collision checks are ready."""
        if self._unready:
            return None
        near = clearance_of(self.robot, self.obstacles.scene, q)
        return Near(near.distance, near.a, near.b)

    def plan(self, report: Report | None = None) -> TrajectoryResult:
        """Plan a verified motion from where the robot is to the gizmos' poses, or to what is as near as possible where
        that is wanted; ``motion`` is it, if there is one.

        Raises:
            KinoptError: it cannot be asked, or the solver plans no motions.
        """
        with self._solvers.for_plans() as solver:
            if solver is None or self._unready:
                raise InvalidRequestError(self._unready or "there is no solver")
            problem = self._trajectory_problem(solver)
            result = plan_trajectory(solver, problem, report)
        with self._lock:
            self._motion = PlannedMotion(self.robot, problem, result) if result.success else None
        return result

    def _trajectory_problem(self, solver: Solver) -> TrajectoryProblem:
        with self._lock:
            targets, q, settings = dict(self._targets), self._q, self.settings
        tolerances = settings["position_tolerance"], settings["orientation_tolerance"]
        goal: Goal = PoseGoal(
            tuple(PoseTarget(tip, T[None].copy(), *tolerances) for tip, T in targets.items())
        )
        if self.nearest:
            ik = self.ik_problem()
            nearest = solution_of(ik, solver.solve_ik(ik))
            if nearest.q is None:
                raise InvalidGoalError(f"there is no configuration to plan to: {nearest.sentence}")
            goal = JointGoal(nearest.q[self._variables])
        return trajectory_problem(
            self.robot,
            goal,
            joints=self._joints,
            base_link=self.robot.root_link,
            tip_link=next(iter(targets)),
            start=q,
            scene=self.scene,
            clearance=settings["clearance"] if self.avoid_collisions else 0.0,
            velocity_scaling=settings["velocity_scaling"],
            acceleration_scaling=settings["acceleration_scaling"],
            weights=settings.cost_weights,
            rest=self.robot.default_q,
            deadline=time.monotonic() + settings["planning_time"],
        )

    def reachable_points(self, tip: str) -> Annotated[Float64, "N 3"]:
        """Return where a tip can be, m in the root link."""
        return reachable_points(self.robot, tip, self._variables, self.q)

    def close(self) -> None:
        """Free what solvers hold."""
        self._unready = self._unready or "the page is closed"
        self._solvers.clear()

    def _choose(self, group: str | None, tips: tuple[str, ...]) -> None:
        robot = self.robot
        if len(tips) > MOST_TIPS or len(set(tips)) != len(tips):
            raise InvalidRequestError(
                f"{len(tips)} tips are named; allowed are at most {MOST_TIPS}, each once"
            )
        if group is None and not tips:
            group = default_group(robot).name
        _, links, joints = resolve_joints(robot, group, robot.root_link, tips or None, (), (), ())
        with self._lock:
            self._group, self._joints = group, joints
            self._variables = np.array(variables_of_joints(robot, joints))
            self._targets = dict.fromkeys(links, np.eye(4))
            self._solution = self._motion = None
            self.targets_to_tips()


def _solves_ik(name: str) -> bool:
    try:
        return solver_class(name).solves_ik()
    except KinoptError:  # not available here: `kinopt doctor` says why
        return False
